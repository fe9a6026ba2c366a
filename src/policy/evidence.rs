//! Folds observations into clocks: when a session was last used, when anybody was last there, and, card by
//! card, when its cards last worked.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{CardEvidence, GivenUp, KernelSource, Policy, Session, Waits, waits};
use crate::domain::{GpuId, GpuSample, Jupyter, KernelState};

/// What is known of one session up to now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Each card it holds.
    pub cards: BTreeMap<GpuId, CardEvidence>,
    /// The use clock: the last sign of work in a kernel, a terminal or on the CPU.
    pub used: Timestamp,
    /// What moved the use clock last; absent where nothing has since the session began.
    #[serde(default)]
    pub used_by: Option<UseSign>,
    /// The presence clock: the last sign of anybody at all.
    pub present: Timestamp,
    /// The cards that it no longer holds: giving a card back undoes no work.
    #[serde(default)]
    pub given_up: Option<GivenUp>,
    /// The kernels that are busy, and how long the CPU has rested meanwhile.
    #[serde(default)]
    pub waits: Waits,
}

/// A sign of use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UseSign {
    /// A kernel, by its notebook where that is known, else by its id.
    Kernel(String),
    /// A terminal, by its name.
    Terminal(String),
    /// The session's processes computed.
    Cpu,
    /// The Hub's stamp, where kernels may not be asked.
    Hub,
}

impl Evidence {
    /// Evidence of a session seen for the first time: its start is the last sign known.
    pub fn new(started: Timestamp) -> Self {
        Self {
            cards: BTreeMap::new(),
            used: started,
            used_by: None,
            present: started,
            given_up: None,
            waits: Waits::new(),
        }
    }

    /// The card whose clock is the latest, since one active card keeps them all.
    pub fn card_clock(&self) -> Option<&CardEvidence> {
        self.cards.values().max_by_key(|card| card.clock)
    }

    /// The smallest share of the time since the card clock that was watched, over all cards.
    pub fn coverage(&self, now: Timestamp) -> f64 {
        self.cards.values().map(|card| card.coverage(now)).fold(1.0, f64::min)
    }

    /// How old the newest reading of a card may be, over all cards.
    pub fn unwatched(&self) -> SignedDuration {
        self.cards.values().map(|card| card.unwatched).max().unwrap_or(SignedDuration::ZERO)
    }

    /// Folds one observation in.
    pub fn observe(&mut self, session: &Session, at: Timestamp, policy: &Policy) {
        self.observe_people(session, at, policy);
        waits::observe(&mut self.waits, session, at, policy);
        match &session.gpus {
            Ok(samples) => self.observe_cards(samples, at, policy),
            Err(why) => {
                for card in self.cards.values_mut() {
                    card.missed(at, policy.max_gap, why);
                }
            }
        }
    }

    fn observe_people(&mut self, session: &Session, at: Timestamp, policy: &Policy) {
        let hub = session.server.last_activity.map(|stamp| stamp.min(at));
        let mut used = Vec::new();
        let mut present = vec![hub];
        if let Ok(jupyter) = &session.jupyter {
            used.extend(uses(jupyter, at));
            present.push(last_presence(jupyter, at));
        }
        if policy.kernels == KernelSource::HubOnly {
            used.extend(hub.map(|stamp| (stamp, UseSign::Hub)));
        }
        if session.cpu.is_some_and(|cores| cores >= policy.thresholds.cpu_cores) {
            used.push((at, UseSign::Cpu));
        }
        // Where a clock was set back, what lies ahead of it happened by now.
        self.used = self.used.min(at);
        // Of several signs at the same instant the first is named, so kernels come first.
        for (stamp, sign) in used {
            if stamp > self.used {
                (self.used, self.used_by) = (stamp, Some(sign));
            }
        }
        self.present = present.into_iter().flatten().fold(self.present.min(at), Timestamp::max);
        self.given_up = self.given_up.map(|cards| cards.or_by(at));
    }

    fn observe_cards(&mut self, samples: &[GpuSample], at: Timestamp, policy: &Policy) {
        let held: BTreeMap<GpuId, CardEvidence> = samples
            .iter()
            .map(|sample| {
                let card = match self.cards.remove(&sample.id) {
                    Some(mut card) => {
                        card.observe(sample, at, policy);
                        card
                    }
                    None => CardEvidence::first(sample, at, &policy.thresholds),
                };
                (sample.id.clone(), card)
            })
            .collect();
        let left =
            self.cards.values().map(|card| GivenUp { clock: card.clock, last_active: card.last_active });
        self.given_up = self.given_up.into_iter().chain(left).reduce(GivenUp::and);
        self.cards = held;
    }
}

/// The last use of each kernel and terminal. A stamp from the future is a wrong clock somewhere and
/// counts as just now, which can only delay a stop.
fn uses(jupyter: &Jupyter, at: Timestamp) -> impl Iterator<Item = (Timestamp, UseSign)> {
    let kernels = jupyter.kernels.iter().filter_map(move |kernel| {
        let stamp = match kernel.state {
            KernelState::Busy => at,
            KernelState::Idle | KernelState::Starting | KernelState::Other(_) => {
                kernel.last_activity?.min(at)
            }
        };
        let name = kernel.notebook.as_ref().unwrap_or(&kernel.id);
        Some((stamp, UseSign::Kernel(name.clone())))
    });
    let terminals = jupyter.terminals.iter().filter_map(move |terminal| {
        Some((terminal.last_activity?.min(at), UseSign::Terminal(terminal.name.clone())))
    });
    kernels.chain(terminals)
}

fn last_presence(jupyter: &Jupyter, at: Timestamp) -> Option<Timestamp> {
    let connected = jupyter.connections > 0 || jupyter.kernels.iter().any(|kernel| kernel.connections > 0);
    if connected { Some(at) } else { jupyter.last_activity.map(|stamp| stamp.min(at)) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;
    use crate::domain::{Kernel, Terminal};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn kernel(id: &str, state: KernelState, last: i64) -> Kernel {
        Kernel { id: id.to_owned(), state, last_activity: Some(at(last)), connections: 0, notebook: None }
    }

    #[test]
    fn a_sign_of_use_has_its_name_and_no_instant_after_now() {
        let named = Kernel { notebook: Some("a.ipynb".to_owned()), ..kernel("k1", KernelState::Idle, 50) };
        let jupyter = Jupyter {
            kernels: vec![named, kernel("k2", KernelState::Busy, 10), kernel("k3", KernelState::Idle, 900)],
            terminals: vec![
                Terminal { name: "1".to_owned(), last_activity: Some(at(70)) },
                Terminal { name: "2".to_owned(), last_activity: None },
            ],
            ..Jupyter::default()
        };
        let seen: Vec<_> = uses(&jupyter, at(100)).collect();
        let kernel = |name: &str| UseSign::Kernel(name.to_owned());
        assert_eq!(
            seen,
            [
                (at(50), kernel("a.ipynb")),
                (at(100), kernel("k2")),
                (at(100), kernel("k3")),
                (at(70), UseSign::Terminal("1".to_owned())),
            ]
        );
    }

    #[test]
    fn evidence_saved_before_signs_were_kept_is_read() {
        let mut saved = serde_json::to_value(Evidence::new(at(0))).unwrap();
        saved.as_object_mut().unwrap().remove("used_by").unwrap();
        assert_eq!(serde_json::from_value::<Evidence>(saved).unwrap(), Evidence::new(at(0)));
    }
}

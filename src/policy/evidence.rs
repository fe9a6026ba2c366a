//! Folds observations into clocks: when a session's cards last worked, when it was last used, when
//! anybody was last there, and how much of the time since then was really watched.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::schedule::earlier;
use super::{KernelSource, Policy, Session, Thresholds, Waits, waits};
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

/// What is remembered of the cards that a session no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenUp {
    /// The latest of their clocks.
    pub clock: Timestamp,
    /// When one of them was last seen at work.
    pub last_active: Option<Timestamp>,
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

/// What is known of one card of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CardEvidence {
    /// The product's name.
    pub model: String,
    /// The card clock: the card has certainly rested since then.
    pub clock: Timestamp,
    /// What set the clock last.
    pub moved_by: ClockMove,
    /// The last instant at which it was really seen at work.
    pub last_active: Option<Timestamp>,
    /// Up to when it was watched without a gap that counts.
    pub seen_until: Timestamp,
    /// How much of the time since the clock was watched.
    pub covered: SignedDuration,
    /// How much of the time up to the last look it was seen at rest.
    #[serde(default)]
    pub rested: SignedDuration,
    /// How much of the time up to the last look was not watched: the newest reading may be as old.
    #[serde(default)]
    pub unwatched: SignedDuration,
    /// Device memory held at the last reading, in bytes.
    pub memory_used: Option<u64>,
    /// Processes on it at the last reading.
    pub processes: Option<u32>,
    /// Whether the last reading could be used.
    pub watch: Watch,
}

/// Why a card clock stands where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockMove {
    /// The card worked.
    Activity,
    /// Nothing was seen for too long before it.
    Gap,
    /// The card was seen in this session for the first time.
    FirstSeen,
}

/// Whether a card can be read just now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Watch {
    /// The last reading was good.
    Readable,
    /// It was not, and why.
    Unreadable(String),
}

/// What one sample proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Active,
    Resting,
    Unreadable,
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

impl GivenUp {
    fn and(self, other: Self) -> Self {
        Self { clock: self.clock.max(other.clock), last_active: self.last_active.max(other.last_active) }
    }

    /// Nothing of it lies ahead of `at`.
    fn or_by(self, at: Timestamp) -> Self {
        Self { clock: self.clock.min(at), last_active: self.last_active.map(|worked| worked.min(at)) }
    }
}

impl CardEvidence {
    /// A card seen for the first time: nothing is known of the time before.
    fn first(sample: &GpuSample, at: Timestamp, thresholds: &Thresholds) -> Self {
        let reading = read(sample, thresholds);
        let active = reading == Reading::Active;
        Self {
            model: sample.model.clone(),
            clock: at,
            moved_by: if active { ClockMove::Activity } else { ClockMove::FirstSeen },
            last_active: active.then_some(at),
            seen_until: at,
            covered: SignedDuration::ZERO,
            rested: SignedDuration::ZERO,
            unwatched: SignedDuration::ZERO,
            memory_used: sample.memory_used,
            processes: sample.processes,
            watch: watch(sample, reading),
        }
    }

    fn observe(&mut self, sample: &GpuSample, at: Timestamp, policy: &Policy) {
        self.begin_anew_if_set_back(at, policy.max_gap);
        let reading = read(sample, &policy.thresholds);
        self.rested = SignedDuration::ZERO;
        self.model.clone_from(&sample.model);
        self.memory_used = sample.memory_used;
        self.processes = sample.processes;
        self.watch = watch(sample, reading);
        match reading {
            Reading::Active => self.worked(at),
            Reading::Resting => self.rested(sample, at, policy.max_gap),
            Reading::Unreadable => self.gap_until(at, policy.max_gap),
        }
    }

    /// Somewhere between the last reading and `at` it worked; the latest possible instant counts.
    fn worked(&mut self, at: Timestamp) {
        self.last_active = Some(self.last_active.map_or(at, |before| before.max(at)));
        self.seen_until = self.seen_until.max(at);
        self.unwatched = SignedDuration::ZERO;
        self.move_clock(at, ClockMove::Activity, SignedDuration::ZERO);
    }

    fn rested(&mut self, sample: &GpuSample, at: Timestamp, max_gap: SignedDuration) {
        let elapsed = at.duration_since(self.seen_until);
        if !elapsed.is_positive() {
            return; // seen already, or the clock was set back a little: nothing new is proven
        }
        let covered = signed(sample.covered).min(elapsed);
        self.seen_until = at;
        self.unwatched = elapsed - covered;
        self.rested = covered;
        if signed(sample.largest_gap) > max_gap {
            self.move_clock(at, ClockMove::Gap, SignedDuration::ZERO);
        } else if self.unwatched > max_gap {
            self.move_clock(earlier(at, covered), ClockMove::Gap, covered);
        } else {
            self.covered += covered;
        }
    }

    /// Nothing was read at `at`: a gap goes on, and once it is too long the clock goes with it.
    fn gap_until(&mut self, at: Timestamp, max_gap: SignedDuration) {
        if at.duration_since(self.seen_until) > max_gap {
            self.move_clock(at, ClockMove::Gap, SignedDuration::ZERO);
        }
    }

    fn missed(&mut self, at: Timestamp, max_gap: SignedDuration, why: &str) {
        self.begin_anew_if_set_back(at, max_gap);
        self.watch = Watch::Unreadable(why.to_owned());
        self.rested = SignedDuration::ZERO;
        self.gap_until(at, max_gap);
    }

    /// A clock that was set back by more than a gap may be: what was seen under the old time says
    /// nothing about the new one, so the watch begins anew.
    fn begin_anew_if_set_back(&mut self, at: Timestamp, max_gap: SignedDuration) {
        if self.seen_until.max(self.clock).duration_since(at) > max_gap {
            self.seen_until = at;
            self.last_active = self.last_active.map(|worked| worked.min(at));
            (self.clock, self.moved_by, self.covered) = (at, ClockMove::Gap, SignedDuration::ZERO);
        }
    }

    fn move_clock(&mut self, to: Timestamp, by: ClockMove, covered: SignedDuration) {
        if to >= self.clock {
            self.clock = to;
            self.moved_by = by;
            self.covered = covered;
        }
    }

    /// The share of the time since the clock that was watched; 1 where no time has passed.
    pub fn coverage(&self, now: Timestamp) -> f64 {
        let elapsed = now.duration_since(self.clock).as_secs_f64();
        if elapsed <= 0.0 {
            return 1.0;
        }
        (self.covered.as_secs_f64() / elapsed).min(1.0)
    }
}

/// Any valid reading at or over its threshold proves work, whatever else is missing; only a
/// complete set of valid readings proves rest.
fn read(sample: &GpuSample, thresholds: &Thresholds) -> Reading {
    let over = |ratio: Option<crate::domain::Ratio>, limit: f64| ratio.is_some_and(|r| r.get() >= limit);
    let engine_works = || sample.engines.values().any(|engine| engine.is_some_and(|r| r.get() > 0.0));
    if over(sample.sm, thresholds.sm) || over(sample.dram, thresholds.dram) || engine_works() {
        Reading::Active
    } else if sample.sm.is_none() || sample.dram.is_none() || sample.engines.values().any(Option::is_none) {
        Reading::Unreadable
    } else {
        Reading::Resting
    }
}

/// Whether a sample proves that its card works.
pub fn is_active(sample: &GpuSample, thresholds: &Thresholds) -> bool {
    read(sample, thresholds) == Reading::Active
}

fn watch(sample: &GpuSample, reading: Reading) -> Watch {
    if reading == Reading::Unreadable {
        let why = sample.unreadable.clone();
        Watch::Unreadable(why.unwrap_or_else(|| "a reading is missing or out of range".to_owned()))
    } else {
        Watch::Readable
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

fn signed(duration: std::time::Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
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

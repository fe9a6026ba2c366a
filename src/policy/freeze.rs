//! The brakes: how many stops a cycle may make, and when none may be made at all.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::schedule::later;
use super::{Decision, IdleKind, Judgement, Ledger, Policy, Record, Snapshot, Verdict};
use crate::domain::ServerId;

/// The limits of the brakes.
#[derive(Clone, Debug, PartialEq)]
pub struct Safety {
    /// Stops per cycle.
    pub max_stops: StopBudget,
    /// When at least this share of the sessions turns idle in one cycle, stops freeze.
    pub freeze_share: f64,
    /// Fewer sessions than this never freeze: a share of few says nothing.
    pub freeze_min_sessions: usize,
    /// After its own start the service stops nothing for this long.
    pub min_uptime: SignedDuration,
}

/// How many servers one cycle may stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopBudget {
    /// This many.
    Count(usize),
    /// This share of the sessions.
    Share(f64),
}

impl StopBudget {
    /// A cluster must be able to drain, however few its sessions.
    const LEAST: usize = 2;

    /// Stops allowed among `sessions`.
    pub fn of(self, sessions: usize) -> usize {
        let allowed = match self {
            Self::Count(count) => count,
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a number of sessions, rounded down on purpose"
            )]
            Self::Share(share) => (sessions as f64 * share) as usize,
        };
        allowed.max(Self::LEAST)
    }
}

/// Stops are frozen: too many sessions turned idle at once to be believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freeze {
    /// Since when.
    pub since: Timestamp,
    /// The sessions that turned idle together.
    pub flipped: BTreeSet<ServerId>,
    /// When the admins were told.
    #[serde(default)]
    pub told: Option<Timestamp>,
}

/// An admin's word that a freeze was needless.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifted {
    /// Who said so.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Since when stops had been frozen.
    pub since: Timestamp,
    /// How many sessions had turned idle together.
    pub flipped: usize,
}

/// What a plan does to the freeze.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreezeChange {
    /// It was off and stays off.
    None,
    /// It begins in this cycle.
    Begins(Freeze),
    /// It was on and stays on.
    Holds(Freeze),
    /// Few enough of those who flipped are still idle.
    Ends,
}

impl FreezeChange {
    /// Whether no server may be stopped.
    pub fn is_frozen(&self) -> bool {
        matches!(self, Self::Begins(_) | Self::Holds(_))
    }
}

/// How many sessions hold cards; only these count for the brakes.
pub fn holding(decisions: &[Box<Decision>]) -> usize {
    decisions.iter().filter(|decision| decision.may_hold_cards).count()
}

/// Judges the share of sessions that turn idle in this cycle, and of those that once did together.
pub fn freeze(
    decisions: &[Box<Decision>],
    snapshot: &Snapshot,
    ledger: &Ledger,
    policy: &Policy,
    now: Timestamp,
) -> FreezeChange {
    let crowd = Crowd { decisions, snapshot, ledger, policy, sees: sees(ledger) };
    let newly: BTreeSet<ServerId> = decisions
        .iter()
        .filter(|d| d.may_hold_cards && counts(&d.judgement))
        .filter(|d| !crowd.record(d).is_some_and(|record| record.usually_idle) && !crowd.was_found_so(d))
        .map(|d| d.server.clone())
        .collect();
    let begins = improbable(newly.len(), holding(decisions), &policy.safety);
    match &ledger.freeze {
        None if begins => FreezeChange::Begins(Freeze { since: now, flipped: newly, told: None }),
        None => FreezeChange::None,
        Some(freeze) if begins => {
            FreezeChange::Holds(Freeze { flipped: &freeze.flipped | &newly, ..freeze.clone() })
        }
        Some(freeze) if crowd.holds(freeze) => FreezeChange::Holds(freeze.clone()),
        Some(_) => FreezeChange::Ends,
    }
}

/// That a server at work is too old is no reading that may be wrong, and neither is that others wait. Where its
/// declared time leaves it alone, that it turned idle is a reading all the same.
fn counts(judgement: &Judgement) -> bool {
    let at_rest = judgement.verdict.at_rest().is_some_and(|idle| idle.kind != IdleKind::AtWork);
    at_rest && judgement.usually_reached
}

/// Whether any card was ever seen at work: a source that shows none may be blind.
fn sees(ledger: &Ledger) -> bool {
    let cards = || ledger.records.values().flat_map(|record| record.evidence.cards.values());
    cards().any(|card| card.last_active.is_some())
}

/// Everybody at one instant.
struct Crowd<'a> {
    decisions: &'a [Box<Decision>],
    snapshot: &'a Snapshot,
    ledger: &'a Ledger,
    policy: &'a Policy,
    sees: bool,
}

impl Crowd<'_> {
    fn record(&self, decision: &Decision) -> Option<&Record> {
        self.ledger.records.get(&decision.server)
    }

    /// Whether a session was long idle when it was first seen: nobody has seen it turn idle, so that many of
    /// them at the first start prove no fault. They count for as long as the source may be blind.
    fn was_found_so(&self, decision: &Decision) -> bool {
        let (Some(record), Some(clocks)) = (self.record(decision), decision.judgement.clocks) else {
            return false;
        };
        let never_worked = clocks.card_active.is_none() && decision.judgement.quiet_since == clocks.card;
        let was_old = clocks.card.is_some_and(|card| later(record.started, self.policy.warm_up) <= card);
        self.sees && never_worked && was_old
    }

    /// A freeze ends on proof only: sessions at work again, or gone from a complete listing, or found to be
    /// no proof themselves. Those that left still count in the whole, so that a cluster that drains thaws.
    fn holds(&self, freeze: &Freeze) -> bool {
        let recovered = |id: &&ServerId| match self.decisions.iter().find(|d| d.server == **id) {
            Some(d) => match d.judgement.verdict {
                Verdict::Unknown(_) => false,
                Verdict::Busy(_) | Verdict::Protected(_) | Verdict::Idle(_) => {
                    !counts(&d.judgement) || self.was_found_so(d)
                }
            },
            None => self.snapshot.complete,
        };
        let flipped = freeze.flipped.len();
        let still = flipped - freeze.flipped.iter().filter(recovered).count();
        improbable(still, holding(self.decisions).max(flipped), &self.policy.safety)
    }
}

impl Ledger {
    /// An admin says that those who turned idle together really are idle. They are known to be, so they
    /// do not freeze stops again; another wave does. Nothing where stops are not frozen.
    pub fn lift_freeze(&mut self, by: &str, at: Timestamp) -> Option<&Lifted> {
        let freeze = self.freeze.take()?;
        let lifted = Lifted { by: by.to_owned(), at, since: freeze.since, flipped: freeze.flipped.len() };
        Some(self.lifted.insert(lifted))
    }

    /// The admins are told that stops are frozen; or (`None`) could not be told.
    pub fn freeze_told(&mut self, at: Option<Timestamp>) {
        if let Some(freeze) = &mut self.freeze {
            freeze.told = at;
        }
    }
}

fn improbable(flipped: usize, of: usize, safety: &Safety) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "numbers of sessions")]
    let share = flipped as f64 / of.max(1) as f64;
    of >= safety.freeze_min_sessions && flipped > 0 && share >= safety.freeze_share
}

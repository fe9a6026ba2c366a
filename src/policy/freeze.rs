//! The brakes: how many stops a cycle may make, and when none may be made at all.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Decision, IdleKind, Ledger, Snapshot, Verdict};
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
pub fn holding(decisions: &[Decision]) -> usize {
    decisions.iter().filter(|decision| decision.may_hold_cards).count()
}

/// Judges the share of sessions that turn idle in this cycle, and of those that once did together.
pub fn freeze(
    decisions: &[Decision],
    snapshot: &Snapshot,
    ledger: &Ledger,
    safety: &Safety,
    now: Timestamp,
) -> FreezeChange {
    let newly: BTreeSet<ServerId> = decisions
        .iter()
        .filter(|d| d.may_hold_cards && turned_idle(&d.judgement.verdict))
        .filter(|d| !ledger.records.get(&d.server).is_some_and(|record| record.idle))
        .map(|d| d.server.clone())
        .collect();
    let begins = improbable(newly.len(), holding(decisions), safety);
    match &ledger.freeze {
        None if begins => FreezeChange::Begins(Freeze { since: now, flipped: newly }),
        None => FreezeChange::None,
        Some(freeze) if begins => {
            FreezeChange::Holds(Freeze { since: freeze.since, flipped: &freeze.flipped | &newly })
        }
        Some(freeze) if holds(freeze, decisions, snapshot, safety) => FreezeChange::Holds(freeze.clone()),
        Some(_) => FreezeChange::Ends,
    }
}

/// That a server at work is too old is no reading that may be wrong.
fn turned_idle(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Idle(idle) if idle.kind != IdleKind::AtWork)
}

fn improbable(flipped: usize, of: usize, safety: &Safety) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "numbers of sessions")]
    let share = flipped as f64 / of.max(1) as f64;
    of >= safety.freeze_min_sessions && flipped > 0 && share >= safety.freeze_share
}

/// A freeze ends on proof only: sessions at work again, or gone from a complete listing. Those that
/// left still count in the whole, so that a cluster that drains thaws.
fn holds(freeze: &Freeze, decisions: &[Decision], snapshot: &Snapshot, safety: &Safety) -> bool {
    let recovered = |id: &&ServerId| match decisions.iter().find(|d| d.server == **id) {
        Some(d) => matches!(d.judgement.verdict, Verdict::Busy(_) | Verdict::Protected(_)),
        None => snapshot.complete,
    };
    let flipped = freeze.flipped.len();
    let still = flipped - freeze.flipped.iter().filter(recovered).count();
    improbable(still, holding(decisions).max(flipped), safety)
}

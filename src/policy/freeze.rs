//! The brakes: how many stops a cycle may make, and when none may be made at all.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Decision, Ledger, ProtectedReason, Verdict};
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

/// Judges the share of sessions that are idle since one and the same cycle.
pub fn freeze(decisions: &[Decision], ledger: &Ledger, safety: &Safety, now: Timestamp) -> FreezeChange {
    let holding = decisions
        .iter()
        .filter(|d| d.judgement.verdict != Verdict::Protected(ProtectedReason::NoCard))
        .count();
    let improbable = |flipped: usize| {
        #[expect(clippy::cast_precision_loss, reason = "numbers of sessions")]
        let share = flipped as f64 / holding.max(1) as f64;
        holding >= safety.freeze_min_sessions && flipped > 0 && share >= safety.freeze_share
    };
    let idle = || decisions.iter().filter(|d| matches!(d.judgement.verdict, Verdict::Idle(_)));
    let newly: BTreeSet<ServerId> = idle()
        .filter(|d| !ledger.records.get(&d.server).is_some_and(|record| record.idle))
        .map(|d| d.server.clone())
        .collect();
    if improbable(newly.len()) {
        return FreezeChange::Begins(Freeze { since: now, flipped: newly });
    }
    match &ledger.freeze {
        None => FreezeChange::None,
        Some(freeze) if improbable(idle().filter(|d| freeze.flipped.contains(&d.server)).count()) => {
            FreezeChange::Holds(freeze.clone())
        }
        Some(_) => FreezeChange::Ends,
    }
}

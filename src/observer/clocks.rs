//! Clocks that run behind ours: what they stamp looks older than it is, and would be taken for idle too early.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use crate::domain::{Jupyter, ServerId};
use crate::hub::Dated;
use crate::message::reasons;

/// By how much the clocks run behind that do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlowClocks {
    /// The Hub's; zero where it does not.
    pub hub: SignedDuration,
    /// Single-user servers'.
    pub servers: BTreeMap<ServerId, SignedDuration>,
}

/// An instant, and how to tell the time since.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub at: Timestamp,
    pub began: Instant,
}

impl Moment {
    pub fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.began.elapsed()).unwrap_or(SignedDuration::ZERO);
        self.at.checked_add(passed).unwrap_or(self.at)
    }

    /// By how much the clock of whoever sent this answer runs behind ours.
    pub fn behind(&self, dated: Option<Dated>) -> SignedDuration {
        dated.map_or(SignedDuration::ZERO, |dated| dated.behind(self.at, self.began))
    }
}

/// A stamp of a clock that runs behind by so much, in our time.
pub(super) fn later(stamp: Option<Timestamp>, behind: SignedDuration) -> Option<Timestamp> {
    stamp.map(|stamp| stamp.checked_add(behind).unwrap_or(Timestamp::MAX))
}

/// What a server whose clock runs behind by so much says, in our time.
pub(super) fn corrected(mut jupyter: Jupyter, behind: SignedDuration) -> Jupyter {
    jupyter.last_activity = later(jupyter.last_activity, behind);
    for kernel in &mut jupyter.kernels {
        kernel.last_activity = later(kernel.last_activity, behind);
    }
    for terminal in &mut jupyter.terminals {
        terminal.last_activity = later(terminal.last_activity, behind);
    }
    jupyter
}

/// What to say of a Hub whose clock runs behind by so much.
pub(super) fn trouble(behind: SignedDuration) -> Option<String> {
    let said = || {
        format!(
            "the Hub's clock runs {} behind this machine's: its stamps count as much later; set it right",
            reasons::length(behind)
        )
    };
    (!behind.is_zero()).then(said)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;
    use crate::domain::{Kernel, KernelState, Terminal};

    fn stamped(at: &str) -> Jupyter {
        let last_activity = Some(at.parse().unwrap());
        Jupyter {
            last_activity,
            connections: 1,
            kernels: vec![Kernel {
                id: "k".to_owned(),
                state: KernelState::Idle,
                last_activity,
                connections: 1,
                notebook: None,
            }],
            terminals: vec![Terminal { name: "1".to_owned(), last_activity }],
        }
    }

    #[test]
    fn every_stamp_of_a_slow_clock_moves_by_as_much() {
        let moved = corrected(stamped("2026-12-01T07:30:00Z"), SignedDuration::from_hours(2));
        assert_eq!(moved, stamped("2026-12-01T09:30:00Z"));
    }

    #[test]
    fn a_missing_stamp_stays_missing_and_no_stamp_leaves_time() {
        let hour = SignedDuration::from_hours(1);
        assert_eq!(later(None, hour), None);
        assert_eq!(later(Some(Timestamp::MAX), hour), Some(Timestamp::MAX));
    }
}

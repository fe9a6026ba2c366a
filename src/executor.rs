//! Carries out a plan: asks again just before it acts, does one thing, looks whether it worked.
//!
//! It makes no choices of its own. What it may do is decided by what it was given: without a
//! [`Stopper`] it cannot stop anything, without a [`Post`] it cannot write to anybody.

mod addresses;
mod allowance;
mod desk;
mod endings;
mod frozen;
mod inbox;
mod journal;
mod kernels;
mod letter;
mod news;
mod notice;
mod post;
mod setbacks;
mod stop;
mod unreachable;
mod users;
mod verified;

use jiff::Timestamp;

use crate::domain::ServerId;
use crate::hub::{KernelStopper, Stopper};

pub use addresses::{AddressBook, AddressSource, Asked};
pub use allowance::LetterLimits;
pub use desk::{Answer, Done, Refusal};
pub use inbox::{Inbox, Waiting, What, Wish};
pub use journal::Journal;
pub use post::Post;
pub use setbacks::Setbacks;
pub use users::Users;
pub use verified::Orphan;

/// Where the time comes from; only the daemon reads it.
pub type Clock = fn() -> Timestamp;

/// The acting side.
#[derive(Debug, Default)]
pub struct Executor {
    /// Present in the modes `warn` and `enforce`.
    pub post: Option<Post>,
    /// Present in the mode `enforce`.
    pub stopper: Option<Stopper>,
    /// What people want, which may call off a stop in the last instant.
    pub inbox: Inbox,
    /// Present in the mode `enforce` where users are to be deleted.
    pub users: Option<Users>,
    /// Present in the mode `enforce`, where kernels are to be shut down or interrupted and may be asked.
    pub kernels: Option<KernelStopper>,
}

/// Something that was done, tried or left, with its reason. The words of `event` are those of the
/// trace format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// When.
    pub at: Timestamp,
    /// To which server; absent for what concerns all.
    pub server: Option<ServerId>,
    /// What.
    pub event: &'static str,
    /// Why, or what came of it.
    pub reason: String,
    /// What an admin has to mend before it can go on, in words that name nobody.
    pub trouble: Option<String>,
    /// What a stop came to, where it was one.
    pub stop: Option<StopOutcome>,
}

/// What a stop that was begun came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopOutcome {
    /// It is gone, and so are its processes.
    Stopped,
    /// The Hub has forgotten it, its processes live on.
    Orphaned,
    /// The Hub has not finished.
    Slow,
    /// Something had changed in the last second.
    CalledOff,
    /// It did not work.
    Failed,
}

impl StopOutcome {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Stopped, Self::Orphaned, Self::Slow, Self::CalledOff, Self::Failed];

    /// As in the metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Orphaned => "orphaned",
            Self::Slow => "slow",
            Self::CalledOff => "called-off",
            Self::Failed => "failed",
        }
    }
}

impl Happening {
    /// Something that happened to one server.
    pub fn to(server: &ServerId, at: Timestamp, event: &'static str, reason: impl Into<String>) -> Self {
        Self { at, server: Some(server.clone()), event, reason: reason.into(), trouble: None, stop: None }
    }

    /// Something that concerns all.
    pub fn to_all(at: Timestamp, event: &'static str, reason: impl Into<String>) -> Self {
        Self { at, server: None, event, reason: reason.into(), trouble: None, stop: None }
    }

    /// It did not work, and will not before somebody mends this.
    pub fn because_of(self, trouble: Option<String>) -> Self {
        Self { trouble, ..self }
    }

    /// It is what a stop came to.
    pub fn of_a_stop(self, outcome: StopOutcome) -> Self {
        Self { stop: Some(outcome), ..self }
    }
}

#[cfg(test)]
mod tests;

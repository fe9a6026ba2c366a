//! The plan: a value so specific that carrying it out makes no choices.

use jiff::{SignedDuration, Timestamp};

use super::{FreezeChange, Judgement, KernelDoubt, Mode, Target, Waiting};
use crate::domain::{Queue, ServerId};

/// What one cycle should do.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Plan {
    /// One for every session, in the order of the actions: longest idle first.
    // Large values that are sorted and passed on: thousands in one piece would need a gap of that size each time.
    pub decisions: Vec<Box<Decision>>,
    /// What happens to the brake.
    pub freeze: FreezeChange,
    /// Who waits for a card, by which it was planned; absent where that is not known.
    pub waiting: Option<Queue>,
}

/// What is done about one session, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Which server.
    pub server: ServerId,
    /// Which run of it.
    pub started: Option<Timestamp>,
    /// Whether it holds a card, or that is not known.
    pub may_hold_cards: bool,
    /// What it is taken for.
    pub judgement: Judgement,
    /// What of it is stopped, and so what its owner is told; absent where nothing may be.
    pub target: Option<Target>,
    /// How long running kernels get to save what they have after an interrupt, where there is one.
    pub save_wait: Option<SignedDuration>,
    /// What to do.
    pub action: Option<Action>,
    /// Why an idle session is not (yet) acted upon.
    pub held_back: Option<HeldBack>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Tell the owner; the stop comes at the deadline, or `grace` after acceptance if that is later.
    Warn {
        /// The deadline to promise.
        deadline: Timestamp,
        /// The least time between acceptance and the stop.
        grace: SignedDuration,
        /// Whether it announces a stop, or (mode `warn`) only asks to have a look.
        stop_follows: bool,
    },
    /// Tell the owner again.
    Remind {
        /// Which of the reminders: this long before the deadline.
        before: SignedDuration,
        /// The deadline promised.
        deadline: Timestamp,
    },
    /// Stop the server.
    Stop,
    /// Forget the warning: none of the limits is reached any more.
    Unmark,
    /// Tell the owner that the warning was taken back.
    Withdraw,
    /// Tell the owner of kernels that have waited for long; nothing follows.
    Notice(Vec<Waiting>),
}

/// Why an idle or warned session is left alone in this cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// The mode allows no more; `enforce` would do this.
    Mode(Mode, Box<Action>),
    /// The promised time has not passed.
    Warned(Timestamp),
    /// Only kernels are to be shut down, and it is not certain which.
    Kernels(KernelDoubt),
    /// A warned session cannot be judged just now.
    Unknown,
    /// Stops are frozen since this instant.
    Frozen(Timestamp),
    /// The service has only just been started; nothing is stopped before this.
    JustStarted(Timestamp),
    /// The newest reading of a card may be this old, which is more than a cycle.
    Stale(SignedDuration),
    /// This cycle has stopped as many as it may.
    Budget(usize),
    /// No stops at this hour; the next opening.
    Hours(Timestamp),
    /// Nobody can be warned: there is no mail.
    NoMail,
    /// It is idle only by the limits for when somebody waits, and enough others go for so many.
    EnoughForDemand(u32),
    /// Sending a warning was cut short and may have succeeded; it is not sent again before this.
    Interrupted(Timestamp),
}

impl Plan {
    /// How many wait for a card of this server, where that is known.
    pub fn waiting_for(&self, server: &ServerId) -> Option<u32> {
        self.waiting.as_ref().map(|queue| queue.for_server(server))
    }

    /// The decision about one server.
    pub fn of(&self, server: &ServerId) -> Option<&Decision> {
        self.decisions.iter().find(|decision| decision.server == *server).map(Box::as_ref)
    }
}

//! Verdicts: what a session can be taken for, each with its reason.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Declared, UseSign, Waiting, Why};
use crate::domain::{GpuId, Intent};

/// What a session is taken for.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// In use; left alone.
    Busy(BusyReason),
    /// One of its limits is reached and everything that decides was readable.
    Idle(Idle),
    /// Something needed for a decision is missing; left alone.
    Unknown(UnknownReason),
    /// Left alone whatever it does.
    Protected(ProtectedReason),
}

/// What shows that a session is in use.
#[derive(Clone, Debug, PartialEq)]
pub enum BusyReason {
    /// A card worked.
    Card(Timestamp),
    /// A kernel is computing.
    Kernel,
    /// Kernels are busy and have been for long, while card and CPU rest; the longest first.
    Waiting(Vec<Waiting>),
    /// Its processes compute on the CPU, on so many cores.
    Cpu(f64),
    /// It was used: when, and what shows that.
    Used(Timestamp, Option<UseSign>),
    /// Somebody is connected or was there.
    Present(Timestamp),
}

/// An idle session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idle {
    /// Since when, by the clocks of the limit that was reached.
    pub since: Timestamp,
    /// In which way.
    pub kind: IdleKind,
    /// Which limit was reached.
    pub limit: LimitKind,
}

/// In which way cards are idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleKind {
    /// No card has computed since the session was first seen.
    NeverUsed,
    /// Memory is held, nothing computes.
    Held,
    /// Allocated, and no process on it.
    Reserved,
    /// There is no card; the server itself is idle.
    NoCard,
    /// It is not idle at all: it works, and is too old all the same.
    AtWork,
}

/// The limits of design section 2, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitKind {
    /// Nobody and nothing.
    Nobody,
    /// Somebody is connected, nothing is used.
    Connected,
    /// The card alone has done nothing for long.
    CardUnused,
    /// A kernel has been busy for long while card and CPU rest.
    BusyKernel,
    /// The server is as old as a server may become, and its card rests.
    MaxAge,
    /// No activity at the Hub; only for servers without a card.
    Inactive,
}

/// Why nothing can be said.
#[derive(Clone, Debug, PartialEq)]
pub enum UnknownReason {
    /// The Hub's record lacks something.
    HubRecord(&'static str),
    /// The Hub is doing something with the server.
    Pending(String),
    /// Its cards are not known.
    Cards(Why),
    /// One of its cards cannot be read.
    Card(GpuId, String),
    /// Kernels and terminals could not be asked.
    Kernels(Why),
    /// A kernel says something that is neither work nor rest.
    KernelState(String),
    /// The session is younger than `warm_up`.
    WarmUp(Timestamp),
    /// Nothing was seen for too long up to this instant.
    Gap(Timestamp),
    /// The session's cards are watched only since this instant.
    WatchedSince(Timestamp),
    /// Too little of the time since the card clock was watched.
    Coverage(f64),
}

/// Why it is left alone whatever it does.
#[derive(Clone, Debug, PartialEq)]
pub enum ProtectedReason {
    /// It holds no card.
    NoCard,
    /// A rule exempts it.
    Exempt {
        /// The rule's name.
        rule: String,
        /// When that ends.
        until: Option<Timestamp>,
        /// Why.
        reason: String,
    },
    /// Its owner (or an admin) keeps it.
    Kept {
        /// Until when.
        until: Timestamp,
        /// Who said so.
        by: String,
    },
    /// It is idle, and within the time for which it was declared to be needed.
    Declared {
        /// How it is idle.
        idle: Idle,
        /// The declared time.
        declared: Declared,
        /// When it was judged so.
        seen: Timestamp,
    },
}

impl Verdict {
    /// How it is idle, also where it is left alone for its declared time.
    pub fn at_rest(&self) -> Option<&Idle> {
        match self {
            Self::Idle(idle) | Self::Protected(ProtectedReason::Declared { idle, .. }) => Some(idle),
            Self::Busy(_) | Self::Unknown(_) | Self::Protected(_) => None,
        }
    }
}

impl LimitKind {
    /// How much it takes to get away from it: any use, use of the card, or nothing but a new start.
    fn severity(self) -> u8 {
        match self {
            Self::Nobody | Self::Connected | Self::Inactive => 0,
            Self::CardUnused => 1,
            Self::BusyKernel => 2,
            Self::MaxAge => 3,
        }
    }
}

impl Judgement {
    /// Whether a limit is reached only because somebody waits for a card.
    pub fn for_demand(&self) -> bool {
        self.reached.is_some() && !self.usually_reached
    }

    /// Whether a warning about `warned` still tells its owner what to do: its limit is still reached, or
    /// what it asked for would have ended what is reached now as well.
    pub fn is_covered_by(&self, warned: LimitKind) -> bool {
        let enough = |reached: LimitKind| warned.severity() >= reached.severity();
        self.all_reached.contains(&warned) || self.reached.is_none_or(enough)
    }
}

/// The three clocks of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The cards' clock; absent without cards.
    pub card: Option<Timestamp>,
    /// The last instant a card was really seen at work.
    pub card_active: Option<Timestamp>,
    /// The use clock.
    pub used: Timestamp,
    /// The presence clock.
    pub present: Timestamp,
}

/// A verdict together with what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The limit that is reached by the clocks alone, even where the verdict is not Idle; of several
    /// the one that is hardest to get away from.
    pub reached: Option<LimitKind>,
    /// Every limit that is reached.
    pub all_reached: Vec<LimitKind>,
    /// Whether one would be reached whoever waits for a card.
    pub usually_reached: bool,
    /// Since when the session is quiet by at least one limit that is reached: a warning from before
    /// that is about an earlier spell.
    pub quiet_since: Option<Timestamp>,
    /// The clocks; absent where the session could not be told by its start.
    pub clocks: Option<Clocks>,
    /// The rule that applied.
    pub rule: Option<String>,
    /// What is declared of it; mostly nothing.
    pub intent: Option<Box<Intent>>,
    /// How much of its declared time counts, also when that has passed.
    pub declared: Option<Declared>,
}

//! What the mails are made of. The callers fill these from what they decided; nothing here decides.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::domain::{Hold, Intent, QueueLine, ServerId, UserName};
use crate::policy::{Declared, IdleKind, LimitKind, UseSign};

/// What an owner has to know about all their idle sessions, for one mail.
#[derive(Clone, Debug)]
pub struct OwnerNotice {
    /// Who is told.
    pub owner: UserName,
    /// The idle sessions, at least one.
    pub sessions: Vec<SessionNotice>,
    /// The zone in which instants are written.
    pub zone: TimeZone,
    /// Absolute address of the service's page, where a session can be kept.
    pub page: Option<String>,
    /// When the mail is written.
    pub now: Timestamp,
    /// Whether the server will be stopped, or this is only a notice.
    pub stops_follow: bool,
}

/// One idle session.
#[derive(Clone, Debug)]
pub struct SessionNotice {
    /// Which server.
    pub server: ServerId,
    /// The cards it holds.
    pub cards: Vec<CardNotice>,
    /// What holds memory on them, where known.
    pub holds: Vec<Hold>,
    /// Its open notebooks, where known.
    pub notebooks: Vec<String>,
    /// Since when the limit that was reached counts.
    pub idle_since: Timestamp,
    /// When a card last computed; `None` is never since the session started.
    pub card_active: Option<Timestamp>,
    /// When a kernel or terminal was last used; `None` is never since the session started.
    pub used: Option<Timestamp>,
    /// Which kernel or terminal that was, where known.
    pub used_by: Option<UseSign>,
    /// The last sign of anybody; `None` is never since the session started.
    pub present: Option<Timestamp>,
    /// When the session started, where known.
    pub started: Option<Timestamp>,
    /// How the card is idle.
    pub kind: IdleKind,
    /// Which limit was reached.
    pub limit: LimitKind,
    /// The earliest instant of a stop.
    pub deadline: Timestamp,
    /// Who waits for a card of it, where it is idle only by the limits for that.
    pub waiting: Option<QueueLine>,
    /// What is declared of it.
    pub intent: Option<Box<Intent>>,
    /// How much of its declared time counts.
    pub declared: Option<Declared>,
    /// The kernels that are shut down, by their notebooks; absent where it is the whole server.
    pub kernels: Option<Vec<String>>,
    /// How long running cells get after an interrupt, where they are interrupted before.
    pub save_wait: Option<SignedDuration>,
}

/// One card of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardNotice {
    /// The product's name.
    pub model: String,
    /// Device memory held, in bytes, where known.
    pub memory_used: Option<u64>,
    /// The card's UUID.
    pub id: String,
}

/// A server that was stopped.
#[derive(Clone, Debug)]
pub struct StoppedNotice {
    /// Who is told.
    pub owner: UserName,
    /// The session as it was just before; its limit is the reason of the stop.
    pub session: SessionNotice,
    /// When the warning was accepted.
    pub warned_at: Timestamp,
    /// When the server was gone.
    pub stopped_at: Timestamp,
    /// The zone in which instants are written.
    pub zone: TimeZone,
    /// Absolute address of the service's page.
    pub page: Option<String>,
}

/// Why an owner gets no mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// No address is known; where it was looked for, as the config spells it (`user_info.email`).
    NoAddress(Vec<String>),
    /// The mail server refused the address for good; its answer, which holds no whole address.
    Refused(String),
}

/// Idle sessions whose owner gets no mail.
#[derive(Clone, Debug)]
pub struct UnreachableNotice {
    /// The sessions, at least one.
    pub sessions: Vec<SessionNotice>,
    /// Why.
    pub why: Unreachable,
    /// The zone in which instants are written.
    pub zone: TimeZone,
    /// Absolute address of the service's page.
    pub page: Option<String>,
    /// When the mail is written.
    pub now: Timestamp,
}

/// Stops are frozen.
#[derive(Clone, Debug)]
pub struct FrozenNotice {
    /// How many sessions turned idle in one cycle …
    pub turned_idle: usize,
    /// … of how many that were watched.
    pub watched: usize,
    /// The share from which stops freeze, in percent.
    pub limit_percent: u8,
    /// Servers whose time has come and that are held back.
    pub held_back: Vec<ServerId>,
    /// When the freeze began.
    pub since: Timestamp,
    /// The zone in which instants are written.
    pub zone: TimeZone,
    /// Absolute address of the service's page.
    pub page: Option<String>,
}

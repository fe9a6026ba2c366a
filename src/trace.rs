//! The trace format: observations as JSON lines, read by `simulate` and written by `run --record`.
//!
//! A trace is what was observed, so a bug report can carry one. Times are RFC 3339 in UTC, durations
//! as people write them, ratios 0..1, memory in bytes.

mod read;
mod wire;
mod write;

use std::time::Duration;

use jiff::Timestamp;

use crate::domain::ServerId;
use crate::policy::Snapshot;

pub use read::{TraceError, read};
pub use write::{Recorder, header, observation};

/// One line of a trace.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// One observation of everything.
    Observed(Observation),
    /// What must come out.
    Expected(Vec<Expectation>),
}

/// What was observed at one instant, and what people and the mail server did.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The Hub, the cards, the kernels.
    pub snapshot: Snapshot,
    /// Keeps that were given.
    pub keeps: Vec<GivenKeep>,
    /// Whether the mail server took mail.
    pub mail: MailState,
}

/// A keep, as a trace tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenKeep {
    /// For which server.
    pub server: ServerId,
    /// For how long.
    pub length: Duration,
    /// By whom.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
}

/// What became of mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MailState {
    /// Accepted.
    #[default]
    Accepting,
    /// Answered with a refusal.
    Refusing,
    /// Not answered.
    Down,
}

/// Something that must (or must never) happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// To which server; to any where absent.
    pub server: Option<ServerId>,
    /// Which event.
    pub event: String,
    /// When: within these instants, both included; never where absent.
    pub between: Option<(Timestamp, Timestamp)>,
}

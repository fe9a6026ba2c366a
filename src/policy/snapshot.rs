//! What was observed at one instant. Parts of it may be missing; a missing part says why.

use std::sync::Arc;

use jiff::Timestamp;

use crate::domain::{GpuSample, Hold, Jupyter, Queue, Server};

/// One observation of everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// When it was taken.
    pub at: Timestamp,
    /// Every running server the Hub listed, or why the Hub could not be asked.
    pub sessions: Result<Vec<Session>, String>,
    /// Whether the listing holds every server, so that an absent one is really gone.
    pub complete: bool,
    /// Why no card at all could be read, if so.
    pub telemetry_down: Option<String>,
    /// Who waits for a card; absent where no source tells.
    pub waiting: Option<Queue>,
}

/// Why something is not known. Thousands of sessions may share the words.
pub type Why = Arc<str>;

/// A running server together with the cards it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The Hub's record; thousands of these are moved about, hence the box.
    pub server: Box<Server>,
    /// What the single-user server said, or why it could not be asked.
    pub jupyter: Result<Jupyter, Why>,
    /// Its cards (`Ok` and empty: read, and it holds none), or why they are not known.
    pub gpus: Result<Vec<GpuSample>, Why>,
    /// Cores its processes used since the last observation.
    pub cpu: Option<f64>,
    /// What of it holds memory on its cards, as far as that is known.
    pub holds: Vec<Hold>,
}

impl Session {
    /// Whether it holds a card, or that is not known.
    pub fn may_hold_cards(&self) -> bool {
        !self.gpus.as_ref().is_ok_and(Vec::is_empty)
    }
}

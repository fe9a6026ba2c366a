//! Declared times: how long somebody said that a session is needed, and how much of that counts.
//!
//! It counts from the start, and an idle session is left alone for as long, whichever limit it reaches, `max_age`
//! and those for when somebody waits among them: as with a keep, somebody's word stands against all of them, and
//! what bounds it is the cap.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::schedule::later;
use super::{Policy, ProtectedReason, Verdict};
use crate::domain::{Intent, IntentKeys, Server};

/// What an admin sets about intents.
#[derive(Clone, Debug)]
pub struct Intents {
    /// Where they are declared.
    pub keys: IntentKeys,
    /// The most that a declared time protects, from the start on; `None` is without end.
    pub cap: Option<SignedDuration>,
    /// The zone of days and hours that name none.
    pub zone: TimeZone,
}

impl Default for Intents {
    fn default() -> Self {
        let cap = Some(SignedDuration::from_hours(72));
        Self { keys: IntentKeys::default(), cap, zone: TimeZone::UTC }
    }
}

/// Until when a session is declared to be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declared {
    /// When that ends.
    pub until: Timestamp,
    /// Whether more was declared than may be.
    pub is_capped: bool,
}

impl Intents {
    /// What is declared of a server; nothing where no label says anything.
    pub fn of(&self, server: &Server) -> Option<Intent> {
        let said = (!server.labels.is_empty()).then(|| Intent::of(server, &self.keys, &self.zone));
        said.filter(|intent| !intent.is_empty())
    }

    /// How much of the declared time counts. Of a duration and an end the later one; nobody who said both meant
    /// to be stopped at the earlier.
    pub fn declared(&self, intent: &Intent, started: Option<Timestamp>) -> Option<Declared> {
        let started = started?;
        let until = intent.duration.map(|length| later(started, length)).max(intent.until)?;
        let most = self.cap.map_or(Timestamp::MAX, |cap| later(started, cap));
        Some(Declared { until: until.min(most), is_capped: until > most })
    }
}

impl Policy {
    /// An idle session within its declared time is left alone, and shown as what it is.
    pub(super) fn spared(&self, verdict: Verdict, declared: Option<Declared>, now: Timestamp) -> Verdict {
        match (verdict, declared) {
            (Verdict::Idle(idle), Some(declared)) if now < declared.until => {
                Verdict::Protected(ProtectedReason::Declared { idle, declared, seen: now })
            }
            (verdict, _) => verdict,
        }
    }
}

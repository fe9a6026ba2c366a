//! What the stops of a replay were worth, measured on what the trace goes on to tell.
//!
//! A trace knows nothing of a simulated stop, so the session goes on in it. It is taken as stopped until its
//! `started` changes or it is gone. Its cards count as given back from the stop up to the first of: work of
//! it, a new start, its end, the end of the trace. Work or a new start soon after the stop is regret.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::domain::ServerId;
use crate::policy::{Evidence, Ledger, LimitKind, Snapshot, UseSign};

/// Work within this time after a stop shows that the stop was wrong.
pub const REGRET_WITHIN: SignedDuration = SignedDuration::from_mins(30);

/// The numbers of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Warnings.
    pub warned: usize,
    /// Warnings that were taken back.
    pub unmarked: usize,
    /// Stops.
    pub stopped: usize,
    /// Hours of cards that the stops gave back.
    pub gpu_hours_freed: f64,
    /// Stops of a session that worked or was started again within 30 minutes.
    pub regretted: usize,
}

/// One stop and what followed.
#[derive(Debug)]
struct Stop {
    server: ServerId,
    at: Timestamp,
    started: Timestamp,
    cards: usize,
    limit: LimitKind,
    ended: Option<Timestamp>,
    over: bool,
}

/// What followed a stop, for the list of events.
pub struct Sequel {
    /// Which server.
    pub server: ServerId,
    /// What.
    pub event: &'static str,
    /// How long after the stop.
    pub after: SignedDuration,
}

/// All stops of a replay.
#[derive(Debug, Default)]
pub struct Account {
    stops: Vec<Stop>,
    summary: Summary,
    last: Option<Timestamp>,
}

impl Account {
    /// Takes an observation, which must have been folded into the ledger.
    pub fn observe(&mut self, seen: &Snapshot, ledger: &Ledger) -> Vec<Sequel> {
        self.last = self.last.max(Some(seen.at));
        let listed = |id: &ServerId| match &seen.sessions {
            Ok(sessions) => !seen.complete || sessions.iter().any(|session| session.server.id == *id),
            Err(_) => true,
        };
        let mut sequels = Vec::new();
        for stop in self.stops.iter_mut().filter(|stop| !stop.over) {
            let record = ledger.records.get(&stop.server);
            let event = match record {
                Some(record) if record.started != stop.started => Some("restarted"),
                Some(record) if listed(&stop.server) => {
                    worked(&record.evidence, stop).then_some("worked-again")
                }
                Some(_) | None => None,
            };
            let gone = event.is_none() && (record.is_none() || !listed(&stop.server));
            if event.is_none() && !gone {
                continue;
            }
            let first = stop.ended.is_none();
            stop.ended = stop.ended.or(Some(seen.at));
            stop.over = event != Some("worked-again");
            let after = seen.at.duration_since(stop.at);
            if first && event.is_some() && after <= REGRET_WITHIN {
                self.summary.regretted += 1;
            }
            let told = event.filter(|event| first || *event == "restarted");
            sequels.extend(told.map(|event| Sequel { server: stop.server.clone(), event, after }));
        }
        sequels
    }

    /// A warning.
    pub fn warned(&mut self) {
        self.summary.warned += 1;
    }

    /// A warning is taken back.
    pub fn unmarked(&mut self) {
        self.summary.unmarked += 1;
    }

    /// A stop, of a session with so many cards.
    pub fn stopped(
        &mut self,
        server: &ServerId,
        at: Timestamp,
        started: Timestamp,
        cards: usize,
        limit: LimitKind,
    ) {
        self.summary.stopped += 1;
        self.stops.push(Stop { server: server.clone(), at, started, cards, limit, ended: None, over: false });
    }

    /// The numbers up to the last observation.
    pub fn summary(&self) -> Summary {
        #[expect(clippy::cast_precision_loss, reason = "numbers of cards")]
        let hours = |stop: &Stop| {
            let end = stop.ended.or(self.last).unwrap_or(stop.at);
            end.duration_since(stop.at).as_secs_f64().max(0.0) / 3600.0 * stop.cards as f64
        };
        Summary {
            gpu_hours_freed: self.stops.iter().map(hours).fold(0.0, |sum, hours| sum + hours),
            ..self.summary
        }
    }
}

impl std::ops::AddAssign for Summary {
    fn add_assign(&mut self, other: Self) {
        self.warned += other.warned;
        self.unmarked += other.unmarked;
        self.stopped += other.stopped;
        self.gpu_hours_freed += other.gpu_hours_freed;
        self.regretted += other.regretted;
    }
}

/// Whether the session has worked since its stop. Where it was stopped although its kernels were used or
/// busy all along, only its cards and its CPU tell.
fn worked(evidence: &Evidence, stop: &Stop) -> bool {
    let cards = evidence.cards.values().filter_map(|card| card.last_active);
    let given_up = evidence.given_up.and_then(|cards| cards.last_active);
    let use_tells = match stop.limit {
        LimitKind::Nobody | LimitKind::Connected | LimitKind::Inactive | LimitKind::MaxAge => true,
        LimitKind::CardUnused | LimitKind::BusyKernel => evidence.used_by == Some(UseSign::Cpu),
    };
    cards.chain(given_up).any(|at| at > stop.at) || (use_tells && evidence.used > stop.at)
}

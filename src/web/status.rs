//! What the pages show: a board that the daemon writes and everybody may read.

mod counters;
mod last;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;

use super::history::History;
use crate::cycle::CycleReport;
use crate::domain::ServerId;
use crate::executor::AddressBook;
use crate::policy::{Keep, Ledger, Policy};
use crate::settings::{Cost, Settings};

pub use counters::Counters;
pub use last::{Known, Last, Other};

/// The parts of the settings that pages need besides the policy.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The zone in which instants are written.
    pub zone: TimeZone,
    /// What cards cost.
    pub cost: Cost,
    /// Where the log of what happened is.
    pub store: PathBuf,
    /// Owners' addresses, where there is mail.
    pub addresses: Option<AddressBook>,
    /// Whether the metrics are shown to everybody.
    pub metrics_are_open: bool,
    /// Whether the metrics name people.
    pub metrics_name_users: bool,
    /// Things an admin should know that do not keep the service from working.
    pub notes: Vec<String>,
}

impl Shown {
    /// What of the settings the pages show.
    pub fn of(settings: Settings, notes: Vec<String>) -> Self {
        Self {
            zone: settings.post.as_ref().map_or(TimeZone::UTC, |post| post.zone.clone()),
            cost: settings.cost,
            store: settings.store,
            addresses: settings.post.map(|post| post.addresses),
            metrics_are_open: settings.metrics_are_open,
            metrics_name_users: settings.metrics_name_users,
            notes,
        }
    }
}

/// The state of the service.
#[derive(Debug, Default)]
pub struct Status {
    /// Once there are settings in force.
    pub shown: Option<Shown>,
    /// What is decided by, with it.
    pub policy: Option<Policy>,
    /// Why it does not run cycles at all, or runs them with older settings.
    pub problems: Vec<String>,
    /// The last cycle.
    pub last: Option<Last>,
    /// What cards did.
    pub history: History,
    /// What happened since it started.
    pub counters: Counters,
}

impl Status {
    /// Settings are in force.
    pub fn announced(&mut self, shown: Shown, policy: &Policy) {
        self.shown = Some(shown);
        self.policy = Some(policy.clone());
        self.problems.clear();
    }

    /// Everything that keeps it from its work, of the service and of the last cycle.
    pub fn troubles(&self) -> Vec<&str> {
        let last = self.last.iter().flat_map(|last| &last.troubles);
        self.problems.iter().chain(last).map(String::as_str).collect()
    }

    /// The zone in which instants are written.
    pub fn zone(&self) -> TimeZone {
        self.shown.as_ref().map_or(TimeZone::UTC, |shown| shown.zone.clone())
    }

    /// What is known of one session with cards.
    pub fn known(&self, server: &ServerId) -> Option<&Known> {
        self.last.as_ref()?.known(server)
    }

    /// Takes over a cycle's report.
    pub fn completed(&mut self, report: CycleReport, ledger: &Ledger, took: Duration) {
        self.counters.completed(&report, self.last.as_ref(), took);
        self.history.saw(&report.snapshot);
        let book = self.shown.as_ref().and_then(|shown| shown.addresses.as_ref());
        let cpu_cores = self.policy.as_ref().map_or(f64::MAX, |policy| policy.thresholds.cpu_cores);
        self.last = Some(Last::of(report, ledger, book, cpu_cores, self.last.take()));
    }

    /// Shows a keep before the next cycle does.
    pub fn kept(&mut self, server: &ServerId, keep: Keep) {
        if let Some(last) = &mut self.last {
            last.kept(server, keep);
        }
    }

    /// Shows that stops are no longer frozen before the next cycle does.
    pub fn lifted(&mut self) {
        if let Some(last) = &mut self.last {
            last.freeze = None;
        }
    }

    /// Shows that a server is gone before the next cycle does.
    pub fn stopped(&mut self, server: &ServerId) {
        if let Some(last) = &mut self.last {
            last.sessions.retain(|known| known.session.server.id != *server);
        }
    }
}

/// Shared between the daemon and the pages.
#[derive(Debug, Default)]
pub struct Board(Mutex<Status>);

impl Board {
    /// Looks at the status.
    pub fn read<T>(&self, look: impl FnOnce(&Status) -> T) -> T {
        look(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes it.
    pub fn write(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

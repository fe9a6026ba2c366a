//! What the pages show: a board that the daemon writes and everybody may read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::cycle::CycleReport;
use crate::message::reasons;
use crate::policy::Mode;

/// The state of the service.
#[derive(Debug, Default)]
pub struct Status {
    /// How far it may go, once the settings are known.
    pub mode: Option<Mode>,
    /// Why it does not run cycles at all, or runs them with older settings.
    pub problems: Vec<String>,
    /// Things an admin should know that do not keep it from working.
    pub notes: Vec<String>,
    /// The last cycle; of its sessions and decisions only those that concern a known card or a stop.
    pub report: Option<CycleReport>,
    /// How many servers it found busy, idle, unknown and protected.
    verdicts: BTreeMap<&'static str, usize>,
    /// What happened since it started.
    pub counters: Counters,
}

/// What happened since the service started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Cycles completed.
    pub cycles: u64,
    /// Warnings accepted.
    pub warnings: u64,
    /// Servers stopped and gone.
    pub stopped: u64,
    /// Stops whose processes live on.
    pub orphaned: u64,
    /// Times something was held back that was due.
    pub held_back: u64,
}

impl Status {
    /// Everything that keeps it from its work, of the service and of the last cycle.
    pub fn troubles(&self) -> Vec<&str> {
        let last = self.report.iter().flat_map(|report| &report.troubles);
        self.problems.iter().chain(last).map(String::as_str).collect()
    }

    /// How many servers the last cycle found to be this.
    pub fn found(&self, verdict: &str) -> usize {
        self.verdicts.get(verdict).copied().unwrap_or_default()
    }

    /// Takes over a cycle's report.
    pub fn completed(&mut self, report: CycleReport) {
        let count = |event: &str| report.happened.iter().filter(|h| h.event == event).count() as u64;
        self.counters.cycles += 1;
        self.counters.warnings += count("warned");
        self.counters.stopped += count("stopped");
        self.counters.orphaned += count("orphaned");
        self.counters.held_back += count("held-back");
        self.verdicts.clear();
        for decision in &report.plan.decisions {
            *self.verdicts.entry(reasons::verdict_word(&decision.judgement.verdict)).or_default() += 1;
        }
        let report = without_the_crowd(report);
        self.report = Some(report);
    }
}

/// Leaves out the sessions of which no card is known and nothing is due: there may be thousands.
fn without_the_crowd(mut report: CycleReport) -> CycleReport {
    let mut with_cards = BTreeSet::new();
    if let Ok(sessions) = &mut report.snapshot.sessions {
        sessions.retain(|session| session.gpus.as_ref().is_ok_and(|gpus| !gpus.is_empty()));
        sessions.shrink_to_fit();
        with_cards.extend(sessions.iter().map(|session| session.server.id.clone()));
    }
    let decisions = &mut report.plan.decisions;
    decisions.retain(|d| with_cards.contains(&d.server) || d.action.is_some() || d.held_back.is_some());
    decisions.shrink_to_fit();
    report
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

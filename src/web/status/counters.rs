//! What happened since the service started, for the metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Last;
use crate::cycle::CycleReport;
use crate::executor::{Happening, StopOutcome};
use crate::message::reasons;
use crate::policy::FreezeChange;

/// A pause longer than this is not counted as if the cards had stayed as they were.
const LONGEST: f64 = 600.0;

/// What happened since the service started.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Cycles completed.
    pub cycles: u64,
    /// How long they took in all, in seconds.
    pub cycle_seconds: f64,
    /// How long the last one took, in seconds.
    pub last_cycle_seconds: f64,
    /// Warnings accepted.
    pub warnings: u64,
    /// Stops by what they came to.
    pub stops: BTreeMap<StopOutcome, u64>,
    /// Times something was held back that was due.
    pub held_back: u64,
    /// Times that stops froze.
    pub freezes: u64,
    /// Seconds that cards were busy, idle and so on, by model and by what their session was found to be.
    pub card_seconds: BTreeMap<(String, &'static str), f64>,
}

impl Counters {
    /// Counts one cycle.
    pub(super) fn completed(&mut self, report: &CycleReport, before: Option<&Last>, took: Duration) {
        self.cycles += 1;
        self.last_cycle_seconds = took.as_secs_f64();
        self.cycle_seconds += self.last_cycle_seconds;
        self.happened(&report.happened);
        self.freezes += u64::from(matches!(report.plan.freeze, FreezeChange::Begins(_)));
        if let Some(before) = before {
            let passed = report.at.duration_since(before.at).as_secs_f64().clamp(0.0, LONGEST);
            self.cards(report, passed);
        }
    }

    /// Counts what happened in a cycle or between two.
    pub fn happened(&mut self, happened: &[Happening]) {
        let count = |event: &str| happened.iter().filter(|h| h.event == event).count() as u64;
        self.warnings += count("warned");
        self.held_back += count("held-back");
        for outcome in happened.iter().filter_map(|happening| happening.stop) {
            *self.stops.entry(outcome).or_default() += 1;
        }
    }

    /// A card that several sessions hold counts as the busiest of them finds it.
    fn cards(&mut self, report: &CycleReport, passed: f64) {
        let holders: BTreeSet<_> = report.cards.iter().flat_map(|card| &card.servers).collect();
        let decisions = report.plan.decisions.iter().filter(|decision| holders.contains(&decision.server));
        let verdicts: BTreeMap<_, _> = decisions
            .map(|decision| (&decision.server, reasons::verdict_word(&decision.judgement.verdict)))
            .collect();
        for card in &report.cards {
            let of_holders: Vec<_> = card.servers.iter().filter_map(|id| verdicts.get(id)).collect();
            let busiest = ["busy", "unknown", "protected", "idle"];
            let held = busiest.into_iter().find(|word| of_holders.contains(&word));
            let state = match (held, card.has_strangers()) {
                (Some(verdict), _) => verdict,
                (None, true) => "unattributed",
                (None, false) => "free",
            };
            *self.card_seconds.entry((card.sample.model.clone(), state)).or_default() += passed;
        }
    }
}

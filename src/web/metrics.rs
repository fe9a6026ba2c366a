//! The numbers, for Prometheus. No user names.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use super::Status;
use crate::policy::Mode;

type Labels = Vec<(&'static str, String)>;

/// All metrics, in the OpenMetrics text format.
pub fn render(status: &Status) -> String {
    let mut registry = Registry::with_prefix("gpu_culler");
    service(status, &mut registry);
    sessions(status, &mut registry);
    outcomes(status, &mut registry);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

fn service(status: &Status, registry: &mut Registry) {
    let mode = Family::<Labels, Gauge>::default();
    for known in [Mode::Observe, Mode::Warn, Mode::Enforce] {
        mode.get_or_create(&vec![("mode", known.to_string())]).set(i64::from(status.mode == Some(known)));
    }
    registry.register("mode", "1 for the mode in force", mode);
    let problems = i64::try_from(status.troubles().len()).unwrap_or(i64::MAX);
    registry.register("problems", "Reasons why not everything works", ConstGauge::new(problems));
    if let Some(report) = &status.report {
        let at = report.at.as_second();
        registry.register("last_cycle_timestamp_seconds", "When the last cycle began", ConstGauge::new(at));
        let frozen = i64::from(report.plan.freeze.is_frozen());
        registry.register("frozen", "1 while stops are frozen", ConstGauge::new(frozen));
    }
}

fn sessions(status: &Status, registry: &mut Registry) {
    let sessions = Family::<Labels, Gauge>::default();
    for word in ["busy", "idle", "unknown", "protected"] {
        let found = i64::try_from(status.found(word)).unwrap_or(i64::MAX);
        sessions.get_or_create(&vec![("verdict", word.to_owned())]).set(found);
    }
    let cards = Family::<Labels, Gauge>::default();
    if let Some(report) = &status.report {
        for card in &report.cards {
            let holder = match (card.servers.is_empty(), card.unattributed.is_empty()) {
                (false, _) => "session",
                (true, false) => "unattributed",
                (true, true) => "nobody",
            };
            let labels = vec![("model", card.sample.model.clone()), ("held_by", holder.to_owned())];
            cards.get_or_create(&labels).inc();
        }
    }
    registry.register("sessions", "Servers by verdict of the last cycle", sessions);
    registry.register("cards", "Cards of this machine by model and holder", cards);
}

fn outcomes(status: &Status, registry: &mut Registry) {
    let counters = &status.counters;
    registry.register("cycles", "Cycles completed", ConstCounter::new(counters.cycles));
    registry.register(
        "warnings",
        "Warnings accepted by the mail server",
        ConstCounter::new(counters.warnings),
    );
    let held_back = ConstCounter::new(counters.held_back);
    registry.register("held_back", "Times something due was held back", held_back);
    let stops = Family::<Labels, prometheus_client::metrics::counter::Counter>::default();
    for (outcome, count) in [("stopped", counters.stopped), ("orphaned", counters.orphaned)] {
        stops.get_or_create(&vec![("outcome", outcome.to_owned())]).inc_by(count);
    }
    registry.register("stops", "Stops by outcome", stops);
}

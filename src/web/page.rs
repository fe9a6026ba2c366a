//! The page, as HTML.

use minijinja::{Environment, context};

use super::Status;
use crate::message::reasons;

/// The whole page.
pub fn render(status: &Status) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.add_template("page.html", include_str!("templates/page.html"))?;
    let report = status.report.as_ref();
    let verdicts = ["busy", "idle", "unknown", "protected"].map(|word| (word, status.found(word)));
    let cards = || report.iter().flat_map(|report| &report.cards);
    environment.get_template("page.html")?.render(context! {
        mode => status.mode.map(|mode| mode.to_string()),
        troubles => status.troubles().into_iter().map(str::to_owned).collect::<Vec<_>>(),
        notes => status.notes.clone(),
        last => report.map(|report| reasons::time(report.at)),
        frozen => report.is_some_and(|report| report.plan.freeze.is_frozen()),
        verdicts => verdicts,
        idle => status.found("idle"),
        cards => cards().count(),
        unattributed => cards().filter(|card| !card.unattributed.is_empty()).count(),
        cycles => status.counters.cycles,
        warnings => status.counters.warnings,
        stopped => status.counters.stopped,
        version => env!("CARGO_PKG_VERSION"),
    })
}

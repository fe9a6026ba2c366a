//! The outcome of a replay, for people and for programs.

use std::path::Path;

use serde::Serialize;

use super::{Event, Outcome, timeline};
use crate::cli::{Format, say, say_json};
use crate::message::reasons;
use crate::trace::Expectation;

/// An event, and of which trace where there are several.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(flatten)]
    event: &'a Event,
}

/// Prints what a trace led to.
pub fn outcome(path: &Path, outcome: &Outcome, format: Format, one_of_several: bool) {
    match format {
        Format::Json => json(outcome, one_of_several.then(|| path.display().to_string()).as_ref()),
        Format::Text => text(path, outcome),
    }
    for failure in &outcome.failures {
        tracing::error!("{}: {failure}", path.display());
    }
}

fn json(outcome: &Outcome, trace: Option<&String>) {
    for event in &outcome.events {
        say_json(&Told { trace: trace.cloned(), event });
    }
}

fn text(path: &Path, outcome: &Outcome) {
    say(&format!("{}", path.display()));
    if let Some((from, to)) = outcome.span {
        let (first, last) = (reasons::time(from), reasons::time(to));
        say(&format!("  {first} to {last}, {} observations", outcome.observed));
        timeline::print(&outcome.events, from, to);
    }
    for event in &outcome.events {
        let server = event.server.as_ref().map_or_else(|| "(all)".to_owned(), ToString::to_string);
        let deadline =
            event.deadline.map(|at| format!("; deadline {}", reasons::time(at))).unwrap_or_default();
        let (at, what) = (reasons::time(event.at), event.event);
        say(&format!("  {at}  {server:<20} {what:<9} {}{deadline}", event.reason));
    }
    let sum = &outcome.summary;
    say(&format!(
        "  stops: {}; GPU-hours freed: {:.1}; worked again within 30 minutes: {}",
        sum.stopped, sum.gpu_hours_freed, sum.regretted
    ));
    let met = outcome.expected - outcome.failures.len();
    if outcome.expected > 0 {
        say(&format!("  {met} of {} expectations met", outcome.expected));
    }
}

/// Why an expectation is not met, if it is not.
pub fn failure(wanted: &Expectation, events: &[Event]) -> Option<String> {
    let concerns = |event: &&Event| {
        event.event == wanted.event && (wanted.server.is_none() || wanted.server == event.server)
    };
    let found: Vec<&Event> = events.iter().filter(concerns).collect();
    let who = wanted.server.as_ref().map_or_else(|| "anything".to_owned(), ToString::to_string);
    let when = || match found.as_slice() {
        [] => "never".to_owned(),
        all => all.iter().map(|event| reasons::time(event.at)).collect::<Vec<_>>().join(", "),
    };
    match wanted.between {
        None if found.is_empty() => None,
        None => Some(format!("{who} must never be {}, but was at {}", wanted.event, when())),
        Some((from, to)) if found.iter().any(|event| (from..=to).contains(&event.at)) => None,
        Some((from, to)) => Some(format!(
            "{who} must be {} between {} and {}, but was: {}",
            wanted.event,
            reasons::time(from),
            reasons::time(to),
            when()
        )),
    }
}

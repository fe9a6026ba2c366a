//! Two policies on the same traces, side by side.

use std::collections::BTreeSet;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets::NOTHING};
use serde::Serialize;

use super::account::Summary;
use super::{Event, Outcome};
use crate::cli::{Format, say, say_json};
use crate::message::reasons;

/// A policy with the name it is shown by.
pub struct Named<T> {
    /// The config file, or `defaults`.
    pub name: String,
    /// What it is about.
    pub of: T,
}

/// One line of JSON: one policy on one trace, or on all of them.
#[derive(Serialize)]
struct Line<'a> {
    trace: Option<String>,
    config: &'a str,
    #[serde(flatten)]
    summary: Summary,
}

/// Prints what two policies made of one trace.
pub fn one(path: &Path, outcomes: &[Named<Outcome>; 2], format: Format) {
    let sums = outcomes.each_ref().map(|named| (named.name.as_str(), named.of.summary));
    match format {
        Format::Json => json(Some(path), &sums),
        Format::Text => {
            text(&path.display().to_string(), &sums);
            differences(outcomes);
        }
    }
}

/// Prints what two policies made of all traces together.
pub fn total(names: [&str; 2], sums: [Summary; 2], traces: usize, format: Format) {
    let sums = [(names[0], sums[0]), (names[1], sums[1])];
    match format {
        Format::Json => json(None, &sums),
        Format::Text => text(&format!("{traces} traces together"), &sums),
    }
}

fn json(trace: Option<&Path>, sums: &[(&str, Summary); 2]) {
    for (config, summary) in sums {
        let trace = trace.map(|path| path.display().to_string());
        say_json(&Line { trace, config, summary: *summary });
    }
}

fn text(title: &str, sums: &[(&str, Summary); 2]) {
    let [(a, first), (b, second)] = sums;
    let mut table = Table::new();
    *table.style_mut() = NOTHING;
    table.set_header(["", a, b]);
    let mut row = |what: &str, of: fn(&Summary) -> String| {
        table.add_row([what.to_owned(), of(first), of(second)]);
    };
    row("warnings", |sum| sum.warned.to_string());
    row("taken back", |sum| sum.unmarked.to_string());
    row("stops", |sum| sum.stopped.to_string());
    row("GPU-hours freed", |sum| format!("{:.1}", sum.gpu_hours_freed));
    row("worked again within 30 minutes", |sum| sum.regretted.to_string());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    say(title);
    say(&table.to_string());
}

/// Each stop that only one of them makes, or makes at another time.
fn differences(outcomes: &[Named<Outcome>; 2]) {
    let stops = |outcome: &Outcome| -> BTreeSet<_> {
        let stopped = outcome.events.iter().filter(|event| event.event == "stopped");
        stopped.map(|Event { at, server, .. }| (*at, server.clone())).collect()
    };
    let [a, b] = outcomes.each_ref().map(|named| stops(&named.of));
    for (named, only) in outcomes.iter().zip([&a - &b, &b - &a]) {
        for (at, server) in only {
            let server = server.map(|id| id.to_string()).unwrap_or_default();
            say(&format!("  only {} stops {server} at {}", named.name, reasons::time(at)));
        }
    }
}

//! Replays traces through the policy that the service runs, always as `enforce`.

mod print;
mod replay;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::policy::{Mode, Policy};
use crate::settings;
use crate::trace::{self, Line};
pub use replay::{Event, Replay};

use super::Format;

/// Replays each trace; `false` when one cannot be read or an expectation of one failed.
pub fn run(traces: &[PathBuf], config: Option<&Path>, format: Format) -> anyhow::Result<bool> {
    let policy = Policy { mode: Mode::Enforce, ..settings::policy_of(config)? };
    let mut fine = true;
    for path in traces {
        match replay_file(path, &policy) {
            Ok(outcome) => {
                fine &= outcome.failures.is_empty();
                print::outcome(path, &outcome, format, traces.len() > 1);
            }
            Err(error) => {
                fine = false;
                tracing::error!("{error:#}");
            }
        }
    }
    Ok(fine)
}

fn replay_file(path: &Path, policy: &Policy) -> anyhow::Result<Outcome> {
    let file = File::open(path).with_context(|| format!("cannot open the trace {}", path.display()))?;
    replay(BufReader::new(file), policy)
        .with_context(|| format!("cannot replay the trace {}", path.display()))
}

/// What a trace led to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Everything that happened, in order.
    pub events: Vec<Event>,
    /// Each expectation that was not met, in words.
    pub failures: Vec<String>,
    /// How many expectations there were.
    pub expected: usize,
}

/// Replays one trace.
pub fn replay(source: impl BufRead, policy: &Policy) -> Result<Outcome, trace::TraceError> {
    let mut replay = Replay::new(policy);
    let mut outcome = Outcome::default();
    let mut expected = Vec::new();
    for line in trace::read(source) {
        match line? {
            Line::Observed(seen) => outcome.events.extend(replay.observe(&seen)),
            Line::Expected(more) => expected.extend(more),
        }
    }
    outcome.expected = expected.len();
    outcome.failures = expected.iter().filter_map(|wanted| print::failure(wanted, &outcome.events)).collect();
    Ok(outcome)
}

//! Replays traces through the policy that the service runs, as `enforce` unless `--mode` says otherwise.

mod account;
mod compare;
mod print;
mod replay;
mod timeline;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use jiff::Timestamp;

use crate::policy::{Mode, Policy};
use crate::settings;
use crate::trace::{self, Expectation, Line};
pub use account::Summary;
use compare::Named;
pub use replay::{Event, Replay};

use super::Format;

/// Files from this size on show their progress, where somebody looks at a terminal.
const LONG: u64 = 4 << 20;

/// What to replay, and by what.
#[derive(Debug)]
pub struct Simulation<'a> {
    /// The traces.
    pub traces: &'a [PathBuf],
    /// The config file whose policy decides; the defaults where absent.
    pub config: Option<&'a Path>,
    /// A second one to compare with.
    pub compare: Option<&'a Path>,
    /// What `--mode` says.
    pub mode: Option<Mode>,
    /// For whom to print.
    pub format: Format,
}

/// Replays each trace; `false` when one cannot be read or an expectation of one failed.
pub fn run(simulation: &Simulation) -> anyhow::Result<bool> {
    let Simulation { traces, config, compare, format, .. } = *simulation;
    let policy = simulation.policy(config)?;
    let other = compare.map(|other| simulation.policy(Some(other))).transpose()?;
    let mut fine = true;
    let mut sums = [Summary::default(); 2];
    for path in traces {
        let read = match &other {
            Some(other) => side_by_side(path, [&policy, other], &mut sums, format).map(|()| true),
            None => alone(path, &policy.of, format, traces.len() > 1),
        };
        match read {
            Ok(met) => fine &= met,
            Err(error) => {
                fine = false;
                tracing::error!("{error:#}");
            }
        }
    }
    if let Some(other) = other.filter(|_| traces.len() > 1) {
        compare::total([&policy.name, &other.name], sums, traces.len(), format);
    }
    Ok(fine)
}

impl Simulation<'_> {
    fn policy(&self, config: Option<&Path>) -> anyhow::Result<Named<Policy>> {
        let mode = self.mode.unwrap_or(Mode::Enforce);
        let of = Policy { mode, ..settings::policy_of(config)? };
        Ok(Named {
            name: config.map_or_else(|| "defaults".to_owned(), |path| path.display().to_string()),
            of,
        })
    }
}

fn alone(path: &Path, policy: &Policy, format: Format, one_of_several: bool) -> anyhow::Result<bool> {
    let outcome = with_file(path, |source| replay(source, policy))?;
    print::outcome(path, &outcome, format, one_of_several);
    Ok(outcome.failures.is_empty())
}

/// Expectations are those of one policy, so they are not looked at.
fn side_by_side(
    path: &Path,
    policies: [&Named<Policy>; 2],
    sums: &mut [Summary; 2],
    format: Format,
) -> anyhow::Result<()> {
    let of = with_file(path, |source| replay_both(source, policies.map(|policy| &policy.of)))?;
    let [first, second] = of;
    sums[0] += first.summary;
    sums[1] += second.summary;
    let named = |policy: &Named<Policy>, of| Named { name: policy.name.clone(), of };
    compare::one(path, &[named(policies[0], first), named(policies[1], second)], format);
    Ok(())
}

fn with_file<T>(
    path: &Path,
    replay: impl FnOnce(&mut dyn BufRead) -> Result<T, trace::TraceError>,
) -> anyhow::Result<T> {
    let file = File::open(path).with_context(|| format!("cannot open the trace {}", path.display()))?;
    let bar = progress(path, file.metadata().map_or(0, |about| about.len()));
    let outcome = replay(&mut BufReader::new(bar.wrap_read(file)));
    bar.finish_and_clear();
    outcome.with_context(|| format!("cannot replay the trace {}", path.display()))
}

/// Shown on a terminal only; anywhere else it draws nothing.
fn progress(path: &Path, size: u64) -> ProgressBar {
    if size < LONG {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(size).with_message(path.display().to_string());
    match ProgressStyle::with_template("{msg} [{bar:30}] {bytes} of {total_bytes}, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// What a trace led to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Everything that happened, in order.
    pub events: Vec<Event>,
    /// The same in numbers.
    pub summary: Summary,
    /// How many observations there were, and the instants of the first and the last.
    pub observed: usize,
    /// See [`Outcome::observed`].
    pub span: Option<(Timestamp, Timestamp)>,
    /// Each expectation that was not met, in words.
    pub failures: Vec<String>,
    /// How many expectations there were.
    pub expected: usize,
}

/// Replays one trace.
pub fn replay(source: impl BufRead, policy: &Policy) -> Result<Outcome, trace::TraceError> {
    let (outcomes, expected) = replay_all(source, &[policy])?;
    let mut outcome = outcomes.into_iter().next().unwrap_or_default();
    outcome.expected = expected.len();
    outcome.failures = expected.iter().filter_map(|wanted| print::failure(wanted, &outcome.events)).collect();
    Ok(outcome)
}

/// Replays one trace through two policies.
pub fn replay_both(source: impl BufRead, policies: [&Policy; 2]) -> Result<[Outcome; 2], trace::TraceError> {
    let (outcomes, _) = replay_all(source, &policies)?;
    let mut outcomes = outcomes.into_iter();
    Ok([outcomes.next().unwrap_or_default(), outcomes.next().unwrap_or_default()])
}

/// Line by line: only what happened is kept.
fn replay_all(
    source: impl BufRead,
    policies: &[&Policy],
) -> Result<(Vec<Outcome>, Vec<Expectation>), trace::TraceError> {
    let mut replays: Vec<_> =
        policies.iter().map(|policy| (Replay::new(policy), Outcome::default())).collect();
    let mut expected = Vec::new();
    for line in trace::read(source) {
        match line? {
            Line::Observed(seen) => replays.iter_mut().for_each(|(replay, outcome)| {
                let at = seen.snapshot.at;
                outcome.events.extend(replay.observe(&seen));
                outcome.observed += 1;
                outcome.span = Some(outcome.span.map_or((at, at), |(from, to)| (from.min(at), to.max(at))));
            }),
            Line::Expected(more) => expected.extend(more),
        }
    }
    let finished = |(replay, outcome): (Replay, Outcome)| Outcome { summary: replay.summary(), ..outcome };
    Ok((replays.into_iter().map(finished).collect(), expected))
}

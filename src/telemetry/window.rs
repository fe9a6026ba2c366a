//! What one card did since it was last asked: peaks, and how much of the time was really watched.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::domain::{Engine, Ratio};

/// What one poll of a card learned. `None` is "could not be read".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Poll {
    /// Highest SM activity that any signal shows.
    pub sm: Option<Ratio>,
    /// Highest memory-bandwidth activity that any signal shows.
    pub dram: Option<Ratio>,
    /// Other engines; one the card does not offer is absent.
    pub engines: BTreeMap<Engine, Option<Ratio>>,
    /// How far back from now the poll speaks for; zero where it speaks for nothing.
    pub reach: Duration,
    /// Why `sm` or `dram` could not be read.
    pub unreadable: Option<String>,
}

impl Poll {
    /// A poll that learned nothing.
    pub fn unreadable(reason: impl Into<String>) -> Self {
        Self { unreadable: Some(reason.into()), ..Self::default() }
    }
}

/// What a window adds up to.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Peak SM activity.
    pub sm: Option<Ratio>,
    /// Peak memory-bandwidth activity.
    pub dram: Option<Ratio>,
    /// Peaks of the other engines.
    pub engines: BTreeMap<Engine, Option<Ratio>>,
    /// How much of the time was watched.
    pub covered: Duration,
    /// The longest time that was not.
    pub largest_gap: Duration,
    /// Why `sm` or `dram` is not known.
    pub unreadable: Option<String>,
}

/// Collects polls until it is drained.
///
/// Time between the last poll and a drain is neither covered nor a gap yet: the next poll says which,
/// and it then belongs to the next window. So nothing is counted twice and nothing is lost.
#[derive(Clone, Debug)]
pub struct Window {
    polled: Instant,
    covered_until: Instant,
    covered: Duration,
    largest_gap: Duration,
    last: Option<Poll>,
    sm: Option<Ratio>,
    dram: Option<Ratio>,
    engines: BTreeMap<Engine, Option<Ratio>>,
}

impl Window {
    /// A window that begins now.
    pub fn new(now: Instant) -> Self {
        Self {
            polled: now,
            covered_until: now,
            covered: Duration::ZERO,
            largest_gap: Duration::ZERO,
            last: None,
            sm: None,
            dram: None,
            engines: BTreeMap::new(),
        }
    }

    /// The time that no poll speaks for yet: what the next one should reach back over.
    pub fn unwatched(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.covered_until)
    }

    /// Takes in a poll made at `now`.
    pub fn add(&mut self, now: Instant, poll: Poll) {
        if !poll.reach.is_zero() {
            let open = self.unwatched(now);
            let reach = poll.reach.min(open);
            self.covered += reach;
            self.largest_gap = self.largest_gap.max(open - reach);
            self.covered_until = now;
        }
        self.polled = now;
        self.sm = peak(self.sm, poll.sm);
        self.dram = peak(self.dram, poll.dram);
        for (&engine, &value) in &poll.engines {
            let known = self.engines.entry(engine).or_insert(value);
            *known = peak(*known, value);
        }
        self.last = Some(poll);
    }

    /// What was seen up to now, without forgetting it.
    pub fn peek(&self) -> Seen {
        let unreadable = match &self.last {
            None => Some("it was not read again since the last look".to_owned()),
            Some(poll) => poll.unreadable.clone(),
        };
        Seen {
            sm: self.proven(self.sm, |poll| poll.sm),
            dram: self.proven(self.dram, |poll| poll.dram),
            engines: self
                .engines
                .iter()
                .map(|(&engine, &seen)| (engine, self.standing(engine, seen)))
                .collect(),
            covered: self.covered,
            largest_gap: self.largest_gap.max(self.open_gap()),
            unreadable,
        }
    }

    /// What was seen since the last drain; begins a new window.
    pub fn drain(&mut self) -> Seen {
        let seen = self.peek();
        self.covered = Duration::ZERO;
        self.largest_gap = Duration::ZERO;
        self.last = None;
        (self.sm, self.dram) = (None, None);
        self.engines.clear();
        seen
    }

    /// Activity, once seen, stands; rest is proven only while the card can still be read.
    fn proven(&self, peak: Option<Ratio>, newest: fn(&Poll) -> Option<Ratio>) -> Option<Ratio> {
        let readable = self.last.as_ref().is_some_and(|poll| newest(poll).is_some());
        peak.filter(|p| readable || p.get() > 0.0)
    }

    /// The same of an engine; one that the newest poll does not name is not being told about.
    fn standing(&self, engine: Engine, seen: Option<Ratio>) -> Option<Ratio> {
        let failed = self.last.as_ref().is_some_and(|poll| poll.engines.get(&engine) == Some(&None));
        seen.filter(|seen| !failed || seen.get() > 0.0)
    }

    /// How long the polls have been failing. It may have begun before this window.
    fn open_gap(&self) -> Duration {
        self.polled.saturating_duration_since(self.covered_until)
    }
}

/// The larger of two readings of which either may be missing.
pub fn peak(a: Option<Ratio>, b: Option<Ratio>) -> Option<Ratio> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;

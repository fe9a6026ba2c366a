//! What one card did since somebody last asked: peaks, and how much of the time was really watched.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::power::{Draw, Drawn, Meter};
use crate::domain::{Engine, Power, Ratio};

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
    /// What the card draws.
    pub draw: Draw,
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
    /// What the card drew.
    pub power: Option<Power>,
}

/// Up to which poll somebody was told, counted from the first.
pub type Mark = u64;

/// How long polls are kept for readers that come back late, and how many of them at most.
const KEPT: (Duration, usize) = (Duration::from_secs(600), 4096);

/// Keeps what the polls of the last minutes learned, so that each reader is told all since its last
/// look, however many readers there are.
///
/// Time between the last poll and a look is neither covered nor a gap yet: the next poll says which,
/// and it then belongs to the next look. So nothing is counted twice and nothing is lost.
#[derive(Clone, Debug)]
pub struct Window {
    polled: Instant,
    covered_until: Instant,
    kept: VecDeque<Slot>,
    /// Up to which poll nothing is kept any more.
    forgotten: Mark,
    /// Why the newest poll could not read everything.
    unreadable: Option<String>,
    meter: Meter,
}

/// One poll, as it is kept.
#[derive(Clone, Debug)]
struct Slot {
    mark: Mark,
    at: Instant,
    covered: Duration,
    gap: Duration,
    sm: Option<Ratio>,
    dram: Option<Ratio>,
    drawn: Option<Drawn>,
    /// By engine; one that the poll does not name is absent.
    engines: [Option<Option<Ratio>>; Engine::ALL.len()],
}

impl Window {
    /// A window that begins now.
    pub fn new(now: Instant) -> Self {
        Self {
            polled: now,
            covered_until: now,
            kept: VecDeque::new(),
            forgotten: 0,
            unreadable: None,
            meter: Meter::default(),
        }
    }

    /// The time that no poll speaks for yet: what the next one should reach back over.
    pub fn unwatched(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.covered_until)
    }

    /// Takes in the poll number `mark`, made at `now`.
    pub fn add(&mut self, mark: Mark, now: Instant, poll: Poll) {
        let (mut covered, mut gap) = (Duration::ZERO, Duration::ZERO);
        if !poll.reach.is_zero() {
            let open = self.unwatched(now);
            covered = poll.reach.min(open);
            gap = open - covered;
            self.covered_until = now;
        }
        self.polled = now;
        let engines = Engine::ALL.map(|engine| poll.engines.get(&engine).copied());
        let drawn = self.meter.take(poll.draw, now);
        let (sm, dram) = (poll.sm, poll.dram);
        self.kept.push_back(Slot { mark, at: now, covered, gap, sm, dram, drawn, engines });
        self.unreadable = poll.unreadable;
        self.forget(now);
    }

    fn forget(&mut self, now: Instant) {
        let old = |slot: &Slot| now.saturating_duration_since(slot.at) > KEPT.0;
        while self.kept.len() > KEPT.1 || self.kept.front().is_some_and(old) {
            self.forgotten = self.kept.pop_front().map_or(self.forgotten, |slot| slot.mark);
        }
    }

    /// Up to which poll nothing is kept any more.
    pub fn forgotten(&self) -> Mark {
        self.forgotten
    }

    /// The newest poll that was made by `then`, as far as it is kept.
    pub fn made_by(&self, then: Instant) -> Mark {
        let made = self.kept.iter().rev().find(|slot| slot.at <= then);
        made.map_or(self.forgotten, |slot| slot.mark)
    }

    /// What was seen after the poll number `mark`, as far as it is kept.
    pub fn since(&self, mark: Mark) -> Seen {
        let new = || self.kept.iter().rev().take_while(|slot| slot.mark > mark);
        let newest = new().next();
        let sum = |figure: fn(&Slot) -> Option<Ratio>| {
            let known = new().filter_map(figure).reduce(Ratio::max);
            proven(known, newest.is_some_and(|slot| figure(slot).is_some()))
        };
        let engine = |engine: Engine| {
            let of = |slot: &Slot| slot.engines[engine as usize];
            let known = new().filter_map(of).reduce(peak)?;
            // One that the newest poll does not name is not being told about.
            Some((engine, proven(known, newest.and_then(of) != Some(None))))
        };
        Seen {
            sm: sum(|slot| slot.sm),
            dram: sum(|slot| slot.dram),
            engines: Engine::ALL.into_iter().filter_map(engine).collect(),
            covered: new().map(|slot| slot.covered).sum(),
            largest_gap: new().map(|slot| slot.gap).max().unwrap_or_default().max(self.open_gap()),
            unreadable: match newest {
                None => Some("it was not read again since the last look".to_owned()),
                Some(_) => self.unreadable.clone(),
            },
            power: self.meter.sum(new().filter_map(|slot| slot.drawn)),
        }
    }

    /// How long the polls have been failing. It may have begun before this window.
    fn open_gap(&self) -> Duration {
        self.polled.saturating_duration_since(self.covered_until)
    }
}

/// Activity, once seen, stands; rest is proven only while the card can still be read.
fn proven(peak: Option<Ratio>, readable: bool) -> Option<Ratio> {
    peak.filter(|p| readable || p.get() > 0.0)
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

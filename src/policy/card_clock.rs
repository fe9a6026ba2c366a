//! The card clock: when a card last worked, and how much of the time since then was really watched.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::schedule::earlier;
use super::{Policy, Thresholds};
use crate::domain::GpuSample;

/// What is known of one card of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CardEvidence {
    /// The product's name.
    pub model: String,
    /// The card clock: the card has certainly rested since then.
    pub clock: Timestamp,
    /// What set the clock last.
    pub moved_by: ClockMove,
    /// The last instant at which it was really seen at work.
    pub last_active: Option<Timestamp>,
    /// Up to when it was watched without a gap that counts.
    pub seen_until: Timestamp,
    /// How much of the time since the clock was watched.
    pub covered: SignedDuration,
    /// How much of the time up to the last look it was seen at rest.
    #[serde(default)]
    pub rested: SignedDuration,
    /// How much of the time up to the last look was not watched: the newest reading may be as old.
    #[serde(default)]
    pub unwatched: SignedDuration,
    /// Device memory held at the last reading, in bytes.
    pub memory_used: Option<u64>,
    /// Processes on it at the last reading.
    pub processes: Option<u32>,
    /// Whether the last reading could be used.
    pub watch: Watch,
}

/// Why a card clock stands where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockMove {
    /// The card worked.
    Activity,
    /// Nothing was seen for too long before it.
    Gap,
    /// The card was seen in this session for the first time.
    FirstSeen,
}

/// Whether a card can be read just now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Watch {
    /// The last reading was good.
    Readable,
    /// It was not, and why.
    Unreadable(String),
}

/// What one sample proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Active,
    Resting,
    Unreadable,
}

/// What is remembered of the cards that a session no longer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenUp {
    /// The latest of their clocks.
    pub clock: Timestamp,
    /// When one of them was last seen at work.
    pub last_active: Option<Timestamp>,
}

impl CardEvidence {
    /// A card seen for the first time: nothing is known of the time before.
    pub(super) fn first(sample: &GpuSample, at: Timestamp, thresholds: &Thresholds) -> Self {
        let reading = read(sample, thresholds);
        let active = reading == Reading::Active;
        Self {
            model: sample.model.clone(),
            clock: at,
            moved_by: if active { ClockMove::Activity } else { ClockMove::FirstSeen },
            last_active: active.then_some(at),
            seen_until: at,
            covered: SignedDuration::ZERO,
            rested: SignedDuration::ZERO,
            unwatched: SignedDuration::ZERO,
            memory_used: sample.memory_used,
            processes: sample.processes,
            watch: watch(sample, reading),
        }
    }

    pub(super) fn observe(&mut self, sample: &GpuSample, at: Timestamp, policy: &Policy) {
        self.begin_anew_if_set_back(at, policy.max_gap);
        let reading = read(sample, &policy.thresholds);
        self.rested = SignedDuration::ZERO;
        self.model.clone_from(&sample.model);
        self.memory_used = sample.memory_used;
        self.processes = sample.processes;
        self.watch = watch(sample, reading);
        match reading {
            Reading::Active => self.worked(at),
            Reading::Resting => self.rested(sample, at, policy.max_gap),
            Reading::Unreadable => self.gap_until(at, policy.max_gap),
        }
    }

    /// Somewhere between the last reading and `at` it worked; the latest possible instant counts.
    fn worked(&mut self, at: Timestamp) {
        self.last_active = Some(self.last_active.map_or(at, |before| before.max(at)));
        self.seen_until = self.seen_until.max(at);
        self.unwatched = SignedDuration::ZERO;
        self.move_clock(at, ClockMove::Activity, SignedDuration::ZERO);
    }

    fn rested(&mut self, sample: &GpuSample, at: Timestamp, max_gap: SignedDuration) {
        let elapsed = at.duration_since(self.seen_until);
        if !elapsed.is_positive() {
            return; // seen already, or the clock was set back a little: nothing new is proven
        }
        let covered = signed(sample.covered).min(elapsed);
        self.seen_until = at;
        self.unwatched = elapsed - covered;
        self.rested = covered;
        if signed(sample.largest_gap) > max_gap {
            self.move_clock(at, ClockMove::Gap, SignedDuration::ZERO);
        } else if self.unwatched > max_gap {
            self.move_clock(earlier(at, covered), ClockMove::Gap, covered);
        } else {
            self.covered += covered;
        }
    }

    /// Nothing was read at `at`: a gap goes on, and once it is too long the clock goes with it.
    fn gap_until(&mut self, at: Timestamp, max_gap: SignedDuration) {
        if at.duration_since(self.seen_until) > max_gap {
            self.move_clock(at, ClockMove::Gap, SignedDuration::ZERO);
        }
    }

    pub(super) fn missed(&mut self, at: Timestamp, max_gap: SignedDuration, why: &str) {
        self.begin_anew_if_set_back(at, max_gap);
        self.watch = Watch::Unreadable(why.to_owned());
        self.rested = SignedDuration::ZERO;
        self.gap_until(at, max_gap);
    }

    /// A clock that was set back by more than a gap may be: what was seen under the old time says
    /// nothing about the new one, so the watch begins anew.
    fn begin_anew_if_set_back(&mut self, at: Timestamp, max_gap: SignedDuration) {
        if self.seen_until.max(self.clock).duration_since(at) > max_gap {
            self.seen_until = at;
            self.last_active = self.last_active.map(|worked| worked.min(at));
            (self.clock, self.moved_by, self.covered) = (at, ClockMove::Gap, SignedDuration::ZERO);
        }
    }

    fn move_clock(&mut self, to: Timestamp, by: ClockMove, covered: SignedDuration) {
        if to >= self.clock {
            self.clock = to;
            self.moved_by = by;
            self.covered = covered;
        }
    }

    /// The share of the time since the clock that was watched; 1 where no time has passed.
    pub fn coverage(&self, now: Timestamp) -> f64 {
        let elapsed = now.duration_since(self.clock).as_secs_f64();
        if elapsed <= 0.0 {
            return 1.0;
        }
        (self.covered.as_secs_f64() / elapsed).min(1.0)
    }
}

impl GivenUp {
    pub(super) fn and(self, other: Self) -> Self {
        Self { clock: self.clock.max(other.clock), last_active: self.last_active.max(other.last_active) }
    }

    /// Nothing of it lies ahead of `at`.
    pub(super) fn or_by(self, at: Timestamp) -> Self {
        Self { clock: self.clock.min(at), last_active: self.last_active.map(|worked| worked.min(at)) }
    }
}

/// Any valid reading at or over its threshold proves work, whatever else is missing; only a
/// complete set of valid readings proves rest.
fn read(sample: &GpuSample, thresholds: &Thresholds) -> Reading {
    let over = |ratio: Option<crate::domain::Ratio>, limit: f64| ratio.is_some_and(|r| r.get() >= limit);
    let engine_works = || sample.engines.values().any(|engine| engine.is_some_and(|r| r.get() > 0.0));
    if over(sample.sm, thresholds.sm) || over(sample.dram, thresholds.dram) || engine_works() {
        Reading::Active
    } else if sample.sm.is_none() || sample.dram.is_none() || sample.engines.values().any(Option::is_none) {
        Reading::Unreadable
    } else {
        Reading::Resting
    }
}

/// Whether a sample proves that its card works.
pub fn is_active(sample: &GpuSample, thresholds: &Thresholds) -> bool {
    read(sample, thresholds) == Reading::Active
}

fn watch(sample: &GpuSample, reading: Reading) -> Watch {
    if reading == Reading::Unreadable {
        let why = sample.unreadable.clone();
        Watch::Unreadable(why.unwrap_or_else(|| "a reading is missing or out of range".to_owned()))
    } else {
        Watch::Readable
    }
}

fn signed(duration: std::time::Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

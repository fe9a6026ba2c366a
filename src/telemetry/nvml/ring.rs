//! The driver's ten-second ring of samples, and how much time a read of it speaks for.

use std::time::Duration;

use crate::domain::Ratio;

/// What a poll without the ring may be credited with: NVML's rates average over a period that is
/// between one second and a sixth of one, depending on the product, and it does not say which.
pub const RATES_SPAN: Duration = Duration::from_millis(166);

/// The ring holds ten seconds; after that the driver writes over samples that nobody fetched.
const RING_SPAN: Duration = Duration::from_secs(10);

/// Samples no further apart than this surely follow each other (they come every 139 ms or so).
const BREAK: Duration = Duration::from_millis(500);

/// What the driver answered.
#[derive(Clone, Debug, PartialEq)]
pub enum RingRead {
    /// Samples newer than asked for: time stamp (µs of the driver's own clock) and percent.
    Samples(Vec<(u64, f64)>),
    /// Nothing newer. The ring runs dry while a card sleeps, so this is no error, and no proof either.
    Nothing,
    /// No ring here, or it cannot be read.
    Failed(String),
}

/// What a read of the ring is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct RingView {
    /// The highest sample, `None` without samples.
    pub peak: Option<Ratio>,
    /// How far back from now the ring speaks for.
    pub reach: Duration,
    /// Why the ring is not to be trusted in this poll.
    pub problem: Option<String>,
}

/// Where the last read of one ring ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct RingCursor {
    last: Option<u64>,
    /// Was all up to `last` read, and read well?
    unbroken: bool,
    /// Has the ring shown a sample since NVML was opened? An always silent source proves nothing.
    alive: bool,
}

impl RingCursor {
    /// The newest time stamp seen, to be handed back to the driver.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// NVML was opened anew: the ring has to show again that it lives.
    pub fn reopened(&mut self) {
        self.alive = false;
    }

    /// Whether the driver's clock was set back: `all` it holds is older than what we have seen.
    pub fn clock_went_back(&self, all: &RingRead) -> bool {
        let RingRead::Samples(all) = all else { return false };
        let newest = all.iter().map(|&(at, _)| at).max();
        newest.is_some() && newest < self.last
    }

    /// Takes in what the driver answered for the `unwatched` time up to now. `at_rest` says that the
    /// utilization rates were read in the same poll and are zero.
    pub fn take(&mut self, read: RingRead, unwatched: Duration, at_rest: bool) -> RingView {
        let none = RingView { peak: None, reach: Duration::ZERO, problem: None };
        match read {
            RingRead::Failed(reason) => RingView { problem: Some(reason), ..none },
            // A living ring took no sample because the card slept, and the rates agree.
            RingRead::Nothing if self.alive && at_rest => {
                RingView { reach: unwatched.min(RING_SPAN), ..none }
            }
            RingRead::Nothing => none,
            RingRead::Samples(samples) => self.samples(&samples, unwatched),
        }
    }

    fn samples(&mut self, samples: &[(u64, f64)], unwatched: Duration) -> RingView {
        let none = RingView { peak: None, reach: Duration::ZERO, problem: None };
        let problem = |why: String| RingView { problem: Some(why), ..none.clone() };
        let times = || samples.iter().map(|&(t, _)| t);
        let (Some(oldest), Some(newest)) = (times().min(), times().max()) else {
            return none;
        };
        let before = self.last.filter(|_| self.unbroken);
        match self.last {
            // Forget our place, or nothing would ever look newer again.
            Some(last) if newest < last => {
                *self = Self::default();
                return problem("the driver's clock was set back".to_owned());
            }
            Some(last) if newest == last => {
                (self.alive, self.unbroken) = (false, false);
                return problem("the driver repeats its last samples".to_owned());
            }
            _ => *self = Self { last: Some(newest), unbroken: false, alive: true },
        }
        let mut peak: Option<Ratio> = None;
        for &(_, percent) in samples {
            let Some(value) = Ratio::percent(percent) else {
                return problem(format!("the sample ring holds {percent} %"));
            };
            peak = Some(peak.map_or(value, |p| p.max(value)));
        }
        self.unbroken = true;
        // Samples that go on where the last read ended leave nothing out. Otherwise some were written
        // over, or the card slept: only the time between the oldest and the newest is spoken for.
        let apart = BREAK.max(2 * period(samples));
        let goes_on = before.is_some_and(|b| micros(b, oldest) <= apart);
        let reach = if goes_on { unwatched } else { micros(oldest, newest).min(unwatched) };
        RingView { peak, reach, problem: None }
    }
}

/// How often the ring takes a sample: the shortest time between two of them.
fn period(samples: &[(u64, f64)]) -> Duration {
    let mut times: Vec<u64> = samples.iter().map(|&(t, _)| t).collect();
    times.sort_unstable();
    let steps = times.windows(2).map(|pair| micros(pair[0], pair[1]));
    steps.min().unwrap_or_default()
}

fn micros(from: u64, to: u64) -> Duration {
    Duration::from_micros(to.saturating_sub(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 139_000;
    const TWO: Duration = Duration::from_secs(2);

    /// `n` samples one after the other, the first at `from`, all of `percent`.
    fn run(from: u64, n: u64, percent: f64) -> RingRead {
        RingRead::Samples((0..n).map(|i| (from + i * PERIOD, percent)).collect())
    }

    #[test]
    fn reads_that_follow_each_other_speak_for_all_the_time_between() {
        let mut ring = RingCursor::default();
        ring.take(run(0, 72, 0.0), TWO, true);
        assert_eq!(ring.last(), Some(71 * PERIOD));
        let view = ring.take(run(72 * PERIOD, 14, 0.0), TWO, true);
        assert_eq!((view.peak.map(Ratio::get), view.reach), (Some(0.0), TWO));
    }

    #[test]
    fn a_ring_of_slower_samples_is_followed_too() {
        let slow = |from: u64| RingRead::Samples(vec![(from, 0.0), (from + 1_000_000, 0.0)]);
        let mut ring = RingCursor::default();
        ring.take(slow(0), TWO, true);
        assert_eq!(ring.take(slow(2_000_000), TWO, true).reach, TWO);
    }

    #[test]
    fn one_busy_sample_of_many_is_the_peak() {
        let mut ring = RingCursor::default();
        let samples = vec![(1, 0.0), (2, 64.0), (3, 0.0)];
        let view = ring.take(RingRead::Samples(samples), TWO, true);
        assert_eq!(view.peak.map(Ratio::get), Some(0.64));
    }

    #[test]
    fn a_late_read_speaks_only_for_what_the_ring_still_held() {
        let mut ring = RingCursor::default();
        ring.take(run(0, 72, 0.0), TWO, true);
        let view = ring.take(run(400 * PERIOD, 72, 0.0), Duration::from_secs(60), true);
        assert_eq!(view.reach, Duration::from_micros(71 * PERIOD));
    }

    #[test]
    fn a_dry_ring_counts_as_rest_only_when_it_has_lived_and_the_rates_agree() {
        let mut ring = RingCursor::default();
        assert_eq!(ring.take(RingRead::Nothing, TWO, true).reach, Duration::ZERO);
        ring.take(run(0, 72, 0.0), TWO, true);
        assert_eq!(ring.take(RingRead::Nothing, TWO, true).reach, TWO);
        assert_eq!(ring.take(RingRead::Nothing, TWO, false).reach, Duration::ZERO);
        ring.reopened();
        assert_eq!(ring.take(RingRead::Nothing, TWO, true).reach, Duration::ZERO);
    }

    #[test]
    fn a_dry_ring_speaks_for_no_more_than_it_could_hold() {
        let mut ring = RingCursor::default();
        ring.take(run(0, 72, 0.0), TWO, true);
        let view = ring.take(RingRead::Nothing, Duration::from_secs(3600), true);
        assert_eq!(view.reach, Duration::from_secs(10));
    }

    #[test]
    fn garbage_in_the_ring_is_a_problem_and_never_a_zero() {
        let mut ring = RingCursor::default();
        let view = ring.take(RingRead::Samples(vec![(1, 0.0), (2, 4e6)]), TWO, true);
        assert_eq!((view.peak, view.reach), (None, Duration::ZERO));
        assert!(view.problem.is_some_and(|p| p.contains("4000000 %")));
    }

    #[test]
    fn the_time_that_garbage_took_is_not_covered_by_the_next_read() {
        let mut ring = RingCursor::default();
        ring.take(run(0, 72, 0.0), TWO, true);
        ring.take(run(72 * PERIOD, 14, 4e6), TWO, true);
        let view = ring.take(run(86 * PERIOD, 14, 0.0), 2 * TWO, true);
        assert_eq!(view.reach, Duration::from_micros(13 * PERIOD));
        assert_eq!(ring.take(run(100 * PERIOD, 14, 0.0), TWO, true).reach, TWO);
    }

    #[test]
    fn samples_that_are_repeated_are_no_news() {
        let mut ring = RingCursor::default();
        ring.take(run(0, 72, 0.0), TWO, true);
        let view = ring.take(run(0, 72, 0.0), TWO, true);
        assert_eq!((view.peak, view.reach), (None, Duration::ZERO));
        assert!(view.problem.is_some_and(|p| p.contains("repeats")));
        assert_eq!(ring.take(RingRead::Nothing, TWO, true).reach, Duration::ZERO, "no proof of life");
    }

    #[test]
    fn a_clock_set_back_loses_our_place_once() {
        let mut ring = RingCursor::default();
        ring.take(run(1000 * PERIOD, 72, 0.0), TWO, true);
        assert!(
            ring.clock_went_back(&run(0, 72, 0.0)) && !ring.clock_went_back(&run(1000 * PERIOD, 72, 0.0))
        );
        let view = ring.take(run(0, 72, 0.0), TWO, true);
        assert_eq!((view.peak, ring.last()), (None, None));
        assert_eq!(ring.take(run(PERIOD, 72, 0.0), TWO, true).peak.map(Ratio::get), Some(0.0));
    }

    #[test]
    fn time_stamps_of_any_kind_do_no_harm() {
        let mut ring = RingCursor::default();
        ring.take(RingRead::Samples(vec![(u64::MAX, 0.0)]), TWO, true);
        let view = ring.take(RingRead::Samples(vec![(5, 0.0), (0, 0.0)]), TWO, true);
        assert!(view.reach <= TWO);
        ring.take(RingRead::Samples(vec![]), TWO, true);
    }
}

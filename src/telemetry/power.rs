//! What a card draws. It proves neither work nor rest by itself: what a card draws at rest depends on its clocks and on
//! whether a context is open, and the sensors of some miss three quarters of the time. But a card that draws as at work
//! while every reading says rest contradicts itself, and what contradicts itself is not known.

use std::time::{Duration, Instant};

use super::window::Seen;
use crate::domain::{Power, Ratio};

/// From which share of its limit on a card does not rest. With a context open, and so at full clocks, an H100 at rest
/// draws 122 of 700 W, an A100 80 of 400 W, an L40S 102 of 350 W (measured for sglang, issue 27567) and an A40 110 of
/// 300 W (NVIDIA's open-gpu-kernel-modules, issue 874): 17 to 37 %. Where an admin lowered the limit far, rest may look
/// like work, which keeps the card.
const SHARE_OF_REST: f64 = 0.5;
/// As the default of the thresholds: below it a card passes for one at rest.
const NEARLY_NOTHING: f64 = 0.01;
/// No card draws more; a counter that says so was set to zero, or is not one.
const IMPOSSIBLE: f64 = 3000.0;

/// What one poll read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Draw {
    /// Energy since the driver was loaded, in millijoules.
    pub energy: Option<u64>,
    /// Watts, where the card has no such counter.
    pub watts: Option<f64>,
    /// The limit that is in force, in watts.
    pub limit: Option<f64>,
}

/// Watts over the time between two polls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    watts: f64,
    over: Duration,
}

/// Turns what polls read into watts.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    last: Option<(Instant, Option<u64>)>,
    limit: Option<f64>,
}

impl Meter {
    /// What was drawn since the last poll.
    pub fn take(&mut self, draw: Draw, now: Instant) -> Option<Drawn> {
        self.limit = draw.limit;
        let (before, energy) = self.last.replace((now, draw.energy))?;
        let over = now.saturating_duration_since(before);
        #[expect(clippy::cast_precision_loss, reason = "the energy of one poll is small")]
        let counted = || {
            let used = draw.energy?.checked_sub(energy?)?;
            Some(used as f64 / 1000.0 / over.as_secs_f64())
        };
        let watts = if draw.energy.is_some() { counted() } else { draw.watts };
        watts.filter(|watts| (0.0..=IMPOSSIBLE).contains(watts)).map(|watts| Drawn { watts, over })
    }

    /// Mean and peak of several polls.
    pub fn sum(&self, drawn: impl Iterator<Item = Drawn>) -> Option<Power> {
        let drawn: Vec<Drawn> = drawn.collect();
        let time: f64 = drawn.iter().map(|drawn| drawn.over.as_secs_f64()).sum();
        let joules: f64 = drawn.iter().map(|drawn| drawn.watts * drawn.over.as_secs_f64()).sum();
        let peak = drawn.iter().map(|drawn| drawn.watts).reduce(f64::max)?;
        (time > 0.0).then_some(Power { mean: joules / time, peak, limit: self.limit })
    }
}

/// A card that says it rests and draws as at work says nothing.
pub fn vetoed(seen: Seen) -> Seen {
    let rests = |ratio: Option<Ratio>| ratio.is_some_and(|seen| seen.get() < NEARLY_NOTHING);
    let works = |ratio: &Option<Ratio>| ratio.is_some_and(|seen| seen.get() >= NEARLY_NOTHING);
    let quiet = rests(seen.sm) && rests(seen.dram) && !seen.engines.values().any(works);
    match seen.power {
        Some(Power { mean, limit: Some(limit), .. }) if quiet && mean > limit * SHARE_OF_REST => {
            let why = format!(
                "the card contradicts itself: it drew {mean:.0} of {limit:.0} W, which is no rest, though neither its \
                 SMs nor its memory show work"
            );
            Seen { sm: None, dram: None, unreadable: Some(why), ..seen }
        }
        _ => seen,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use std::collections::BTreeMap;

    use super::*;
    use crate::domain::Engine;

    fn energy(millijoules: u64) -> Draw {
        Draw { energy: Some(millijoules), watts: None, limit: Some(400.0) }
    }

    fn metered(draws: &[Draw]) -> (Meter, Vec<Option<Drawn>>) {
        let (begin, mut meter) = (Instant::now(), Meter::default());
        let drawn = (0..).zip(draws).map(|(n, draw)| meter.take(*draw, begin + Duration::from_secs(2 * n)));
        let drawn = drawn.collect();
        (meter, drawn)
    }

    #[test]
    fn energy_between_two_polls_is_their_power() {
        let (meter, drawn) = metered(&[energy(7_000), energy(207_000), energy(807_000)]);
        assert_eq!(drawn[0], None, "one reading of a counter says nothing");
        let power = meter.sum(drawn.into_iter().flatten()).unwrap();
        assert_eq!(power, Power { mean: 200.0, peak: 300.0, limit: Some(400.0) });
    }

    #[test]
    fn a_counter_that_began_anew_or_jumps_says_nothing_of_that_time() {
        let (meter, drawn) = metered(&[energy(900_000), energy(1_000), energy(101_000), energy(u64::MAX)]);
        assert_eq!(drawn.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, false]);
        assert_eq!(meter.sum(drawn.into_iter().flatten()).unwrap().mean, 50.0);
    }

    #[test]
    fn without_a_counter_the_watts_of_the_moment_count_where_they_can_be() {
        let watts = |watts| Draw { watts: Some(watts), ..Draw::default() };
        let (meter, drawn) =
            metered(&[watts(70.0), watts(80.0), watts(4_294_967.0), watts(f64::NAN), watts(100.0)]);
        let power = meter.sum(drawn.into_iter().flatten()).unwrap();
        assert_eq!(power, Power { mean: 90.0, peak: 100.0, limit: None });
        assert_eq!(meter.sum(std::iter::empty()), None);
    }

    fn seen(sm: f64, dram: f64, watts: f64) -> Seen {
        Seen {
            sm: Ratio::reading(sm),
            dram: Ratio::reading(dram),
            engines: BTreeMap::new(),
            covered: Duration::from_secs(60),
            largest_gap: Duration::ZERO,
            unreadable: None,
            power: Some(Power { mean: watts, peak: watts, limit: Some(400.0) }),
        }
    }

    #[test]
    fn rest_that_draws_as_work_is_not_known() {
        let odd = vetoed(seen(0.0, 0.004, 310.0));
        assert_eq!((odd.sm, odd.dram), (None, None));
        assert!(odd.unreadable.unwrap().contains("drew 310 of 400 W"));
    }

    #[test]
    fn rest_at_full_clocks_work_and_cards_without_a_limit_are_left_as_they_are() {
        let decoding = Seen {
            engines: BTreeMap::from([(Engine::Decode, Ratio::reading(0.3))]),
            ..seen(0.0, 0.0, 310.0)
        };
        let no_limit = Power { mean: 310.0, peak: 310.0, limit: None };
        for untouched in [
            seen(0.0, 0.0, 148.0), // 37 %, the most that is known of a card at rest
            seen(0.9, 0.4, 390.0),
            seen(0.0, 0.2, 310.0),
            decoding,
            Seen { power: Some(no_limit), ..seen(0.0, 0.0, 310.0) },
            Seen { power: None, ..seen(0.0, 0.0, 310.0) },
        ] {
            assert_eq!(vetoed(untouched.clone()), untouched);
        }
    }
}

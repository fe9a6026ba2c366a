//! A burst of 200 ms every ten minutes over hours, in simulated time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::gpm::Pair;
use super::ring::RingRead;
use super::signals::{Cursors, Signals};
use crate::domain::Ratio;
use crate::telemetry::window::{Seen, Window};

const SECOND: u64 = 1_000_000;
const TEN_MINUTES: u64 = 600 * SECOND;
const HOURS: u64 = 6;
/// The driver's ring: a sample every 139 ms, 72 of them.
const PERIOD: u64 = 139_000;
const HELD: u64 = 72;

/// Instants and lengths are microseconds.
struct Bursts {
    phase: u64,
}

impl Bursts {
    const LENGTH: u64 = SECOND / 5;

    /// The percentage of a stretch in which the card works.
    fn percent(&self, from: u64, to: u64) -> f64 {
        let first = from / TEN_MINUTES * TEN_MINUTES + self.phase;
        let around = [first.saturating_sub(TEN_MINUTES), first, first + TEN_MINUTES];
        let work: u64 = around.map(|b| (b + Self::LENGTH).min(to).saturating_sub(b.max(from))).iter().sum();
        100.0 * work as f64 / (to - from) as f64
    }

    /// NVML's utilization: whole percents of the last second, the longest that any product has.
    fn rate(&self, now: u64) -> u32 {
        self.percent(now.saturating_sub(SECOND), now) as u32
    }

    fn ring(&self, now: u64, last: Option<u64>) -> RingRead {
        let newest = now / PERIOD;
        let stamps = (newest.saturating_sub(HELD - 1).max(1)..=newest).map(|k| k * PERIOD);
        let new = stamps.filter(|&t| last.is_none_or(|last| t > last));
        let samples: Vec<_> = new.map(|t| (t, self.percent(t - PERIOD, t).trunc())).collect();
        if samples.is_empty() { RingRead::Nothing } else { RingRead::Samples(samples) }
    }

    fn pair(&self, from: u64, to: u64) -> Pair {
        let value = Ratio::percent(self.percent(from, to)).ok_or_else(String::new);
        Pair {
            reach: Duration::from_micros(to - from),
            sm: value.clone(),
            dram: value.clone(),
            tensor: Some(value),
            media: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Ring,
    Counters,
}

/// What each ten minutes of six hours looked like, polled every so often and never quite in time.
fn watched(bursts: &Bursts, source: Source, poll: u64) -> Vec<Seen> {
    let start = Instant::now();
    let (mut window, mut cursors, mut seen) = (Window::new(start), Cursors::default(), vec![]);
    let (mut now, mut before, mut polls, mut told) = (0, 0, 0, 0);
    while now < HOURS * 6 * TEN_MINUTES {
        polls += 1;
        now += poll + (polls % 7) * 13_000;
        let none = || RingRead::Failed("no ring".to_owned());
        let counters = source == Source::Counters;
        let signals = Signals {
            rates: Ok((bursts.rate(now), bursts.rate(now))),
            sm_ring: if counters { none() } else { bursts.ring(now, cursors.sm.last()) },
            dram_ring: if counters { none() } else { bursts.ring(now, cursors.dram.last()) },
            shares: Ok(vec![]),
            engines: BTreeMap::new(),
            gpm: counters.then(|| bursts.pair(before, now)),
        };
        let at = start + Duration::from_micros(now);
        let poll = signals.judge(&mut cursors, window.unwatched(at));
        window.add(polls, at, poll);
        if now / TEN_MINUTES > before / TEN_MINUTES {
            seen.push(window.since(std::mem::replace(&mut told, polls)));
        }
        before = now;
    }
    seen
}

#[test]
fn a_burst_of_200_ms_every_ten_minutes_is_always_seen_where_one_reading_a_minute_misses_it() {
    for phase in [7_300_000, 30_000_000, 44_440_000, 211_111_111, 569_999_999] {
        let bursts = Bursts { phase };
        let minutes = HOURS * 60;
        let by_the_minute = (1..=minutes).map(|minute| bursts.rate(minute * 60 * SECOND)).max();
        assert_eq!(by_the_minute, Some(0), "the premise: phase {phase} falls between the minutes");
        for (source, poll) in [
            (Source::Ring, 2 * SECOND),
            (Source::Ring, 5 * SECOND),
            (Source::Counters, 2 * SECOND),
            (Source::Counters, 5 * SECOND),
        ] {
            let windows = watched(&bursts, source, poll);
            assert_eq!(windows.len() as u64, HOURS * 6);
            for seen in windows {
                let percent = seen.sm.map(|sm| sm.get() * 100.0);
                assert!(
                    percent.is_some_and(|percent| percent >= 1.0),
                    "{source:?} every {poll}: {percent:?}"
                );
                // The very first read has nothing to go on from.
                assert!(seen.largest_gap < Duration::from_millis(300), "{source:?}: {:?}", seen.largest_gap);
            }
        }
    }
}

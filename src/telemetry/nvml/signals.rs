//! All that NVML said about one card in one poll, and what it is worth together.

use std::collections::BTreeMap;
use std::time::Duration;

use super::gpm::Pair;
use super::ring::{RATES_SPAN, RingCursor, RingRead, RingView};
use crate::domain::{Engine, Ratio};
use crate::telemetry::power::Draw;
use crate::telemetry::window::{Poll, peak};

/// What one process did, in percent of the card, as the driver attributes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessShare {
    /// SM.
    pub sm: u32,
    /// Memory bandwidth.
    pub dram: u32,
    /// Video encoder.
    pub encode: u32,
    /// Video decoder.
    pub decode: u32,
}

/// The raw answers. `Err` says in words why there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Signals {
    /// Percent of the rates' period in which kernels ran, and in which memory was read or written.
    pub rates: Result<(u32, u32), String>,
    /// The ring of kernel activity.
    pub sm_ring: RingRead,
    /// The ring of memory activity.
    pub dram_ring: RingRead,
    /// The processes that did something since the last poll; none listed proves nothing.
    pub shares: Result<Vec<ProcessShare>, String>,
    /// Percent of the other engines; one the card does not offer is absent.
    pub engines: BTreeMap<Engine, Result<u32, String>>,
    /// What the performance counters say of the time since the last poll, where there are some.
    pub gpm: Option<Pair>,
}

/// The two rings of one card.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursors {
    /// Kernel activity.
    pub sm: RingCursor,
    /// Memory activity.
    pub dram: RingCursor,
    /// The newest per-process record seen.
    pub share: Option<u64>,
}

impl Cursors {
    /// NVML was opened anew.
    pub fn reopened(&mut self) {
        self.sm.reopened();
        self.dram.reopened();
    }
}

/// One figure out of all signals that tell about it.
struct Verdict {
    peak: Option<Ratio>,
    reach: Duration,
    problem: Option<String>,
}

impl Signals {
    /// Joins the signals by their maximum: any of them may prove work. Rest is read from GPM, the rates
    /// and the ring only, and the poll reaches back as far as these do: over all the `unwatched` time
    /// with GPM or a working ring, over [`RATES_SPAN`] with the rates alone. Counters that give an
    /// impossible value contradict whatever else says "rest".
    pub fn judge(self, cursors: &mut Cursors, unwatched: Duration) -> Poll {
        // Drivers that answer garbage about processes are known; it is no signal then, and none is needed.
        let shares = self.shares.unwrap_or_default();
        let gpu_rate = self.rates.clone().and_then(|(gpu, _)| rate("utilization", gpu));
        let dram_rate = self.rates.and_then(|(_, mem)| rate("memory utilization", mem));
        let sm_ring = cursors.sm.take(self.sm_ring, unwatched, at_rest(&gpu_rate));
        let dram_ring = cursors.dram.take(self.dram_ring, unwatched, at_rest(&dram_rate));
        let gpm = self.gpm.as_ref();
        let figure = |of: fn(&Pair) -> &Result<Ratio, String>| gpm.map(|pair| (of(pair), pair.reach));
        let sm = verdict(gpu_rate, sm_ring, largest(&shares, |s| s.sm), figure(|pair| &pair.sm));
        let dram = verdict(dram_rate, dram_ring, largest(&shares, |s| s.dram), figure(|pair| &pair.dram));
        let engines = engines(self.engines, &shares, gpm);
        let silent = engines.iter().find(|(_, seen)| seen.is_none()).map(|(engine, _)| *engine);
        Poll {
            sm: sm.peak,
            dram: dram.peak,
            engines,
            reach: if silent.is_some() { Duration::ZERO } else { sm.reach.min(dram.reach) },
            unreadable: (sm.problem.or(dram.problem))
                .or_else(|| silent.map(|engine| format!("NVML gives no valid {engine} activity"))),
            draw: Draw::default(),
        }
    }
}

fn engines(
    read: BTreeMap<Engine, Result<u32, String>>,
    shares: &[ProcessShare],
    gpm: Option<&Pair>,
) -> BTreeMap<Engine, Option<Ratio>> {
    let read = read.into_iter();
    let mut engines: BTreeMap<_, _> =
        read.map(|(engine, percent)| (engine, percent.ok().and_then(|p| Ratio::percent(p.into())))).collect();
    if let Some(tensor) = gpm.and_then(|pair| pair.tensor.as_ref()) {
        engines.insert(Engine::Tensor, tensor.as_ref().ok().copied());
    }
    let media = gpm.and_then(|pair| pair.media).filter(|seen| seen.get() > 0.0);
    for (engine, seen) in [
        (Engine::Encode, largest(shares, |s| s.encode)),
        (Engine::Decode, peak(largest(shares, |s| s.decode), media)),
    ] {
        if seen.is_some() {
            let known = engines.entry(engine).or_default();
            *known = peak(*known, seen);
        }
    }
    engines
}

/// The largest share of one process, `None` where none did anything: that would prove nothing.
fn largest(shares: &[ProcessShare], part: fn(&ProcessShare) -> u32) -> Option<Ratio> {
    let percent = shares.iter().map(part).filter(|&p| p > 0).max()?;
    Ratio::percent(f64::from(percent))
}

fn verdict(
    rate: Result<Ratio, String>,
    ring: RingView,
    share: Option<Ratio>,
    gpm: Option<(&Result<Ratio, String>, Duration)>,
) -> Verdict {
    let counted = gpm.and_then(|(value, _)| value.as_ref().ok().copied());
    let known = peak(peak(rate.clone().ok(), ring.peak), counted);
    if let Some((Err(why), _)) = gpm {
        let work = known.filter(|seen| seen.get() > 0.0);
        return Verdict { peak: peak(work, share), reach: Duration::ZERO, problem: Some(why.clone()) };
    }
    let by_rate = if rate.is_ok() { RATES_SPAN } else { Duration::ZERO };
    let by_gpm = gpm.map_or(Duration::ZERO, |(_, reach)| reach);
    let problem = match (&known, rate) {
        (None, Err(rate)) => Some(match ring.problem {
            Some(ring) if ring != rate => format!("{rate}; {ring}"),
            _ => rate,
        }),
        _ => None,
    };
    Verdict { peak: peak(known, share), reach: ring.reach.max(by_rate).max(by_gpm), problem }
}

fn rate(what: &str, percent: u32) -> Result<Ratio, String> {
    Ratio::percent(f64::from(percent)).ok_or_else(|| format!("NVML gives a {what} of {percent} %"))
}

fn at_rest(rate: &Result<Ratio, String>) -> bool {
    rate.as_ref().is_ok_and(|r| r.get() <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Duration = Duration::from_secs(2);

    fn failed(why: &str) -> RingRead {
        RingRead::Failed(why.to_owned())
    }

    /// A card at rest, with rates and without a ring.
    fn quiet() -> Signals {
        Signals {
            rates: Ok((0, 0)),
            sm_ring: failed("no ring"),
            dram_ring: failed("no ring"),
            shares: Ok(vec![]),
            engines: BTreeMap::new(),
            gpm: None,
        }
    }

    fn gpm(percent: f64) -> Pair {
        let value = Ratio::percent(percent).ok_or_else(|| format!("GPM gives {percent} %"));
        Pair { reach: TWO, sm: value.clone(), dram: value.clone(), tensor: Some(value), media: None }
    }

    fn ring(percent: f64) -> RingRead {
        RingRead::Samples(vec![(1_000, percent), (2_001_000, percent)])
    }

    fn judge(signals: Signals) -> Poll {
        signals.judge(&mut Cursors::default(), TWO)
    }

    #[test]
    fn rates_alone_are_a_reading_that_speaks_for_a_moment() {
        let poll = judge(quiet());
        assert_eq!(poll.sm.map(Ratio::get), Some(0.0));
        assert_eq!((poll.reach, poll.unreadable), (RATES_SPAN, None));
    }

    #[test]
    fn rings_speak_for_all_the_time_they_hold() {
        let poll = judge(Signals { sm_ring: ring(0.0), dram_ring: ring(0.0), ..quiet() });
        assert_eq!(poll.reach, TWO);
        let poll = judge(Signals { sm_ring: ring(0.0), ..quiet() });
        assert_eq!(poll.reach, RATES_SPAN, "no longer than the weaker of the two figures");
    }

    #[test]
    fn each_signal_alone_proves_work() {
        let by_rate = judge(Signals { rates: Ok((30, 0)), sm_ring: ring(0.0), ..quiet() });
        let by_ring = judge(Signals { sm_ring: ring(30.0), ..quiet() });
        let share = ProcessShare { sm: 30, ..ProcessShare::default() };
        let by_share = judge(Signals { shares: Ok(vec![share]), ..quiet() });
        for poll in [by_rate, by_ring, by_share] {
            assert_eq!(poll.sm, Ratio::percent(30.0));
        }
    }

    #[test]
    fn a_failed_ring_is_made_up_for_by_the_rates_and_the_other_way_round() {
        let poll = judge(Signals {
            rates: Err("no rates".into()),
            sm_ring: ring(0.0),
            dram_ring: ring(0.0),
            ..quiet()
        });
        assert_eq!((poll.sm.map(Ratio::get), poll.unreadable), (Some(0.0), None));
    }

    #[test]
    fn nothing_readable_is_unreadable_and_says_why() {
        let poll = judge(Signals { rates: Err("no rates".into()), ..quiet() });
        assert_eq!((poll.sm, poll.dram, poll.reach), (None, None, Duration::ZERO));
        assert_eq!(poll.unreadable.as_deref(), Some("no rates; no ring"));
    }

    #[test]
    fn an_empty_process_list_is_no_proof_of_rest() {
        let poll = judge(Signals { rates: Err("no rates".into()), shares: Ok(vec![]), ..quiet() });
        assert_eq!(poll.sm, None);
    }

    #[test]
    fn blanks_of_the_driver_are_no_readings() {
        let poll = judge(Signals { rates: Ok((808_334_905, 0)), ..quiet() });
        assert_eq!((poll.sm, poll.dram.map(Ratio::get)), (None, Some(0.0)));
        assert!(poll.unreadable.is_some_and(|why| why.contains("808334905 %")));
    }

    #[test]
    fn a_process_that_only_encodes_shows_as_the_encoder() {
        let share = ProcessShare { encode: 12, ..ProcessShare::default() };
        let poll = judge(Signals { shares: Ok(vec![share]), ..quiet() });
        assert_eq!(poll.sm.map(Ratio::get), Some(0.0));
        assert_eq!(poll.engines, BTreeMap::from([(Engine::Encode, Ratio::percent(12.0))]));
    }

    #[test]
    fn counters_speak_for_all_the_time_and_for_less_than_one_percent() {
        let poll = judge(Signals { gpm: Some(gpm(0.015)), ..quiet() });
        assert_eq!((poll.sm, poll.reach), (Ratio::percent(0.015), TWO));
        assert_eq!(poll.engines, BTreeMap::from([(Engine::Tensor, Ratio::percent(0.015))]));
    }

    #[test]
    fn counters_that_give_the_impossible_outweigh_every_other_rest_and_no_work() {
        let broken = |rates| Signals {
            rates: Ok(rates),
            sm_ring: ring(0.0),
            dram_ring: ring(0.0),
            gpm: Some(gpm(f64::NAN)),
            ..quiet()
        };
        let poll = judge(broken((0, 0)));
        assert_eq!((poll.sm, poll.dram, poll.reach), (None, None, Duration::ZERO));
        assert_eq!(poll.unreadable.as_deref(), Some("GPM gives NaN %"));
        assert_eq!(judge(broken((30, 0))).sm, Ratio::percent(30.0));
    }

    #[test]
    fn a_poll_with_a_silent_engine_speaks_for_no_time() {
        let engines = BTreeMap::from([(Engine::Encode, Ok(4_294_967_295))]);
        let poll = judge(Signals { sm_ring: ring(0.0), dram_ring: ring(0.0), engines, ..quiet() });
        assert_eq!((poll.reach, poll.engines[&Engine::Encode]), (Duration::ZERO, None));
        assert_eq!(poll.unreadable.as_deref(), Some("NVML gives no valid encode activity"));
    }
}

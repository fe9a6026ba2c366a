//! Each way in which an exporter is known to say nothing while it seems to say zero, by its source.

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use super::super::answer::{Labels, Series};
use super::super::batch::{Batch, Device};
use super::super::names::Names;
use super::*;

const RULES: Rules = Rules { sm: 0.01, dram: 0.01, reach: 30_000, max_gap: 180_000, weak: false };
const SCRAPE: i64 = 15;
const ENGINE: &str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
const DRAM: &str = "DCGM_FI_PROF_DRAM_ACTIVE";
const SM: &str = "DCGM_FI_PROF_SM_ACTIVE";
const TENSOR: &str = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE";
const UTIL: &str = "DCGM_FI_DEV_GPU_UTIL";
const ENERGY: &str = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION";

/// An exporter of one card (or instance), scraped every 15 seconds, and the memory of it.
struct Card {
    instance: Option<&'static str>,
    metrics: Vec<(&'static str, f64)>,
    /// Labels besides the card's own, for each of several series.
    labels: Vec<Vec<(&'static str, &'static str)>>,
    now: i64,
    energy: f64,
    stalled: bool,
    scraped: Vec<Series>,
    memory: Option<Memory>,
    rules: Rules,
}

impl Card {
    /// A resting card with the metrics that are exported by default.
    fn resting() -> Self {
        Self {
            instance: None,
            metrics: vec![(ENGINE, 0.0), (DRAM, 0.0), (TENSOR, 0.0), (UTIL, 0.0)],
            labels: vec![vec![]],
            now: 0,
            energy: 1e9,
            stalled: false,
            scraped: Vec::new(),
            memory: None,
            rules: RULES,
        }
    }

    /// A resting instance of a divided card.
    fn instance() -> Self {
        Self { instance: Some("1"), ..Self::resting() }
    }

    fn set(&mut self, name: &'static str, value: f64) -> &mut Self {
        self.metrics.retain(|(known, _)| *known != name);
        self.metrics.push((name, value));
        self
    }

    fn without(&mut self, name: &str) -> &mut Self {
        self.metrics.retain(|(known, _)| *known != name);
        self
    }

    fn label(&self, name: &str, more: &[(&str, &str)]) -> Labels {
        let own = [("__name__", name), ("UUID", "GPU-1")];
        let instance = self.instance.map(|id| ("GPU_I_ID", id));
        let all = own.into_iter().chain(instance).chain(more.iter().copied());
        all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn scrape(&mut self) {
        self.now += SCRAPE * 1000;
        // The watch collects every half minute, so every second scrape sees the same.
        if !self.stalled && self.now % 30_000 == 0 {
            self.energy += 1234.0;
        }
        let energy = (ENERGY, self.energy);
        for more in self.labels.clone() {
            for (name, value) in self.metrics.iter().copied().chain([energy]) {
                let labels = self.label(name, &more);
                let samples = vec![(self.now, value)];
                self.scraped.push(Series { labels, samples });
            }
        }
    }

    fn scrapes(&mut self, seconds: i64) -> &mut Self {
        (0..seconds / SCRAPE).for_each(|_| self.scrape());
        self
    }

    /// Time in which Prometheus gets nothing.
    fn unscraped(&mut self, seconds: i64) -> &mut Self {
        self.now += seconds * 1000;
        self
    }

    /// A look at what was scraped since two minutes ago.
    fn look(&mut self) -> Memory {
        let mut batch = Batch::new(false);
        let recent = |series: &Series| series.samples[0].0 > self.now - 120_000;
        batch.add(self.scraped.iter().filter(|series| recent(series)).cloned().collect(), &Names::default());
        self.fold(&batch)
    }

    /// A look at everything that was scraped.
    fn look_at_all(&mut self) -> Memory {
        let mut batch = Batch::new(false);
        batch.add(self.scraped.clone(), &Names::default());
        self.fold(&batch)
    }

    fn fold(&mut self, batch: &Batch) -> Memory {
        let device = Device { uuid: "GPU-1".to_owned(), instance: self.instance.map(str::to_owned) };
        let readings = batch.devices.get(&device).cloned().unwrap_or_default();
        let first = readings.slots.keys().next().copied().unwrap_or(self.now);
        let on_instance = self.instance.is_some();
        let memory = self.memory.get_or_insert_with(|| Memory::new(first, on_instance));
        memory.fold(&readings, batch.pulses.get("GPU-1"), self.now, &self.rules);
        memory.clone()
    }

    /// Rests for ten minutes in view of looks every minute.
    fn rested(mut self) -> Self {
        for _ in 0..10 {
            self.scrapes(60).look();
        }
        assert!(self.memory.as_ref().unwrap().fault.is_none());
        self
    }

    /// What a minute of these readings comes to.
    fn after_a_minute(&mut self) -> Option<Fault> {
        self.scrapes(60).look().fault.clone()
    }
}

#[test]
fn a_resting_card_is_watched_without_holes_however_often_it_is_looked_at() {
    let card = Card::resting().rested();
    let memory = card.memory.unwrap();
    assert_eq!((memory.since, memory.unwatched, memory.last_active), (15_000, 0, None));
    assert_eq!(memory.covered_until, 600_000);
}

#[test]
fn one_reading_of_work_among_many_moves_the_clock_to_its_own_instant() {
    let mut card = Card::resting().rested();
    card.set(ENGINE, 0.01).scrape();
    let worked = card.now;
    let memory = card.set(ENGINE, 0.0).scrapes(45).look();
    assert_eq!((memory.since, memory.last_active), (worked, Some(worked)));
    assert_eq!(memory.peaks.sm, Some(0.01));
    assert_eq!(card.scrapes(60).look().peaks.sm, Some(0.0));
}

#[test]
fn work_is_seen_in_whichever_metric_it_shows() {
    for metric in [ENGINE, DRAM, SM, TENSOR, UTIL, "DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL"] {
        let mut card = Card::resting().rested();
        assert_eq!(card.set(metric, 1.0).scrapes(60).look().since, card.now, "{metric}");
    }
}

/// DCGM #303: profiling counters read zero after an Xid while the utilization is at a hundred.
#[test]
fn dead_profiling_counters_beside_a_high_utilization_are_work() {
    let mut card = Card::resting().rested();
    assert_eq!(card.set(UTIL, 100.0).scrapes(60).look().last_active, Some(card.now));
}

/// gpu-monitoring-tools #152, slurm-job-exporter #30: blanks of 64, 32 bits and doubles.
#[test]
fn blanks_are_no_zero() {
    for blank in
        [9_223_372_036_854_775_792.0, 9.223_372_036_854_776e18, 2_147_483_632.0, 140_737_488_355_328.0]
    {
        let mut card = Card::resting().rested();
        assert_eq!(
            card.set(ENGINE, blank).after_a_minute(),
            Some(Fault::Blank(Role::Engine, blank)),
            "{blank}"
        );
    }
}

#[test]
fn what_is_no_number_is_no_zero() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut card = Card::resting().rested();
        assert_eq!(card.set(DRAM, value).after_a_minute(), Some(Fault::NotANumber(Role::Dram)), "{value}");
    }
}

/// dcgm-exporter #418, DCGM #199, go-dcgm #75: a utilization of 808334905 or 4294967295.
#[test]
fn what_is_out_of_range_is_no_reading() {
    for value in [808_334_905.0, 4_294_967_295.0, 101.0, -1.0] {
        let mut card = Card::resting().rested();
        let fault = card.set(UTIL, value).after_a_minute();
        assert_eq!(fault, Some(Fault::OutOfRange(Role::Utilization, value)), "{value}");
    }
}

/// DCGM #16, gpu-monitoring-tools #189, and profiling paused for Nsight (DCGM #62).
#[test]
fn a_metric_that_goes_away_is_missed() {
    for metric in [ENGINE, DRAM, TENSOR, UTIL] {
        let mut card = Card::resting().rested();
        card.without(metric).scrapes(120).look();
        assert!(matches!(card.memory.as_ref().unwrap().fault, Some(Fault::Vanished(_))), "{metric}");
    }
}

/// Metrics of one scrape may become visible one after the other.
#[test]
fn a_scrape_that_is_only_half_there_is_waited_for() {
    let mut card = Card::resting().rested();
    card.without(DRAM).scrape();
    let memory = card.look();
    assert_eq!((memory.fault.clone(), memory.covered_until), (None, 600_000));
    let late = Series { labels: card.label(DRAM, &[]), samples: vec![(card.now, 0.0)] };
    card.scraped.push(late);
    assert_eq!(card.look().covered_until, card.now);
}

/// gpu-monitoring-tools #188: stale values after the host engine restarted; dcgm-exporter ignores their age.
#[test]
fn readings_that_repeat_bit_for_bit_are_a_watch_that_hangs() {
    let mut card = Card::resting().rested();
    card.stalled = true;
    for _ in 0..4 {
        card.scrapes(60).look();
    }
    let memory = card.memory.as_ref().unwrap();
    assert_eq!(memory.fault, Some(Fault::Stalled));
    assert!(memory.covered_until <= 600_000 + RULES.patience());
}

#[test]
fn where_nothing_is_exported_that_changes_at_rest_no_zero_is_believed() {
    let mut card = Card::resting();
    card.scrapes(300).look_at_all();
    let mut without = Batch::new(false);
    let zeros = |series: &&Series| series.labels["__name__"] != ENERGY;
    without.add(card.scraped.iter().filter(zeros).cloned().collect(), &Names::default());
    card.memory = None;
    assert_eq!(card.fold(&without).fault, Some(Fault::NoPulse));
}

/// During a hot reload the exporter answers 200 with nothing.
#[test]
fn an_exporter_that_answers_empty_leaves_a_hole_that_ends_the_certainty() {
    let mut card = Card::resting().rested();
    card.unscraped(240).scrapes(60);
    let memory = card.look();
    assert!(memory.after_gap);
    // The first scrape still shows the energy of before; only the second one proves that the card is watched.
    assert_eq!(memory.since, card.now - 45_000);
}

#[test]
fn a_short_hole_counts_as_unwatched_and_no_more() {
    let mut card = Card::resting().rested();
    let before = card.memory.as_ref().unwrap().unwatched;
    let memory = card.unscraped(60).scrapes(60).look();
    assert_eq!((memory.since, memory.unwatched - before), (15_000, 45_000));
    assert_eq!(memory.watched.1, 45_000);
}

/// A scrape interval longer than the collect interval drops whole intervals.
#[test]
fn scrapes_that_are_rarer_than_readings_leave_holes() {
    let mut card = Card::resting();
    for _ in 0..20 {
        card.unscraped(45).scrape();
    }
    let memory = card.look_at_all();
    assert_eq!(memory.unwatched, 19 * 30_000, "each reading speaks for half of the minute");
}

/// dcgm-exporter #342, #428: labels come and go, and each change is another series of the same card.
#[test]
fn a_card_is_judged_by_all_its_series() {
    let mut card = Card::resting().rested();
    card.labels = vec![vec![("pod", "a"), ("namespace", "n")]];
    card.set(ENGINE, 0.5).scrape();
    let worked = card.now;
    card.labels = vec![vec![]];
    assert_eq!(card.set(ENGINE, 0.0).scrapes(45).look().last_active, Some(worked));
}

/// dcgm-exporter PR #594: a pod whose processes are not found reads zero beside the card's own series.
#[test]
fn zeros_of_single_pods_on_a_shared_card_are_outvoted_by_the_card() {
    let mut card = Card::resting().rested();
    card.set(UTIL, 80.0).scrape();
    let labels = card.label(UTIL, &[("pod", "a"), ("namespace", "n")]);
    card.scraped.push(Series { labels, samples: vec![(card.now, 0.0)] });
    assert_eq!(card.look().peaks.sm, Some(0.8));
}

/// dcgm-exporter #582, #587: shared cards carry the same value for every pod.
#[test]
fn every_pod_that_is_named_holds_the_card() {
    let mut card = Card::resting();
    card.labels = vec![vec![("pod", "a"), ("namespace", "n")], vec![("pod", "b"), ("namespace", "n")]];
    assert_eq!(card.scrapes(120).look().holders.len(), 2);
}

#[test]
fn work_that_arrives_late_is_not_missed() {
    let mut card = Card::resting().rested();
    let late =
        Series { labels: card.label(ENGINE, &[("pod", "late")]), samples: vec![(card.now - 30_000, 0.9)] };
    card.scraped.push(late);
    assert_eq!(card.look().last_active, Some(570_000));
}

#[test]
fn utilization_alone_is_refused_unless_asked_for() {
    let mut card = Card::resting();
    card.without(ENGINE).without(DRAM).without(TENSOR);
    assert_eq!(card.scrapes(300).look_at_all().fault, Some(Fault::WeakOnly));
    card.rules.weak = true;
    card.memory = None;
    assert_eq!(card.look_at_all().fault, None);
    assert_eq!(card.set(UTIL, 3.0).scrapes(60).look().last_active, Some(card.now));
}

#[test]
fn a_metric_that_was_never_exported_is_named_with_its_line() {
    let mut card = Card::resting();
    card.without(DRAM);
    let fault = card.scrapes(300).look_at_all().fault.clone().unwrap();
    assert_eq!(fault, Fault::NotExported(Role::Dram));
    assert!(fault.to_string().contains("DCGM_FI_PROF_DRAM_ACTIVE, gauge,"), "{fault}");
}

/// dcgm-exporter #216 and gpu-monitoring-tools #152: an instance has no utilization, or a blank one.
#[test]
fn an_instance_of_a_divided_card_needs_no_utilization() {
    let mut card = Card::instance().rested();
    assert_eq!(card.set(UTIL, 9.223_372_036_854_776e18).after_a_minute(), None);
    assert_eq!(card.without(UTIL).after_a_minute(), None);
}

/// DCGM #65: the memory interface is shared, so a resting instance shows its neighbours' traffic.
#[test]
fn an_instance_is_not_judged_by_the_memory_that_it_shares() {
    let mut card = Card::instance().rested();
    assert_eq!(card.set(DRAM, 0.4).scrapes(60).look().last_active, None);
}

/// DCGM #138: the engine's share of an instance is that of the whole card.
#[test]
fn one_second_in_thirty_on_the_smallest_instance_is_work() {
    let mut card = Card::instance().rested();
    assert_eq!(card.set(ENGINE, 1.0 / 30.0 / 7.0).scrapes(60).look().last_active, Some(card.now));
}

/// DCGM #152: SM activity above one.
#[test]
fn an_instance_may_show_more_than_all_of_its_sms() {
    let mut card = Card::instance().rested();
    assert_eq!(card.set(SM, 6.9).scrapes(60).look().peaks.sm, Some(1.0));
    assert_eq!(card.set(SM, 9.0).set(ENGINE, 0.0).after_a_minute(), Some(Fault::OutOfRange(Role::Sm, 9.0)));
}

#[test]
fn a_card_that_has_just_appeared_is_not_believed_before_its_pulse_has_beaten() {
    let mut card = Card::resting();
    card.scrape();
    assert_eq!(card.look().fault, Some(Fault::TooYoung));
}

//! What a card did: rates, the ring, single processes.

use std::time::{Duration, Instant};

use gpu_culler::domain::{Engine, Ratio};
use serde_json::json;

use crate::driver::{Driver, TIMEOUT, card, next_readings, only, scene, unix_seconds, with};

#[test]
fn an_idle_card_reads_zero_and_is_watched_all_the_time() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let sampler = driver.watched();
    next_readings(&sampler);
    let begin = Instant::now();
    let second = Duration::from_secs(1);
    sampler.wait_for_poll(begin + second, TIMEOUT).unwrap();
    let sample = only(sampler.drain().unwrap()).sample;
    assert_eq!((sample.id.0.as_str(), sample.model.as_str()), ("GPU-a", "NVIDIA A100-SXM4-80GB"));
    assert_eq!((sample.sm, sample.dram), (Ratio::percent(0.0), Ratio::percent(0.0)));
    assert_eq!(sample.engines[&Engine::Encode], Ratio::percent(0.0));
    assert!(sample.covered >= second, "{:?}", sample.covered);
    assert!(sample.covered <= begin.elapsed() + second, "{:?}", sample.covered);
    assert_eq!((sample.largest_gap, sample.unreadable), (Duration::ZERO, None));
}

#[test]
fn a_load_shows_on_the_card_that_has_it() {
    let load = json!([{"from": 0.0, "sm": 93.0, "dram": 40.0, "decode": 7.0}]);
    let busy = with(card("GPU-b"), "load", load);
    let driver = Driver::playing(&scene(&[card("GPU-a"), busy]));
    let readings = next_readings(&driver.watched());
    let peaks: Vec<_> = readings.iter().map(|r| (r.sample.sm, r.sample.dram)).collect();
    let (zero, percent) = (Ratio::percent(0.0), Ratio::percent);
    assert_eq!(peaks, [(zero, zero), (percent(93.0), percent(40.0))]);
    assert_eq!(readings[1].sample.engines[&Engine::Decode], percent(7.0));
}

#[test]
fn a_burst_between_two_polls_is_seen_in_the_drivers_ring_and_only_there() {
    let with_ring = Driver::playing(&scene(&[card("GPU-a")]));
    let no_ring = json!({"nvmlDeviceGetSamples": "NOT_SUPPORTED"});
    let without = Driver::playing(&with(scene(&[card("GPU-a")]), "errors", no_ring.clone()));
    let samplers = [&with_ring, &without].map(|d| d.watched_every(Duration::from_secs(2)));
    samplers.iter().for_each(|sampler| {
        next_readings(sampler);
    });

    let begin = Instant::now();
    let now = unix_seconds();
    let burst = json!([{"from": now + 0.05, "to": now + 0.35, "sm": 100.0, "dram": 50.0}]);
    let bursting = scene(&[with(card("GPU-a"), "load", burst)]);
    with_ring.play(&bursting);
    without.play(&with(bursting, "errors", no_ring));

    // By then the burst has left the last second, which is all that the rates tell about.
    let peaks = samplers.map(|sampler| {
        sampler.wait_for_poll(begin + Duration::from_millis(1400), TIMEOUT).unwrap();
        only(sampler.drain().unwrap()).sample.sm
    });
    assert_eq!(peaks, [Ratio::percent(100.0), Ratio::percent(0.0)]);
}

#[test]
fn without_the_ring_only_a_moment_of_each_poll_counts_as_watched() {
    let no_ring = json!({"nvmlDeviceGetSamples": "NOT_SUPPORTED"});
    let driver = Driver::playing(&with(scene(&[card("GPU-a")]), "errors", no_ring));
    let sampler = driver.watched_every(Duration::from_secs(1));
    next_readings(&sampler);
    let begin = Instant::now();
    sampler.wait_for_poll(begin + Duration::from_millis(500), TIMEOUT).unwrap();
    let sample = only(sampler.drain().unwrap()).sample;
    assert_eq!((sample.sm, sample.unreadable), (Ratio::percent(0.0), None));
    assert!(sample.covered < Duration::from_millis(200), "{:?}", sample.covered);
    assert!(sample.largest_gap > Duration::from_millis(300), "{:?}", sample.largest_gap);
}

#[test]
fn time_stamps_since_boot_and_a_clock_set_back_do_not_blind_us() {
    let no_rates = json!({"nvmlDeviceGetUtilizationRates": "NOT_SUPPORTED"});
    let busy = with(card("GPU-a"), "load", json!([{"from": 0.0, "sm": 80.0}]));
    let at = |clock: f64| {
        let device = with(busy.clone(), "clock", json!(clock));
        with(scene(&[device]), "errors", no_rates.clone())
    };
    let since_boot = 1_000_000.0 - unix_seconds();
    let driver = Driver::playing(&at(since_boot));
    // So slow that only the polls asked for here happen.
    let sampler = driver.watched_every(Duration::from_secs(5));
    assert_eq!(only(next_readings(&sampler)).sample.sm, Ratio::percent(80.0));
    driver.play(&at(since_boot - 3600.0));
    let sample = only(next_readings(&sampler)).sample;
    assert_eq!(sample.sm, None, "nothing is known while the place in the ring is lost");
    assert!(sample.unreadable.is_some_and(|why| why.contains("clock")));
    assert_eq!(only(next_readings(&sampler)).sample.sm, Ratio::percent(80.0));
}

#[test]
fn work_of_a_process_shows_where_all_other_signals_fail() {
    let errors = json!({
        "nvmlDeviceGetUtilizationRates": "NOT_SUPPORTED",
        "nvmlDeviceGetSamples": "NOT_SUPPORTED",
    });
    let load = json!([{"from": 0.0, "sm": 60.0, "dram": 20.0}]);
    let processes = json!([{"pid": std::process::id(), "memory": 1, "load": load}]);
    let blind = with(card("GPU-a"), "errors", errors);
    let driver = Driver::playing(&scene(&[with(blind, "processes", processes)]));
    let sample = only(next_readings(&driver.watched())).sample;
    assert_eq!((sample.sm, sample.dram), (Ratio::percent(60.0), Ratio::percent(20.0)));
    assert_eq!(sample.covered, Duration::ZERO);
    assert!(sample.unreadable.is_some());
}

#[test]
fn a_look_changes_nothing_and_a_drain_begins_anew() {
    let load = json!([{"from": 0.0, "sm": 50.0}]);
    let driver = Driver::playing(&scene(&[with(card("GPU-a"), "load", load)]));
    let sampler = driver.watched();
    sampler.wait_for_poll(Instant::now(), TIMEOUT).unwrap();
    for readings in [sampler.peek(), sampler.peek(), sampler.drain()] {
        assert_eq!(only(readings.unwrap()).sample.sm, Ratio::percent(50.0));
    }
    driver.play(&scene(&[card("GPU-a")]));
    next_readings(&sampler);
    assert_eq!(only(next_readings(&sampler)).sample.sm, Ratio::percent(0.0));
}

//! Performance counters (GPM) of Hopper and newer.

use std::time::{Duration, Instant};

use gpu_culler::domain::{Engine, Ratio};
use serde_json::{Value, json};

use crate::driver::{Driver, TIMEOUT, card, looks_idle, next_readings, only, scene, unix_seconds, with};

const SECOND: Duration = Duration::from_secs(1);

fn hopper(uuid: &str) -> Value {
    with(card(uuid), "gpm", json!(true))
}

/// Everything but the counters and the rates, which only tell of the last moment.
fn no_ring() -> Value {
    json!({"nvmlDeviceGetSamples": "NOT_SUPPORTED", "nvmlDeviceGetProcessUtilization": "NOT_SUPPORTED"})
}

fn sample_after(driver: &Driver, time: Duration) -> gpu_culler::domain::GpuSample {
    let sampler = driver.watched_every(Duration::from_millis(500));
    next_readings(&sampler);
    sampler.wait_for_poll(Instant::now() + time, TIMEOUT).unwrap();
    only(sampler.drain().unwrap()).sample
}

#[test]
fn pairs_cover_all_the_time_without_any_ring() {
    let driver = Driver::playing(&scene(&[with(hopper("GPU-a"), "errors", no_ring())]));
    let sample = sample_after(&driver, SECOND);
    assert!(looks_idle(&sample, SECOND), "{sample:?}");
    assert_eq!(sample.engines[&Engine::Tensor], Ratio::percent(0.0));
}

#[test]
fn work_of_less_than_one_percent_is_seen_by_the_counters_only() {
    let trace = json!([{"from": 0.0, "graphics": 0.3, "sm": 0.002, "tensor": 0.001}]);
    let [with_gpm, without] = [true, false].map(|gpm| {
        let card = with(with(card("GPU-a"), "gpm", json!(gpm)), "load", trace.clone());
        sample_after(&Driver::playing(&scene(&[card])), Duration::ZERO)
    });
    let share = with_gpm.sm.unwrap().get();
    assert!((0.002_9..0.003_1).contains(&share), "{share}");
    assert!(with_gpm.engines[&Engine::Tensor].unwrap().get() > 0.0);
    assert_eq!(without.sm, Ratio::percent(0.0));
}

#[test]
fn a_burst_between_two_polls_is_in_the_pair_after_it_left_the_rates() {
    let driver = Driver::playing(&scene(&[with(hopper("GPU-a"), "errors", no_ring())]));
    let sampler = driver.watched_every(2 * SECOND);
    next_readings(&sampler);
    let (begin, now) = (Instant::now(), unix_seconds());
    let burst = json!([{"from": now + 0.05, "to": now + 0.25, "sm": 100.0, "dram": 50.0}]);
    driver.play(&scene(&[with(with(hopper("GPU-a"), "errors", no_ring()), "load", burst)]));
    sampler.wait_for_poll(begin + Duration::from_millis(1400), TIMEOUT).unwrap();
    let sample = only(sampler.drain().unwrap()).sample;
    assert!(sample.sm.is_some_and(|sm| sm.get() > 0.05), "{sample:?}");
    assert!(sample.dram.is_some_and(|dram| dram.get() > 0.025), "{sample:?}");
}

#[test]
fn a_video_engine_that_nvml_does_not_tell_of_is_seen_by_the_counters() {
    let load = json!([{"from": 0.0, "decode": 0.5}]);
    let driver = Driver::playing(&scene(&[with(hopper("GPU-a"), "load", load)]));
    let sample = sample_after(&driver, Duration::ZERO);
    assert!(sample.engines[&Engine::Decode].unwrap().get() > 0.0);
}

#[test]
fn a_driver_without_the_calls_is_read_as_before() {
    for symbol in [
        "nvmlGpmQueryDeviceSupport",
        "nvmlGpmSampleAlloc",
        "nvmlGpmSampleFree",
        "nvmlGpmSampleGet",
        "nvmlGpmMetricsGet",
    ] {
        let driver = Driver::playing(&scene(&[hopper("GPU-a")])).lacking(&[symbol]);
        let sample = sample_after(&driver, SECOND);
        assert!(looks_idle(&sample, SECOND), "{symbol}: {sample:?}");
        assert!(!sample.engines.contains_key(&Engine::Tensor), "{symbol}");
    }
}

#[test]
fn polls_that_are_asked_for_in_a_hurry_still_make_valid_pairs() {
    let driver = Driver::playing(&scene(&[with(hopper("GPU-a"), "errors", no_ring())]));
    let sampler = driver.watched();
    for _ in 0..5 {
        let sample = only(next_readings(&sampler)).sample;
        assert_eq!((sample.sm, sample.unreadable), (Ratio::percent(0.0), None));
    }
}

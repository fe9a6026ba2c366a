//! What drivers answer that is no reading. None of it may pass for a card at rest.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::driver::{Driver, TIMEOUT, card, looks_idle, next_readings, scene, with};

/// Only the rates are left; a card with these and nothing else is never covered.
fn rates_alone() -> Value {
    json!({"nvmlDeviceGetSamples": "NOT_SUPPORTED"})
}

fn failing(calls: Value) -> Value {
    json!({"errors": calls})
}

fn raw(raw: Value) -> Value {
    json!({"raw": raw})
}

fn gpm(metric: &str, value: Value) -> Value {
    json!({"gpm": true, "raw": {"gpm": {metric: value}}})
}

/// Each case: where it was seen, what the card is told to answer.
fn cases() -> Vec<(&'static str, Value)> {
    let long_ago = 1_000_000_u64;
    vec![
        (
            "not-supported: MIG parents, Jetson",
            failing(json!({
                "nvmlDeviceGetUtilizationRates": "NOT_SUPPORTED", "nvmlDeviceGetSamples": "NOT_SUPPORTED",
            })),
        ),
        (
            "no-data",
            failing(json!({"nvmlDeviceGetUtilizationRates": "NO_DATA", "nvmlDeviceGetSamples": "NO_DATA"})),
        ),
        (
            "not-found, and no rates: a ring that never showed a sample",
            failing(json!({
                "nvmlDeviceGetUtilizationRates": "NOT_SUPPORTED", "nvmlDeviceGetSamples": "NOT_FOUND",
            })),
        ),
        (
            "not-found, and rates at rest: dry since we look (gpu-metrics-agent 37)",
            failing(json!({
                "nvmlDeviceGetSamples": "NOT_FOUND",
            })),
        ),
        ("rates-alone: a sixth of a second in each poll", failing(rates_alone())),
        (
            "no-permission: device cgroup lost after daemon-reload (nvidia-docker 1730)",
            failing(json!({
                "nvmlDeviceGetUtilizationRates": "NO_PERMISSION", "nvmlDeviceGetSamples": "NO_PERMISSION",
            })),
        ),
        (
            "unknown-error: the same in other drivers",
            failing(json!({
                "nvmlDeviceGetUtilizationRates": "999", "nvmlDeviceGetSamples": "999",
            })),
        ),
        ("rates-garbage (dcgm-exporter 418)", raw(json!({"rates": [808_334_905_u32, 0], "ring": []}))),
        ("rates-all-bits (DCGM 199)", raw(json!({"rates": [0, 4_294_967_295_u32], "ring": []}))),
        ("rates-int32-blank (dcgm.h)", raw(json!({"rates": [2_147_483_632_u32, 0], "ring": []}))),
        ("ring-int64-blank (dcgm.h)", raw(json!({"ring": [[1, 9_223_372_036_854_775_792_u64]]}))),
        ("ring-int32-blank (dcgm.h)", raw(json!({"ring": [[1, 2_147_483_632], [2, 0]]}))),
        ("ring-over-100 (nvtop 110)", raw(json!({"ring": [[1, 0], [139_001, 3_000_000]]}))),
        ("ring-stands-still", raw(json!({"ring": [[long_ago, 0], [long_ago + 139_000, 0]]}))),
        ("ring-without-a-clock", raw(json!({"ring": [[0, 0], [0, 0]]}))),
        ("encode-all-bits (go-dcgm 75)", raw(json!({"encode": 4_294_967_295_u32}))),
        ("gpm-graphics-nan", gpm("1", json!(null))),
        ("gpm-sm-nan", gpm("2", json!(null))),
        ("gpm-dram-nan", gpm("10", json!(null))),
        ("gpm-tensor-nan", gpm("5", json!(null))),
        ("gpm-negative", gpm("1", json!(-1.0))),
        ("gpm-over-100", gpm("10", json!(4_000.0))),
        ("gpm-fp64-blank (dcgm.h)", gpm("2", json!(140_737_488_355_328.0))),
        ("gpm-int64-blank as a double", gpm("5", json!(9.223_372_036_854_776e18))),
    ]
}

#[test]
fn nothing_impossible_passes_for_rest() {
    let told = |name: &str, part: &Value| {
        part.as_object().unwrap().iter().fold(card(name), |card, (key, value)| with(card, key, value.clone()))
    };
    let mut cards: Vec<Value> = cases().iter().map(|(name, part)| told(name, part)).collect();
    let controls = [card("control"), with(card("control-gpm"), "gpm", json!(true))];
    let since_boot = with(card("control-clock-since-boot (gpu-metrics-agent 36)"), "clock", json!(-1.79e9));
    cards.extend(controls);
    cards.push(since_boot);
    let driver = Driver::playing(&scene(&cards));
    let sampler = driver.watched_every(Duration::from_millis(300));
    next_readings(&sampler);
    let time = Duration::from_millis(1500);
    sampler.wait_for_poll(Instant::now() + time, TIMEOUT).unwrap();
    let readings = sampler.drain().unwrap();
    assert_eq!(readings.len(), cards.len());
    for reading in readings {
        let sample = reading.sample;
        let expected = sample.id.0.starts_with("control");
        assert_eq!(looks_idle(&sample, time), expected, "{sample:?}");
    }
}

#[test]
fn records_of_processes_that_cannot_be_are_no_activity_and_no_rest_either() {
    let blind =
        json!({"nvmlDeviceGetUtilizationRates": "NOT_SUPPORTED", "nvmlDeviceGetSamples": "NOT_SUPPORTED"});
    let shares = json!({"shares": [[4321, 5, 40], [17, 5, 3_000_000]]}); // nvtop 110
    let driver = Driver::playing(&scene(&[with(with(card("GPU-a"), "errors", blind), "raw", shares)]));
    let sample = next_readings(&driver.watched()).remove(0).sample;
    assert_eq!((sample.sm, sample.dram, sample.covered), (None, None, Duration::ZERO));
}

#[test]
fn the_longer_entries_of_some_drivers_make_the_list_unknown_and_not_wrong() {
    let own = std::process::id();
    let processes = json!([{"pid": own, "memory": 5}, {"pid": 1, "memory": 6}, {"pid": 1, "memory": 7}]);
    let long = with(with(card("GPU-a"), "processes", processes), "long_entries", json!(true));
    let driver = Driver::playing(&scene(&[long]));
    let reading = next_readings(&driver.watched()).remove(0);
    assert_eq!(reading.holders, Err("the driver lists processes that cannot exist".to_owned()));
    assert_eq!(reading.sample.processes, None);
}

//! Cards that MIG shares out.

use std::time::{Duration, Instant};

use gpu_culler::domain::{Holder, Ratio};
use gpu_culler::telemetry::DeviceReading;
use serde_json::{Value, json};

use crate::driver::{Driver, TIMEOUT, card, looks_idle, next_readings, scene, with};

fn instance(uuid: &str, gi: u32) -> Value {
    json!({"uuid": uuid, "name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "memory_total": 10_737_418_240_u64, "gi": gi})
}

fn shared(gpm: bool, slots: Value) -> Value {
    with(with(with(card("GPU-a"), "mig", json!(true)), "gpm", json!(gpm)), "instances", slots)
}

fn ids(readings: &[DeviceReading]) -> Vec<&str> {
    readings.iter().map(|reading| reading.sample.id.0.as_str()).collect()
}

#[test]
fn every_instance_is_a_device_of_its_own_wherever_its_slot_is() {
    let load = json!([{"from": 0.0, "sm": 40.0, "dram": 10.0}]);
    let processes = json!([{"pid": std::process::id(), "memory": 5}]);
    let busy = with(with(instance("MIG-b", 9), "load", load), "processes", processes);
    let slots = json!([null, instance("MIG-a", 7), null, null, busy]);
    let driver = Driver::playing(&scene(&[shared(true, slots)]));
    let sampler = driver.watched();
    next_readings(&sampler);
    let second = Duration::from_secs(1);
    sampler.wait_for_poll(Instant::now() + second, TIMEOUT).unwrap();
    let readings = sampler.drain().unwrap();
    assert_eq!(ids(&readings), ["MIG-a", "MIG-b"], "the card itself is none");
    let [idle, busy] = <[_; 2]>::try_from(readings).unwrap();
    assert!(looks_idle(&idle.sample, second), "{idle:?}");
    assert_eq!((idle.sample.memory_used, idle.holders), (Some(0), Ok(vec![])));
    let near = |seen: Option<Ratio>, percent: f64| (seen.unwrap().get() * 100.0 - percent).abs() < 1e-6;
    assert!(near(busy.sample.sm, 40.0) && near(busy.sample.dram, 10.0), "{busy:?}");
    assert_eq!(busy.sample.memory_used, Some(5));
    assert_eq!(busy.holders, Ok(vec![Holder { pid: std::process::id(), memory_used: Some(5) }]));
    assert_eq!(busy.sample.model, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
}

#[test]
fn an_instance_of_a_card_before_hopper_is_unreadable_and_says_what_to_do() {
    let processes = json!([{"pid": std::process::id(), "memory": 5}]);
    let slots = json!([with(instance("MIG-a", 1), "processes", processes)]);
    let driver = Driver::playing(&scene(&[shared(false, slots)]));
    let reading = next_readings(&driver.watched()).remove(0);
    assert_eq!(
        (reading.sample.sm, reading.sample.dram, reading.sample.covered),
        (None, None, Duration::ZERO)
    );
    assert!(reading.sample.unreadable.is_some_and(|why| why.contains("DCGM")));
    assert_eq!(reading.sample.processes, Some(1), "who holds it is known all the same");
}

#[test]
fn an_instance_whose_rights_we_lack_is_not_overlooked() {
    let errors = json!({"nvmlDeviceGetMigDeviceHandleByIndex": "NO_PERMISSION"});
    let slots = json!([instance("MIG-a", 1), with(instance("MIG-b", 2), "errors", errors)]);
    let driver = Driver::playing(&scene(&[shared(true, slots)]));
    let readings = next_readings(&driver.watched());
    assert_eq!(ids(&readings), ["MIG-a", "unknown-at-index-1-of-GPU-a"]);
    assert!(readings[1].sample.unreadable.as_deref().unwrap().contains("denied"));
    assert!(readings[1].holders.is_err());
}

#[test]
fn instances_come_and_go_with_the_layout() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let sampler = driver.watched();
    next_readings(&sampler);
    driver.play(&scene(&[shared(true, json!([instance("MIG-a", 1), instance("MIG-b", 2)]))]));
    assert_eq!(ids(&next_readings(&sampler)), ["MIG-a", "MIG-b"]);
    driver.play(&scene(&[shared(true, json!([null, instance("MIG-c", 3)]))]));
    assert_eq!(ids(&next_readings(&sampler)), ["MIG-c"]);
    driver.play(&scene(&[card("GPU-a")]));
    assert_eq!(ids(&next_readings(&sampler)), ["GPU-a"]);
}

#[test]
fn a_shared_card_that_is_lost_takes_its_instances_with_it_and_adds_no_device() {
    let slots = json!([instance("MIG-a", 1), instance("MIG-b", 2)]);
    let driver = Driver::playing(&scene(&[shared(true, slots.clone())]));
    let sampler = driver.watched();
    next_readings(&sampler);
    let lost = json!({"nvmlDeviceGetMaxMigDeviceCount": "GPU_IS_LOST"});
    driver.play(&scene(&[with(shared(true, slots), "errors", lost)]));
    let readings = next_readings(&sampler);
    assert_eq!(ids(&readings), ["MIG-a", "MIG-b"]);
    for reading in &readings {
        assert!(reading.sample.unreadable.as_deref().unwrap().contains("fell off the bus"));
    }
}

#[test]
fn without_the_call_that_names_an_instance_it_is_unreadable() {
    let scene = scene(&[shared(true, json!([instance("MIG-a", 1)]))]);
    let driver = Driver::playing(&scene).lacking(&["nvmlDeviceGetGpuInstanceId"]);
    let reading = next_readings(&driver.watched()).remove(0);
    assert_eq!((reading.sample.sm, reading.sample.covered), (None, Duration::ZERO));
    assert!(reading.sample.unreadable.is_some());
}

//! Who holds a card.

use std::time::Duration;

use gpu_culler::domain::{Holder, Ratio};
use serde_json::json;

use crate::driver::{Driver, card, next_readings, only, scene, with};

#[test]
fn holders_are_listed_with_their_memory() {
    let (own, held) = (std::process::id(), 41_000_000_000_u64);
    let processes = json!([
        {"pid": own, "memory": held},
        {"pid": own, "memory": 5, "graphics": true},
        {"pid": 4_194_304, "memory": 7},
        {"pid": 1, "memory": null, "graphics": true},
    ]);
    let driver = Driver::playing(&scene(&[with(card("GPU-a"), "processes", processes)]));
    let reading = only(next_readings(&driver.watched()));
    let holder = |pid, memory_used| Holder { pid, memory_used };
    assert_eq!(reading.holders, Ok(vec![holder(1, None), holder(own, Some(held))]));
    assert_eq!(reading.sample.processes, Some(2));
    assert_eq!(reading.sample.memory_used, Some(held + 5));
}

#[test]
fn a_process_list_that_may_not_be_read_is_not_an_empty_one() {
    let denied = json!({"nvmlDeviceGetComputeRunningProcesses_v3": "NO_PERMISSION"});
    let driver = Driver::playing(&scene(&[with(card("GPU-a"), "errors", denied)]));
    let reading = only(next_readings(&driver.watched()));
    assert!(reading.holders.unwrap_err().contains("denied"));
    assert_eq!((reading.sample.sm, reading.sample.processes), (Ratio::percent(0.0), None));
}

#[test]
fn lists_are_read_when_the_memory_in_use_changes_and_before_every_asked_look() {
    let pid = std::process::id();
    let held = with(card("GPU-a"), "processes", json!([{"pid": pid, "memory": 7}]));
    let denied = json!({"nvmlDeviceGetComputeRunningProcesses_v3": "NO_PERMISSION"});
    let driver = Driver::playing(&scene(std::slice::from_ref(&held)));
    let sampler = driver.watched();
    next_readings(&sampler);
    // From now on reading the lists fails, which shows whether they are read.
    driver.play(&scene(&[with(held, "errors", denied)]));
    std::thread::sleep(Duration::from_millis(500));
    let holder = vec![Holder { pid, memory_used: Some(7) }];
    assert_eq!(only(sampler.drain().unwrap()).holders, Ok(holder), "not read in every poll");
    assert!(only(next_readings(&sampler)).holders.is_err(), "read when somebody looks");
}

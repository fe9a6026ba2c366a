//! What a card draws, and when that speaks against what it says of itself.

use std::time::{Duration, Instant};

use gpu_culler::domain::{GpuSample, Ratio};
use serde_json::{Value, json};

use crate::driver::{Driver, TIMEOUT, card, next_readings, only, scene, with};

fn drawing(watts: f64) -> Value {
    with(with(card("GPU-a"), "watts", json!(watts)), "power_limit", json!(400.0))
}

fn after_a_second(driver: &Driver) -> GpuSample {
    let sampler = driver.watched();
    next_readings(&sampler);
    sampler.wait_for_poll(Instant::now() + Duration::from_secs(1), TIMEOUT).unwrap();
    only(sampler.drain().unwrap()).sample
}

fn nearly(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() < wanted / 20.0
}

#[test]
fn a_card_at_rest_with_a_context_open_rests_and_tells_what_it_draws() {
    let sample = after_a_second(&Driver::playing(&scene(&[drawing(80.0)])));
    let power = sample.power.unwrap();
    assert!(nearly(power.mean, 80.0) && power.peak >= power.mean, "{power:?}");
    assert_eq!(power.limit, Some(400.0));
    assert_eq!((sample.sm, sample.dram, sample.unreadable), (Ratio::percent(0.0), Ratio::percent(0.0), None));
}

#[test]
fn a_card_that_shows_no_work_and_draws_as_at_work_is_not_known() {
    let sample = after_a_second(&Driver::playing(&scene(&[drawing(310.0)])));
    assert_eq!((sample.sm, sample.dram), (None, None));
    let why = sample.unreadable.unwrap();
    assert!(why.contains("it drew 31") && why.contains("of 400 W"), "{why}");
}

#[test]
fn a_card_at_work_may_draw_what_it_likes() {
    let busy = with(drawing(390.0), "load", json!([{"from": 0.0, "sm": 90.0, "dram": 40.0}]));
    let sample = after_a_second(&Driver::playing(&scene(&[busy])));
    assert_eq!((sample.sm, sample.unreadable), (Ratio::percent(90.0), None));
}

#[test]
fn without_the_counter_of_energy_the_power_of_the_moment_counts() {
    for symbol in ["nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetEnforcedPowerLimit"] {
        let driver = Driver::playing(&scene(&[drawing(310.0)])).lacking(&[symbol]);
        let sample = after_a_second(&driver);
        assert!(nearly(sample.power.unwrap().mean, 310.0), "{symbol}");
        let contradicted = symbol.contains("Energy");
        assert_eq!(sample.sm.is_none(), contradicted, "{symbol}: without a limit nothing is contradicted");
    }
}

#[test]
fn a_card_that_tells_neither_is_judged_as_ever() {
    let sample = after_a_second(&Driver::playing(&scene(&[card("GPU-a")])));
    assert_eq!((sample.power, sample.sm), (None, Ratio::percent(0.0)));
}

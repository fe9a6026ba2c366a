//! Cards and drivers come and go.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gpu_culler::domain::Ratio;
use gpu_culler::telemetry::{NvmlSampler, NvmlSettings, TelemetryError};
use serde_json::json;

use crate::driver::{Driver, TIMEOUT, card, looks_idle, next_readings, only, recovered, scene, with};

#[test]
fn a_lost_card_is_unreadable_and_the_others_are_not() {
    let lost = json!({"nvmlDeviceGetUtilizationRates": "GPU_IS_LOST"});
    let gone = json!({"nvmlDeviceGetHandleByIndex_v2": "GPU_IS_LOST"});
    let driver = Driver::playing(&scene(&[card("GPU-a"), card("GPU-b"), card("GPU-c")]));
    let sampler = driver.watched();
    next_readings(&sampler);
    driver.play(&scene(&[
        with(card("GPU-a"), "errors", lost),
        card("GPU-b"),
        with(card("GPU-c"), "errors", gone),
    ]));
    let readings = next_readings(&sampler);
    let ids: Vec<_> = readings.iter().map(|r| r.sample.id.0.as_str()).collect();
    assert_eq!(ids, ["GPU-a", "GPU-b", "GPU-c"], "a lost card keeps its name");
    for reading in [&readings[0], &readings[2]] {
        assert_eq!((reading.sample.sm, reading.sample.dram), (None, None));
        let why = reading.sample.unreadable.as_deref().unwrap();
        assert!(why.contains("fell off the bus"), "{why}");
        assert!(reading.holders.is_err());
        assert_eq!(reading.sample.processes, None);
    }
    assert_eq!((readings[1].sample.sm, &readings[1].holders), (Ratio::percent(0.0), &Ok(vec![])));
}

#[test]
fn a_card_that_is_not_listed_any_more_is_not_forgotten() {
    let driver = Driver::playing(&scene(&[card("GPU-a"), card("GPU-b")]));
    let sampler = driver.watched();
    next_readings(&sampler);
    driver.play(&scene(&[card("GPU-b")]));
    let readings = next_readings(&sampler);
    assert_eq!(readings.len(), 2);
    assert_eq!(readings[0].sample.sm, None);
    assert!(readings[0].sample.unreadable.as_deref().unwrap().contains("not list"));
    assert_eq!(readings[1].sample.sm, Ratio::percent(0.0));
}

#[test]
fn a_missing_library_is_told_in_words_for_people() {
    let library = Some(PathBuf::from("/nonexistent/libnvidia-ml.so.1"));
    let sampler = NvmlSampler::start(NvmlSettings { library, ..NvmlSettings::default() });
    let error = sampler.wait_for_poll(Instant::now(), TIMEOUT).unwrap_err();
    assert_eq!(sampler.drain(), Err(error.clone()));
    let words = error.to_string();
    assert!(words.contains("could not be loaded") && words.contains("Install"), "{words}");
}

#[test]
fn a_driver_that_is_loaded_later_is_found() {
    let unloaded = json!({"nvmlInit_v2": "DRIVER_NOT_LOADED"});
    let driver = Driver::playing(&with(scene(&[card("GPU-a")]), "errors", unloaded));
    let sampler = driver.watched();
    let error = sampler.wait_for_poll(Instant::now(), TIMEOUT).unwrap_err();
    assert!(error.to_string().contains("kernel module is not loaded"), "{error}");
    driver.play(&scene(&[card("GPU-a")]));
    assert_eq!(only(recovered(&sampler)).sample.sm, Ratio::percent(0.0));
}

#[test]
fn a_driver_that_is_reloaded_under_us_leaves_a_gap_and_comes_back() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let sampler = driver.watched();
    next_readings(&sampler);
    let mismatch = json!({"nvmlDeviceGetCount_v2": "LIB_RM_VERSION_MISMATCH"});
    driver.play(&with(scene(&[card("GPU-a")]), "errors", mismatch));
    let error = sampler.wait_for_poll(Instant::now(), TIMEOUT).unwrap_err();
    assert!(error.to_string().contains("upgraded"), "{error}");
    driver.play(&scene(&[card("GPU-a")]));
    assert_eq!(only(recovered(&sampler)).sample.sm, Ratio::percent(0.0));
}

#[test]
fn a_call_that_never_returns_is_noticed_and_keeps_nobody_waiting() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let sampler = driver.watched();
    next_readings(&sampler);
    let hang = json!({"nvmlDeviceGetUtilizationRates": "HANG"});
    driver.play(&scene(&[with(card("GPU-a"), "errors", hang)]));
    let watchdog = Duration::from_millis(3500);
    let waited = sampler.wait_for_poll(Instant::now() + Duration::from_secs(1), watchdog);
    assert!(matches!(waited, Err(TelemetryError::NotAnswering { .. })), "{waited:?}");
    let error = sampler.drain().unwrap_err();
    assert!(error.to_string().starts_with("NVML has not answered for 3 s"), "{error}");
    let begin = Instant::now();
    drop(sampler);
    assert!(begin.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_machine_without_cards_has_no_readings_and_no_error() {
    let driver = Driver::playing(&scene(&[]));
    assert_eq!(next_readings(&driver.watched()), []);
}

#[test]
fn a_card_that_needs_a_reset_is_unreadable_until_it_had_one() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let sampler = driver.watched();
    next_readings(&sampler);
    let errors = json!({"nvmlDeviceGetUtilizationRates": "RESET_REQUIRED"});
    driver.play(&scene(&[with(card("GPU-a"), "errors", errors)]));
    let sample = only(next_readings(&sampler)).sample;
    assert_eq!((sample.sm, sample.dram), (None, None));
    assert!(sample.unreadable.is_some_and(|why| why.contains("nvidia-smi -r")));
    driver.play(&scene(&[card("GPU-a")]));
    let begin = Instant::now();
    assert_eq!(only(next_readings(&sampler)).sample.sm, Ratio::percent(0.0));
    // The ring of a card that was reset has no place to go on from.
    assert!(begin.elapsed() < TIMEOUT);
}

#[test]
fn a_card_that_is_plugged_in_is_watched_from_then_on_and_not_before() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let sampler = driver.watched();
    next_readings(&sampler);
    std::thread::sleep(Duration::from_secs(1));
    driver.play(&scene(&[card("GPU-a"), card("GPU-b")]));
    let readings = next_readings(&sampler);
    assert_eq!(readings.len(), 2);
    assert!(looks_idle(&readings[0].sample, Duration::from_secs(1)));
    let second = &readings[1].sample;
    assert_eq!((second.id.0.as_str(), second.sm), ("GPU-b", Ratio::percent(0.0)));
    assert!(second.covered < Duration::from_millis(500), "{:?}", second.covered);
}

#[test]
fn a_library_that_is_replaced_under_us_is_opened_anew() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let sampler = driver.watched();
    next_readings(&sampler);
    let mismatch = json!({"nvmlDeviceGetCount_v2": "LIB_RM_VERSION_MISMATCH"});
    driver.play(&with(scene(&[card("GPU-a")]), "errors", mismatch));
    driver.replace_library(&fs::read(&driver.library).unwrap());
    sampler.wait_for_poll(Instant::now(), TIMEOUT).unwrap_err();
    driver.play(&scene(&[card("GPU-b")]));
    let readings = recovered(&sampler);
    let seen: Vec<_> = readings.iter().map(|r| (r.sample.id.0.as_str(), r.sample.sm)).collect();
    assert_eq!(seen, [("GPU-a", None), ("GPU-b", Ratio::percent(0.0))]);
}

#[test]
fn nvml_is_let_go_on_request_and_taken_up_again() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let sampler = driver.watched();
    next_readings(&sampler);
    assert_eq!(driver.users(), "1");
    let begin = Instant::now();
    let away = Duration::from_millis(1500);
    sampler.release(away);
    let error = sampler.wait_for_poll(begin + Duration::from_millis(200), TIMEOUT).unwrap_err();
    assert!(error.to_string().contains("let go on request"), "{error}");
    assert_eq!((driver.users().as_str(), sampler.drain()), ("0", Err(error)));
    let sample = only(recovered(&sampler)).sample;
    assert!(begin.elapsed() >= away);
    assert_eq!((driver.users().as_str(), sample.sm), ("1", Ratio::percent(0.0)));
    assert!(sample.largest_gap + sample.covered >= Duration::from_secs(1), "{sample:?}");
}

#[test]
fn what_an_old_library_lacks_is_named_and_the_rest_works() {
    let missing = ["nvmlDeviceGetProcessUtilization", "nvmlGpmSampleGet"];
    let driver = Driver::playing(&scene(&[card("GPU-a")])).lacking(&missing);
    let sampler = driver.watched();
    assert_eq!(only(next_readings(&sampler)).sample.sm, Ratio::percent(0.0));
    let lacking = sampler.lacking();
    assert_eq!(lacking.len(), 2, "{lacking:?}");
    assert!(missing.iter().zip(&lacking).all(|(call, words)| words.starts_with(call)));
    assert!(Driver::playing(&scene(&[])).watched().lacking().is_empty());
}

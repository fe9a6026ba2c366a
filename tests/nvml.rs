//! The NVML source against a pretended driver, through the real wrapper and the real C interface.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should stop at once")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gpu_culler::domain::{Engine, Holder, Ratio};
use gpu_culler::telemetry::{DeviceReading, NvmlSampler, NvmlSettings, TelemetryError};
use serde_json::{Value, json};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(20);

/// A copy of the pretended driver with a scene of its own.
struct Driver {
    library: PathBuf,
    _dir: TempDir,
}

impl Driver {
    fn playing(scene: &Value) -> Self {
        let dir = TempDir::new().unwrap();
        let library = dir.path().join("libnvidia-ml.so.1");
        fs::copy(built_library(), &library).unwrap();
        let driver = Self { library, _dir: dir };
        driver.play(scene);
        driver
    }

    /// Changes the scene in one step, so that no half of it is read.
    fn play(&self, scene: &Value) {
        let next = self.library.with_extension("next");
        fs::write(&next, scene.to_string()).unwrap();
        fs::rename(next, format!("{}.scene.json", self.library.display())).unwrap();
    }

    fn watched_every(&self, poll: Duration) -> NvmlSampler {
        let library = Some(self.library.clone());
        NvmlSampler::start(NvmlSettings { library, poll })
    }

    fn watched(&self) -> NvmlSampler {
        self.watched_every(Duration::from_millis(100))
    }
}

/// The library beside this test's own binary, built once.
fn built_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let exe = std::env::current_exe().unwrap();
        let profile = exe.ancestors().nth(2).unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "fake-nvml", "--target-dir"]);
        build.arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().unwrap().success(), "building fake-nvml");
        profile.join("libfake_nvml.so")
    })
}

fn card(uuid: &str) -> Value {
    json!({"uuid": uuid, "name": "NVIDIA A100-SXM4-80GB", "memory_total": 85_899_345_920_u64})
}

fn scene(devices: &[Value]) -> Value {
    json!({"driver": "580.95.05", "devices": devices})
}

fn with(mut value: Value, key: &str, part: Value) -> Value {
    value[key] = part;
    value
}

#[expect(clippy::disallowed_methods, reason = "the scene is told in real time")]
fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

fn next_readings(sampler: &NvmlSampler) -> Vec<DeviceReading> {
    sampler.wait_for_poll(Instant::now(), TIMEOUT).unwrap();
    sampler.drain().unwrap()
}

fn only(readings: Vec<DeviceReading>) -> DeviceReading {
    let [reading] = <[_; 1]>::try_from(readings).expect("one card");
    reading
}

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

/// The first readings after an outage; the retries are the sampler's own.
fn recovered(sampler: &NvmlSampler) -> Vec<DeviceReading> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match sampler.drain() {
            Ok(readings) => return readings,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
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
fn a_card_with_mig_on_is_unreadable_and_never_zero() {
    let driver = Driver::playing(&scene(&[with(card("GPU-a"), "mig", json!(true))]));
    let sample = only(next_readings(&driver.watched())).sample;
    assert_eq!((sample.sm, sample.dram), (None, None));
    let why = "MIG is on: per-instance activity is not read yet";
    assert_eq!(sample.unreadable.as_deref(), Some(why));
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

#[test]
fn a_machine_without_cards_has_no_readings_and_no_error() {
    let driver = Driver::playing(&scene(&[]));
    assert_eq!(next_readings(&driver.watched()), []);
}

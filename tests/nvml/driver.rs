//! The pretended driver of one test, and how to read it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use gpu_culler::domain::GpuSample;
use gpu_culler::telemetry::{DeviceReading, NvmlSampler, NvmlSettings};
use serde_json::{Value, json};
use tempfile::TempDir;

pub const TIMEOUT: Duration = Duration::from_secs(20);

/// A copy of the pretended driver with a scene of its own.
pub struct Driver {
    pub library: PathBuf,
    _dir: TempDir,
}

impl Driver {
    pub fn playing(scene: &Value) -> Self {
        let dir = TempDir::new().unwrap();
        let library = dir.path().join("libnvidia-ml.so.1");
        fs::copy(built_library(), &library).unwrap();
        let driver = Self { library, _dir: dir };
        driver.play(scene);
        driver
    }

    /// Changes the scene in one step, so that no half of it is read.
    pub fn play(&self, scene: &Value) {
        let next = self.library.with_extension("next");
        fs::write(&next, scene.to_string()).unwrap();
        fs::rename(next, format!("{}.scene.json", self.library.display())).unwrap();
    }

    /// Takes calls out of the library, as if it were of an older driver.
    pub fn lacking(self, symbols: &[&str]) -> Self {
        let mut bytes = fs::read(&self.library).unwrap();
        for symbol in symbols {
            let name = [b"\0", symbol.as_bytes(), b"\0"].concat();
            let places: Vec<usize> =
                (0..bytes.len() - name.len()).filter(|&at| bytes[at..].starts_with(&name)).collect();
            assert!(!places.is_empty(), "{symbol} is not in the library");
            places.into_iter().for_each(|at| bytes[at + 1] = b'x');
        }
        self.replace_library(&bytes);
        self
    }

    /// Puts another library in the place of this one, as an upgrade does.
    pub fn replace_library(&self, bytes: &[u8]) {
        let next = self.library.with_extension("new");
        fs::write(&next, bytes).unwrap();
        fs::rename(next, &self.library).unwrap();
    }

    /// How often the library is open.
    pub fn users(&self) -> String {
        fs::read_to_string(format!("{}.users", self.library.display())).unwrap_or_default()
    }

    pub fn watched_every(&self, poll: Duration) -> NvmlSampler {
        let library = Some(self.library.clone());
        NvmlSampler::start(NvmlSettings { library, poll })
    }

    pub fn watched(&self) -> NvmlSampler {
        self.watched_every(Duration::from_millis(100))
    }
}

/// Whether a sample would pass for a card at rest that was watched nearly all of this time.
pub fn looks_idle(sample: &GpuSample, time: Duration) -> bool {
    let zero = |ratio: Option<gpu_culler::domain::Ratio>| ratio.is_some_and(|r| r.get() <= 0.0);
    let engines = sample.engines.values().all(|&engine| zero(engine));
    zero(sample.sm) && zero(sample.dram) && engines && sample.covered >= time.mul_f64(0.8)
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

pub fn card(uuid: &str) -> Value {
    json!({"uuid": uuid, "name": "NVIDIA A100-SXM4-80GB", "memory_total": 85_899_345_920_u64})
}

pub fn scene(devices: &[Value]) -> Value {
    json!({"driver": "580.95.05", "devices": devices})
}

pub fn with(mut value: Value, key: &str, part: Value) -> Value {
    value[key] = part;
    value
}

#[expect(clippy::disallowed_methods, reason = "the scene is told in real time")]
pub fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

pub fn next_readings(sampler: &NvmlSampler) -> Vec<DeviceReading> {
    sampler.wait_for_poll(Instant::now(), TIMEOUT).unwrap();
    sampler.drain().unwrap()
}

pub fn only(readings: Vec<DeviceReading>) -> DeviceReading {
    let [reading] = <[_; 1]>::try_from(readings).expect("one card");
    reading
}

/// The first readings after an outage; the retries are the sampler's own.
pub fn recovered(sampler: &NvmlSampler) -> Vec<DeviceReading> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match sampler.drain() {
            Ok(readings) => return readings,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

//! What watching eight cards costs: CPU time of the sampler beside a bare loop that makes the same NVML calls on the
//! same fake driver at the same time, and the resident memory of the agent while it is read every second.
//!
//! Prints a table and, for each figure, `ratio NAME VALUE LIMIT`; exits with 1 if one is over its limit.
//! `--seconds N` says for how long (default 60).

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program for a terminal; what fails should stop it"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gpu_culler::telemetry::{NvmlSampler, NvmlSettings};
use nvml_wrapper::enum_wrappers::device::Sampling;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::{Device, Nvml};
use serde_json::json;

const CARDS: usize = 8;
const POLL: Duration = Duration::from_secs(2);
/// The lists of processes are read every 30 s by both.
const POLLS_PER_LIST: u64 = 15;
const CPU_LIMIT: f64 = 1.5;
const MEMORY_LIMIT: f64 = 20.0;

fn main() -> ExitCode {
    let seconds = std::env::args().skip_while(|word| word != "--seconds").nth(1);
    let time = Duration::from_secs(seconds.map_or(60, |text| text.parse().unwrap()));
    let folder = tempfile::tempdir().unwrap();
    let library = pretended_driver(folder.path());
    let agent = Agent::start(folder.path(), &library);
    let (sampler, bare) = cpu_seconds(&library, time);
    let memory = agent.memory();
    let ratio = sampler / bare;
    let per_hour = 3600.0 / time.as_secs_f64();
    println!(
        "{:32}{:>12}{:>12}{:>9}{:>9}",
        "8 cards, every 2 s", "gpu-culler", "bare loop", "ratio", "limit"
    );
    println!(
        "{:32}{:>12.2}{:>12.2}{ratio:>9.2}{CPU_LIMIT:>9.2}",
        "CPU time an hour (s)",
        sampler * per_hour,
        bare * per_hour
    );
    println!("{:32}{memory:>12.1}{:>12}{:>9}{MEMORY_LIMIT:>9.1}", "resident memory of agent (MB)", "", "");
    println!("ratio sampler_cpu {ratio:.4} {CPU_LIMIT}");
    println!("ratio agent_memory_mb {memory:.4} {MEMORY_LIMIT}");
    ExitCode::from(u8::from(ratio > CPU_LIMIT || memory > MEMORY_LIMIT))
}

/// A copy of the fake driver with eight cards, half of them with performance counters, a process on each.
fn pretended_driver(folder: &Path) -> PathBuf {
    let library = folder.join("libnvidia-ml.so.1");
    let built = Path::new(env!("CARGO_BIN_EXE_gpu-culler")).with_file_name("libfake_nvml.so");
    fs::copy(built, &library).unwrap();
    let card = |index: usize| {
        json!({"uuid": format!("GPU-{index}"), "name": "NVIDIA H100 80GB HBM3", "memory_total": 85_899_345_920_u64,
            "gpm": index.is_multiple_of(2), "processes": [{"pid": std::process::id(), "memory": 1_000_000_000,
            "load": [{"from": 0.0, "sm": 40.0, "dram": 10.0}]}]})
    };
    let devices: Vec<_> = (0..CARDS).map(card).collect();
    let scene = json!({"driver": "580.95.05", "devices": devices});
    fs::write(format!("{}.scene.json", library.display()), scene.to_string()).unwrap();
    library
}

/// CPU seconds of the sampler's thread and of a bare loop's, over the same time.
fn cpu_seconds(library: &Path, time: Duration) -> (f64, f64) {
    let sampler = NvmlSampler::start(NvmlSettings { library: Some(library.to_owned()), poll: POLL });
    let bare = {
        let library = library.to_owned();
        thread::Builder::new().name("bare".to_owned()).spawn(move || bare_loop(&library)).unwrap()
    };
    // What opening NVML costs is no part of it.
    thread::sleep(2 * POLL);
    let began = ["nvml", "bare"].map(spent);
    let end = Instant::now() + time;
    while Instant::now() < end {
        // As the service does once a cycle.
        thread::sleep(Duration::from_secs(1));
        assert_eq!(sampler.peek().unwrap().len(), CARDS);
    }
    let ended = ["nvml", "bare"].map(spent);
    assert!(!bare.is_finished(), "the bare loop ended");
    (ended[0] - began[0], ended[1] - began[1])
}

/// CPU seconds of this process's thread of this name.
fn spent(name: &str) -> f64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    let mut named = tasks.filter(|task| fs::read_to_string(task.join("comm")).unwrap().trim() == name);
    let task = named.next().unwrap();
    let times = fs::read_to_string(task.join("schedstat")).unwrap();
    times.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// The sampler's calls and nothing else.
fn bare_loop(library: &Path) {
    let nvml = Nvml::builder().lib_path(library.as_os_str()).init().unwrap();
    let mut last: Vec<Last<'_>> = (0..CARDS).map(|_| Last::default()).collect();
    for poll in 0.. {
        for index in 0..nvml.device_count().unwrap() {
            let device = nvml.device_by_index(index).unwrap();
            ask(&nvml, &device, &mut last[index as usize]);
            if poll % POLLS_PER_LIST == 0 {
                let _ = (device.running_compute_processes(), device.running_graphics_processes());
                let _ = device.mps_running_compute_processes();
            }
        }
        thread::sleep(POLL);
    }
}

/// Where the last poll of a card ended.
#[derive(Default)]
struct Last<'nvml> {
    ring: [Option<u64>; 2],
    share: Option<u64>,
    gpm: Option<GpmSample<'nvml>>,
    without_gpm: bool,
}

fn ask<'nvml>(nvml: &'nvml Nvml, device: &Device<'nvml>, last: &mut Last<'nvml>) {
    let _ = (device.uuid(), device.mig_mode(), device.name(), device.memory_info());
    let _ = (device.total_energy_consumption(), device.power_usage());
    let _ = (device.utilization_rates(), device.encoder_utilization(), device.decoder_utilization());
    for (kind, place) in
        [Sampling::GpuUtilization, Sampling::MemoryUtilization].into_iter().zip(&mut last.ring)
    {
        let samples = device.samples(kind, *place).unwrap_or_default();
        *place = samples.iter().map(|sample| sample.timestamp).max().or(*place);
    }
    let shares = device.process_utilization_stats(last.share).unwrap_or_default();
    last.share = shares.iter().map(|share| share.timestamp).max().or(last.share);
    if last.without_gpm {
        return;
    }
    match device.gpm_sample() {
        Err(_) => last.without_gpm = true,
        Ok(sample) => {
            if let Some(before) = &last.gpm {
                let _ = gpm_metrics_get(nvml, before, &sample, &METRICS);
            }
            last.gpm = Some(sample);
        }
    }
}

const METRICS: [GpmMetricId; 12] = [
    GpmMetricId::GraphicsUtil,
    GpmMetricId::SmUtil,
    GpmMetricId::DramBwUtil,
    GpmMetricId::AnyTensorUtil,
    GpmMetricId::Nvdec0Util,
    GpmMetricId::Nvdec1Util,
    GpmMetricId::Nvdec2Util,
    GpmMetricId::Nvdec3Util,
    GpmMetricId::Nvjpg0Util,
    GpmMetricId::Nvjpg1Util,
    GpmMetricId::Nvofa0Util,
    GpmMetricId::Nvofa1Util,
];

/// The agent of the same cards, read every second.
struct Agent {
    process: Child,
    reader: Child,
}

impl Agent {
    fn start(folder: &Path, library: &Path) -> Self {
        let config = folder.join("agent.toml");
        fs::write(&config, format!("[telemetry.nvml]\nlibrary = {library:?}\n")).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut agent = Command::new(env!("CARGO_BIN_EXE_gpu-culler"));
        agent.args(["agent", "--listen", &format!("127.0.0.1:{port}"), "--config"]).arg(&config);
        let process = agent.stderr(Stdio::null()).spawn().unwrap();
        let ask = format!(
            "while sleep 1; do curl -sf 127.0.0.1:{port}/v1/evidence 127.0.0.1:{port}/metrics >/dev/null; done"
        );
        let reader = Command::new("sh").args(["-c", &ask]).spawn().unwrap();
        Self { process, reader }
    }

    /// Its resident memory in MB.
    fn memory(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0 / 1e6
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        for process in [&mut self.reader, &mut self.process] {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

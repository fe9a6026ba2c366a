//! What the cards did over some time, as read and without any judgement. For tests on a real card.

use std::time::{Duration, Instant};

use serde_json::json;

use super::say_json;
use crate::telemetry::{DeviceReading, NvmlSampler, NvmlSettings, TelemetryError};

/// How long the cards may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Says that it watches, then after `time` what was seen, one JSON object a line.
pub async fn run(time: Duration) -> anyhow::Result<bool> {
    let readings = tokio::task::spawn_blocking(move || watch(time)).await??;
    readings.iter().for_each(print);
    Ok(!readings.is_empty())
}

fn watch(time: Duration) -> Result<Vec<DeviceReading>, TelemetryError> {
    let sampler = NvmlSampler::start(NvmlSettings::default());
    sampler.wait_for_poll(Instant::now(), PATIENCE)?;
    say_json(&json!({ "watching": sampler.drain()?.len() }));
    sampler.wait_for_poll(Instant::now() + time, time + PATIENCE)?;
    sampler.drain()
}

fn print(reading: &DeviceReading) {
    let sample = &reading.sample;
    say_json(&json!({
        "id": sample.id,
        "model": sample.model,
        "sm": sample.sm,
        "dram": sample.dram,
        "engines": sample.engines,
        "memory_used": sample.memory_used,
        "holders": reading.holders.as_ref().ok().map(|all| all.iter().map(|h| h.pid).collect::<Vec<_>>()),
        "covered": sample.covered.as_secs_f64(),
        "largest_gap": sample.largest_gap.as_secs_f64(),
        "power": sample.power,
        "unreadable": sample.unreadable,
    }));
}

//! Energy, power and the limit of a whole card; NVML has none of them for a MIG instance.

use std::time::{Duration, Instant};

use nvml_wrapper::Device;
use nvml_wrapper::error::NvmlError;

use super::read::soft;
use crate::telemetry::power::Draw;

/// An admin may change it while we look.
const LIMIT_HOLDS: Duration = Duration::from_secs(60);

/// The limit that was last read, and when.
pub type Limit = Option<(Instant, Option<f64>)>;

/// What a card draws at `at`. What it does not tell is absent.
pub fn draw(device: &Device<'_>, limit: &mut Limit, at: Instant) -> Result<Draw, NvmlError> {
    let energy = soft(device.total_energy_consumption())?.ok();
    let watts = match energy {
        Some(_) => None,
        None => soft(device.power_usage())?.ok().map(in_watts),
    };
    if limit.is_none_or(|(read, _)| at.saturating_duration_since(read) >= LIMIT_HOLDS) {
        *limit = Some((at, soft(device.enforced_power_limit())?.ok().map(in_watts)));
    }
    let limit = limit.and_then(|(_, limit)| limit).filter(|limit| *limit > 0.0);
    Ok(Draw { energy, watts, limit })
}

fn in_watts(milliwatts: u32) -> f64 {
    f64::from(milliwatts) / 1000.0
}

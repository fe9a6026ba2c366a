//! SIGUSR1: lets go of NVML, so that the driver can be reloaded, a card reset or MIG set up.

use std::time::{Duration, Instant};

use crate::observer::Source;
use crate::telemetry::NvmlSampler;

/// For how long, unless it is told to take it up again before.
const RELEASE: Duration = Duration::from_secs(600);

/// Lets go of NVML, or takes it up again where it was let go.
pub(super) fn toggle(sampler: &NvmlSampler) {
    if sampler.released_for().is_some() {
        tracing::info!("SIGUSR1: NVML is taken up again");
        sampler.release(Duration::ZERO);
    } else {
        let minutes = RELEASE.as_secs() / 60;
        tracing::info!("SIGUSR1: NVML is let go for {minutes} minutes; cards are unknown meanwhile");
        sampler.release(RELEASE);
    }
}

/// The same for the service, which may have no NVML of its own.
pub(super) fn toggle_of(source: Option<&Source>) {
    match source {
        Some(Source::Nvml(sampler)) => toggle(sampler),
        Some(Source::Agents(_)) => tracing::warn!("SIGUSR1: no NVML is open here; send it to the agent"),
        None => tracing::warn!("SIGUSR1: nothing is open yet"),
    }
}

/// Until when NVML is let go.
pub(super) fn until(source: &Source) -> Option<Instant> {
    match source {
        Source::Nvml(sampler) => Some(Instant::now() + sampler.released_for()?),
        Source::Agents(_) => None,
    }
}

/// New settings do not take NVML up before its time.
pub(super) fn go_on(source: &Source, until: Option<Instant>) {
    if let (Source::Nvml(sampler), Some(until)) = (source, until) {
        sampler.release(until.saturating_duration_since(Instant::now()));
    }
}

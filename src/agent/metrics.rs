//! The cards for Prometheus, with the labels of dcgm-exporter. A figure has the exporter's name only where
//! it is the same thing: ours of activity are peaks, not means, and are named so. What could not be read
//! is absent, and never a zero.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;

use super::Agent;
use super::evidence::host_name;
use crate::domain::Ratio;
use crate::telemetry::DeviceReading;

/// What peaks are of, whoever asks how often.
const WINDOW: Duration = Duration::from_secs(60);

type Labels = Vec<(&'static str, String)>;
type Figures = Family<Labels, Gauge<f64, AtomicU64>>;

/// All metrics, in the OpenMetrics text format.
pub(super) fn render(agent: &Agent) -> String {
    let mut registry = Registry::default();
    let readings = agent.sampler.of_the_last(WINDOW);
    let known = i64::from(readings.is_ok());
    registry.register("gpu_culler_agent_cards_known", "1 while NVML answers", ConstGauge::new(known));
    let about = Family::<Labels, Gauge>::default();
    about.get_or_create(&vec![("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
    registry.register("gpu_culler_agent_build_info", "The agent's version", about);
    cards(&readings.unwrap_or_default(), &mut registry);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

fn cards(readings: &[DeviceReading], registry: &mut Registry) {
    let host = host_name();
    let mut figure = |name: &str, help: &str, value: &dyn Fn(&DeviceReading) -> Vec<(Labels, f64)>| {
        let figures = Figures::default();
        for reading in readings {
            for (more, value) in value(reading) {
                let labels = labels(reading, &host).into_iter().chain(more).collect();
                figures.get_or_create(&labels).set(value);
            }
        }
        registry.register(name, help, figures);
    };
    let plain = |value: Option<f64>| value.map(|value| (Labels::new(), value)).into_iter().collect();
    figure("gpu_culler_card_sm_peak", "Highest SM activity of the last 60 s, from 0 to 1", &|r| {
        plain(r.sample.sm.map(Ratio::get))
    });
    figure(
        "gpu_culler_card_dram_peak",
        "Highest memory-bandwidth activity of the last 60 s, from 0 to 1",
        &|r| plain(r.sample.dram.map(Ratio::get)),
    );
    figure("gpu_culler_card_engine_peak", "Highest activity of another engine in the last 60 s", &|r| {
        let known = r.sample.engines.iter().filter_map(|(engine, seen)| Some((engine, (*seen)?)));
        known.map(|(engine, seen)| (vec![("engine", engine.to_string())], seen.get())).collect()
    });
    figure("gpu_culler_card_covered_seconds", "How much of the last 60 s was watched", &|r| {
        plain(Some(r.sample.covered.as_secs_f64()))
    });
    figure("gpu_culler_card_largest_gap_seconds", "The longest time in it that was not", &|r| {
        plain(Some(r.sample.largest_gap.as_secs_f64()))
    });
    figure("gpu_culler_card_readable", "1 while the activity of the card can be read", &|r| {
        plain(Some(f64::from(u8::from(r.sample.unreadable.is_none()))))
    });
    figure("gpu_culler_card_processes", "Processes that hold a context on the card", &|r| {
        plain(r.sample.processes.map(f64::from))
    });
    figure("DCGM_FI_DEV_POWER_USAGE", "Power draw, on average of the last 60 s (W)", &|r| {
        plain(r.sample.power.map(|power| power.mean))
    });
    figure(
        "gpu_culler_card_power_peak_watts",
        "Highest power draw between two readings of the last 60 s",
        &|r| plain(r.sample.power.map(|power| power.peak)),
    );
    figure("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "The power limit in force (W)", &|r| {
        plain(r.sample.power.and_then(|power| power.limit))
    });
    #[expect(clippy::cast_precision_loss, reason = "mebibytes of a card are far below 2^52")]
    figure("DCGM_FI_DEV_FB_USED", "Device memory in use (MiB)", &|r| {
        plain(r.sample.memory_used.map(|bytes| bytes as f64 / f64::from(1 << 20)))
    });
}

/// The labels of dcgm-exporter: of a MIG instance the card's UUID and the instance's number.
fn labels(reading: &DeviceReading, host: &str) -> Labels {
    let place = &reading.place;
    let mut labels = vec![
        ("gpu", place.index.to_string()),
        ("UUID", place.card.to_string()),
        ("device", format!("nvidia{}", place.index)),
        ("modelName", reading.sample.model.clone()),
        ("Hostname", host.to_owned()),
    ];
    labels.extend(place.instance.map(|number| ("GPU_I_ID", number.to_string())));
    labels
}

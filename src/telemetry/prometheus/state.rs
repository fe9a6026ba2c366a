//! Everything that is remembered between looks, and the reading of what is new.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;

use super::batch::{Batch, Device};
use super::client::Client;
use super::error::PromError;
use super::look::Cost;
use super::memory::{Memory, Rules};
use super::names::Role;
use super::settings::PrometheusSettings;

/// How far a look reads back beyond the last one, for samples that came late, in milliseconds.
const OVERLAP: i64 = 60_000;

/// How much a look reads at most; after a longer pause devices are watched anew and their history is read.
const LONGEST: i64 = 10 * 60_000;

/// How long a device without any sample is remembered.
const FORGOTTEN: i64 = 24 * 3_600_000;

/// What is remembered between looks.
#[derive(Debug, Default)]
pub struct State {
    /// By device.
    pub devices: BTreeMap<Device, Memory>,
    /// From when on the history of a device was read, in milliseconds.
    pub recalled: BTreeMap<Device, i64>,
    /// Whether Prometheus renamed labels that clash.
    pub renamed: bool,
    /// The label that names cards.
    pub uuid_label: Option<String>,
    /// Up to when everything was read, in milliseconds.
    pub read_until: Option<i64>,
    /// When that was.
    pub read_at: Option<Instant>,
    /// What the last look took.
    pub cost: Cost,
    /// The server's clock less ours at the last look, in seconds.
    pub ahead: Option<i64>,
    /// Series that name no card.
    pub strangers: usize,
}

impl State {
    /// Reads what is new, one metric after the other, so that no more than one answer is held at a time.
    pub async fn read_new(&mut self, client: &Client, now: Timestamp) -> Result<(), PromError> {
        let settings = client.settings();
        let (rules, end) = (rules(settings), now.as_millisecond());
        let range = self.range(end, &rules);
        let mut batch = Batch::new(self.renamed);
        for role in Role::ALL {
            let query = settings.names.selector(&[role], &settings.matchers, range);
            let answer = client.ranges(&query, now).await?;
            self.cost.add(answer.bytes);
            self.ahead = answer.date.map(|date| date.as_second() - now.as_second());
            batch.add(answer.series, &settings.names);
        }
        self.fold(&batch, end, &rules);
        Ok(())
    }

    /// How far to read back. After too long a pause everything is as at a start.
    fn range(&mut self, end: i64, rules: &Rules) -> i64 {
        let since = self.read_until.map(|until| end - until).filter(|since| (0..LONGEST).contains(since));
        if since.is_none() {
            self.devices.clear();
            self.recalled.clear();
        }
        since.unwrap_or(rules.patience()) + OVERLAP.max(2 * rules.reach)
    }

    /// Takes in what is new.
    pub fn fold(&mut self, batch: &Batch, end: i64, rules: &Rules) {
        self.renamed |= batch.renamed;
        self.strangers = batch.strangers;
        self.uuid_label = batch.uuid_label.clone().or_else(|| self.uuid_label.take());
        for (device, readings) in &batch.devices {
            let first = readings.slots.keys().next().copied().unwrap_or(end);
            let memory = self
                .devices
                .entry(device.clone())
                .or_insert_with(|| Memory::new(first, device.instance.is_some()));
            memory.fold(readings, batch.pulses.get(&device.uuid), end, rules);
        }
        self.devices.retain(|_, memory| end - memory.newest < FORGOTTEN);
        self.read_until = Some(end);
    }
}

/// By what devices are judged.
pub fn rules(settings: &PrometheusSettings) -> Rules {
    let millis = |length: std::time::Duration| i64::try_from(length.as_millis()).unwrap_or(i64::MAX / 64);
    Rules {
        sm: settings.sm_threshold,
        dram: settings.dram_threshold,
        reach: millis(settings.collect_interval),
        max_gap: millis(settings.max_gap),
        weak: settings.weak_utilization,
    }
}

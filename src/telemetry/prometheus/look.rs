//! What one look found: every device with its sample and its holders, and which of them a session has.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::batch::Device;
use super::fault::Fault;
use super::memory::{Memory, Rules};
use super::names::Workload;
use super::settings::PrometheusSettings;
use super::state::{State, rules};
use crate::domain::{Engine, GpuId, GpuSample, Past, Ratio};

/// A running session, by what the exporter calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its pod or job.
    pub workload: Workload,
    /// When it began: a label from before is that of another run with the same name.
    pub started: Option<Timestamp>,
}

/// One device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceLook {
    /// What it did.
    pub sample: GpuSample,
    /// The machine it is in.
    pub host: Option<String>,
    /// Who holds it, and when that was last said.
    pub holders: BTreeMap<Workload, Timestamp>,
}

/// What one look took of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Queries.
    pub queries: usize,
    /// Bytes of answers.
    pub bytes: usize,
}

impl Cost {
    /// One more answer.
    pub fn add(&mut self, bytes: usize) {
        self.queries += 1;
        self.bytes += bytes;
    }
}

/// What one look found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// Every device.
    pub devices: Vec<DeviceLook>,
    /// What could not be learned, in words for the admin.
    pub troubles: Vec<String>,
    /// What it took.
    pub cost: Cost,
    /// Machines none of whose devices gives samples any more, and since when.
    silent: BTreeMap<String, Timestamp>,
    /// Whether any device says who holds it: if none does, that a session is not named means nothing.
    labels_work: bool,
    label_delay: Duration,
    /// How long no sample may be missing.
    patience: SignedDuration,
}

impl Look {
    /// What `state` says at `now`.
    pub fn new(
        state: &State,
        trouble: Option<String>,
        now: Timestamp,
        settings: &PrometheusSettings,
    ) -> Self {
        let (rules, at) = (rules(settings), now.as_millisecond());
        let devices: Vec<DeviceLook> = state
            .devices
            .iter()
            .map(|(device, memory)| DeviceLook {
                sample: sample(device, memory, at, &rules),
                host: memory.host.clone(),
                holders: holders(memory, &rules),
            })
            .collect();
        let silent = silent(state, at, &rules);
        let labels_work = state
            .devices
            .values()
            .any(|memory| memory.holders.values().any(|said| at - said <= rules.patience()));
        let mut troubles: Vec<String> =
            trouble.into_iter().map(|why| format!("what cards did before is not known: {why}")).collect();
        if devices.is_empty() {
            troubles.push(
                "no card is found: the server holds none of dcgm-exporter's series that are asked for; check that \
                 it scrapes the exporter, and [telemetry.prometheus] metrics, labels and matchers"
                    .to_owned(),
            );
        }
        troubles
            .extend(silent.keys().map(|host| format!("the exporter of {host} gives no samples any more")));
        Self {
            devices,
            troubles,
            cost: state.cost,
            silent,
            labels_work,
            label_delay: settings.label_delay,
            patience: SignedDuration::from_millis(rules.patience()),
        }
    }

    /// The devices of one session, or why they are not known.
    pub fn of(&self, tenant: &Tenant, now: Timestamp) -> Result<Vec<GpuSample>, String> {
        let mine: Vec<GpuSample> = self.held_by(tenant).map(|device| device.sample.clone()).collect();
        if !mine.is_empty() {
            return Ok(mine);
        }
        let Some(started) = tenant.started else {
            return Err("the Hub does not say when it started".to_owned());
        };
        let named_by = started.checked_add(self.label_delay).unwrap_or(Timestamp::MAX);
        if self.devices.is_empty() {
            return Err("the exporter tells of no card at all".to_owned());
        }
        if !self.labels_work {
            return Err(
                "no card says which pod or job holds it: the exporter does not tell, or nobody has one"
                    .to_owned(),
            );
        }
        if now < named_by {
            return Err(format!("no card names its {} yet, which may take some minutes", tenant.workload));
        }
        // Where its machine spoke until then, it would have been named.
        if let Some((host, _)) = self.silent.iter().find(|(_, since)| **since < named_by) {
            return Err(format!("no card names its {}, and the cards of {host} are silent", tenant.workload));
        }
        Ok(Vec::new())
    }

    /// The devices that still name a workload, by samples from well after it was `gone`; `None` while that is too
    /// early to say.
    pub fn still_naming(&self, workload: &Workload, gone: Timestamp, now: Timestamp) -> Option<Vec<GpuId>> {
        let said = |device: &&DeviceLook| {
            device.holders.get(workload).is_some_and(|said| said.duration_since(gone) > self.patience)
        };
        let naming: Vec<GpuId> =
            self.devices.iter().filter(said).map(|device| device.sample.id.clone()).collect();
        let decided = !naming.is_empty() || now.duration_since(gone) > self.patience * 2;
        decided.then_some(naming)
    }

    /// The devices that a session holds.
    pub fn held_by(&self, tenant: &Tenant) -> impl Iterator<Item = &DeviceLook> {
        self.devices.iter().filter(move |device| device.is_held_by(tenant))
    }

    /// Whether any device says who holds it.
    pub fn labels_work(&self) -> bool {
        self.labels_work
    }
}

impl DeviceLook {
    /// Whether this run of a session holds it.
    pub fn is_held_by(&self, tenant: &Tenant) -> bool {
        let said = self.holders.get(&tenant.workload);
        said.is_some_and(|said| tenant.started.is_none_or(|started| *said >= started))
    }
}

fn silent(state: &State, now: i64, rules: &Rules) -> BTreeMap<String, Timestamp> {
    let mut newest: BTreeMap<&str, i64> = BTreeMap::new();
    for memory in state.devices.values() {
        let last = newest.entry(memory.host.as_deref().unwrap_or("")).or_insert(memory.newest);
        *last = (*last).max(memory.newest);
    }
    let silent = newest.into_iter().filter(|(_, last)| now - last > rules.patience());
    silent
        .filter_map(|(host, last)| Some((host.to_owned(), Timestamp::from_millisecond(last).ok()?)))
        .collect()
}

/// Labels flicker, so the last ones stand until others come: those that were said about the same time as the
/// newest.
fn holders(memory: &Memory, rules: &Rules) -> BTreeMap<Workload, Timestamp> {
    let newest = memory.holders.values().max().copied().unwrap_or_default();
    let current = memory.holders.iter().filter(|(_, said)| newest - **said <= rules.patience());
    current
        .filter_map(|(holder, said)| Some((holder.clone(), Timestamp::from_millisecond(*said).ok()?)))
        .collect()
}

/// What a device did, with its whole past. Where it cannot be judged only work is told.
fn sample(device: &Device, memory: &Memory, now: i64, rules: &Rules) -> GpuSample {
    let tail = (now - memory.covered_until).max(0);
    let silent = now - memory.newest > rules.patience();
    let fault = match &memory.fault {
        _ if silent => Some(Fault::Silent((now - memory.newest) / 1000)),
        Some(fault) => Some(fault.clone()),
        None => (tail > rules.patience()).then_some(Fault::Silent(tail / 1000)),
    };
    let worked = memory.last_active.is_some_and(|at| now - at <= rules.patience());
    let told = |share: Option<f64>| share.filter(|_| fault.is_none() || worked).and_then(Ratio::reading);
    let engine = |engine, share: Option<f64>| share.map(|share| (engine, told(Some(share))));
    let peaks = &memory.peaks;
    let millis = |ms: i64| Duration::from_millis(ms.max(0).unsigned_abs());
    let instant = |ms: i64| Timestamp::from_millisecond(ms).ok();
    let past = instant(memory.since).filter(|_| fault.is_none()).map(|since| Past {
        since,
        after_gap: memory.after_gap,
        last_active: memory.last_active.and_then(instant),
        unwatched: millis(memory.unwatched + tail),
        lag: millis(tail),
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a checked, positive number of MiB"
    )]
    let memory_used = memory.memory.map(|mib| (mib * 1_048_576.0) as u64);
    GpuSample {
        id: GpuId(device.to_string()),
        model: memory.model.clone(),
        sm: told(peaks.sm),
        dram: told(peaks.dram),
        engines: [
            engine(Engine::Tensor, peaks.tensor),
            engine(Engine::Encode, peaks.encode),
            engine(Engine::Decode, peaks.decode),
        ]
        .into_iter()
        .flatten()
        .collect(),
        memory_used,
        processes: None,
        covered: millis(memory.watched.0),
        largest_gap: millis(if tail > rules.patience() { tail } else { memory.watched.1 }),
        unreadable: fault.map(|fault| fault.to_string()),
        power: None,
        past,
    }
}

#[cfg(test)]
mod tests;

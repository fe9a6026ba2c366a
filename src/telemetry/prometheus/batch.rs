//! Sorts series by device and instant: what was read of each device at each scrape, over all series of it. Labels
//! come and go, so one device has many series, and each of them counts.

use std::collections::BTreeMap;

use super::answer::Series;
use super::fault::{Fault, share};
use super::names::{Names, Role, Tag, Workload};

/// A card, or an instance of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device {
    /// The card's UUID.
    pub uuid: String,
    /// The MIG instance.
    pub instance: Option<String>,
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.instance {
            Some(instance) => write!(f, "{}/{instance}", self.uuid),
            None => f.write_str(&self.uuid),
        }
    }
}

/// What was read of a device at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slot {
    /// The highest share of each metric that was read.
    shares: [Option<f64>; Role::COUNT],
    /// What was read and cannot be used.
    pub fault: Option<Fault>,
}

impl Slot {
    /// The share of one metric, where it was read.
    pub fn share(&self, role: Role) -> Option<f64> {
        self.shares[role as usize]
    }

    fn add(&mut self, role: Role, read: Result<f64, Fault>) {
        match read {
            Ok(value) => {
                let known = &mut self.shares[role as usize];
                *known = Some(known.map_or(value, |known| known.max(value)));
            }
            Err(fault) => self.fault = Some(fault),
        }
    }
}

/// What one or several answers say of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    /// By instant, in milliseconds.
    pub slots: BTreeMap<i64, Slot>,
    /// Who held it, and when that was last said.
    pub holders: BTreeMap<Workload, i64>,
    /// The product's name.
    pub model: Option<String>,
    /// The machine it is in.
    pub host: Option<String>,
    /// Memory held in MiB, and when.
    pub memory: Option<(i64, f64)>,
}

/// Energy and power of a card at each instant, as bits: all that matters is that they change.
pub type Pulse = BTreeMap<i64, [Option<u64>; 2]>;

/// What was read of everything over some time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// By device.
    pub devices: BTreeMap<Device, Readings>,
    /// By card.
    pub pulses: BTreeMap<String, Pulse>,
    /// Series without a card's name, or of no metric that was asked for.
    pub strangers: usize,
    /// Whether Prometheus renamed labels that clash.
    pub renamed: bool,
    /// The label that names cards.
    pub uuid_label: Option<String>,
}

impl Batch {
    /// An empty one; `renamed` is what is known of the labels so far.
    pub fn new(renamed: bool) -> Self {
        Self { renamed, ..Self::default() }
    }

    /// Takes in an answer.
    pub fn add(&mut self, all: Vec<Series>, names: &Names) {
        self.renamed |= all.iter().any(|series| Names::renamed(&series.labels));
        for series in all {
            let role = names.role(&series.labels);
            match (role, names.tagged(Tag::Uuid, &series.labels)) {
                (Some(role), Some((label, uuid))) => {
                    if self.uuid_label.as_deref() != Some(label) {
                        self.uuid_label = Some(label.to_owned());
                    }
                    let instance = names.tag(Tag::Instance, &series.labels).map(str::to_owned);
                    self.add_series(Device { uuid: uuid.to_owned(), instance }, role, &series, names);
                }
                _ => self.strangers += 1,
            }
        }
    }

    fn add_series(&mut self, device: Device, role: Role, series: &Series, names: &Names) {
        if let Role::Energy | Role::Power = role {
            self.beat(&device.uuid, role, series);
        }
        let on_instance = device.instance.is_some();
        let holder = names.workload(&series.labels, self.renamed);
        let name = series.labels.get("__name__").map_or("", String::as_str);
        let readings = self.devices.entry(device).or_default();
        let tag = |tag| names.tag(tag, &series.labels).map(str::to_owned);
        readings.model = readings.model.take().or_else(|| tag(Tag::Model));
        readings.host = readings.host.take().or_else(|| tag(Tag::Host));
        if let (Some(holder), Some((last, _))) = (holder, series.samples.last()) {
            let said = readings.holders.entry(holder).or_insert(*last);
            *said = (*said).max(*last);
        }
        match role {
            Role::Energy | Role::Power => {}
            Role::MemoryUsed => {
                let held = series.samples.last().map(|(at, value)| (*at, share(role, *value, name, false)));
                if let Some((at, Ok(value))) = held {
                    let known = readings
                        .memory
                        .filter(|(before, most)| *before > at || (*before == at && *most > value));
                    readings.memory = known.or(Some((at, value)));
                }
            }
            // Of an instance the driver gives no utilization: nothing, a zero or a blank (all of them normal).
            Role::Utilization | Role::MemoryUtilization | Role::Encoder | Role::Decoder if on_instance => {}
            // The instances of a card share its memory's interface: one is never at rest beside a busy one.
            Role::Dram if on_instance => {}
            _ => {
                for (at, value) in &series.samples {
                    readings.slots.entry(*at).or_default().add(role, share(role, *value, name, on_instance));
                }
            }
        }
    }

    /// The series of one card say the same at the same instant; if not, the larger value stands for it.
    fn beat(&mut self, uuid: &str, role: Role, series: &Series) {
        let pulse = self.pulses.entry(uuid.to_owned()).or_default();
        for (at, value) in &series.samples {
            let known = &mut pulse.entry(*at).or_default()[usize::from(role == Role::Power)];
            let bits = known.map_or(*value, |known| f64::from_bits(known).max(*value)).to_bits();
            *known = Some(bits);
        }
    }
}

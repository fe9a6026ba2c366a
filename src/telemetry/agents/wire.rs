//! What an agent says, as JSON. `GET /v1/evidence?since=CURSOR` answers with one [`Evidence`].
//!
//! A part that is known is `{"known": …}`, one that is not is `{"unknown": "why"}`, and a figure that could not be read is
//! null: neither is ever a zero or an empty list.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::{Engine, GpuId, GpuSample, Holder, Power, Ratio, ServerId};
use crate::telemetry::pods::Pods;
use crate::telemetry::{Claims, DeviceReading, Place, Process, ProcessTable};

/// The version of this format. Additions leave it as it is.
pub const VERSION: u32 = 1;

/// One answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evidence {
    /// [`VERSION`].
    pub gpu_culler_agent: u32,
    /// The agent's own version, for people.
    pub release: String,
    /// The machine's host name.
    pub node: String,
    /// The kernel's id of this boot: two answers with the same one are of the same machine.
    pub boot: String,
    /// The agent's id from its start to its end.
    pub run: String,
    /// The agent's wall clock.
    pub at: Timestamp,
    /// Where the answer begins: the cursor that was asked for, or null where it could not go on there (the
    /// agent was restarted, or it was too long ago), or none was asked for.
    pub since: Option<String>,
    /// What to ask for next time.
    pub cursor: String,
    /// What works on this machine with less, in words for the admin.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The cards.
    pub cards: Told<Vec<Card>>,
    /// The processes.
    pub processes: Told<Processes>,
}

/// Something, or why it is not known.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Told<T> {
    /// It is.
    Known(T),
    /// It is not, and why.
    Unknown(String),
}

/// One device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Card {
    id: GpuId,
    /// The card that it is, or is an instance of.
    card: GpuId,
    index: u32,
    instance: Option<u32>,
    model: String,
    /// Peaks since the cursor, from 0 to 1.
    sm: Option<f64>,
    dram: Option<f64>,
    /// An engine the device does not offer is absent.
    engines: BTreeMap<Engine, Option<f64>>,
    memory_used: Option<u64>,
    /// Seconds.
    covered: f64,
    largest_gap: f64,
    unreadable: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    power: Option<Power>,
    holders: Told<Vec<Held>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Held {
    pid: u32,
    memory_used: Option<u64>,
}

/// The processes, but for the kernel's own threads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Processes {
    /// The agent's own uid.
    own_uid: u32,
    /// Control groups, each once.
    groups: Vec<String>,
    list: Vec<Row>,
    /// Namespace and name of the pods that own a process, by uid.
    pods: Pods,
    /// What processes say of themselves: for people, and never a ground to act on.
    servers: BTreeMap<u32, ServerId>,
    kernels: BTreeMap<u32, String>,
    addresses: BTreeMap<u32, String>,
}

/// pid, parent, start in ticks, uid, name, places in `groups`, CPU seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row(u32, u32, u64, u32, String, Vec<usize>, f64);

impl<T> Told<T> {
    /// What can be told.
    pub fn new(what: Result<T, impl ToString>) -> Self {
        match what {
            Ok(known) => Self::Known(known),
            Err(why) => Self::Unknown(why.to_string()),
        }
    }

    /// What was told.
    pub fn into_result(self) -> Result<T, String> {
        match self {
            Self::Known(known) => Ok(known),
            Self::Unknown(why) => Err(why),
        }
    }
}

impl From<&DeviceReading> for Card {
    fn from(reading: &DeviceReading) -> Self {
        let DeviceReading { sample, place, holders } = reading;
        let held = |holder: &Holder| Held { pid: holder.pid, memory_used: holder.memory_used };
        Self {
            id: sample.id.clone(),
            card: place.card.clone(),
            index: place.index,
            instance: place.instance,
            model: sample.model.clone(),
            sm: sample.sm.map(Ratio::get),
            dram: sample.dram.map(Ratio::get),
            engines: sample.engines.iter().map(|(engine, seen)| (*engine, seen.map(Ratio::get))).collect(),
            memory_used: sample.memory_used,
            covered: sample.covered.as_secs_f64(),
            largest_gap: sample.largest_gap.as_secs_f64(),
            unreadable: sample.unreadable.clone(),
            power: sample.power,
            holders: Told::new(holders.as_ref().map(|all| all.iter().map(held).collect())),
        }
    }
}

impl Card {
    /// The reading; a figure that cannot be one is not known. `None` where it names no card, or times that
    /// cannot be.
    pub fn read(self) -> Option<DeviceReading> {
        let seconds = |value: f64| Duration::try_from_secs_f64(value).ok();
        let ratio = |value: Option<f64>| value.and_then(Ratio::reading);
        let holders = self.holders.into_result().map(|all| {
            all.into_iter().map(|held| Holder { pid: held.pid, memory_used: held.memory_used }).collect()
        });
        let processes = holders.as_ref().ok().map(Vec::len);
        (!self.id.0.is_empty()).then_some(())?;
        Some(DeviceReading {
            sample: GpuSample {
                id: self.id,
                model: self.model,
                sm: ratio(self.sm),
                dram: ratio(self.dram),
                engines: self.engines.into_iter().map(|(engine, seen)| (engine, ratio(seen))).collect(),
                memory_used: self.memory_used,
                processes: processes.and_then(|count| u32::try_from(count).ok()),
                covered: seconds(self.covered)?,
                largest_gap: seconds(self.largest_gap)?,
                unreadable: self.unreadable,
                power: self.power.filter(Power::is_sound),
                past: None,
            },
            place: Place { card: self.card, index: self.index, instance: self.instance },
            holders,
        })
    }
}

/// The parent of all threads of the kernel.
const KTHREADD: u32 = 2;

impl Processes {
    /// All that can be told of this machine's processes.
    pub fn new(table: &ProcessTable, claims: Claims) -> Self {
        let mut places = BTreeMap::new();
        let mut groups = Vec::new();
        let mut place = |group: &String| {
            *places.entry(group.clone()).or_insert_with(|| {
                groups.push(group.clone());
                groups.len() - 1
            })
        };
        let ours = table.iter().filter(|p| p.pid != KTHREADD && p.parent != KTHREADD);
        let row = |p: &Process| {
            let groups = p.cgroups.iter().map(&mut place).collect();
            Row(p.pid, p.parent, p.start_ticks, p.uid, p.name.clone(), groups, p.cpu_seconds)
        };
        let list: Vec<Row> = ours.map(row).collect();
        let uid = |group: &String| crate::telemetry::cgroup::pod_uid(group.split('/'));
        let pods =
            groups.iter().filter_map(uid).filter_map(|uid| Some((uid.clone(), table.pod(&uid)?.clone())));
        let pods = pods.collect();
        let Claims { servers, kernels, addresses } = claims;
        Self { own_uid: table.own_uid(), groups, list, pods, servers, kernels, addresses }
    }

    /// The table, and what some of the processes say; `None` where it contradicts itself.
    pub fn read(self) -> Option<(ProcessTable, Claims)> {
        let groups = &self.groups;
        let process = |row: Row| {
            let Row(pid, parent, start_ticks, uid, name, places, cpu_seconds) = row;
            let cgroups = places.into_iter().map(|place| groups.get(place).cloned());
            Some(Process {
                pid,
                parent,
                start_ticks,
                uid,
                name,
                cgroups: cgroups.collect::<Option<_>>()?,
                cpu_seconds,
            })
        };
        let list: Option<Vec<Process>> = self.list.into_iter().map(process).collect();
        let table = ProcessTable::new(list?, self.own_uid).with_pods(self.pods);
        // The first process of a machine is always there: a list without it is not whole.
        table.get(1)?;
        Some((table, Claims { servers: self.servers, kernels: self.kernels, addresses: self.addresses }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    fn reading() -> DeviceReading {
        DeviceReading {
            sample: GpuSample {
                id: GpuId("MIG-1".to_owned()),
                model: "NVIDIA H100".to_owned(),
                sm: Ratio::reading(0.25),
                dram: None,
                engines: BTreeMap::from([(Engine::Tensor, None), (Engine::Decode, Ratio::reading(0.0))]),
                memory_used: Some(7),
                processes: Some(1),
                covered: Duration::from_secs(60),
                largest_gap: Duration::from_millis(1500),
                unreadable: Some("why".to_owned()),
                power: Some(Power { mean: 71.5, peak: 90.0, limit: Some(700.0) }),
                past: None,
            },
            place: Place { card: GpuId("GPU-1".to_owned()), index: 3, instance: Some(9) },
            holders: Ok(vec![Holder { pid: 20, memory_used: None }]),
        }
    }

    fn travelled<T: Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
        serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
    }

    #[test]
    fn a_reading_comes_over_as_it_was() {
        assert_eq!(travelled(&Card::from(&reading())).read(), Some(reading()));
        let unlisted = DeviceReading { holders: Err("denied".to_owned()), ..reading() };
        let unlisted = DeviceReading { sample: GpuSample { processes: None, ..unlisted.sample }, ..unlisted };
        assert_eq!(travelled(&Card::from(&unlisted)).read(), Some(unlisted));
    }

    #[test]
    fn a_figure_that_cannot_be_is_not_known_and_a_time_that_cannot_be_spoils_the_card() {
        let card = Card { sm: Some(4e6), ..Card::from(&reading()) };
        assert_eq!(card.read().map(|reading| reading.sample.sm), Some(None));
        let power = Power { mean: 71.5, peak: 9e9, limit: None };
        let card = Card { power: Some(power), ..Card::from(&reading()) };
        assert_eq!(card.read().map(|reading| reading.sample.power), Some(None));
        for (covered, largest_gap) in [(-1.0, 0.0), (0.0, f64::NAN), (f64::INFINITY, 0.0)] {
            assert_eq!(Card { covered, largest_gap, ..Card::from(&reading()) }.read(), None);
        }
        assert_eq!(Card { id: GpuId(String::new()), ..Card::from(&reading()) }.read(), None);
    }

    fn table() -> ProcessTable {
        let process = |pid, parent, group: &str| Process {
            pid,
            parent,
            start_ticks: u64::from(pid),
            uid: 1000,
            name: format!("p{pid}"),
            cgroups: vec![group.to_owned()],
            cpu_seconds: 1.5,
        };
        let pod = "/kubepods/burstable/podu-1/c";
        ProcessTable::new([process(1, 0, "/"), process(20, 1, pod), process(21, 20, pod)], 0)
    }

    #[test]
    fn processes_come_over_as_they_were_but_for_the_kernels_threads() {
        let pod = |uid: &str| (uid.to_owned(), ("hub".to_owned(), "jupyter-alice".to_owned()));
        let known = table().with_pods(Pods::from([pod("u-1"), pod("u-2")]));
        let kernel = Process { pid: 30, parent: 2, ..Process::default() };
        let kthreadd = Process { pid: 2, ..Process::default() };
        let all = ProcessTable::new(known.iter().cloned().chain([kthreadd, kernel]), 0);
        let all = all.with_pods(Pods::from([pod("u-1"), pod("u-2")]));
        let claims = Claims {
            servers: BTreeMap::from([(20, ServerId::new("alice", ""))]),
            addresses: BTreeMap::from([(21, "http://127.0.0.1:1/".to_owned())]),
            ..Claims::default()
        };
        let came = travelled(&Processes::new(&all, claims.clone())).read();
        let expected = table().with_pods(Pods::from([pod("u-1")]));
        assert_eq!(came, Some((expected, claims)), "with the pods that are met, and no others");
    }

    #[test]
    fn a_list_that_is_not_whole_is_no_list() {
        let without_first = ProcessTable::new(table().iter().filter(|p| p.pid != 1).cloned(), 0);
        assert_eq!(Processes::new(&without_first, Claims::default()).read(), None);
        let mut astray = Processes::new(&table(), Claims::default());
        astray.groups.clear();
        assert_eq!(astray.read(), None);
    }
}

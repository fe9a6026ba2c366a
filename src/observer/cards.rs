//! Which session holds which card, on however many machines.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::homes::Homes;
use super::told::Told;
use super::{Resident, Running};
use crate::domain::{GpuSample, Hold, Holder, Jupyter, Server, ServerId, SpawnerState};
use crate::telemetry::prometheus::{Tenant, Workload};
use crate::telemetry::{DeviceReading, Machine, Process, Unattributed, all_members, attribute, members};

/// One card and who holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The machine it is in, where there are several.
    pub machine: Option<String>,
    /// What it did.
    pub sample: GpuSample,
    /// The servers that hold it.
    pub servers: BTreeSet<ServerId>,
    /// What holds memory on it, by the server that it belongs to.
    pub holds: Vec<(ServerId, Hold)>,
    /// Processes on it that belong to no server, or to no single one.
    pub unattributed: Vec<Unattributed>,
    /// Pods and jobs of no server that its labels name.
    pub workloads: Vec<Workload>,
}

impl Card {
    /// Whether something holds it that belongs to no server, or to no single one.
    pub fn has_strangers(&self) -> bool {
        !self.unattributed.is_empty() || !self.workloads.is_empty()
    }
}

/// All cards of all machines.
#[derive(Debug, Default)]
pub struct Cards {
    /// Each of them.
    pub devices: Vec<Card>,
    places: Vec<Place>,
    /// What labels tell, where that is how cards are attributed.
    told: Option<Told>,
}

/// One machine, and what runs there.
#[derive(Debug)]
struct Place {
    machine: Machine,
    /// The servers with at least one process on it.
    here: BTreeSet<ServerId>,
}

impl Cards {
    /// Attributes each card's processes to the running servers.
    pub fn attribute(machines: Vec<Machine>, servers: &[Running]) -> Self {
        let mut cards = Self::default();
        for machine in machines {
            let servers = on(&machine, servers);
            cards.devices.extend(devices(&machine, &servers));
            let table = machine.processes.as_ref();
            let here = table.map(|table| all_members(&servers, table).into_keys().collect());
            cards.places.push(Place { here: here.unwrap_or_default(), machine });
        }
        cards
    }

    /// Attributes cards by what their labels tell.
    pub(super) fn told(told: Told, tenants: &[(ServerId, Tenant)]) -> Self {
        Self { devices: told.cards(tenants), places: Vec::new(), told: Some(told) }
    }

    /// Whether labels tell whose cards are, and not processes.
    pub(super) fn are_labelled(&self) -> bool {
        self.told.is_some()
    }

    /// What keeps cards from being attributed.
    pub fn troubles(&self) -> impl Iterator<Item = String> {
        let look = self.told.iter().flat_map(|told| match &told.look {
            Ok(look) => look.troubles.clone(),
            Err(why) => vec![why.clone()],
        });
        self.places.iter().filter_map(|place| trouble(&place.machine)).chain(look)
    }

    /// Why no card at all can be read, if so.
    pub fn down(&self) -> Option<String> {
        if let Some(told) = &self.told {
            return told.look.as_ref().err().cloned();
        }
        let mut unread = self.places.iter().map(|place| place.machine.devices.as_ref().err());
        if unread.clone().all(|why| why.is_some()) { unread.next().flatten().cloned() } else { None }
    }

    /// The machines that were asked.
    pub fn machines(&self) -> impl Iterator<Item = &Machine> {
        self.places.iter().map(|place| &place.machine)
    }

    /// Whether a process of this server was found.
    pub fn is_here(&self, id: &ServerId) -> bool {
        self.found(id).next().is_some()
    }

    /// What of a server holds memory on its cards; a kernel is named by its notebook where `jupyter` knows that.
    pub fn holds_of(&self, id: &ServerId, jupyter: Option<&Jupyter>) -> Vec<Hold> {
        let notebook = |hold: &Hold| {
            let kernel = hold.kernel.as_ref()?;
            jupyter?.kernels.iter().find(|k| k.id == *kernel)?.notebook.clone()
        };
        let mine = self.devices.iter().flat_map(|card| &card.holds).filter(|(owner, _)| owner == id);
        mine.map(|(_, hold)| Hold { notebook: notebook(hold), ..hold.clone() }).collect()
    }

    /// The processes of one server, wherever they are.
    pub fn processes_of(&self, id: &ServerId, servers: &[Running]) -> Vec<Resident> {
        let resident = |machine: &Machine, process: &Process| Resident {
            machine: machine.name.clone(),
            pid: process.pid,
            start_ticks: process.start_ticks,
            name: process.name.clone(),
        };
        let mut found = Vec::new();
        for machine in self.machines() {
            let Ok(table) = &machine.processes else { continue };
            let pids = members(id, &on(machine, servers), table);
            found.extend(pids.into_iter().filter_map(|pid| Some(resident(machine, table.get(pid)?))));
        }
        found
    }

    /// The processes of these kernels of a server that are on a card.
    pub fn on_cards(&self, id: &ServerId, kernels: &[String], servers: &[Running]) -> Vec<Resident> {
        let of_kernel = |resident: &Resident| {
            let mut claims = self.machines().filter(|machine| machine.name == resident.machine);
            claims.any(|machine| {
                machine.claims.kernels.get(&resident.pid).is_some_and(|kernel| kernels.contains(kernel))
            })
        };
        self.processes_of(id, servers).into_iter().filter(of_kernel).collect()
    }

    /// Remembers on which machines the servers are.
    pub(super) fn note<'a>(&self, servers: impl Iterator<Item = &'a Server>, homes: &mut Homes) {
        let whole = self.silent().next().is_none();
        let found = |id: &ServerId| self.found(id).map(|place| place.machine.name.as_str()).collect();
        homes.note(servers, found, whole);
    }

    /// The cards of one server, or why they are not known. That a machine cannot be asked concerns those
    /// who are on it, and those of whom it is not known where they are.
    pub(super) fn of(&self, server: &Server, homes: &Homes) -> Result<Vec<GpuSample>, String> {
        if let Some(told) = &self.told {
            return told.of(server);
        }
        let (id, spawner) = (&server.id, &server.spawner);
        if spawner.is_empty() {
            return Err(
                "the Hub does not say where it runs (scope admin:server_state, or its spawner)".to_owned()
            );
        }
        let home = homes.of(server);
        for name in home.iter().flat_map(|home| &home.machines) {
            let place = self.places.iter().find(|place| place.machine.name == *name);
            known(place, || format!("it ran on {name}, which is no longer among the agents"))?;
        }
        self.where_named(spawner)?;
        // It may run on another machine and hold cards there: none here does not mean none.
        if self.found(id).next().is_none() {
            return Err(self.nowhere(spawner));
        }
        for place in self.found(id) {
            known(Some(place), String::new)?;
        }
        // A job may reach over several machines.
        let reaches = spawner.job.is_some() && !home.is_some_and(|home| home.settled);
        if let Some(silent) = self.silent().next().filter(|_| reaches) {
            return Err(format!("its job may reach to a machine that is silent: {silent}"));
        }
        let mine = self.devices.iter().filter(|card| card.servers.contains(id));
        Ok(mine.map(|card| card.sample.clone()).collect())
    }

    /// Whether the machine that the spawner names, or leaves unnamed since it is the Hub's, can be asked.
    fn where_named(&self, spawner: &SpawnerState) -> Result<(), String> {
        let place = |is: &dyn Fn(&Machine) -> bool| self.places.iter().find(|place| is(&place.machine));
        match &spawner.host {
            // A node may be called otherwise here, and a pod is looked for everywhere.
            Some(host) if spawner.pod.is_some() => place(&|machine| machine.is_called(host))
                .map_or(Ok(()), |node| known(Some(node), String::new)),
            Some(host) => {
                let absent = || format!("it runs on {host}, where no agent is asked");
                known(place(&|machine| machine.is_called(host)), absent)
            }
            None if is_local(spawner) => {
                let absent = || match self.silent().next() {
                    Some(silent) => format!("it runs beside the Hub, where no agent answers: {silent}"),
                    None => "it runs beside the Hub, where no agent is asked".to_owned(),
                };
                known(place(&|machine| machine.ours), absent)
            }
            None => Ok(()),
        }
    }

    /// Why no process of a server is found.
    fn nowhere(&self, spawner: &SpawnerState) -> String {
        let node = spawner.host.as_deref().filter(|_| spawner.pod.is_some());
        let node = node.and_then(|node| self.places.iter().find(|place| place.machine.is_called(node)));
        if let Some(node) = node.filter(|node| node.machine.names.is_some()) {
            return format!("no process of its pod is on {}", node.machine.name);
        }
        match (self.silent().next(), &self.places[..]) {
            (Some(silent), [_]) => silent.clone(),
            (Some(silent), _) => format!("it is not known where it runs, and a machine is silent: {silent}"),
            (None, [only]) if only.machine.names.is_none() && spawner.pod.is_some() => {
                "it runs in a pod, and not on this machine".to_owned()
            }
            (None, [only]) => format!("no process of it is on {}", only.machine.name),
            (None, all) => format!("no process of it is on any of the {} machines asked", all.len()),
        }
    }

    fn found(&self, id: &ServerId) -> impl Iterator<Item = &Place> {
        self.places.iter().filter(move |place| place.here.contains(id))
    }

    /// Why machines do not tell what runs there.
    fn silent(&self) -> impl Iterator<Item = &String> {
        self.places.iter().filter_map(|place| place.machine.unseen())
    }
}

/// Whether it is known who holds which card of this machine.
fn known(place: Option<&Place>, absent: impl FnOnce() -> String) -> Result<(), String> {
    trouble(&place.ok_or_else(absent)?.machine).map_or(Ok(()), Err)
}

/// Why it is not known who holds which card of a machine, if so.
fn trouble(machine: &Machine) -> Option<String> {
    let unlisted = |reading: &DeviceReading| {
        let why = reading.holders.as_ref().err()?;
        Some(format!("the processes on card {} cannot be listed: {why}", reading.sample.id))
    };
    match (&machine.devices, machine.unseen()) {
        (Err(why), _) | (_, Some(why)) => Some(why.clone()),
        (Ok(devices), None) => devices.iter().find_map(unlisted),
    }
}

/// Whether what leads to its processes means the Hub's own machine: another one has such pids and units, too.
fn is_local(spawner: &SpawnerState) -> bool {
    spawner.container.is_none() && spawner.pod.is_none() && spawner.job.is_none()
}

/// The servers that may be on a machine, by what leads to their processes there.
pub(super) fn on<'a>(machine: &Machine, servers: &'a [Running]) -> Cow<'a, [Running]> {
    if machine.ours && servers.iter().all(|(_, spawner)| spawner.host.is_none()) {
        return Cow::Borrowed(servers); // there may be thousands
    }
    let may = |(id, spawner): &Running| {
        let named = spawner.host.as_deref();
        if named.map_or(machine.ours, |host| machine.is_called(host)) {
            return Some((id.clone(), spawner.clone()));
        }
        let elsewhere = SpawnerState { pid: None, unit: None, ..spawner.clone() };
        (!elsewhere.is_empty()).then(|| (id.clone(), elsewhere))
    };
    servers.iter().filter_map(may).collect()
}

fn devices(machine: &Machine, servers: &[Running]) -> Vec<Card> {
    let readings = machine.devices.as_deref().unwrap_or_default();
    let Some(table) = machine.processes.as_ref().ok().filter(|_| machine.partial.is_none()) else {
        return readings.iter().map(|reading| card(machine, reading)).collect();
    };
    let all: BTreeSet<u32> = readings.iter().flat_map(pids).collect();
    let found = attribute(all, servers, table).with_claims(|pid| machine.claims.servers.get(&pid).cloned());
    let strangers: BTreeMap<u32, &Unattributed> = found.unattributed.iter().map(|u| (u.pid, u)).collect();
    let owner = |pid: u32| found.owners.get(&pid).map(|(owner, _)| owner.clone());
    let hold = |reading: &DeviceReading, holder: &Holder| {
        let hold = Hold {
            gpu: reading.sample.id.clone(),
            memory_used: holder.memory_used,
            kernel: machine.claims.kernels.get(&holder.pid).cloned(),
            notebook: None,
        };
        Some((owner(holder.pid)?, hold))
    };
    let attributed = |reading: &DeviceReading| Card {
        servers: pids(reading).filter_map(owner).collect(),
        holds: reading.holders.iter().flatten().filter_map(|holder| hold(reading, holder)).collect(),
        unattributed: pids(reading).filter_map(|pid| Some((*strangers.get(&pid)?).clone())).collect(),
        ..card(machine, reading)
    };
    readings.iter().map(attributed).collect()
}

fn pids(reading: &DeviceReading) -> impl Iterator<Item = u32> {
    reading.holders.iter().flatten().map(|holder| holder.pid)
}

/// A card of which it is not known who holds it.
fn card(machine: &Machine, reading: &DeviceReading) -> Card {
    Card {
        machine: machine.names.is_some().then(|| machine.name.clone()),
        sample: reading.sample.clone(),
        servers: BTreeSet::new(),
        holds: Vec::new(),
        unattributed: Vec::new(),
        workloads: Vec::new(),
    }
}

#[cfg(test)]
mod tests;

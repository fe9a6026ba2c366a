//! Which session holds which card.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{GpuSample, Hold, Holder, Jupyter, Server, ServerId, SpawnerState};
use crate::telemetry::process_table::{self, is_host_pid_namespace};
use crate::telemetry::{DeviceReading, ProcessTable, Unattributed, all_members, attribute};

/// One card and who holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// What it did.
    pub sample: GpuSample,
    /// The servers that hold it.
    pub servers: BTreeSet<ServerId>,
    /// What holds memory on it, by the server that it belongs to.
    pub holds: Vec<(ServerId, Hold)>,
    /// Processes on it that belong to no server, or to no single one.
    pub unattributed: Vec<Unattributed>,
}

/// All cards of this machine.
#[derive(Debug)]
pub struct Cards {
    /// Each of them.
    pub devices: Vec<Card>,
    /// Why it is not known who holds which card, if so.
    unknown: Option<String>,
    /// The servers with at least one process on this machine.
    here: BTreeSet<ServerId>,
}

impl Cards {
    /// No card can be given to anybody.
    pub fn unknown(why: String) -> Self {
        Self { devices: Vec::new(), unknown: Some(why), here: BTreeSet::new() }
    }

    /// Attributes each card's processes to the running servers.
    pub fn attribute(
        readings: &[DeviceReading],
        servers: &[(ServerId, SpawnerState)],
        table: &ProcessTable,
    ) -> Self {
        if !is_host_pid_namespace() {
            return Self::unknown(
                "this service does not see the machine's processes: run it in the host's pid namespace"
                    .to_owned(),
            );
        }
        let unlisted = readings.iter().find_map(|reading| {
            let why = reading.holders.as_ref().err()?;
            Some(format!("the processes on card {} cannot be listed: {why}", reading.sample.id))
        });
        let pids: BTreeSet<u32> =
            readings.iter().flat_map(|r| r.holders.iter().flatten()).map(|holder| holder.pid).collect();
        let found = attribute(pids, servers, table).with_claims(process_table::hint);
        let strangers: BTreeMap<u32, &Unattributed> = found.unattributed.iter().map(|u| (u.pid, u)).collect();
        let hold = |reading: &DeviceReading, holder: &Holder| {
            let hold = Hold {
                gpu: reading.sample.id.clone(),
                memory_used: holder.memory_used,
                kernel: table.ancestry(holder.pid).into_iter().find_map(process_table::kernel_id),
                notebook: None,
            };
            Some((found.owners.get(&holder.pid)?.0.clone(), hold))
        };
        let card = |reading: &DeviceReading| {
            let pids = || reading.holders.iter().flatten().map(|holder| holder.pid);
            Card {
                sample: reading.sample.clone(),
                servers: pids().filter_map(|pid| Some(found.owners.get(&pid)?.0.clone())).collect(),
                holds: reading.holders.iter().flatten().filter_map(|holder| hold(reading, holder)).collect(),
                unattributed: pids().filter_map(|pid| Some((*strangers.get(&pid)?).clone())).collect(),
            }
        };
        Self {
            devices: readings.iter().map(card).collect(),
            unknown: unlisted,
            here: all_members(servers, table).into_keys().collect(),
        }
    }

    /// What keeps cards from being attributed at all.
    pub fn trouble(&self) -> Option<String> {
        self.unknown.clone()
    }

    /// Whether a process of this server runs on this machine.
    pub fn is_here(&self, id: &ServerId) -> bool {
        self.here.contains(id)
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

    /// The cards of one server, or why they are not known.
    pub fn of(&self, server: &Server) -> Result<Vec<GpuSample>, String> {
        if let Some(why) = &self.unknown {
            return Err(why.clone());
        }
        let spawner = &server.spawner;
        if spawner.is_empty() {
            return Err(
                "the Hub does not say where it runs (scope admin:server_state, or its spawner)".to_owned()
            );
        }
        if spawner.pod.is_some() {
            return Err("it runs in a pod, which this source cannot see".to_owned());
        }
        // It may run on another machine and hold cards there: none here does not mean none.
        if !self.here.contains(&server.id) {
            return Err("no process of it is on this machine".to_owned());
        }
        let mine = self.devices.iter().filter(|card| card.servers.contains(&server.id));
        Ok(mine.map(|card| card.sample.clone()).collect())
    }
}

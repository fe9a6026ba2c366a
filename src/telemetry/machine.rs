//! One machine as it was found: its cards, its processes, and what it is called.

use std::collections::BTreeSet;

use super::process_table::{self, ProcessTable};
use super::{Claims, DeviceReading};

/// What was found of one machine. Either part may be missing and says why.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What people know it by.
    pub name: String,
    /// What spawners may call it; absent where it is the only one there is.
    pub names: Option<BTreeSet<String>>,
    /// Whether pids and units that a spawner tells without a machine are this one's: the Hub runs here.
    pub ours: bool,
    /// Its cards.
    pub devices: Result<Vec<DeviceReading>, String>,
    /// Its processes.
    pub processes: Result<ProcessTable, String>,
    /// Why these are not all of its processes, if so.
    pub partial: Option<String>,
    /// What some of the processes say of themselves.
    pub claims: Claims,
    /// What works with less, in words for the admin.
    pub notes: Vec<String>,
}

impl Machine {
    /// The machine we run on, where it is the only one.
    pub fn only(devices: Result<Vec<DeviceReading>, String>) -> Self {
        let processes = ProcessTable::of_machine();
        let held = devices.iter().flatten().flat_map(|device| device.holders.iter().flatten());
        let claims = processes.as_ref().map(|table| Claims::of_holders(held.map(|holder| holder.pid), table));
        let claims = claims.unwrap_or_default();
        let partial = processes.as_ref().ok().and_then(ProcessTable::partial);
        Self {
            name: "this machine".to_owned(),
            names: None,
            ours: true,
            devices,
            processes,
            partial,
            claims,
            notes: Vec::new(),
        }
    }

    /// One that could not be asked.
    pub fn silent(name: String, names: BTreeSet<String>, why: &str) -> Self {
        let (devices, processes) = (Err(why.to_owned()), Err(why.to_owned()));
        let (claims, notes) = (Claims::default(), Vec::new());
        Self { name, names: Some(names), ours: false, devices, processes, partial: None, claims, notes }
    }

    /// Why it is not known what runs here, if so.
    pub fn unseen(&self) -> Option<&String> {
        self.processes.as_ref().err().or(self.partial.as_ref())
    }

    /// Whether a spawner may mean this machine: by one of its names or addresses, or by the first part of a
    /// name where one of both has no more.
    pub fn is_called(&self, host: &str) -> bool {
        let short = |name: &str| name.split_once('.').is_none_or(|(first, _)| first.parse::<u8>().is_err());
        let first = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let same = |name: &String| {
            let either_is_short = !name.contains('.') || !host.contains('.');
            name.eq_ignore_ascii_case(host)
                || (either_is_short && short(name) && short(host) && first(name) == first(host))
        };
        self.names.as_ref().is_none_or(|names| names.iter().any(same))
    }

    /// The address of the server in whose environment a process runs, if it says so.
    pub fn address_of(&self, pid: u32) -> Option<String> {
        match self.names {
            None => process_table::service_url(pid),
            Some(_) => self.claims.addresses.get(&pid).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_known_by_its_names_short_or_full_and_its_addresses() {
        let names = ["gpu1.cluster.example", "192.0.2.7"].map(str::to_owned);
        let machine = Machine::silent("gpu1:9410".to_owned(), names.into(), "silent");
        for host in ["gpu1", "GPU1.cluster.example", "192.0.2.7"] {
            assert!(machine.is_called(host), "{host}");
        }
        for host in ["gpu10", "gpu1.other.example", "192.0.2.70", "192", "cluster", ""] {
            assert!(!machine.is_called(host), "{host}");
        }
    }
}

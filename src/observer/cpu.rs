//! How many cores each server's processes use.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::cards::{Cards, on};
use crate::domain::{ServerId, SpawnerState};
use crate::telemetry::{ProcessTable, all_members};

/// Cores below which a process of nobody is not asked whose it is.
const WORTH_ASKING: f64 = 0.01;

/// The meters of all machines, by name.
#[derive(Debug, Default)]
pub struct CpuMeters(BTreeMap<String, CpuMeter>);

impl CpuMeters {
    /// Cores used since the last measurement, on all machines together. A server of which no process was
    /// met twice is absent.
    pub fn measure(
        &mut self,
        cards: &Cards,
        servers: &[(ServerId, SpawnerState)],
        now: Timestamp,
    ) -> BTreeMap<ServerId, f64> {
        let mut cores = BTreeMap::new();
        for machine in cards.machines() {
            let Ok(table) = &machine.processes else { continue };
            let meter = self.0.entry(machine.name.clone()).or_default();
            let servers = on(machine, servers);
            for (id, used) in meter.measure(&servers, table, |pid| machine.address_of(pid), now) {
                *cores.entry(id).or_default() += used;
            }
        }
        cores
    }
}

/// Remembers each process's CPU time, so that the next measurement can tell the difference.
#[derive(Debug, Default)]
pub struct CpuMeter {
    before: Option<(Timestamp, Seconds)>,
}

/// CPU seconds by process; the start tells a reused pid apart.
type Seconds = BTreeMap<(u32, u64), f64>;

impl CpuMeter {
    /// Cores used since the last measurement; nothing where there was none.
    ///
    /// A process that left its server's tree (a daemon) still has the server's environment: `address` tells
    /// the address of a server in it. That is no proof, but work wrongly counted can only protect. The address
    /// and not the user's name, since another Hub of this machine may have a user of the same name.
    pub fn measure(
        &mut self,
        servers: &[(ServerId, SpawnerState)],
        table: &ProcessTable,
        address: impl Fn(u32) -> Option<String>,
        now: Timestamp,
    ) -> BTreeMap<ServerId, f64> {
        let seconds: Seconds = table.iter().map(|p| ((p.pid, p.start_ticks), p.cpu_seconds)).collect();
        let before = self.before.replace((now, seconds));
        let Some((then, before)) = before else {
            return BTreeMap::new();
        };
        let elapsed = now.duration_since(then).as_secs_f64();
        if elapsed <= 0.0 {
            return BTreeMap::new();
        }
        let used = |pid: u32| {
            let process = table.get(pid)?;
            let earlier = before.get(&(pid, process.start_ticks)).copied().unwrap_or(0.0);
            Some((process.cpu_seconds - earlier).max(0.0))
        };
        let cores = |pids: &Vec<u32>| pids.iter().filter_map(|pid| used(*pid)).sum::<f64>() / elapsed;
        let mut members = all_members(servers, table);
        let known: BTreeSet<u32> = members.values().flatten().copied().collect();
        let worked = |pid: &u32| used(*pid).is_some_and(|seconds| seconds / elapsed >= WORTH_ASKING);
        let lost = table.iter().map(|process| process.pid).filter(|pid| !known.contains(pid));
        let lost: Vec<_> = lost.filter(worked).filter_map(|pid| Some((pid, address(pid)?))).collect();
        if !lost.is_empty() {
            for (id, spawner) in servers {
                let own = spawner.pid.and_then(&address);
                let of_it = lost.iter().filter(|(_, address)| own.as_ref() == Some(address));
                members.entry(id.clone()).or_default().extend(of_it.map(|(pid, _)| *pid));
            }
        }
        members.iter().map(|(id, pids)| (id.clone(), cores(pids))).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;
    use crate::telemetry::Process;

    /// A server's process, a child of it, a daemon that left the tree, and one of nobody.
    fn table(cpu_seconds: f64) -> ProcessTable {
        let process = |pid, parent, share| Process {
            pid,
            parent,
            start_ticks: 1,
            cpu_seconds: cpu_seconds * share,
            ..Process::default()
        };
        let processes =
            [process(10, 1, 0.0), process(11, 10, 0.25), process(20, 1, 0.5), process(30, 1, 1.0)];
        ProcessTable::new(processes, 0)
    }

    fn cores(address: impl Fn(u32) -> Option<String>) -> BTreeMap<ServerId, f64> {
        let servers =
            [(ServerId::new("alice", ""), SpawnerState { pid: Some(10), ..SpawnerState::default() })];
        let mut meter = CpuMeter::default();
        let began = Timestamp::UNIX_EPOCH;
        let later = Timestamp::from_second(10).unwrap();
        assert!(meter.measure(&servers, &table(0.0), &address, began).is_empty());
        meter.measure(&servers, &table(10.0), &address, later)
    }

    #[test]
    fn the_processes_of_a_server_are_counted() {
        assert_eq!(cores(|_| None), BTreeMap::from([(ServerId::new("alice", ""), 0.25)]));
    }

    #[test]
    fn a_daemon_that_left_the_tree_counts_for_the_server_whose_address_it_has() {
        let address = |pid| match pid {
            10 | 11 | 20 => Some("http://127.0.0.1:1/user/alice/".to_owned()),
            30 => Some("http://127.0.0.1:2/user/alice/".to_owned()), // another Hub's alice
            _ => None,
        };
        assert_eq!(cores(address), BTreeMap::from([(ServerId::new("alice", ""), 0.75)]));
    }
}

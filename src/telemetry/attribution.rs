//! Which server a process belongs to.
//!
//! Trusted in this order: the control group (the kernel keeps it, a user cannot leave it), the process
//! tree below the process the Hub named, and the uid where it stands for exactly one server. What a
//! process says of itself is shown to people and decides nothing. More than one answer is no answer.

use std::collections::BTreeMap;

use super::cgroup::{container_id, kept_by_system, slurm_job};
use super::process_table::{Process, ProcessTable};
use crate::domain::{ServerId, SpawnerState};

/// What an attribution rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// The control group of the server's systemd unit.
    Unit,
    /// The control group of the server's container.
    Container,
    /// The control group of the server's batch job.
    Job,
    /// Descent from the process that the Hub names.
    ProcessTree,
    /// The uid, which exactly one running server has.
    Uid,
}

/// Who holds what, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// The server of each process, and why it is thought so.
    pub owners: BTreeMap<u32, (ServerId, Basis)>,
    /// Processes of which it is not known whose they are.
    pub unattributed: Vec<Unattributed>,
}

/// A process that belongs to no server, or to no single one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unattributed {
    /// Its id.
    pub pid: u32,
    /// Its short name, empty where the process cannot be seen.
    pub name: String,
    /// Whose it is, where it can be seen.
    pub uid: Option<u32>,
    /// The server it says it belongs to. Only a hint.
    pub claims: Option<ServerId>,
}

impl Attribution {
    /// Adds what the unattributed processes say of themselves.
    #[must_use]
    pub fn with_claims(mut self, hint: impl Fn(u32) -> Option<ServerId>) -> Self {
        for process in &mut self.unattributed {
            process.claims = hint(process.pid);
        }
        self
    }
}

/// Finds the server of each of `pids` among the running `servers`.
pub fn attribute(
    pids: impl IntoIterator<Item = u32>,
    servers: &[(ServerId, SpawnerState)],
    table: &ProcessTable,
) -> Attribution {
    let mut result = Attribution::default();
    for pid in pids {
        let process = table.get(pid);
        if let Some((server, basis)) = process.and_then(|p| owner(p, servers, table)) {
            result.owners.insert(pid, (server.clone(), basis));
        } else {
            result.unattributed.push(Unattributed {
                pid,
                name: process.map(|p| p.name.clone()).unwrap_or_default(),
                uid: process.map(|p| p.uid),
                claims: None,
            });
        }
    }
    result
}

/// The processes of every server: its control group and the tree below the process that the Hub names.
/// Not those that only share its uid: these may belong to another session of the user.
pub fn all_members(
    servers: &[(ServerId, SpawnerState)],
    table: &ProcessTable,
) -> BTreeMap<ServerId, Vec<u32>> {
    let mut members: BTreeMap<ServerId, Vec<u32>> = BTreeMap::new();
    for process in table.iter() {
        if let Ok(Some((server, _))) = by_cgroup_or_tree(process, servers, table) {
            members.entry(server.clone()).or_default().push(process.pid);
        }
    }
    members
}

/// The same of one server. The others are needed to know which processes are not its own.
pub fn members(server: &ServerId, servers: &[(ServerId, SpawnerState)], table: &ProcessTable) -> Vec<u32> {
    all_members(servers, table).remove(server).unwrap_or_default()
}

type Running = (ServerId, SpawnerState);
type Owner<'a> = (&'a ServerId, Basis);

fn owner<'a>(process: &Process, servers: &'a [Running], table: &ProcessTable) -> Option<Owner<'a>> {
    match by_cgroup_or_tree(process, servers, table) {
        Ok(None) => by_uid(process, servers, table),
        Ok(found) => found,
        Err(Ambiguous) => None,
    }
}

/// Several servers have the same right to a process, so that weaker grounds must not decide either.
struct Ambiguous;

fn by_cgroup_or_tree<'a>(
    process: &Process,
    servers: &'a [Running],
    table: &ProcessTable,
) -> Result<Option<Owner<'a>>, Ambiguous> {
    let in_group: Vec<(&Running, Basis)> = servers
        .iter()
        .filter_map(|server| Some((server, group_of(process, &server.1, table.own_uid())?)))
        .collect();
    match in_group[..] {
        [] => by_tree(process, servers.iter(), table),
        [((id, _), basis)] => Ok(Some((id, basis))),
        // Named servers of one user may share a unit: the tree tells them apart.
        _ => match by_tree(process, in_group.into_iter().map(|(server, _)| server), table)? {
            None => Err(Ambiguous),
            found => Ok(found),
        },
    }
}

/// Whether the process is in the server's control group or below it.
fn group_of(process: &Process, spawner: &SpawnerState, own_uid: u32) -> Option<Basis> {
    let unit = spawner.unit.as_deref().filter(|unit| !unit.is_empty());
    let container = spawner.container.as_deref();
    let container = container.filter(|id| id.len() >= MIN_CONTAINER_ID);
    let job = spawner.job.as_deref();
    process.cgroups.iter().find_map(|path| {
        let mut groups = kept_by_system(path, own_uid);
        if job.is_some() && slurm_job(kept_by_system(path, own_uid)) == job {
            return Some(Basis::Job);
        }
        groups.find_map(|group| {
            if unit.is_some() && group.strip_suffix(".service") == unit {
                Some(Basis::Unit)
            } else if container.is_some() && container_id(group) == container {
                Some(Basis::Container)
            } else {
                None
            }
        })
    })
}

/// Docker's short ids have twelve digits; anything shorter is no id.
const MIN_CONTAINER_ID: usize = 12;

/// The server whose named process is the nearest ancestor.
fn by_tree<'a>(
    process: &Process,
    servers: impl Iterator<Item = &'a Running> + Clone,
    table: &ProcessTable,
) -> Result<Option<Owner<'a>>, Ambiguous> {
    for pid in table.ancestry(process.pid) {
        let mut rooted = servers.clone().filter(|(_, s)| root(s) == Some(pid));
        match (rooted.next(), rooted.next()) {
            (None, _) => {}
            (Some((id, _)), None) => return Ok(Some((id, Basis::ProcessTree))),
            (Some(_), Some(_)) => return Err(Ambiguous),
        }
    }
    Ok(None)
}

/// The process the Hub names. Everything descends from process 1: that cannot be a server here.
fn root(spawner: &SpawnerState) -> Option<u32> {
    spawner.pid.filter(|&pid| pid > 1)
}

/// The one server that runs as the process's uid. Root and our own uid stand for nobody; and a server
/// of the same user whose uid is not known might as well be the one.
fn by_uid<'a>(process: &Process, servers: &'a [Running], table: &ProcessTable) -> Option<Owner<'a>> {
    if process.uid == 0 || process.uid == table.own_uid() {
        return None;
    }
    let uid = |server: &Running| Some(table.get(root(&server.1)?)?.uid);
    let mut same = servers.iter().filter(|server| uid(server) == Some(process.uid));
    let (id, _) = same.next()?;
    let unsure = servers.iter().any(|server| uid(server).is_none() && server.0.user == id.user);
    (same.next().is_none() && !unsure).then_some((id, Basis::Uid))
}

#[cfg(test)]
mod tests;

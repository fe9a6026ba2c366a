//! Which server a process belongs to.
//!
//! Trusted in this order: the control group (the kernel keeps it, a user cannot leave it), the process
//! tree below the process the Hub named, and the uid where it stands for exactly one server. What a
//! process says of itself is shown to people and at most protects. More than one answer is no answer.

use std::collections::{BTreeMap, HashMap};

use super::cgroup::{container_id, kept_by_system, pod_uid, slurm_job};
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
    /// The control group of the server's pod.
    Pod,
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
    let roster = Roster::new(servers);
    let mut result = Attribution::default();
    for pid in pids {
        let process = table.get(pid);
        if let Some((server, basis)) = process.and_then(|p| owner(p, &roster, table)) {
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
    let roster = Roster::new(servers);
    let mut members: BTreeMap<ServerId, Vec<u32>> = BTreeMap::new();
    for process in table.iter() {
        if let Ok(Some((server, _))) = by_cgroup_or_tree(process, &roster, table) {
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

/// The running servers by what leads to them: there may be thousands, and as many processes.
struct Roster<'a> {
    servers: &'a [Running],
    units: HashMap<&'a str, Vec<&'a Running>>,
    containers: HashMap<&'a str, Vec<&'a Running>>,
    jobs: HashMap<&'a str, Vec<&'a Running>>,
    pods: HashMap<&'a (String, String), Vec<&'a Running>>,
    pod_uids: HashMap<&'a str, Vec<&'a Running>>,
    roots: HashMap<u32, Vec<&'a Running>>,
}

impl<'a> Roster<'a> {
    fn new(servers: &'a [Running]) -> Self {
        let (units, containers, jobs) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (pods, pod_uids, roots) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut roster = Self { servers, units, containers, jobs, pods, pod_uids, roots };
        for server in servers {
            let spawner = &server.1;
            if let Some(unit) = spawner.unit.as_deref().filter(|unit| !unit.is_empty()) {
                roster.units.entry(unit).or_default().push(server);
            }
            if let Some(id) = spawner.container.as_deref().filter(|id| id.len() >= MIN_CONTAINER_ID) {
                roster.containers.entry(id).or_default().push(server);
            }
            if let Some(job) = spawner.job.as_deref() {
                roster.jobs.entry(job).or_default().push(server);
            }
            // A name may be an earlier pod's, too; the uid is nobody else's.
            if let Some(uid) = spawner.pod_uid.as_deref() {
                roster.pod_uids.entry(uid).or_default().push(server);
            } else if let Some(pod) = spawner.pod.as_ref() {
                roster.pods.entry(pod).or_default().push(server);
            }
            if let Some(root) = root(spawner) {
                roster.roots.entry(root).or_default().push(server);
            }
        }
        roster
    }

    /// The servers in whose control group, or below it, the process is.
    fn by_group(&self, process: &Process, table: &ProcessTable) -> Vec<(&'a Running, Basis)> {
        let own_uid = table.own_uid();
        let mut found: Vec<(&Running, Basis)> = Vec::new();
        let mut add = |servers: Option<&Vec<&'a Running>>, basis| {
            for server in servers.into_iter().flatten().copied() {
                if !found.iter().any(|(known, _)| std::ptr::eq(*known, server)) {
                    found.push((server, basis));
                }
            }
        };
        for path in &process.cgroups {
            add(slurm_job(kept_by_system(path, own_uid)).and_then(|job| self.jobs.get(job)), Basis::Job);
            let pod = pod_uid(kept_by_system(path, own_uid));
            add(pod.as_deref().and_then(|uid| self.pod_uids.get(uid)), Basis::Pod);
            add(pod.as_deref().and_then(|uid| self.pods.get(table.pod(uid)?)), Basis::Pod);
            for group in kept_by_system(path, own_uid) {
                add(group.strip_suffix(".service").and_then(|unit| self.units.get(unit)), Basis::Unit);
                add(container_id(group).and_then(|id| self.containers.get(id)), Basis::Container);
            }
        }
        found
    }

    fn rooted_at(&self, pid: u32) -> &[&'a Running] {
        self.roots.get(&pid).map_or(&[], Vec::as_slice)
    }
}

fn owner<'a>(process: &Process, roster: &Roster<'a>, table: &ProcessTable) -> Option<Owner<'a>> {
    match by_cgroup_or_tree(process, roster, table) {
        Ok(None) => by_uid(process, roster.servers, table),
        Ok(found) => found,
        Err(Ambiguous) => None,
    }
}

/// Several servers have the same right to a process, so that weaker grounds must not decide either.
struct Ambiguous;

fn by_cgroup_or_tree<'a>(
    process: &Process,
    roster: &Roster<'a>,
    table: &ProcessTable,
) -> Result<Option<Owner<'a>>, Ambiguous> {
    let in_group = roster.by_group(process, table);
    match in_group[..] {
        [] => by_tree(process, roster, |_| true, table),
        [((id, _), basis)] => Ok(Some((id, basis))),
        // Named servers of one user may share a unit: the tree tells them apart.
        _ => {
            let among = |server: &Running| in_group.iter().any(|(other, _)| std::ptr::eq(*other, server));
            match by_tree(process, roster, among, table)? {
                None => Err(Ambiguous),
                found => Ok(found),
            }
        }
    }
}

/// Docker's short ids have twelve digits; anything shorter is no id.
const MIN_CONTAINER_ID: usize = 12;

/// The server whose named process is the nearest ancestor.
fn by_tree<'a>(
    process: &Process,
    roster: &Roster<'a>,
    among: impl Fn(&Running) -> bool,
    table: &ProcessTable,
) -> Result<Option<Owner<'a>>, Ambiguous> {
    for pid in table.ancestry(process.pid) {
        let mut rooted = roster.rooted_at(pid).iter().filter(|server| among(server));
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

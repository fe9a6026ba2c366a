//! The processes of this machine at one instant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use procfs::process;

use super::pods::{self, Pods};
use crate::domain::ServerId;

/// The inode of the first pid namespace, the same on every Linux.
const HOST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// One process. `pid` and `start_ticks` together name it for good, since pids are used again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its parent's id.
    pub parent: u32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
    /// Whose it is.
    pub uid: u32,
    /// Its short name.
    pub name: String,
    /// The paths of its control groups (one with cgroup v2).
    pub cgroups: Vec<String>,
    /// CPU time used so far, in seconds.
    pub cpu_seconds: f64,
}

/// All processes that can be seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProcessTable {
    processes: BTreeMap<u32, Process>,
    own_uid: u32,
    pods: Pods,
}

impl ProcessTable {
    /// A table of these processes, read by somebody with this uid.
    pub fn new(processes: impl IntoIterator<Item = Process>, own_uid: u32) -> Self {
        let processes = processes.into_iter().map(|p| (p.pid, p)).collect();
        Self { processes, own_uid, pods: Pods::new() }
    }

    /// The same, with what is known of the machine's pods.
    #[must_use]
    pub fn with_pods(self, pods: Pods) -> Self {
        Self { pods, ..self }
    }

    /// Reads `/proc`. A process that ends meanwhile is left out.
    pub fn read() -> io::Result<Self> {
        let all = process::all_processes().map_err(io::Error::other)?;
        let readable = all.filter_map(|process| read_one(&process.ok()?).ok());
        Ok(Self::new(readable, rustix::process::getuid().as_raw()))
    }

    /// The same, with the names of the machine's pods.
    pub fn of_machine() -> Result<Self, String> {
        let table = Self::read().map_err(|error| format!("the process table cannot be read: {error}"))?;
        Ok(table.with_pods(pods::read(Path::new(pods::FOLDER))))
    }

    /// Why these are not all processes of this machine, if so: whose a card is cannot be told then.
    pub fn partial(&self) -> Option<String> {
        if !is_host_pid_namespace() {
            return Some(
                "the machine's processes are not seen: run it in the host's pid namespace".to_owned(),
            );
        }
        // The first process is always there, and root's: who does not see it is shown only his own.
        self.get(1).is_none().then(|| {
            "/proc hides other people's processes (hidepid): run it as root, with CAP_SYS_PTRACE, or in the \
             group that /proc is mounted for (gid=)"
                .to_owned()
        })
    }

    /// The name of a pod of this machine.
    pub fn pod(&self, uid: &str) -> Option<&(String, String)> {
        self.pods.get(uid)
    }

    /// The process with this id.
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.processes.get(&pid)
    }

    /// Every process.
    pub fn iter(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    /// The uid of whoever read the table.
    pub fn own_uid(&self) -> u32 {
        self.own_uid
    }

    /// Does the process that had this id and start time still exist?
    pub fn still_has(&self, pid: u32, start_ticks: u64) -> bool {
        self.get(pid).is_some_and(|p| p.start_ticks == start_ticks)
    }

    /// A process and, nearest first, its ancestors.
    pub fn ancestry(&self, pid: u32) -> Vec<u32> {
        let mut line = Vec::new();
        let mut next = self.get(pid);
        // A table read while processes come and go may hold a circle.
        while let Some(process) = next.filter(|p| !line.contains(&p.pid)) {
            line.push(process.pid);
            // Who started later did not start it: that pid was given anew while the table was read.
            next = self.get(process.parent).filter(|parent| parent.start_ticks <= process.start_ticks);
        }
        line
    }

    /// A process and all its descendants, none where it does not exist.
    pub fn subtree(&self, pid: u32) -> Vec<u32> {
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for process in self.iter() {
            children.entry(process.parent).or_default().push(process.pid);
        }
        let mut found = BTreeSet::new();
        let mut open: Vec<u32> = self.get(pid).map(|p| p.pid).into_iter().collect();
        while let Some(pid) = open.pop() {
            if found.insert(pid) {
                open.extend(children.get(&pid).into_iter().flatten());
            }
        }
        found.into_iter().collect()
    }
}

#[allow(clippy::cast_precision_loss, reason = "CPU ticks stay far below 2^52")]
fn read_one(process: &process::Process) -> procfs::ProcResult<Process> {
    let stat = process.stat()?;
    let cgroups = process.cgroups().map(|groups| groups.0).unwrap_or_default();
    Ok(Process {
        pid: u32::try_from(stat.pid).unwrap_or_default(),
        parent: u32::try_from(stat.ppid).unwrap_or_default(),
        start_ticks: stat.starttime,
        uid: process.uid()?,
        name: stat.comm,
        cgroups: cgroups.into_iter().map(|group| group.pathname).collect(),
        cpu_seconds: (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
    })
}

/// Whether we see the machine's processes under their true ids. In a container with a pid namespace of
/// its own, NVML's process lists are silently empty, so that "no process" then means nothing.
pub fn is_host_pid_namespace() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|ns| ns.as_os_str() == HOST_PID_NAMESPACE)
}

/// The kernel's id of this boot of the machine; a container sees the same as its host.
pub fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned()).filter(|id| !id.is_empty())
}

/// Where a single-user server says it listens. Nothing else of its environment, which also holds its
/// token, is kept.
pub fn service_url(pid: u32) -> Option<String> {
    variables(pid, ["JUPYTERHUB_SERVICE_URL"]).remove("JUPYTERHUB_SERVICE_URL")
}

/// Which server a process claims to belong to. Anybody can write anything there: a hint for a person,
/// never a ground to act on.
pub fn hint(pid: u32) -> Option<ServerId> {
    let mut found = variables(pid, ["JUPYTERHUB_USER", "JUPYTERHUB_SERVER_NAME"]);
    let user = found.remove("JUPYTERHUB_USER").filter(|user| !user.is_empty())?;
    let name = found.remove("JUPYTERHUB_SERVER_NAME").unwrap_or_default();
    Some(ServerId::new(user, name))
}

/// The id of the kernel that a process was started as: its connection file is named after it. As
/// anybody can write anything on a command line, this too is for people only.
pub fn kernel_id(pid: u32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    line.split(|byte| *byte == 0).find_map(|word| {
        let name = std::str::from_utf8(word).ok()?.rsplit('/').next()?;
        Some(name.strip_prefix("kernel-")?.strip_suffix(".json")?.to_owned())
    })
}

fn variables<const N: usize>(pid: u32, wanted: [&str; N]) -> BTreeMap<String, String> {
    let file = File::open(format!("/proc/{pid}/environ"));
    let environ = file.map(BufReader::new).into_iter().flat_map(|f| f.split(0));
    environ
        .map_while(Result::ok)
        .filter_map(|entry| {
            let (name, value) = std::str::from_utf8(&entry).ok()?.split_once('=')?;
            wanted.contains(&name).then(|| (name.to_owned(), value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A `cat` that waits for input and ends with the test.
    struct Waiting(Child);

    impl Waiting {
        fn with(environment: &[(&str, &str)]) -> Self {
            Self::of(Command::new("cat"), environment)
        }

        fn of(mut command: Command, environment: &[(&str, &str)]) -> Self {
            command.env_clear().stdin(Stdio::piped()).stdout(Stdio::null());
            Self(command.envs(environment.iter().copied()).spawn().unwrap())
        }
    }

    impl Drop for Waiting {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn our_own_process_is_in_the_table() {
        let table = ProcessTable::read().unwrap();
        let own = table.get(std::process::id()).unwrap();
        assert_eq!(own.uid, table.own_uid());
        assert!(own.start_ticks > 0 && !own.cgroups.is_empty() && !own.name.is_empty());
        assert!(table.still_has(own.pid, own.start_ticks));
        assert!(!table.still_has(own.pid, own.start_ticks + 1), "a later process with the same id");
    }

    #[test]
    fn a_child_is_in_its_parents_subtree() {
        let child = Waiting::with(&[]);
        let table = ProcessTable::read().unwrap();
        assert!(table.subtree(std::process::id()).contains(&child.0.id()));
        assert_eq!(table.subtree(child.0.id()), [child.0.id()]);
        assert_eq!(table.ancestry(child.0.id())[..2], [child.0.id(), std::process::id()]);
    }

    #[test]
    fn the_variables_asked_for_are_read_from_a_process() {
        let child = Waiting::with(&[
            ("JUPYTERHUB_SERVICE_URL", "http://127.0.0.1:36963/user/alice/"),
            ("JUPYTERHUB_USER", "alice"),
            ("JUPYTERHUB_SERVER_NAME", "training"),
        ]);
        let url = service_url(child.0.id());
        assert_eq!(url.as_deref(), Some("http://127.0.0.1:36963/user/alice/"));
        assert_eq!(hint(child.0.id()), Some(ServerId::new("alice", "training")));
    }

    #[test]
    fn a_process_that_says_nothing_claims_nothing() {
        let child = Waiting::with(&[("JUPYTERHUB_USER", "")]);
        assert_eq!((service_url(child.0.id()), hint(child.0.id())), (None, None));
        assert_eq!(hint(u32::MAX), None);
    }

    #[test]
    fn a_kernel_is_known_by_its_connection_file() {
        let started = |words: &[&str]| {
            let mut command = Command::new("tail");
            command.args(words);
            Waiting::of(command, &[])
        };
        let kernel = started(&["-f", "/dev/null", "--pid=1", "/run/jupyter/kernel-5e-1f.json"]);
        assert_eq!(kernel_id(kernel.0.id()).as_deref(), Some("5e-1f"));
        let other = started(&["-f", "/dev/null", "/run/kernel-5e-1f.json.old", "/run/my-kernel-2.json"]);
        assert_eq!(kernel_id(other.0.id()), None);
        assert_eq!(kernel_id(u32::MAX), None);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let process = |pid, parent| Process { pid, parent, ..Process::default() };
        let table = ProcessTable::new([process(1, 2), process(2, 1)], 0);
        assert_eq!(table.ancestry(1), [1, 2]);
        assert_eq!(table.subtree(1), [1, 2]);
        assert_eq!(table.subtree(7), [0; 0]);
    }
}

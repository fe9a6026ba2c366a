//! A server as the Hub knows it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::ServerId;

/// One running (or starting, or stopping) server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Whose and which.
    pub id: ServerId,
    /// The owner's groups.
    pub groups: Vec<String>,
    /// Whether the owner is an admin of the Hub.
    pub admin: bool,
    /// The profile chosen at start (`user_options.profile`), where there is one.
    pub profile: Option<String>,
    /// Labels of the session, where a source gives some: those of its pod, and what its owner chose at the start
    /// under `user_options.…` ([`super::CHOSEN`]).
    pub labels: BTreeMap<String, String>,
    /// When this run of the server started: a new value is a new session.
    pub started: Option<Timestamp>,
    /// The Hub's stamp.
    pub last_activity: Option<Timestamp>,
    /// What the Hub is doing with it just now (`spawn`, `stop`, `check`, `rename`).
    pub pending: Option<String>,
    /// Whether it answers requests.
    pub ready: bool,
    /// Candidates for the owner's address, and the owner's time zone, by the name of their source
    /// (`user_info.email`, `user_info.zoneinfo`).
    pub contacts: Vec<(String, String)>,
    /// Where the spawner says it runs.
    pub spawner: SpawnerState,
    /// The server's path below the public address, `/user/alice/`.
    pub path: String,
}

impl Server {
    /// A ready server of which nothing but its name is known.
    pub fn named(id: ServerId) -> Self {
        Self {
            id,
            groups: Vec::new(),
            admin: false,
            profile: None,
            labels: BTreeMap::new(),
            started: None,
            last_activity: None,
            pending: None,
            ready: true,
            contacts: Vec::new(),
            spawner: SpawnerState::default(),
            path: String::new(),
        }
    }
}

/// What a spawner tells about where a server runs (JupyterHub's `state`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpawnerState {
    /// Root of the process tree (LocalProcess, Sudo).
    pub pid: Option<u32>,
    /// systemd unit (SystemdSpawner), without `.service`.
    pub unit: Option<String>,
    /// Container id (DockerSpawner).
    pub container: Option<String>,
    /// Pod name and namespace (KubeSpawner).
    pub pod: Option<(String, String)>,
    /// That pod's uid, where the cluster tells: a later pod may have the same name.
    pub pod_uid: Option<String>,
    /// Batch job (batchspawner).
    pub job: Option<String>,
    /// The machine it was started on, where the spawner tells; of a batch job the first one.
    pub host: Option<String>,
}

impl SpawnerState {
    /// Whether the spawner (or our rights) told nothing that leads to processes.
    pub fn is_empty(&self) -> bool {
        let Self { pid, unit, container, pod, pod_uid: _, job, host: _ } = self;
        pid.is_none() && unit.is_none() && container.is_none() && pod.is_none() && job.is_none()
    }
}

/// What becomes of a server's record at the Hub when it was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Afterwards {
    /// It stays, and the owner can start the server again.
    #[default]
    Keep,
    /// It is removed, which may delete the server's volume.
    Remove,
}

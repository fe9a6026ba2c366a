//! What a server consists of besides its record at the Hub, and what of it is still there after a stop.

use std::fmt;

use jiff::Timestamp;

use super::{Observer, Remnant, Resident};
use crate::domain::Server;
use crate::message::reasons;

/// Processes and the pod of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Its processes, and where they run.
    pub processes: Vec<Resident>,
    /// Its pod, where a cluster is watched.
    pub pod: Option<Remnant>,
}

impl Remains {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.pod.is_none()
    }
}

impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = |left: &Resident| format!("process {} ({})", left.pid, reasons::name(&left.name));
        let processes = self.processes.iter().map(process);
        let pod = self.pod.iter().map(|pod| {
            let node =
                pod.node.as_deref().map_or_else(|| "no node".to_owned(), |node| format!("node {node}"));
            match pod.ends {
                Some(ends) => {
                    format!("pod {} on {node}, Terminating, due to end by {}", pod.name, reasons::time(ends))
                }
                None => format!("pod {} on {node}", pod.name),
            }
        });
        f.write_str(&processes.chain(pod).collect::<Vec<_>>().join(", "))
    }
}

impl Observer {
    /// What a stop of this server has to end, as it is now.
    pub async fn belongings(&self, server: &Server, now: Timestamp) -> Remains {
        Remains { processes: self.processes(&server.id, now).await, pod: self.pods.to_end(server) }
    }

    /// What of it is still there.
    pub async fn left_of(&self, before: &Remains, now: Timestamp) -> Remains {
        Remains {
            processes: self.still_running(&before.processes, now).await,
            pod: before.pod.as_ref().and_then(|pod| self.pods.still_there(pod)),
        }
    }
}

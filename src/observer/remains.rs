//! What a server consists of besides its record at the Hub, and what of it is still there after a stop.

use std::fmt;

use jiff::Timestamp;

use super::{Observer, Remnant, Resident, Source, tenant};
use crate::domain::{GpuId, Server};
use crate::message::reasons;
use crate::telemetry::prometheus::Workload;

/// Processes and the pod of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Its processes, and where they run.
    pub processes: Vec<Resident>,
    /// Its pod, where a cluster is watched.
    pub pod: Option<Remnant>,
    /// What labels must no longer say, where they tell whose cards are.
    pub labels: Option<Labels>,
}

/// What labels said of a server that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    workload: Workload,
    gone: Timestamp,
    /// The cards that name it all the same.
    naming: Vec<GpuId>,
}

impl Remains {
    /// Whether nothing is left, and nothing remains to be seen.
    pub fn is_empty(&self) -> bool {
        self.lives_not_on() && self.labels.is_none()
    }

    /// Whether neither a process nor the pod is left, nor a card that should no longer name it.
    pub fn lives_not_on(&self) -> bool {
        let named = self.labels.as_ref().is_some_and(|labels| !labels.naming.is_empty());
        self.processes.is_empty() && self.pod.is_none() && !named
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
        let labels = self.labels.iter().filter(|labels| !labels.naming.is_empty()).map(|labels| {
            let cards: Vec<&str> = labels.naming.iter().map(|card| card.0.as_str()).collect();
            format!("{}, which is gone, is still named by {}", labels.workload, cards.join(" and "))
        });
        f.write_str(&processes.chain(pod).chain(labels).collect::<Vec<_>>().join(", "))
    }
}

impl Observer {
    /// What a stop of this server has to end, as it is now.
    pub async fn belongings(&self, server: &Server, now: Timestamp) -> Remains {
        Remains {
            processes: self.processes(&server.id, now).await,
            pod: self.pods.to_end(server),
            labels: None,
        }
    }

    /// What of it is still there.
    pub async fn left_of(&self, before: &Remains, now: Timestamp) -> Remains {
        Remains {
            processes: self.still_running(&before.processes, now).await,
            pod: before.pod.as_ref().and_then(|pod| self.pods.still_there(pod)),
            labels: match &before.labels {
                Some(labels) => self.still_labelled(labels, now).await,
                None => None,
            },
        }
    }

    /// What is to be seen of a server that is gone: labels follow only with the next samples.
    pub fn to_be_seen(&self, server: &Server, gone: Timestamp) -> Option<Remains> {
        let Source::Prometheus(_) = self.source else { return None };
        let labels = Labels { workload: tenant(server)?.workload, gone, naming: Vec::new() };
        Some(Remains { labels: Some(labels), ..Remains::default() })
    }

    async fn still_labelled(&self, labels: &Labels, now: Timestamp) -> Option<Labels> {
        let Source::Prometheus(prometheus) = &self.source else { return None };
        // A new run of the server has a pod of the same name.
        if matches!(&labels.workload, Workload::Pod { namespace, name } if self.pods.is_taken(namespace, name))
        {
            return None;
        }
        let Ok(look) = prometheus.look(&[], now).await else { return Some(labels.clone()) };
        match look.still_naming(&labels.workload, labels.gone, now) {
            None => Some(labels.clone()),
            Some(naming) if naming.is_empty() => None,
            Some(naming) => Some(Labels { naming, ..labels.clone() }),
        }
    }
}

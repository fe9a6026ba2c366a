//! What the cluster says of sessions: which pod is whose, what cards it asks for, where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::queue::of_pods;
use crate::cluster::Cluster;
use crate::domain::{GpuSample, Phase, Pod, PodName, Queue, Server, ServerId};
use crate::policy::Session;
use crate::telemetry::prometheus::Workload;

/// Resources that stand for a whole card or a part of one that has a name of its own; of shared ones several may
/// be the same card.
const SHARED: &str = ".shared";

/// Under which name rules match a pod's priority class, as its specification calls it.
const PRIORITY_CLASS: &str = "priorityClassName";

/// The pods of sessions, where a cluster is watched.
#[derive(Debug, Default)]
pub struct Pods {
    cluster: Option<Cluster>,
    /// Whether servers are asked at their pods' addresses.
    direct: bool,
}

/// A pod that a stop ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remnant {
    /// Its name.
    pub name: PodName,
    /// Its uid: a later pod may have the same name.
    pub uid: String,
    /// Where it is.
    pub node: Option<String>,
    /// When its grace ends, where it was told to end.
    pub ends: Option<Timestamp>,
}

impl Pods {
    /// The pods of this cluster. `direct`: their servers are asked at their own addresses.
    pub fn new(cluster: Cluster, direct: bool) -> Self {
        Self { cluster: Some(cluster), direct }
    }

    /// Waits for the first lists.
    pub async fn begin(&self, patience: Duration) {
        if let Some(cluster) = &self.cluster {
            cluster.begin(patience).await;
        }
    }

    /// Why pods are not known, in words for the admin.
    pub(super) fn troubles(&self) -> Vec<String> {
        self.cluster.as_ref().map(Cluster::troubles).unwrap_or_default()
    }

    /// Where a cluster is watched: whether all that is watched of it is known.
    pub(super) fn up(&self) -> Option<bool> {
        self.cluster.as_ref().map(|cluster| cluster.troubles().is_empty())
    }

    /// Whether the pod that the Hub names is there and says the same; nothing of a server that is in none.
    pub fn agree_on(&self, server: &Server) -> Option<Result<(), String>> {
        let (cluster, name) = (self.cluster.as_ref()?, name(server)?);
        Some(cluster.pod(&name).and_then(|pod| belongs(&*pod.ok_or_else(|| missing(&name))?, &server.id)))
    }

    /// How many pods hold cards or are servers of a Hub.
    pub fn count(&self) -> usize {
        self.cluster.as_ref().map_or(0, |cluster| cluster.pods().len())
    }

    /// Who waits for a card, where that is known.
    pub(super) fn queue(&self, sessions: &[Session]) -> Option<Queue> {
        let cluster = self.cluster.as_ref()?;
        cluster.waiting().ok().map(|waiting| of_pods(&waiting, &cluster.pods(), sessions))
    }

    /// Adds what its pod tells about a server: the node, the uid, labels and annotations. Only where the pod says
    /// itself that it is this server's.
    pub(super) fn complete(&self, server: &mut Server) {
        let Some(pod) = self.of(server).filter(|pod| pod.session.as_ref() == Some(&server.id)) else {
            return;
        };
        server.spawner.host.clone_from(&pod.node);
        server.spawner.pod_uid = Some(pod.uid.clone());
        let class = pod.priority_class.iter().map(|class| (PRIORITY_CLASS, class));
        let labels = pod.labels.iter().chain(&pod.annotations).map(|(key, value)| (key.as_str(), value));
        for (key, value) in labels.chain(class) {
            server.labels.entry(key.to_owned()).or_insert_with(|| value.clone());
        }
    }

    /// The pod that the Hub names, where it is known.
    fn of(&self, server: &Server) -> Option<Arc<Pod>> {
        self.cluster.as_ref()?.pod(&name(server)?).ok().flatten()
    }

    /// The cards of a session whose pod must bear them out; others stay as they are. `labelled`: it was labels that
    /// told, not processes.
    pub(super) fn confirm(
        &self,
        server: &Server,
        gpus: Result<Vec<GpuSample>, String>,
        labelled: bool,
    ) -> Result<Vec<GpuSample>, String> {
        let Some((cluster, name)) = self.cluster.as_ref().zip(name(server)) else { return gpus };
        match cluster.pod(&name)? {
            Some(pod) => judge(&pod, &server.id, gpus, labelled),
            None => Err(missing(&name)),
        }
    }

    /// Where a server itself answers, past every proxy.
    pub fn address(&self, server: &Server) -> Option<SocketAddr> {
        own_address(&*self.of(server).filter(|_| self.direct)?, &server.id)
    }

    /// The pods that hold cards and belong to none of all `servers`.
    pub(super) fn strangers(&self, servers: &[Box<Server>]) -> Vec<Arc<Pod>> {
        let Some(cluster) = &self.cluster else { return Vec::new() };
        let own: BTreeSet<PodName> = servers.iter().filter_map(|server| name(server)).collect();
        // Where the Hub hides in which pods servers run, their pods say it.
        let hidden: BTreeSet<&ServerId> =
            servers.iter().filter(|server| server.spawner.is_empty()).map(|server| &server.id).collect();
        let stranger = |pod: &Arc<Pod>| {
            let of_server =
                own.contains(&pod.name) || pod.session.as_ref().is_some_and(|id| hidden.contains(id));
            pod.holds_cards() && !of_server
        };
        cluster.pods().into_iter().filter(stranger).collect()
    }

    /// The pod that a stop of this server has to end.
    pub(super) fn to_end(&self, server: &Server) -> Option<Remnant> {
        let pod = self.of(server)?;
        Some(Remnant {
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            node: pod.node.clone(),
            ends: pod.deletion_timestamp,
        })
    }

    /// Whether a pod of this name is there just now.
    pub(super) fn is_taken(&self, namespace: &str, name: &str) -> bool {
        let Some(cluster) = &self.cluster else { return false };
        cluster.pod(&PodName::new(namespace, name)).is_ok_and(|pod| pod.is_some())
    }

    /// Whether what labels name is certainly gone: they may be late.
    pub(super) fn is_gone(&self, workload: &Workload) -> bool {
        let Some(cluster) = &self.cluster else { return false };
        matches!(workload, Workload::Pod { namespace, name } if cluster.pod(&PodName::new(namespace, name)) == Ok(None))
    }

    /// The same as it is now, if it is still there. What cannot be seen to be gone is there.
    pub(super) fn still_there(&self, before: &Remnant) -> Option<Remnant> {
        match self.cluster.as_ref()?.pod(&before.name) {
            Err(_) => Some(before.clone()),
            Ok(pod) => {
                let same = pod.filter(|pod| pod.uid == before.uid && !pod.is_over())?;
                let (node, ends) = (same.node.clone(), same.deletion_timestamp);
                Some(Remnant { node, ends, ..before.clone() })
            }
        }
    }
}

fn name(server: &Server) -> Option<PodName> {
    server.spawner.pod.as_ref().map(|(name, namespace)| PodName::new(namespace, name))
}

/// A token of the server goes there, so that it must be nobody else's: the pod says itself whose it is.
fn own_address(pod: &Pod, server: &ServerId) -> Option<SocketAddr> {
    let runs = pod.phase == Phase::Running && pod.deletion_timestamp.is_none();
    let certain = runs && pod.session.as_ref() == Some(server);
    certain.then_some(SocketAddr::new(pod.ip?, pod.port?))
}

fn missing(name: &PodName) -> String {
    format!("the Hub says that it runs in the pod {name}, which the cluster does not have")
}

/// Not every spawner annotates its pods; what is written there must not name another server.
fn belongs(pod: &Pod, server: &ServerId) -> Result<(), String> {
    let name = &pod.name;
    match pod.session.as_ref().filter(|session| *session != server) {
        Some(other) => {
            Err(format!("the Hub says that it runs in the pod {name}, whose annotations name {other}"))
        }
        None => Ok(()),
    }
}

/// What a session's cards are, given its pod. Whatever does not fit together is not known.
fn judge(
    pod: &Pod,
    server: &ServerId,
    gpus: Result<Vec<GpuSample>, String>,
    labelled: bool,
) -> Result<Vec<GpuSample>, String> {
    let name = &pod.name;
    belongs(pod, server)?;
    if pod.is_over() {
        return Ok(Vec::new()); // its containers ended; the Hub will notice
    }
    if pod.deletion_timestamp.is_some() {
        return Err(format!("its pod {name} is being ended"));
    }
    if pod.phase != Phase::Running {
        return Err(format!("its pod {name} does not run yet, or its node does not answer"));
    }
    match (asked(&pod.cards), gpus) {
        (0, gpus) if pod.claims => match gpus {
            Ok(gpus) if gpus.is_empty() => {
                Err(format!("its pod {name} asks for devices by claims, and nothing tells which they are"))
            }
            gpus => gpus,
        },
        (0, Ok(gpus)) if labelled && !gpus.is_empty() => Err(format!(
            "a card names its pod {name}, which asks for none: if it asks by another resource, add that to \
             [kubernetes] resources"
        )),
        // What processes show is certain, whatever was asked for.
        (0, Ok(gpus)) => Ok(gpus),
        (0, Err(_)) => Ok(Vec::new()),
        (_, Err(why)) => Err(why),
        (asked, Ok(gpus)) if gpus.is_empty() && labelled => {
            Err(format!("its pod {name} asks for {}, and no card names it", cards(asked)))
        }
        (asked, Ok(gpus)) if gpus.is_empty() => {
            Err(format!("its pod {name} asks for {}, and no process of it shows which", cards(asked)))
        }
        (asked, Ok(gpus)) if labelled && gpus.len() < asked => {
            Err(format!("its pod {name} asks for {}, the exporter names {}", cards(asked), gpus.len()))
        }
        (_, Ok(gpus)) => Ok(gpus),
    }
}

/// How many devices must be there.
fn asked(resources: &BTreeMap<String, u32>) -> usize {
    let count = |(name, count): (&String, &u32)| if name.ends_with(SHARED) { 1 } else { *count as usize };
    resources.iter().map(count).sum()
}

fn cards(count: usize) -> String {
    if count == 1 { "1 card".to_owned() } else { format!("{count} cards") }
}

#[cfg(test)]
mod tests;

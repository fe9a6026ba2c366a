//! Whose cards are, where a server of Prometheus' kind tells it by the labels of pods and jobs.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::cards::Card;
use crate::domain::{GpuSample, Server, ServerId};
use crate::telemetry::prometheus::{DeviceLook, Look, Tenant, Workload};

/// What was told at one instant.
#[derive(Debug)]
pub(super) struct Told {
    /// Everything, or why nothing can be known.
    pub look: Result<Look, String>,
    /// When.
    pub at: Timestamp,
}

/// What the exporter calls a server, where the Hub tells its pod or job.
pub fn tenant(server: &Server) -> Option<Tenant> {
    let spawner = &server.spawner;
    let job = || Some(Workload::Job(spawner.job.clone()?));
    let pod = spawner.pod.clone().map(|(name, namespace)| Workload::Pod { namespace, name });
    Some(Tenant { workload: pod.or_else(job)?, started: server.started })
}

/// The same of many.
pub(super) fn tenants<'a>(servers: impl Iterator<Item = &'a Server>) -> Vec<(ServerId, Tenant)> {
    servers.filter_map(|server| Some((server.id.clone(), tenant(server)?))).collect()
}

impl Told {
    /// The cards of one server, or why they are not known.
    pub fn of(&self, server: &Server) -> Result<Vec<GpuSample>, String> {
        let look = self.look.as_ref().map_err(Clone::clone)?;
        if server.spawner.is_empty() {
            return Err(
                "the Hub does not say where it runs (scope admin:server_state, or its spawner)".to_owned()
            );
        }
        let tenant = tenant(server)
            .ok_or("it runs in neither a pod nor a batch job, which is all that labels tell")?;
        look.of(&tenant, self.at)
    }

    /// Every card with the servers that hold it.
    pub fn cards(&self, tenants: &[(ServerId, Tenant)]) -> Vec<Card> {
        let by_workload: BTreeMap<&Workload, Vec<&(ServerId, Tenant)>> =
            tenants.iter().fold(BTreeMap::new(), |mut all, one| {
                all.entry(&one.1.workload).or_default().push(one);
                all
            });
        let card = |device: &DeviceLook| Card {
            machine: device.host.clone(),
            sample: device.sample.clone(),
            servers: device
                .holders
                .keys()
                .filter_map(|holder| by_workload.get(holder))
                .flatten()
                .filter(|(_, tenant)| device.is_held_by(tenant))
                .map(|(id, _)| id.clone())
                .collect(),
            workloads: device
                .holders
                .keys()
                .filter(|holder| !by_workload.contains_key(holder))
                .cloned()
                .collect(),
            holds: Vec::new(),
            unattributed: Vec::new(),
        };
        self.look.iter().flat_map(|look| &look.devices).map(card).collect()
    }
}

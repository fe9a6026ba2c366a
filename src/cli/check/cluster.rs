//! The cluster: whether pods may be watched, whether sessions have theirs, and whether these can be reached.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Finding, PATIENCE, fine, note, wrong};
use crate::cluster::{Advice, examine};
use crate::daemon;
use crate::domain::Server;
use crate::hub::Hub;
use crate::observer::Pods;
use crate::settings::Settings;

/// How long a pod may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Looks at the cluster, where one is named.
pub async fn cluster(settings: &Settings) -> Vec<Finding> {
    let Some(kubernetes) = &settings.kubernetes else { return Vec::new() };
    let advice = match examine(&kubernetes.cluster).await {
        Ok(advice) => advice,
        Err(error) => return vec![wrong("cluster", error)],
    };
    let may_watch = advice.iter().any(|advice| !advice.is_wrong);
    let told = |advice: Advice| {
        if advice.is_wrong { wrong("cluster", advice.words) } else { fine("cluster", advice.words) }
    };
    let mut findings: Vec<Finding> = advice.into_iter().map(told).collect();
    if !may_watch {
        return findings;
    }
    match daemon::pods(settings).await {
        Err(error) => findings.push(wrong("cluster", error)),
        Ok(pods) => {
            pods.begin(PATIENCE).await;
            findings.extend(sessions(&pods, settings).await);
        }
    }
    findings
}

async fn sessions(pods: &Pods, settings: &Settings) -> Vec<Finding> {
    let listing = match Hub::new(settings.hub.clone()) {
        Ok(hub) => hub.servers().await.map(|listing| listing.servers).unwrap_or_default(),
        Err(_) => Vec::new(), // said of the Hub already
    };
    let agreed: Vec<_> = listing.iter().filter_map(|server| Some((server, pods.agree_on(server)?))).collect();
    let doubts: Vec<_> =
        agreed.iter().filter_map(|(server, agree)| Some((server, agree.as_ref().err()?))).collect();
    let words = format!(
        "{} pods are of servers or hold cards; {} of {} sessions run in pods, {} of these are found",
        pods.count(),
        agreed.len(),
        listing.len(),
        agreed.len() - doubts.len()
    );
    let grade = if doubts.is_empty() { fine("cluster", words) } else { note("cluster", words) };
    let mut findings = vec![grade];
    findings.extend(doubts.first().map(|(server, why)| note("cluster", format!("{}: {why}", server.id))));
    let servers = listing.iter().map(Box::as_ref);
    findings.extend(reachable(servers, pods).await);
    findings
}

/// Whether a server answers at its pod's address, which a network policy may forbid.
async fn reachable(mut servers: impl Iterator<Item = &Server>, pods: &Pods) -> Option<Finding> {
    let (server, address) = servers.find_map(|server| Some((server, pods.address(server)?)))?;
    Some(match timeout(CONNECT, TcpStream::connect(address)).await {
        Ok(Ok(_)) => fine("cluster", "servers can be asked at their pods' addresses".to_owned()),
        Ok(Err(_)) | Err(_) => wrong(
            "cluster",
            format!(
                "{} cannot be reached at its pod's address {address}: allow it in the network policy, or set \
                 kubernetes.direct = false to ask through the proxy",
                server.id
            ),
        ),
    })
}

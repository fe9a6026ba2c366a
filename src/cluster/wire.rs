//! The API's pods, of which only a small part is read, and of that only what matters is kept.

use std::collections::BTreeMap;

use globset::GlobSet;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::{Object, ObjectMeta};
use serde::Deserialize;
use url::Url;

use crate::domain::{Phase, Pod, PodName, ServerId, Want};

/// A pod of which only this is read.
pub(super) type Trimmed = Object<Spec, Status>;

/// Where KubeSpawner's servers listen unless told otherwise.
const PORT: u16 = 8888;

/// The longest value of a label or annotation that is kept, and how many of them are.
const LONGEST: usize = 256;
const MOST: usize = 32;

/// Whose labels and annotations tell nothing about people: those of Kubernetes, of the Hub, and of tools.
const TOOLS: [&str; 8] = [
    "kubernetes.io",
    "k8s.io",
    "jupyter.org",
    "openshift.io",
    "projectcalico.org",
    "cilium.io",
    "istio.io",
    "k8s.ovn.org",
];

/// Labels without a prefix that Helm, KubeSpawner and controllers write.
const BARE: [&str; 7] =
    ["app", "component", "heritage", "chart", "release", "pod-template-hash", "controller-revision-hash"];

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    node_name: Option<String>,
    priority_class_name: Option<String>,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    resource_claims: Vec<serde::de::IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    ports: Vec<Port>,
    env: Vec<Variable>,
    resources: Resources,
    restart_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Port {
    container_port: Option<u16>,
}

/// Of the environment only the address is read on; the rest, secrets among it, is dropped with the page.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Variable {
    name: String,
    value: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    limits: BTreeMap<String, Quantity>,
    requests: BTreeMap<String, Quantity>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Quantity {
    Number(u64),
    Text(String),
    Other(serde::de::IgnoredAny),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    start_time: Option<String>,
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    r#type: String,
    status: String,
    reason: Option<String>,
    message: Option<String>,
    last_transition_time: Option<String>,
}

/// A pod's name, and what of it is kept: nothing where it has to do with no server and no card.
pub(super) fn pod(pod: Trimmed, is_card: &GlobSet) -> (PodName, Option<Pod>) {
    let Trimmed { metadata, spec, status, .. } = pod;
    let name = PodName {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    };
    let status = status.unwrap_or_default();
    let phase = phase(status.phase.as_deref());
    let cards = cards(&spec, is_card);
    let claims = !spec.resource_claims.is_empty();
    let session = session(&metadata);
    let of_hub = session.is_some() || is_component(&metadata, "singleuser-server");
    if !of_hub && (phase.is_over() || cards.is_empty() && !claims) {
        return (name, None);
    }
    // A placeholder keeps room for people; it is none of them.
    let waits = phase == Phase::Pending && !is_component(&metadata, "user-placeholder");
    let instant = |time: &Time| Timestamp::from_second(time.0.as_second()).ok();
    let created = metadata.creation_timestamp.as_ref().and_then(instant);
    let pod = Pod {
        uid: metadata.uid.unwrap_or_default(),
        session,
        wants: if waits { want(&status, &cards, created) } else { None },
        cards,
        claims,
        port: port(&spec),
        node: spec.node_name.filter(|node| !node.is_empty()),
        ip: status.pod_ip.and_then(|ip| ip.parse().ok()),
        phase,
        created,
        started: stamp(status.start_time.as_deref()),
        priority_class: spec.priority_class_name,
        deletion_timestamp: metadata.deletion_timestamp.as_ref().and_then(instant),
        labels: kept(metadata.labels),
        annotations: kept(metadata.annotations),
        name: name.clone(),
    };
    (name, Some(pod))
}

fn phase(phase: Option<&str>) -> Phase {
    match phase {
        Some("Pending") => Phase::Pending,
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        _ => Phase::Unknown,
    }
}

/// KubeSpawner's labels are slugs, its annotations the very names.
fn session(metadata: &ObjectMeta) -> Option<ServerId> {
    let annotations = metadata.annotations.as_ref()?;
    let user = annotations.get("hub.jupyter.org/username").filter(|user| !user.is_empty())?;
    let name = annotations.get("hub.jupyter.org/servername").map_or("", String::as_str);
    Some(ServerId::new(user.as_str(), name))
}

fn is_component(metadata: &ObjectMeta, component: &str) -> bool {
    let labels = metadata.labels.as_ref();
    let is = |key| labels.and_then(|labels| labels.get(key)).is_some_and(|value| value == component);
    is("component") || is("app.kubernetes.io/component")
}

/// What all containers ask for together; those that run before the others give theirs back.
fn cards(spec: &Spec, is_card: &GlobSet) -> BTreeMap<String, u32> {
    let mut cards: BTreeMap<String, u32> = BTreeMap::new();
    let stays = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    for container in spec.containers.iter().chain(spec.init_containers.iter().filter(stays)) {
        for (resource, count) in asked(container, is_card) {
            let sum = cards.entry(resource).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    for container in spec.init_containers.iter().filter(|container| !stays(container)) {
        for (resource, count) in asked(container, is_card) {
            let most = cards.entry(resource).or_default();
            *most = count.max(*most);
        }
    }
    cards
}

fn asked(container: &Container, is_card: &GlobSet) -> Vec<(String, u32)> {
    let Resources { limits, requests } = &container.resources;
    let all = limits.iter().chain(requests.iter().filter(|(name, _)| !limits.contains_key(*name)));
    let count = |quantity: &Quantity| match quantity {
        Quantity::Number(number) => u32::try_from(*number).unwrap_or(u32::MAX),
        // Whatever else it may be, it is not nothing.
        Quantity::Text(text) => text.parse().unwrap_or(1),
        Quantity::Other(_) => 1,
    };
    let cards = all.filter(|(name, _)| is_card.is_match(name.as_str()));
    cards.map(|(name, quantity)| (name.clone(), count(quantity))).filter(|(_, count)| *count > 0).collect()
}

/// Where the server listens: as KubeSpawner tells it, else at the port its container names. One that speaks TLS
/// has certificates for the Hub and its proxy only, and so no port for us.
fn port(spec: &Spec) -> Option<u16> {
    let variables = spec.containers.iter().flat_map(|container| &container.env);
    let mut told = variables.filter(|variable| variable.name == "JUPYTERHUB_SERVICE_URL");
    let url = told.next().and_then(|variable| Url::parse(variable.value.as_deref()?).ok());
    if let Some(url) = url {
        return (url.scheme() == "http").then(|| url.port_or_known_default()).flatten();
    }
    let named =
        spec.containers.iter().flat_map(|container| &container.ports).find_map(|port| port.container_port);
    Some(named.unwrap_or(PORT))
}

/// The card resource of which no node has enough, in the words of the scheduler.
fn want(status: &Status, cards: &BTreeMap<String, u32>, created: Option<Timestamp>) -> Option<Want> {
    let refused = |condition: &&Condition| {
        condition.r#type == "PodScheduled"
            && condition.status == "False"
            && condition.reason.as_deref() == Some("Unschedulable")
    };
    let condition = status.conditions.iter().find(refused)?;
    let message = condition.message.as_deref().unwrap_or_default();
    let lacks = |resource: &&String| {
        let mut after = message.split("Insufficient ").skip(1);
        after.any(|rest| {
            rest.split([',', ';', ' ']).next().map(|word| word.trim_end_matches('.'))
                == Some(resource.as_str())
        })
    };
    let resource = cards.keys().find(lacks)?.clone();
    Some(Want { resource, since: stamp(condition.last_transition_time.as_deref()).or(created)? })
}

fn stamp(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}

/// What people or their admins wrote, in bounds.
fn kept(all: Option<BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let of_a_tool = |key: &str| match key.split_once('/') {
        Some((prefix, _)) => TOOLS
            .iter()
            .any(|tool| prefix.strip_suffix(tool).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))),
        None => BARE.contains(&key),
    };
    let keep = |(key, value): &(String, String)| !of_a_tool(key) && value.len() <= LONGEST;
    all.unwrap_or_default().into_iter().filter(keep).take(MOST).collect()
}

#[cfg(test)]
mod tests;

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use globset::{Glob, GlobSetBuilder};
use serde_json::{Value, json};

use super::*;
use crate::cluster::ClusterSettings;

fn is_card() -> GlobSet {
    let mut all = GlobSetBuilder::new();
    ClusterSettings::CARDS.iter().for_each(|card| {
        all.add(Glob::new(card).unwrap());
    });
    all.build().unwrap()
}

fn read(value: Value) -> Option<Pod> {
    super::pod(serde_json::from_value(value).unwrap(), &is_card()).1
}

/// A single-user server's pod as KubeSpawner makes it and a node runs it.
fn of_kubespawner() -> Value {
    json!({
        "metadata": {
            "name": "jupyter-dana", "namespace": "hub", "uid": "7d0c", "resourceVersion": "17",
            "creationTimestamp": "2026-03-02T08:00:00Z",
            "annotations": {
                "hub.jupyter.org/username": "Dana O'Neil", "hub.jupyter.org/kubespawner-version": "7.1.0",
                "example.org/cost-centre": "4711", "cni.projectcalico.org/podIP": "10.1.2.3/32",
            },
            "labels": {
                "app": "jupyterhub", "component": "singleuser-server", "hub.jupyter.org/username": "dana-oneil---1f",
                "app.kubernetes.io/name": "jupyterhub", "team": "vision",
            },
            "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
        },
        "spec": {
            "nodeName": "gpu-a", "priorityClassName": "people",
            "containers": [{
                "name": "notebook", "image": "example/notebook:1",
                "env": [
                    {"name": "JUPYTERHUB_API_TOKEN", "value": "secret"}, {"name": "PYTHONDONTWRITEBYTECODE"},
                    {"name": "JUPYTERHUB_SERVICE_URL", "value": "http://0.0.0.0:9999/user/dana/"},
                ],
                "ports": [{"containerPort": 8888, "name": "notebook-port", "protocol": "TCP"}],
                "resources": {
                    "limits": {"nvidia.com/gpu": "2", "memory": "8Gi"},
                    "requests": {"nvidia.com/gpu": "2", "cpu": "500m"},
                },
            }],
        },
        "status": {
            "phase": "Running", "podIP": "10.1.2.3", "startTime": "2026-03-02T08:00:05Z",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastProbeTime": null}],
        },
    })
}

/// The same with something changed, by JSON pointer.
fn with(changes: &[(&str, Value)]) -> Value {
    let mut pod = of_kubespawner();
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        pod.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    pod
}

#[test]
fn a_server_of_kubespawner_is_read() {
    let pod = read(of_kubespawner()).unwrap();
    assert_eq!(pod.name, PodName::new("hub", "jupyter-dana"));
    assert_eq!(pod.session, Some(ServerId::new("Dana O'Neil", "")), "the annotation holds the very name");
    assert_eq!(pod.cards, BTreeMap::from([("nvidia.com/gpu".to_owned(), 2)]));
    assert_eq!((pod.node.as_deref(), pod.ip), (Some("gpu-a"), Some([10, 1, 2, 3].into())));
    assert_eq!(pod.port, Some(9999), "where it was told to listen");
    assert_eq!((pod.phase, pod.priority_class.as_deref()), (Phase::Running, Some("people")));
    assert_eq!(pod.started, Some("2026-03-02T08:00:05Z".parse().unwrap()));
    assert_eq!(pod.created, Some("2026-03-02T08:00:00Z".parse().unwrap()));
    assert_eq!(pod.labels, BTreeMap::from([("team".to_owned(), "vision".to_owned())]));
    assert_eq!(pod.annotations, BTreeMap::from([("example.org/cost-centre".to_owned(), "4711".to_owned())]));
    assert!(pod.holds_cards() && pod.wants.is_none() && pod.deletion_timestamp.is_none() && !pod.claims);
}

#[test]
fn a_named_server_is_known_by_its_annotation() {
    let mut pod = of_kubespawner();
    pod["metadata"]["annotations"]["hub.jupyter.org/servername"] = json!("train");
    assert_eq!(read(pod).unwrap().session, Some(ServerId::new("Dana O'Neil", "train")));
}

#[test]
fn cards_are_counted_as_the_scheduler_counts_them() {
    let asks = |limits: Value| json!({"resources": {"limits": limits}});
    let cards = |containers: Value, init: Value| {
        read(with(&[("/spec/containers", containers), ("/spec/initContainers", init)])).unwrap().cards
    };
    let one = |name: &str, count| BTreeMap::from([(name.to_owned(), count)]);
    for (containers, init, expected) in [
        (json!([asks(json!({"nvidia.com/gpu": "1"})), asks(json!({"nvidia.com/gpu": "1"}))]), json!([]), 2),
        (json!([asks(json!({"nvidia.com/gpu": "1"}))]), json!([asks(json!({"nvidia.com/gpu": "4"}))]), 4),
        (json!([asks(json!({"nvidia.com/gpu": 3}))]), json!([asks(json!({"nvidia.com/gpu": "1"}))]), 3),
    ] {
        assert_eq!(cards(containers, init), one("nvidia.com/gpu", expected));
    }
    let sidecar = json!([{"restartPolicy": "Always", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]);
    assert_eq!(cards(json!([asks(json!({"nvidia.com/gpu": "1"}))]), sidecar), one("nvidia.com/gpu", 2));
    for name in ["nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "amd.com/gpu", "gpu.intel.com/i915"] {
        assert_eq!(cards(json!([asks(json!({name: "1"}))]), json!([])), one(name, 1));
    }
    for name in ["memory", "nvidia.com/hostdev", "rdma/hca_shared_devices", "nvidia.com/gpumem"] {
        assert_eq!(cards(json!([asks(json!({name: "1"}))]), json!([])), BTreeMap::new(), "{name}");
    }
    assert_eq!(cards(json!([asks(json!({"nvidia.com/gpu": "0"}))]), json!([])), BTreeMap::new());
    assert_eq!(cards(json!([{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]), json!([])).len(), 1);
}

#[test]
fn a_server_that_speaks_tls_or_is_told_no_port_is_known_as_such() {
    let told = |env: Value| read(with(&[("/spec/containers/0/env", env)])).unwrap().port;
    let url = |url: &str| json!([{"name": "JUPYTERHUB_SERVICE_URL", "value": url}]);
    assert_eq!(told(url("https://0.0.0.0:8888/user/dana/")), None);
    assert_eq!(told(url("http://0.0.0.0/user/dana/")), Some(80));
    assert_eq!(told(json!([])), Some(8888), "what its container names");
    let bare = json!([{"name": "notebook"}]);
    assert_eq!(read(with(&[("/spec/containers", bare)])).unwrap().port, Some(PORT));
}

#[test]
fn a_pod_waits_where_the_scheduler_says_that_a_card_it_asks_for_is_not_there() {
    let waits = |message: &str, changes: &[(&str, Value)]| {
        let condition = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": message, "lastTransitionTime": "2026-03-02T08:00:10Z"}]);
        let mut all = vec![("/status/phase", json!("Pending")), ("/status/conditions", condition)];
        all.extend_from_slice(changes);
        read(with(&all)).unwrap().wants
    };
    let full =
        "0/5 nodes are available: 2 Insufficient cpu, 3 Insufficient nvidia.com/gpu. preemption: 0/5 nodes";
    let since = "2026-03-02T08:00:10Z".parse().unwrap();
    assert_eq!(waits(full, &[]), Some(Want { resource: "nvidia.com/gpu".to_owned(), since }));
    assert_eq!(waits("1 Insufficient nvidia.com/gpu, 4 node(s) had taints", &[]).unwrap().since, since);
    for other in [
        "0/5 nodes are available: 5 node(s) didn't match Pod's node affinity/selector.",
        "0/5 nodes are available: 5 Insufficient memory.",
        "0/5 nodes are available: 5 Insufficient nvidia.com/gpu.shared.",
        "",
    ] {
        assert_eq!(waits(other, &[]), None, "{other}");
    }
    assert_eq!(waits(full, &[("/metadata/labels/component", json!("user-placeholder"))]), None);
    assert_eq!(waits(full, &[("/status/phase", json!("Running"))]), None);
}

#[test]
fn pods_that_have_nothing_to_do_with_cards_or_servers_are_forgotten() {
    let stranger = |changes: &[(&str, Value)]| {
        let mut all =
            vec![("/metadata/annotations", json!({})), ("/metadata/labels", json!({"app": "batch"}))];
        all.extend_from_slice(changes);
        read(with(&all))
    };
    assert_eq!(stranger(&[]).map(|pod| (pod.cards_asked(), pod.session)), Some((2, None)));
    assert_eq!(stranger(&[("/spec/containers/0/resources", json!({}))]), None);
    assert_eq!(stranger(&[("/status/phase", json!("Succeeded"))]), None, "it has given its cards back");
    let claims = json!([{"name": "gpu", "resourceClaimTemplateName": "one"}]);
    let claims = stranger(&[("/spec/containers/0/resources", json!({})), ("/spec/resourceClaims", claims)]);
    assert!(claims.unwrap().claims, "what it claims is not known");
    let over = read(with(&[("/status/phase", json!("Failed"))])).unwrap();
    assert!(over.is_over() && !over.holds_cards(), "a server's own pod is remembered to its end");
}

#[test]
fn a_pod_that_is_told_to_end_is_known_as_such() {
    let mut pod = of_kubespawner();
    pod["metadata"]["deletionTimestamp"] = json!("2026-03-02T09:00:30Z");
    assert_eq!(read(pod).unwrap().deletion_timestamp, Some("2026-03-02T09:00:30Z".parse().unwrap()));
}

#[test]
fn labels_are_kept_in_bounds() {
    let mut pod = of_kubespawner();
    for i in 0..1000 {
        pod["metadata"]["labels"][format!("label-{i:04}")] = json!("x");
        pod["metadata"]["annotations"][format!("example.org/{i:04}")] = json!("y".repeat(1000));
    }
    let pod = read(pod).unwrap();
    assert_eq!((pod.labels.len(), pod.annotations.len()), (MOST, 1));
}

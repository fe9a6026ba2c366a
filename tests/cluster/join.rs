//! The join of the Hub's servers with their pods, before and after a stop.

use std::time::Duration;

use gpu_culler::cluster::Cluster;
use gpu_culler::domain::{Queue, QueueLine, ServerId};
use gpu_culler::hub::{Hub, HubSettings, TlsFiles};
use gpu_culler::observer::{Kernels, Observation, Observer, Pods, Source};
use gpu_culler::policy::{Session, Thresholds};
use gpu_culler::telemetry::{NvmlSampler, NvmlSettings};
use jiff::Timestamp;
use serde_json::{Value, json};
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::PATIENCE;
use super::server::{Api, list_and_watch, server_pod};

#[expect(clippy::disallowed_methods, reason = "pods end in real time")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// A user with a server that the Hub says runs in this pod.
fn user(name: &str, pod: &str) -> Value {
    json!({
        "name": name, "admin": false, "groups": [], "pending": null,
        "servers": { "": {
            "name": "", "ready": true, "pending": null, "stopped": false, "url": format!("/user/{name}/"),
            "started": "2026-03-02T08:00:00Z", "last_activity": "2026-03-02T08:00:00Z", "user_options": {},
            "state": { "pod_name": pod, "namespace": "hub", "kubespawner_version": "7.1.0" },
        } },
    })
}

async fn hub(users: &[Value]) -> MockServer {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(200).set_body_json(users);
    Mock::given(path("/hub/api/users")).respond_with(answer).mount(&server).await;
    server
}

/// Watches the cluster; this machine has no card of its own.
async fn observer(hub: &MockServer, api: &Api) -> Observer {
    let settings = HubSettings {
        api_url: format!("{}/hub/api", hub.uri()).parse().unwrap(),
        token: "a-token".to_owned().into(),
        page_size: None,
        concurrency: 2,
        request_timeout: Duration::from_secs(5),
        tls: TlsFiles::default(),
        chosen: None,
    };
    let kernels = Kernels { prober: None, public_url: None, of_working: false, concurrency: 1 };
    let nvml = NvmlSettings { library: Some("/no/such/library".into()), ..NvmlSettings::default() };
    let thresholds = Thresholds { sm: 0.01, dram: 0.01, cpu_cores: 0.5 };
    let source = Source::Nvml(NvmlSampler::start(nvml).into());
    let cluster = Cluster::start(api.settings()).await.unwrap();
    let observer = Observer::new(Hub::new(settings).unwrap(), kernels, source, thresholds);
    let observer = observer.with_pods(Pods::new(cluster, true));
    observer.begin(PATIENCE).await;
    observer
}

fn session<'a>(seen: &'a Observation, user: &str) -> &'a Session {
    let id = ServerId::new(user, "");
    seen.snapshot.sessions.as_ref().unwrap().iter().find(|session| session.server.id == id).unwrap()
}

fn why(seen: &Observation, user: &str) -> String {
    session(seen, user).gpus.clone().unwrap_err().to_string()
}

#[tokio::test]
async fn sessions_are_what_the_hub_and_their_pods_agree_on() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    let mut none = server_pod("ann", 0);
    none["metadata"]["labels"]["team"] = json!("vision");
    none["metadata"]["annotations"]["example.org/project"] = json!("tides");
    none["spec"]["priorityClassName"] = json!("research");
    api.create("hub", none).await;
    api.create("hub", server_pod("bob", 1)).await;
    api.create("hub", server_pod("eve", 1)).await;
    let mut batch = server_pod("batch", 4);
    batch["metadata"]["annotations"] = json!({});
    batch["metadata"]["labels"] = json!({ "job-name": "training" });
    api.create("hub", batch).await;
    let users = [
        user("ann", "jupyter-ann"),
        user("bob", "jupyter-bob"),
        user("mallory", "jupyter-eve"),
        user("dave", "jupyter-dave"),
    ];
    let hub = hub(&users).await;
    let mut observer = observer(&hub, &api).await;
    let seen = observer.observe(now()).await;

    let ann = session(&seen, "ann");
    assert_eq!(ann.gpus, Ok(Vec::new()), "her pod asks for no card, whether or not cards can be read");
    assert_eq!(ann.server.spawner.host.as_deref(), Some("gpu-1"));
    let labels: Vec<(&str, &str)> = ann.server.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let expected = [("example.org/project", "tides"), ("priorityClassName", "research"), ("team", "vision")];
    assert_eq!(labels, expected);
    assert!(session(&seen, "bob").gpus.is_err(), "his pod asks for one, and no card can be read");
    let other = "the Hub says that it runs in the pod hub/jupyter-eve, whose annotations name eve/";
    assert_eq!(why(&seen, "mallory"), other);
    assert!(session(&seen, "mallory").server.spawner.host.is_none(), "nothing is taken from a foreign pod");
    assert!(why(&seen, "dave").contains("hub/jupyter-dave, which the cluster does not have"));
    let strangers: Vec<String> = seen.pods.iter().map(|pod| pod.name.to_string()).collect();
    assert_eq!(strangers, ["hub/jupyter-batch"]);
    assert_eq!(seen.snapshot.waiting, Some(Queue::default()), "nobody waits, which is known");
}

#[tokio::test]
async fn a_pod_without_room_waits_for_a_card_of_those_who_hold_its_resource() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    let mut slice = server_pod("ann", 0);
    slice["spec"]["containers"][0]["resources"] = json!({ "limits": { "nvidia.com/mig-1g.10gb": "1" } });
    api.create("hub", slice).await;
    api.create("hub", server_pod("bob", 1)).await;
    let mut pending = server_pod("zoe", 1);
    pending["spec"]["nodeName"] = Value::Null;
    api.create("hub", pending).await;
    let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "lastTransitionTime": "2026-03-02T08:30:00Z",
        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: none" });
    api.status("hub", "jupyter-zoe", json!({ "phase": "Pending", "conditions": [condition] })).await;
    let hub = hub(&[user("ann", "jupyter-ann"), user("bob", "jupyter-bob")]).await;
    let mut observer = observer(&hub, &api).await;
    let queue = observer.observe(now()).await.snapshot.waiting;
    let line = QueueLine {
        count: 1,
        what: Some("nvidia.com/gpu".to_owned()),
        since: Some("2026-03-02T08:30:00Z".parse().unwrap()),
        served_by: Some([ServerId::new("bob", "")].into()),
    };
    assert_eq!(queue, Some(Queue { lines: vec![line] }));
}

#[tokio::test]
async fn while_the_cluster_is_silent_sessions_in_pods_are_unknown_and_say_why() {
    let Some(mut api) = Api::start(list_and_watch()).await else { return };
    api.create("hub", server_pod("ann", 0)).await;
    let hub = hub(&[user("ann", "jupyter-ann")]).await;
    let mut observer = observer(&hub, &api).await;
    assert_eq!(session(&observer.observe(now()).await, "ann").gpus, Ok(Vec::new()));
    api.kill();
    let mut seen = observer.observe(now()).await;
    let began = std::time::Instant::now();
    while session(&seen, "ann").gpus.is_ok() {
        assert!(began.elapsed() < PATIENCE, "it stays known");
        tokio::time::sleep(Duration::from_millis(200)).await;
        seen = observer.observe(now()).await;
    }
    let seen = observer.observe(now()).await;
    assert!(why(&seen, "ann").contains("nothing was heard of the pods of hub"), "{}", why(&seen, "ann"));
    assert_eq!((seen.snapshot.waiting, seen.cluster_up), (None, Some(false)));
    assert!(seen.troubles.iter().any(|trouble| trouble.contains("nothing was heard")), "{:?}", seen.troubles);
    assert!(seen.pods.is_empty());
}

#[tokio::test]
async fn a_pod_that_hangs_in_terminating_is_left_of_its_server_until_it_is_gone() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    api.create("hub", server_pod("ann", 1)).await;
    let hub = hub(&[user("ann", "jupyter-ann")]).await;
    let mut observer = observer(&hub, &api).await;
    let server = session(&observer.observe(now()).await, "ann").server.clone();
    let before = observer.belongings(&server, now()).await;
    assert_eq!(before.to_string(), "pod hub/jupyter-ann on node gpu-1");
    api.delete("hub", "jupyter-ann", 2).await;
    let mut left = observer.left_of(&before, now()).await;
    let began = std::time::Instant::now();
    while left.pod.as_ref().unwrap().ends.is_none() {
        assert!(began.elapsed() < PATIENCE, "its grace is not seen");
        tokio::time::sleep(Duration::from_millis(50)).await;
        left = observer.left_of(&before, now()).await;
    }
    let words = left.to_string();
    assert!(words.starts_with("pod hub/jupyter-ann on node gpu-1, Terminating, due to end by "), "{words}");
    // Its name may be taken by the next one at once; that is another pod.
    api.delete("hub", "jupyter-ann", 0).await;
    api.create("hub", server_pod("ann", 1)).await;
    let began = std::time::Instant::now();
    while !observer.left_of(&before, now()).await.is_empty() {
        assert!(began.elapsed() < PATIENCE, "it does not go");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let uid = before.pod.unwrap().uid;
    while observer.belongings(&server, now()).await.pod.is_none_or(|pod| pod.uid == uid) {
        assert!(began.elapsed() < PATIENCE, "the new pod is not seen");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

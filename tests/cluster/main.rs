//! The pods of a cluster, on an API server that does what a real one does, and what goes wrong with those.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a failed test should stop at once")]

mod join;
mod server;

use std::time::{Duration, Instant};

use futures::StreamExt;
use gpu_culler::cluster::{Cluster, ClusterSettings, Namespaces, examine};
use gpu_culler::domain::{PodName, ServerId};
use serde_json::json;
use server::{Api, list_and_watch, server_pod, until};

const PATIENCE: Duration = Duration::from_secs(20);

fn alice() -> PodName {
    PodName::new("hub", "jupyter-alice")
}

async fn watching(settings: ClusterSettings) -> Cluster {
    let cluster = Cluster::start(settings).await.unwrap();
    cluster.begin(PATIENCE).await;
    cluster
}

/// Why the pods are not known.
fn why(cluster: &Cluster) -> String {
    cluster.pod(&alice()).unwrap_err()
}

fn is_there(cluster: &Cluster, user: &str) -> bool {
    cluster.pod(&PodName::new("hub", format!("jupyter-{user}"))).unwrap().is_some()
}

#[tokio::test]
async fn pods_are_listed_and_what_happens_to_them_is_seen() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    api.create("hub", server_pod("alice", 2)).await;
    let cluster = watching(api.settings()).await;
    let pod = cluster.pod(&alice()).unwrap().unwrap();
    assert_eq!((pod.session.clone(), pod.cards_asked()), (Some(ServerId::new("alice", "")), 2));
    assert_eq!((pod.node.as_deref(), pod.port), (Some("gpu-1"), Some(8888)));

    api.create("hub", server_pod("bob", 1)).await;
    until("a new pod is seen", || is_there(&cluster, "bob")).await;
    api.status("hub", "jupyter-alice", json!({ "podIP": "10.0.0.9" })).await;
    let ip = || cluster.pod(&alice()).unwrap().unwrap().ip;
    until("a change is seen", || ip() == Some([10, 0, 0, 9].into())).await;
    api.delete("hub", "jupyter-bob", 0).await;
    until("an end is seen", || !is_there(&cluster, "bob")).await;
    api.status("hub", "jupyter-alice", json!({ "phase": "Failed" })).await;
    until("a failure is seen", || cluster.pod(&alice()).unwrap().unwrap().is_over()).await;
    assert_eq!(api.asked("list").await, 1, "the rest came by itself");
}

#[tokio::test]
async fn a_watch_resumes_without_a_new_list_when_its_connection_breaks() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    api.create("hub", server_pod("alice", 1)).await;
    let cluster = watching(api.settings()).await;
    for user in ["bob", "carol", "dave"] {
        api.hang_up().await;
        api.create("hub", server_pod(user, 1)).await;
        until("what happened meanwhile is seen", || is_there(&cluster, user)).await;
    }
    assert_eq!(api.asked("list").await, 1);
}

#[tokio::test]
async fn what_the_server_has_forgotten_is_listed_anew() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    api.create("hub", server_pod("alice", 1)).await;
    api.create("hub", server_pod("bob", 1)).await;
    let cluster = watching(api.settings()).await;
    // While no watch succeeds, one pod goes and one comes, and the server forgets both events.
    api.faults(json!([{ "match": ".*watch", "times": 1000, "drop": true }])).await;
    api.hang_up().await;
    api.delete("hub", "jupyter-bob", 0).await;
    api.create("hub", server_pod("carol", 1)).await;
    api.compact().await;
    assert!(is_there(&cluster, "bob"), "nothing was heard of it yet");
    api.faults(json!([])).await;
    until("the new list is taken over", || is_there(&cluster, "carol")).await;
    assert!(is_there(&cluster, "alice") && !is_there(&cluster, "bob"));
    assert_eq!(api.asked("list").await, 2);
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says_so() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    api.create("hub", server_pod("alice", 1)).await;
    let busy = |verb: &str| json!([{ "match": verb, "times": 1, "status": 429, "retry_after": 2 }]);
    api.faults(busy("GET /api/v1/.*pods")).await;
    let began = Instant::now();
    let cluster = Cluster::start(api.settings()).await.unwrap();
    until("the refusal is told", || why(&cluster).contains("asks us to wait")).await;
    until("the pods are known", || cluster.pod(&alice()).is_ok()).await;
    assert!(began.elapsed() >= Duration::from_secs(2), "asked again after {:?}", began.elapsed());
    // Later on it costs nothing but time.
    api.faults(busy(".*watch")).await;
    api.hang_up().await;
    api.create("hub", server_pod("bob", 1)).await;
    until("what happened meanwhile is seen", || is_there(&cluster, "bob")).await;
}

#[tokio::test]
async fn missing_rights_are_told_by_verb_and_namespace_and_are_enough_once_granted() {
    let Some(api) = Api::start(json!([])).await else { return };
    api.create("hub", server_pod("alice", 1)).await;
    let cluster = Cluster::start(api.settings()).await.unwrap();
    until("the refusal is told", || why(&cluster).contains("may not list pods in hub")).await;
    assert_eq!(cluster.troubles().len(), 1);
    assert!(cluster.waiting().is_err() && cluster.pods().is_empty());
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/hub";
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list"] }]);
    let role = json!({ "metadata": { "name": "r" }, "rules": rules });
    api.create_at(&format!("{rbac}/roles"), role).await;
    let subject = json!({ "kind": "ServiceAccount", "namespace": "hub", "name": "gpu-culler" });
    let binding = json!({ "metadata": { "name": "b" }, "roleRef": { "kind": "Role", "name": "r" }, "subjects": [subject] });
    api.create_at(&format!("{rbac}/rolebindings"), binding).await;
    until("half of it does not do", || {
        cluster.pod(&alice()).err().is_some_and(|why| why.contains("may not watch pods in hub"))
    })
    .await;
    let found = examine(&api.settings()).await.unwrap();
    assert!(found[0].is_wrong && found[0].words.contains("may not watch pods in hub"), "{found:?}");
    let all = json!({ "metadata": { "name": "all" }, "rules": list_and_watch() });
    api.create_at(&format!("{rbac}/roles"), all).await;
    let subject = json!({ "kind": "ServiceAccount", "namespace": "hub", "name": "gpu-culler" });
    let binding = json!({ "metadata": { "name": "c" }, "roleRef": { "kind": "Role", "name": "all" }, "subjects": [subject] });
    api.create_at(&format!("{rbac}/rolebindings"), binding).await;
    until("the pods are known", || cluster.pod(&alice()).is_ok()).await;
    let found = examine(&api.settings()).await.unwrap();
    assert!(!found[0].is_wrong, "{found:?}");
}

#[tokio::test]
async fn a_server_that_is_gone_leaves_nothing_known_until_it_is_back() {
    let Some(mut api) = Api::start(list_and_watch()).await else { return };
    api.create("hub", server_pod("alice", 1)).await;
    let cluster = watching(api.settings()).await;
    api.kill();
    assert!(is_there(&cluster, "alice"), "a short pause changes nothing");
    until("it is no longer known", || cluster.pod(&alice()).is_err()).await;
    let why = why(&cluster);
    assert!(
        why.contains("nothing was heard of the pods of hub") && why.contains("cannot be reached"),
        "{why}"
    );
    assert!(cluster.waiting().is_err() && cluster.pods().is_empty());
    api.start_again().await;
    api.create("hub", server_pod("bob", 1)).await;
    until("it is known again", || cluster.pod(&alice()).is_ok()).await;
    until("as it is now", || is_there(&cluster, "bob")).await;
    assert!(!is_there(&cluster, "alice"));
}

#[tokio::test]
async fn a_server_that_keeps_its_connections_and_says_nothing_is_noticed() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    api.create("hub", server_pod("alice", 1)).await;
    let cluster = watching(api.settings()).await;
    api.freeze(true);
    until("it is no longer known", || cluster.pod(&alice()).is_err()).await;
    api.freeze(false);
    until("it is known again", || cluster.pod(&alice()).is_ok()).await;
    assert!(is_there(&cluster, "alice"));
}

#[tokio::test]
async fn a_quiet_namespace_is_not_a_silent_server() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    api.create("hub", server_pod("alice", 1)).await;
    let settings = api.settings();
    let longer = settings.patience + Duration::from_secs(2);
    let cluster = watching(settings).await;
    let began = Instant::now();
    until("the patience is over", || {
        assert!(is_there(&cluster, "alice"));
        began.elapsed() > longer
    })
    .await;
    assert_eq!(api.asked("list").await, 1);
}

#[tokio::test]
async fn a_token_file_that_is_renewed_is_read_again() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    api.create("hub", server_pod("alice", 1)).await;
    let token = api.folder.path().join("token");
    std::fs::write(&token, "expired").unwrap();
    let kubeconfig = Some(api.kubeconfig(json!({ "tokenFile": token })));
    let cluster =
        Cluster::start(ClusterSettings { kubeconfig, ..api.settings_without_file() }).await.unwrap();
    until("the refusal is told", || why(&cluster).contains("no longer valid")).await;
    assert!(!why(&cluster).contains("expired"), "no token in any words");
    std::fs::write(&token, server::OURS).unwrap();
    until("the pods are known", || cluster.pod(&alice()).is_ok()).await;
}

#[tokio::test]
async fn thousands_of_pods_come_in_pages() {
    const MANY: usize = 3000;
    let Some(api) = Api::start(list_and_watch()).await else { return };
    let all = (0..MANY).map(|i| api.create("hub", server_pod(&format!("u{i:04}"), (i % 3) as u32)));
    futures::stream::iter(all).buffer_unordered(20).collect::<Vec<_>>().await;
    let cluster = watching(api.settings()).await;
    assert_eq!(cluster.pods().len(), MANY);
    assert!(api.asked("list").await >= MANY / 200);
    assert_eq!(cluster.pods().iter().filter(|pod| pod.holds_cards()).count(), MANY / 3 * 2);
}

#[tokio::test]
async fn a_namespace_that_is_not_watched_is_not_an_empty_one() {
    let everywhere = list_and_watch();
    let Some(api) = Api::start(everywhere).await else { return };
    api.create("lab", server_pod("bob", 1)).await;
    let bob = PodName::new("lab", "jupyter-bob");
    let own = watching(api.settings()).await;
    let why = own.pod(&bob).unwrap_err();
    assert!(why.contains("lab is not watched"), "{why}");
    let named = Namespaces::Named(vec!["hub".to_owned(), "lab".to_owned()]);
    for namespaces in [named, Namespaces::All] {
        let cluster = watching(ClusterSettings { namespaces, ..api.settings() }).await;
        assert!(cluster.pod(&bob).unwrap().is_some());
        assert_eq!(cluster.pod(&alice()), Ok(None));
    }
}

#[tokio::test]
async fn pods_that_wait_for_a_card_are_known() {
    let Some(api) = Api::start(list_and_watch()).await else { return };
    let cluster = watching(api.settings()).await;
    assert_eq!(cluster.waiting(), Ok(Vec::new()));
    let mut pod = server_pod("carol", 1);
    pod["spec"]["nodeName"] = json!(null);
    let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "lastTransitionTime": "2026-03-02T08:00:00Z",
        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: none" });
    pod["status"] = json!({ "phase": "Pending", "conditions": [condition] });
    api.create("hub", pod).await;
    until("it is seen to wait", || cluster.waiting().unwrap().len() == 1).await;
    let waiting = cluster.waiting().unwrap();
    let want = waiting[0].wants.clone().unwrap();
    assert_eq!(
        (want.resource.as_str(), want.since),
        ("nvidia.com/gpu", "2026-03-02T08:00:00Z".parse().unwrap())
    );
    api.status("hub", "jupyter-carol", json!({ "phase": "Running", "conditions": [] })).await;
    until("nobody waits any more", || cluster.waiting().unwrap().is_empty()).await;
}

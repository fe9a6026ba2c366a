//! A Kubernetes API server in memory, and what a test does to it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use globset::{Glob, GlobSetBuilder};
use gpu_culler::cluster::{ClusterSettings, Namespaces};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

pub const ADMIN: &str = "the-admins-token";
pub const OURS: &str = "our-token";

/// A running server; it ends with the test.
pub struct Api {
    pub url: String,
    port: u16,
    child: Child,
    pub folder: tempfile::TempDir,
    client: reqwest::Client,
}

impl Drop for Api {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Python with aiohttp that the end-to-end tests use, where it was made.
fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/venv/bin/python");
    python.exists().then_some(python)
}

impl Api {
    /// Starts a server at which we have the rights of these rules. `None`, with a word about it, where it cannot run.
    pub async fn start(rules: Value) -> Option<Self> {
        let Some(python) = python() else {
            eprintln!("skipped: target/venv is not there (make test-env)");
            return None;
        };
        rustls::crypto::ring::default_provider().install_default().ok();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let everything = json!([{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }]);
        let tokens = json!({ ADMIN: { "user": "admin", "rules": everything },
            OURS: { "user": "system:serviceaccount:hub:gpu-culler", "rules": rules } });
        std::fs::write(folder.path().join("tokens.json"), tokens.to_string()).unwrap();
        let child = spawn(&python, port, folder.path());
        let api = Self {
            url: format!("http://127.0.0.1:{port}"),
            port,
            child,
            folder,
            client: reqwest::Client::new(),
        };
        api.answers().await;
        Some(api)
    }

    async fn answers(&self) {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        until("the server answers", || TcpStream::connect(address).is_ok()).await;
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again, at the same address, without anything in it.
    pub async fn start_again(&mut self) {
        self.child = spawn(&python().unwrap(), self.port, self.folder.path());
        self.answers().await;
    }

    /// It keeps its connections and says nothing any more.
    pub fn freeze(&self, frozen: bool) {
        let signal = if frozen { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}{path}", self.url);
        let mut request = self.client.request(method.parse().unwrap(), url).bearer_auth(ADMIN);
        if let Some(body) = body {
            let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
            request = request.header("Content-Type", kind).body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{method} {path}: {}", answer.text().await.unwrap());
        serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default()
    }

    pub async fn create(&self, namespace: &str, pod: Value) {
        self.ask("POST", &format!("/api/v1/namespaces/{namespace}/pods"), Some(pod)).await;
    }

    pub async fn create_at(&self, path: &str, thing: Value) {
        self.ask("POST", path, Some(thing)).await;
    }

    pub async fn status(&self, namespace: &str, pod: &str, status: Value) {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/status");
        self.ask("PATCH", &path, Some(json!({ "status": status }))).await;
    }

    pub async fn delete(&self, namespace: &str, pod: &str, grace: u32) {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}?gracePeriodSeconds={grace}");
        self.ask("DELETE", &path, None).await;
    }

    /// What is asked for from now on fails in these ways.
    pub async fn faults(&self, faults: Value) {
        self.ask("PUT", "/_faults", Some(faults)).await;
    }

    pub async fn compact(&self) {
        self.ask("POST", "/_compact", None).await;
    }

    /// Ends all watches.
    pub async fn hang_up(&self) {
        self.ask("POST", "/_hang_up", None).await;
    }

    /// How often something was asked for.
    pub async fn asked(&self, verb: &str) -> usize {
        let all = self.ask("GET", "/_requests", None).await;
        all.as_array().unwrap().iter().filter(|one| one["verb"] == verb).count()
    }

    /// A kubeconfig with what stands in `user` (`token`, `tokenFile`).
    pub fn kubeconfig(&self, user: Value) -> PathBuf {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "contexts": [{ "name": "test", "context": { "cluster": "c", "user": "u", "namespace": "hub" } }],
            "clusters": [{ "name": "c", "cluster": { "server": self.url } }],
            "users": [{ "name": "u", "user": user }],
        });
        let path = self.folder.path().join("kubeconfig");
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// How to watch it, but for the kubeconfig: everything happens within seconds here.
    pub fn settings_without_file(&self) -> ClusterSettings {
        let mut cards = GlobSetBuilder::new();
        for name in ClusterSettings::CARDS {
            cards.add(Glob::new(name).unwrap());
        }
        ClusterSettings {
            kubeconfig: None,
            context: None,
            namespaces: Namespaces::Own,
            cards: cards.build().unwrap(),
            renew: Duration::from_secs(1),
            patience: Duration::from_secs(4),
        }
    }

    /// The same with our token.
    pub fn settings(&self) -> ClusterSettings {
        let kubeconfig = Some(self.kubeconfig(json!({ "token": OURS })));
        ClusterSettings { kubeconfig, ..self.settings_without_file() }
    }
}

fn spawn(python: &Path, port: u16, folder: &Path) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/kube_api.py");
    let mut command = Command::new(python);
    command.arg(script).arg(port.to_string()).arg(folder.join("tokens.json"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap()
}

/// The rules of the role in `deploy/`.
pub fn list_and_watch() -> Value {
    json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"] }])
}

/// A single-user server's pod that asks for cards.
pub fn server_pod(user: &str, cards: u32) -> Value {
    let limits = if cards > 0 { json!({ "nvidia.com/gpu": cards.to_string() }) } else { json!({}) };
    json!({
        "metadata": { "name": format!("jupyter-{user}"),
            "annotations": { "hub.jupyter.org/username": user }, "labels": { "component": "singleuser-server" } },
        "spec": { "nodeName": "gpu-1", "containers": [{ "name": "notebook", "image": "example/notebook:1",
            "ports": [{ "containerPort": 8888 }], "resources": { "limits": limits } }] },
        "status": { "phase": "Running", "podIP": "10.0.0.7", "startTime": "2026-03-02T08:00:05Z" },
    })
}

/// Waits for something that has to happen.
pub async fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let began = Instant::now();
    while !happened() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}: it did not happen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

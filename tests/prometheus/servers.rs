//! A real Prometheus and a real VictoriaMetrics, and the exporter that they scrape.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What a card shows.
#[derive(Clone)]
pub struct Shown {
    pub uuid: String,
    pub engine: f64,
    pub pod: Option<&'static str>,
}

/// What dcgm-exporter answers: driven by the test, read at each scrape.
#[derive(Default)]
pub struct Scene {
    pub cards: Vec<Shown>,
    /// Whether readings are repeated bit for bit.
    pub stalled: bool,
    beats: u64,
}

/// The metrics that the exporter has by default, and what a resting card shows.
const METRICS: [(&str, f64); 5] = [
    ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", f64::NAN),
    ("DCGM_FI_PROF_DRAM_ACTIVE", 0.0),
    ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.0),
    ("DCGM_FI_DEV_GPU_UTIL", 0.0),
    ("DCGM_FI_DEV_FB_USED", 20480.0),
];
const ENERGY: &str = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION";

pub fn labels(card: &Shown) -> String {
    let pod = card
        .pod
        .map_or(String::new(), |pod| format!(",namespace=\"hub\",pod=\"{pod}\",container=\"notebook\""));
    format!("gpu=\"0\",UUID=\"{}\",modelName=\"NVIDIA A100-SXM4-80GB\",Hostname=\"n1\"{pod}", card.uuid)
}

/// One card's lines, each ending in what `ends` says (nothing, or a time).
pub fn lines(card: &Shown, energy: u64, ends: &str) -> String {
    let labels = labels(card);
    let mut text = String::new();
    for (name, value) in METRICS {
        let value = if value.is_nan() { card.engine } else { value };
        writeln!(text, "{name}{{{labels}}} {value}{ends}").unwrap();
    }
    writeln!(text, "{ENERGY}{{{labels}}} {energy}{ends}").unwrap();
    text
}

pub struct Exporter {
    pub scene: Arc<Mutex<Scene>>,
    pub port: u16,
}

impl Exporter {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let scene = Arc::new(Mutex::new(Scene::default()));
        let shown = Arc::clone(&scene);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &shown);
            }
        });
        Self { scene, port }
    }

    pub fn show(&self, change: impl FnOnce(&mut Scene)) {
        change(&mut self.scene.lock().unwrap());
    }
}

fn answer(mut stream: TcpStream, scene: &Mutex<Scene>) {
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok();
    let mut request = [0; 4096];
    let _ = stream.read(&mut request);
    let mut scene = scene.lock().unwrap();
    scene.beats += u64::from(!scene.stalled);
    let energy = 1_000_000 + 60_000 * scene.beats;
    let body: String = scene.cards.iter().map(|card| lines(card, energy, "")).collect();
    let head = format!(
        "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(format!("{head}{body}").as_bytes());
}

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Prometheus,
    VictoriaMetrics,
}

/// A running server; it ends with the test.
pub struct Server {
    pub url: String,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Server {
    /// Starts a server that scrapes `exporter` every second, and knows `history` (lines in OpenMetrics, with
    /// times in seconds). `None`, with a word about it, where it is not installed.
    pub fn start(kind: Kind, exporter: Option<&Exporter>, history: &str) -> Option<Self> {
        let program = if kind == Kind::Prometheus { "prometheus" } else { "victoria-metrics" };
        if !installed(program) {
            eprintln!("skipped: {program} is not installed (tests/make-prometheus.sh)");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("scrape.yml");
        std::fs::write(&config, scrape_config(exporter, kind)).unwrap();
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        let child = match kind {
            Kind::Prometheus => {
                back_fill(folder.path(), history);
                prometheus(folder.path(), &config, port, &[])
            }
            Kind::VictoriaMetrics => victoria(folder.path(), &config, port),
        };
        let server = Self { url, child, _folder: folder };
        server.wait_ready();
        if kind == Kind::VictoriaMetrics && !history.is_empty() {
            server.import(history);
        }
        Some(server)
    }

    /// Its process.
    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn wait_ready(&self) {
        let begun = Instant::now();
        while http(&self.url, "GET", "/api/v1/query?query=1", "").is_none_or(|text| !text.contains("success"))
        {
            assert!(begun.elapsed() < Duration::from_secs(30), "{} never answered", self.url);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn import(&self, history: &str) {
        let in_millis: String = history.lines().map(|line| format!("{line}000\n")).collect();
        http(&self.url, "POST", "/api/v1/import/prometheus", &in_millis).unwrap();
        http(&self.url, "GET", "/internal/force_flush", "").unwrap();
    }
}

fn scrape_config(exporter: Option<&Exporter>, kind: Kind) -> String {
    let target = exporter.map(|exporter| format!("'127.0.0.1:{}'", exporter.port)).unwrap_or_default();
    let evaluation = if kind == Kind::Prometheus { ", evaluation_interval: 1s" } else { "" };
    format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s{evaluation}}}\nscrape_configs:\n- job_name: dcgm\n  \
         honor_labels: true\n  static_configs: [{{targets: [{target}]}}]\n"
    )
}

fn back_fill(folder: &Path, history: &str) {
    if history.is_empty() {
        return;
    }
    let file = folder.join("history.om");
    // OpenMetrics wants the lines of one metric together.
    let mut lines: Vec<&str> = history.lines().collect();
    lines.sort_by_key(|line| line.split('{').next());
    std::fs::write(&file, format!("{}\n# EOF\n", lines.join("\n"))).unwrap();
    let made = Command::new("promtool")
        .args(["tsdb", "create-blocks-from", "openmetrics", "-q"])
        .args([&file, &folder.join("data")])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A Prometheus that speaks only TLS, only to those with a certificate of the authority in `room`, and asks for
/// the user `culler` with the password `test`.
pub fn secured(room: &Path) -> Option<Server> {
    if !installed("prometheus") {
        eprintln!("skipped: prometheus is not installed (tests/make-prometheus.sh)");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let (config, web) = (folder.path().join("scrape.yml"), folder.path().join("web.yml"));
    std::fs::write(&config, scrape_config(None, Kind::Prometheus)).unwrap();
    let file = |name: &str| room.join(name).display().to_string();
    // The hash of "test" is the one in Prometheus' own guide to basic authentication.
    let (cert, key, ca) = (file("good.pem"), file("good.key"), file("ca.pem"));
    let text = format!(
        "tls_server_config: {{cert_file: {cert}, key_file: {key}, client_ca_file: {ca}, \
         client_auth_type: RequireAndVerifyClientCert}}\n\
         basic_auth_users: {{culler: $2b$12$hNf2lSsxfm0.i4a.1kVpSOVyBCfIB51VRjgBUyv6kdnyTlgWj81Ay}}\n"
    );
    std::fs::write(&web, text).unwrap();
    let port = free_port();
    let child = prometheus(folder.path(), &config, port, &[&format!("--web.config.file={}", web.display())]);
    Some(Server { url: format!("https://127.0.0.1:{port}"), child, _folder: folder })
}

fn prometheus(folder: &Path, config: &Path, port: u16, more: &[&str]) -> Child {
    Command::new("prometheus")
        .args(more)
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg("--storage.tsdb.retention.time=10y")
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .arg("--log.level=error")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn victoria(folder: &Path, config: &Path, port: u16) -> Child {
    Command::new("victoria-metrics")
        .arg(format!("-storageDataPath={}", folder.join("data").display()))
        .arg(format!("-httpListenAddr=127.0.0.1:{port}"))
        .arg(format!("-promscrape.config={}", config.display()))
        .args(["-retentionPeriod=10y", "-memory.allowedBytes=128MB", "-loggerLevel=ERROR"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn http(url: &str, method: &str, path: &str, body: &str) -> Option<String> {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

//! One service with a Hub, a mail server and a card of its own, and where it is killed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::{eventually, hub, mail};

/// From the accepted warning to the stop, at least.
pub const GRACE: Duration = Duration::from_secs(4);

/// Where the service is killed, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Not at all.
    Never,
    /// The Hub is asked for all servers for the nth time.
    Listing(usize),
    /// At this step of the nth letter: the warning, the reminder, the one about the stop.
    Letter(usize, Step),
    /// The Hub is asked for the one server, just before the stop.
    LastLook,
    /// The stop arrived, and the Hub has not done it.
    DeleteCame,
    /// The Hub has done it, and not answered.
    DeleteDone,
    /// It has answered, and nothing of that can have been saved.
    DeleteAnswered,
    /// The Hub is asked whether the server is gone.
    LookAfterwards,
    /// Something was written to the ledger for the nth time.
    Commit(usize),
}

/// A step of handing over a letter, always before the mail server answers, but for the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Connected,
    Hello,
    Sender,
    Recipient,
    Data,
    /// The whole letter is there, and not accepted.
    Content,
    /// It is accepted, and nothing of that can have been saved.
    Accepted,
}

impl Step {
    pub const ALL: [Self; 7] = [
        Self::Connected,
        Self::Hello,
        Self::Sender,
        Self::Recipient,
        Self::Data,
        Self::Content,
        Self::Accepted,
    ];
}

/// Some requests that the Hub does not answer as it should.
#[derive(Clone, Copy, Debug)]
pub struct Trouble {
    pub at: Request,
    pub how: How,
    /// How many more of them.
    pub times: usize,
}

/// What is asked of the Hub for a stop, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Look,
    Delete,
    LookAfterwards,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It answers this and does nothing.
    Refuses(u16),
    /// It does nothing, and does not answer.
    Hangs,
    /// It does what it is asked for, and does not answer.
    DoesAndHangs,
}

/// A letter that the mail server took.
#[derive(Clone, Debug)]
pub struct Letter {
    pub at: Instant,
    pub kind: &'static str,
    pub id: String,
}

/// What came of it.
#[derive(Debug)]
pub struct Seen {
    pub point: Point,
    pub killed: bool,
    pub letters: Vec<Letter>,
    pub stops: Vec<Instant>,
    pub commits: usize,
    pub log: String,
}

impl Seen {
    pub fn kinds(&self) -> Vec<&str> {
        self.letters.iter().map(|letter| letter.kind).collect()
    }
}

/// What everybody in it knows.
#[derive(Default)]
pub struct State {
    service: Option<Child>,
    /// The process of alice's server, which holds the card.
    pub session: Option<Child>,
    pub killed: bool,
    pub letters: Vec<Letter>,
    pub stops: Vec<Instant>,
    pub listings: usize,
    pub connections: usize,
    commits: usize,
    over: bool,
}

pub struct World {
    pub point: Point,
    pub folder: TempDir,
    pub hub: u16,
    pub mail: u16,
    /// What the Hub gets wrong.
    pub trouble: Mutex<Option<Trouble>>,
    state: Mutex<State>,
}

impl World {
    pub async fn new(point: Point) -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let session =
            Command::new("sleep").arg("600").stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        scene(folder.path(), session.id());
        let (hub, mail) = (hub::bind().await, mail::bind().await);
        let port = |listener: &tokio::net::TcpListener| listener.local_addr().unwrap().port();
        let state = Mutex::new(State { session: Some(session), ..State::default() });
        let trouble = Mutex::default();
        let world = Self { point, folder, hub: port(&hub), mail: port(&mail), trouble, state };
        world.configure();
        let world = Arc::new(world);
        tokio::spawn(hub::serve(hub, Arc::downgrade(&world)));
        tokio::spawn(mail::serve(mail, Arc::downgrade(&world)));
        world
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger.sqlite")
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    fn configure(&self) {
        let folder = self.folder.path().display();
        let config = format!(
            r#"
            mode = "enforce"
            cycle = "1s"
            hub = {{ probe_kernels = false, request_timeout = "2s" }}
            telemetry = {{ max_gap = "60s", min_coverage = 0.01, warm_up = "1s", nvml = {{ library = "{folder}/libnvidia-ml.so.1", poll = "1s" }} }}
            policy = {{ warn_after = "1s", grace = "{}s", remind_before = ["2s"] }}
            safety = {{ min_uptime = "1s" }}
            store = {{ path = "{folder}/ledger.sqlite" }}
            mail = {{ from = "culler@example.org", server = "smtp://127.0.0.1:{}?tls=none", address = ["{{user}}@example.org"] }}
            "#,
            GRACE.as_secs(),
            self.mail
        );
        fs::write(self.folder.path().join("gpu-culler.toml"), config).unwrap();
    }

    /// What goes wrong with this request, if anything.
    pub fn troubled(&self, request: Request) -> Option<How> {
        let mut trouble = self.trouble.lock().unwrap();
        let trouble = trouble.as_mut().filter(|trouble| trouble.at == request && trouble.times > 0)?;
        trouble.times -= 1;
        Some(trouble.how)
    }

    /// The program, as a Hub starts it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.run(Path::new(env!("CARGO_BIN_EXE_gpu-culler")), &[], arguments)
    }

    /// The program, started by another one.
    pub fn run(&self, starter: &Path, before: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new(starter);
        command.args(before).args(arguments).arg("--config").arg(self.folder.path().join("gpu-culler.toml"));
        command.env("JUPYTERHUB_API_URL", format!("http://127.0.0.1:{}/hub/api", self.hub));
        command.env("JUPYTERHUB_API_TOKEN", "a-token").env_remove("GPU_CULLER_CONFIG");
        command
    }

    pub fn start(&self) {
        self.start_as(self.command(&["run"]));
    }

    pub fn start_as(&self, mut command: Command) {
        let log = File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.state().service = Some(child);
    }

    pub fn pid(&self) -> u32 {
        self.state().service.as_ref().unwrap().id()
    }

    pub fn kill(&self) {
        if let Some(mut service) = self.state().service.take() {
            service.kill().unwrap();
            service.wait().unwrap();
        }
    }

    /// Kills the service where this is the point for it.
    pub fn reached(&self, point: Point) -> bool {
        let now = point == self.point && !std::mem::replace(&mut self.state().killed, point == self.point);
        if now {
            self.kill();
        }
        now
    }

    /// Nothing more can be saved until this is dropped.
    pub fn no_more_commits(&self) -> rusqlite::Connection {
        let lock = rusqlite::Connection::open(self.ledger()).unwrap();
        lock.busy_timeout(Duration::from_secs(5)).unwrap();
        lock.execute_batch("BEGIN IMMEDIATE").unwrap();
        lock
    }

    /// Counts what is written to the ledger, by the growth of its log.
    fn count_commits(&self, seen: &mut u64) {
        let length = fs::metadata(self.ledger().with_extension("sqlite-wal")).map_or(0, |data| data.len());
        if length > *seen {
            let commits = {
                let mut state = self.state();
                state.commits += 1;
                state.commits
            };
            self.reached(Point::Commit(commits));
        }
        *seen = length;
    }

    /// Lets the service live, die and live again until alice's server is stopped.
    pub async fn lives(self: Arc<Self>) -> Seen {
        self.start();
        let watched = Arc::downgrade(&self);
        let watch = std::thread::spawn(move || {
            let mut length = 0;
            while let Some(world) = watched.upgrade().filter(|world| !world.state().over) {
                world.count_commits(&mut length);
                drop(world);
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        let what = format!("alice's server is stopped, killed at {:?}", self.point);
        eventually(&what, || self.is_over()).await;
        if self.point == Point::Never {
            let told = || self.state().letters.iter().any(|letter| letter.kind == "stopped").then_some(());
            eventually("alice is told of the stop", told).await;
        }
        // Whatever else it would send comes within two cycles.
        let rest = tokio::time::Instant::now() + Duration::from_millis(2500);
        while tokio::time::Instant::now() < rest {
            self.revive();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.state().over = true;
        watch.join().unwrap();
        self.kill();
        let state = std::mem::take(&mut *self.state());
        Seen {
            point: self.point,
            killed: state.killed,
            letters: state.letters,
            stops: state.stops,
            commits: state.commits,
            log: self.log(),
        }
    }

    fn is_over(&self) -> Option<()> {
        self.revive();
        self.state().session.is_none().then_some(())
    }

    fn revive(&self) {
        if self.state().service.is_none() {
            self.start();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill();
        if let Some(mut session) = self.state().session.take() {
            let _ = session.kill();
            let _ = session.wait();
        }
    }
}

/// One card that rests, held by this process.
fn scene(folder: &Path, pid: u32) {
    let library = folder.join("libnvidia-ml.so.1");
    fs::copy(built_library(), &library).unwrap();
    let card = json!({
        "uuid": "GPU-1", "name": "NVIDIA A100-SXM4-80GB", "memory_total": 85_899_345_920_u64,
        "processes": [{"pid": pid, "memory": 20_000_000_000_u64}],
    });
    let scene = json!({"driver": "580.95.05", "devices": [card]});
    fs::write(folder.join("libnvidia-ml.so.1.scene.json"), scene.to_string()).unwrap();
}

/// The library beside this test's own binary, built once.
fn built_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let exe = std::env::current_exe().unwrap();
        let profile = exe.ancestors().nth(2).unwrap();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "fake-nvml", "--target-dir"]);
        build.arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            build.arg("--release");
        }
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().unwrap().success(), "building fake-nvml");
        profile.join("libfake_nvml.so")
    })
}

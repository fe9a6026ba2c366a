//! How fast the admins' page is with five thousand sessions, while cycles in which nothing is due go on beside it.
//!
//! Method. The real pages answer on a real socket, logged in by a token that a stand-in for the Hub knows. Beside them
//! a thread does what each cycle does with a look (fold it in, plan, show), once a second instead of once a minute.
//! A bare server of the same kind sends the same bytes; requests to both take turns, and of each the median counts.
//!
//! It prints `ratio page VALUE LIMIT` with VALUE = page / bare, and the times in ms, and exits with 1 where the ratio
//! or, by the slowest request, the 200 ms are exceeded.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use gpu_culler::cycle::CycleReport;
use gpu_culler::executor::Inbox;
use gpu_culler::policy::{Ledger, Policy, Snapshot, plan};
use gpu_culler::settings::{Cost, Environment, policy_of};
use gpu_culler::trace::{Line, read};
use gpu_culler::web::{Board, Pages, Shown, bind, serve};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::json;
use tokio::net::TcpListener;

const SESSIONS: usize = 5000;
const REQUESTS: usize = 60;
const MOST: Duration = Duration::from_millis(200);
/// A page is found, sorted and written out of five thousand sessions; the bare server only sends bytes.
const LIMIT: f64 = 25.0;
const NOW: &str = "2026-12-01T10:30:00Z";
const PAGES: [&str; 3] = ["admin", "admin?q=user49&sort=cards", "admin?verdict=idle&sort=started&page=100"];

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Sessions with a card each, all at rest for too short to be warned.
fn look() -> Snapshot {
    let server = |n: usize| {
        json!({
            "user": format!("user{n:04}"), "server": "", "started": "2026-12-01T08:00:00Z", "ready": true, "pending": null,
            "last_activity": "2026-12-01T10:00:00Z",
            "jupyter": { "last_activity": "2026-12-01T10:00:00Z", "connections": 0, "terminals": [],
                "kernels": [{ "id": "k", "state": "idle", "last_activity": "2026-12-01T10:00:00Z", "connections": 0 }] },
            "gpus": [{ "id": format!("GPU-{n}"), "model": "NVIDIA A100-SXM4-80GB", "sm": 0.0, "dram": 0.0,
                "memory_used": 41_000_000_000_u64, "processes": 1, "covered": "60s", "largest_gap": "2s" }],
        })
    };
    let servers: Vec<_> = (0..SESSIONS).map(server).collect();
    let line = json!({ "at": NOW, "hub": "ok", "telemetry": "ok", "servers": servers });
    let trace = format!("{{\"trace\":\"gpu-culler/1\"}}\n{line}\n");
    let mut lines = read(trace.as_bytes()).filter_map(|line| match line.unwrap() {
        Line::Observed(observation) => Some(observation.snapshot),
        Line::Expected(_) => None,
    });
    lines.next().unwrap()
}

/// What a cycle does with what it saw.
fn cycle(snapshot: Snapshot, ledger: &mut Ledger, policy: &Policy, board: &Board) {
    let began = Instant::now();
    ledger.observe(&snapshot, policy);
    let plan = plan(&snapshot, ledger, policy, now());
    let report = CycleReport {
        at: now(),
        snapshot,
        cards: Vec::new(),
        plan,
        happened: Vec::new(),
        pods: Vec::new(),
        cluster_up: None,
        troubles: Vec::new(),
    };
    board.write(|status| status.completed(report, ledger, began.elapsed()));
}

/// A Hub that knows one token.
async fn hub() -> String {
    let user = json!({ "kind": "user", "name": "admin", "admin": true, "scopes": ["access:services!service=gpu-culler", "read:servers"] });
    let router = Router::new().route("/hub/api/user", get(move || async move { axum::Json(user) }));
    format!("http://{}", serving(router).await)
}

async fn serving(router: Router) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

async fn pages(board: &Arc<Board>) -> String {
    let api = format!("{}/hub/api", hub().await);
    let given = [
        ("JUPYTERHUB_SERVICE_NAME", "gpu-culler"),
        ("JUPYTERHUB_SERVICE_PREFIX", "/services/gpu-culler/"),
        ("JUPYTERHUB_API_URL", api.as_str()),
        ("JUPYTERHUB_API_TOKEN", "s3cr3t"),
        ("JUPYTERHUB_CLIENT_ID", "service-gpu-culler"),
        ("JUPYTERHUB_OAUTH_CALLBACK_URL", "/services/gpu-culler/oauth_callback"),
        ("JUPYTERHUB_BASE_URL", "/"),
    ];
    let environment: Environment = given.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let pages = Pages::new(&environment, "/services/gpu-culler/", Arc::clone(board), Inbox::default(), now);
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = format!("http://{}/services/gpu-culler/", listener.local_addr().unwrap());
    tokio::spawn(async move { serve(listener, &pages).await.unwrap() });
    url
}

async fn timed(http: &reqwest::Client, url: &str) -> (Duration, String) {
    let began = Instant::now();
    let answer = http.get(url).header("authorization", "token t").send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 200, "{url}");
    let text = answer.text().await.unwrap();
    (began.elapsed(), text)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::main]
async fn main() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let (board, policy, snapshot) = (Arc::new(Board::default()), policy_of(None).unwrap(), look());
    let store = std::env::temp_dir().join("no-such-ledger.sqlite");
    board.write(|status| {
        let shown = Shown {
            zone: TimeZone::UTC,
            cost: Cost::default(),
            store,
            addresses: None,
            metrics_are_open: false,
            metrics_name_users: false,
            notes: Vec::new(),
        };
        status.announced(shown, &policy);
    });
    let mut ledger = Ledger::default();
    cycle(snapshot.clone(), &mut ledger, &policy, &board);
    let over = Arc::new(AtomicBool::new(false));
    let cycles = std::thread::spawn({
        let (board, over) = (Arc::clone(&board), Arc::clone(&over));
        move || {
            while !over.load(Ordering::Relaxed) {
                cycle(snapshot.clone(), &mut ledger, &policy, &board);
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    });
    let exceeded = measure(&board).await;
    over.store(true, Ordering::Relaxed);
    cycles.join().unwrap();
    std::process::exit(i32::from(exceeded));
}

async fn measure(board: &Arc<Board>) -> bool {
    let url = pages(board).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let (_, text) = timed(&http, &format!("{url}{}", PAGES[0])).await;
    assert_eq!(text.matches("<th scope=\"row\"").count(), 50);
    let size = text.len();
    let bare = Router::new().route("/", get(move || async move { text.clone() }));
    let bare = format!("http://{}/", serving(bare).await);
    let (mut pages, mut bares) = (Vec::new(), Vec::new());
    for n in 0..REQUESTS {
        pages.push(timed(&http, &format!("{url}{}", PAGES[n % PAGES.len()])).await.0);
        bares.push(timed(&http, &bare).await.0);
        tokio::time::sleep(Duration::from_millis(50)).await; // so that several cycles pass
    }
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let (page, bare) = (median(&mut pages), median(&mut bares));
    let slowest = pages.last().copied().unwrap_or_default();
    let ratio = page.as_secs_f64() / bare.as_secs_f64();
    println!(
        "page of {SESSIONS} sessions, {size} bytes: {:.1} ms, slowest {:.1} ms; bare {:.2} ms",
        ms(page),
        ms(slowest),
        ms(bare)
    );
    println!("ratio page {ratio:.4} {LIMIT:.4}");
    ratio > LIMIT || slowest > MOST
}

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

mod browsing;
mod changes;
mod doors;
mod every_page;
mod fake_hub;
mod logins;
mod outside;
mod shown;
mod size;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::cycle::CycleReport;
use crate::executor::Answer;
use crate::policy::{Ledger, Policy, plan};
use crate::settings::{Environment, policy_of};
use browsing::Browser;
use fake_hub::FakeHub;

const NOW: &str = "2026-12-01T10:30:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A service with a fake Hub, and what it was told.
struct Service {
    hub: FakeHub,
    address: std::net::SocketAddr,
    board: Arc<Board>,
    inbox: Inbox,
    _folder: tempfile::TempDir,
}

impl Service {
    async fn start() -> Self {
        Self::with(Patience::default(), &[]).await
    }

    async fn with(patience: Patience, more: &[(&str, &str)]) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let hub = FakeHub::start().await;
        let (board, inbox) = (Arc::new(Board::default()), Inbox::default());
        let pages = Pages::new(
            &environment(&hub, more),
            "/services/gpu-culler/",
            Arc::clone(&board),
            inbox.clone(),
            now,
        );
        let mut app = Arc::try_unwrap(pages.0).unwrap();
        app.patience = patience;
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { serve(listener, &Pages(Arc::new(app))).await.unwrap() });
        let folder = tempfile::tempdir().unwrap();
        let service = Self { hub, address, board, inbox, _folder: folder };
        service.board.write(|status| {
            let store = service._folder.path().join("ledger.sqlite");
            status.announced(shown(store), &policy());
        });
        service
    }

    /// Shows what a look at this line of a trace finds.
    fn looks_at(&self, line: &str) {
        let (report, ledger) = look(line);
        self.board.write(|status| status.completed(report, &ledger, Duration::from_millis(20)));
    }

    fn browser(&self) -> Browser {
        Browser::new(self.address)
    }

    /// A browser in which somebody is logged in.
    async fn of(&self, user: &str) -> Browser {
        let mut browser = self.browser();
        browser.log_in(self, user, "").await;
        browser
    }

    /// Answers the next wish, as the daemon would.
    fn will_answer(&self, answer: Answer) {
        let inbox = self.inbox.clone();
        tokio::spawn(async move {
            loop {
                inbox.arrived().await;
                for asked in inbox.take_all() {
                    asked.answer(answer.clone());
                }
            }
        });
    }

    /// Whether nobody's wish came in.
    fn nothing_was_asked(&self) -> bool {
        self.inbox.take_all().is_empty()
    }
}

fn environment(hub: &FakeHub, more: &[(&str, &str)]) -> Environment {
    let api = format!("{}/hub/api", hub.url());
    let given = [
        ("JUPYTERHUB_SERVICE_NAME", "gpu-culler"),
        ("JUPYTERHUB_SERVICE_PREFIX", "/services/gpu-culler/"),
        ("JUPYTERHUB_API_URL", api.as_str()),
        ("JUPYTERHUB_API_TOKEN", fake_hub::SECRET),
        ("JUPYTERHUB_CLIENT_ID", "service-gpu-culler"),
        ("JUPYTERHUB_OAUTH_CALLBACK_URL", "/services/gpu-culler/oauth_callback"),
        ("JUPYTERHUB_BASE_URL", "/"),
    ];
    let all = given.iter().chain(more);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn shown(store: std::path::PathBuf) -> Shown {
    Shown {
        zone: TimeZone::UTC,
        cost: crate::settings::Cost::default(),
        store,
        addresses: None,
        metrics_are_open: false,
        metrics_name_users: false,
        notes: Vec::new(),
    }
}

fn policy() -> Policy {
    let policy = policy_of(None).unwrap();
    Policy {
        mode: crate::policy::Mode::Enforce,
        min_coverage: 0.0,
        max_gap: jiff::SignedDuration::from_hours(24),
        ..policy
    }
}

fn look(line: &str) -> (CycleReport, Ledger) {
    let text = format!("{{\"trace\":\"gpu-culler/1\"}}\n{line}\n");
    let mut ledger = Ledger::default();
    let observed = crate::trace::read(text.as_bytes()).find_map(|line| match line.unwrap() {
        crate::trace::Line::Observed(observation) => Some(observation),
        crate::trace::Line::Expected(_) => None,
    });
    let snapshot = observed.unwrap().snapshot;
    // First seen two hours before, and watched since.
    let before = "2026-12-01T08:30:00Z".parse().unwrap();
    ledger.observe(&crate::policy::Snapshot { at: before, ..snapshot.clone() }, &policy());
    ledger.observe(&snapshot, &policy());
    let plan = plan(&snapshot, &ledger, &policy(), now());
    let report = CycleReport {
        at: now(),
        snapshot,
        cards: Vec::new(),
        pods: Vec::new(),
        cluster_up: None,
        plan,
        happened: Vec::new(),
        troubles: Vec::new(),
    };
    (report, ledger)
}

/// Servers of these people, each with a card at rest.
fn line(users: &[&str]) -> String {
    let servers: Vec<_> = users.iter().map(|user| server(user, "NVIDIA A100", "work.ipynb")).collect();
    serde_json::json!({ "at": NOW, "hub": "ok", "telemetry": "ok", "servers": servers }).to_string()
}

fn server(user: &str, model: &str, notebook: &str) -> serde_json::Value {
    serde_json::json!({
        "user": user, "server": "", "started": "2026-12-01T08:00:00Z", "ready": true, "pending": null,
        "last_activity": "2026-12-01T08:30:00Z",
        "jupyter": { "last_activity": "2026-12-01T08:30:00Z", "connections": 0, "terminals": [], "kernels":
            [{ "id": notebook, "state": "idle", "last_activity": "2026-12-01T08:30:00Z", "connections": 0 }] },
        "gpus": [{ "id": format!("GPU-{user}"), "model": model, "sm": 0.0, "dram": 0.0, "memory_used": 41_000_000_000_u64,
            "processes": 1, "covered": "60s", "largest_gap": "2s" }],
    })
}

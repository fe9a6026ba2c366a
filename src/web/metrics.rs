//! The numbers, for Prometheus. No user names, unless the settings ask for them.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};

use super::doors::{Ask, Outside};
use super::entry::guest;
use super::{Shared, Status, refused};
use crate::executor::StopOutcome;
use crate::message::reasons;
use crate::message::said::refused as words;
use crate::policy::Mode;

type Labels = Vec<(&'static str, String)>;
type Seconds = Counter<f64, std::sync::atomic::AtomicU64>;

/// For everybody where the settings say so; else for an admin, or a token with the scope `read:metrics`,
/// as the Hub's own metrics.
pub async fn metrics(State(app): State<Shared>, request: Request) -> Response {
    let open = app.board.read(|status| status.shown.as_ref().is_some_and(|shown| shown.metrics_are_open));
    if !open {
        let (parts, _) = request.into_parts();
        let refuse = |status| refused::json(status, words::NO_LOGIN);
        match guest(&parts, &app, Ask::IfOld).await {
            Ok(guest) if guest.visitor.may_measure() => {}
            Ok(_) | Err(Outside::NoAccess) => return refuse(StatusCode::FORBIDDEN),
            Err(Outside::NoLogin) => return refuse(StatusCode::UNAUTHORIZED),
            Err(Outside::HubSilent(error)) => {
                tracing::debug!("the metrics' reader cannot be let in: {error}");
                return refused::json(StatusCode::SERVICE_UNAVAILABLE, words::HUB_SILENT);
            }
        }
    }
    let now = app.now();
    let text = app.board.read(|status| render(status, now));
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}

/// All metrics, in the OpenMetrics text format.
pub fn render(status: &Status, now: Timestamp) -> String {
    let mut registry = Registry::with_prefix("gpu_culler");
    service(status, &mut registry);
    sources(status, now, &mut registry);
    sessions(status, &mut registry);
    waiting(status, &mut registry);
    outcomes(status, &mut registry);
    if status.shown.as_ref().is_some_and(|shown| shown.metrics_name_users) {
        by_user(status, &mut registry);
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

fn service(status: &Status, registry: &mut Registry) {
    let mode = Family::<Labels, Gauge>::default();
    let in_force = status.policy.as_ref().map(|policy| policy.mode);
    for known in [Mode::Observe, Mode::Warn, Mode::Enforce] {
        mode.get_or_create(&vec![("mode", known.to_string())]).set(i64::from(in_force == Some(known)));
    }
    registry.register("mode", "1 for the mode in force", mode);
    let problems = i64::try_from(status.troubles().len()).unwrap_or(i64::MAX);
    registry.register("problems", "Reasons why not everything works", ConstGauge::new(problems));
    if let Some(last) = &status.last {
        let at = last.at.as_second();
        registry.register("last_cycle_timestamp_seconds", "When the last cycle began", ConstGauge::new(at));
        let frozen = i64::from(last.freeze.is_some());
        registry.register("frozen", "1 while stops are frozen", ConstGauge::new(frozen));
        let took = ConstGauge::new(status.counters.last_cycle_seconds);
        registry.register_with_unit("last_cycle", "How long the last cycle took", Unit::Seconds, took);
    }
}

/// How many wait for a card, where any source tells.
fn waiting(status: &Status, registry: &mut Registry) {
    let Some(queue) = status.last.as_ref().and_then(|last| last.waiting.as_ref()) else { return };
    let waiting = Family::<Labels, Gauge>::default();
    if queue.lines.is_empty() {
        waiting.get_or_create(&vec![("for", String::new())]).set(0);
    }
    for line in &queue.lines {
        let labels = vec![("for", line.what.clone().unwrap_or_default())];
        waiting.get_or_create(&labels).inc_by(i64::from(line.count));
    }
    registry.register("waiting", "Those who wait for a card, by the resource where that is known", waiting);
}

/// Where what is known comes from: whether it answers, and how old its last answer is.
fn sources(status: &Status, now: Timestamp, registry: &mut Registry) {
    let Some(last) = &status.last else { return };
    let up = Family::<Labels, Gauge>::default();
    let age = Family::<Labels, Gauge<f64, std::sync::atomic::AtomicU64>>::default();
    let cluster = last.cluster_up.map(|_| ("cluster", last.cluster));
    for (source, answered) in [("hub", last.listed), ("cards", last.read)].into_iter().chain(cluster) {
        let labels = vec![("source", source.to_owned())];
        up.get_or_create(&labels).set(i64::from(answered == Some(last.at)));
        if let Some(answered) = answered {
            age.get_or_create(&labels).set(now.duration_since(answered).as_secs_f64().max(0.0));
        }
    }
    registry.register("source_up", "1 where the source answered in the last cycle", up);
    registry.register_with_unit("source_age", "Time since the source last answered", Unit::Seconds, age);
}

fn sessions(status: &Status, registry: &mut Registry) {
    let sessions = Family::<Labels, Gauge>::default();
    for word in ["busy", "idle", "unknown", "protected"] {
        let found = status.last.as_ref().and_then(|last| last.verdicts.get(word).copied()).unwrap_or(0);
        let found = i64::try_from(found).unwrap_or(i64::MAX);
        sessions.get_or_create(&vec![("verdict", word.to_owned())]).set(found);
    }
    let cards = Family::<Labels, Gauge>::default();
    for card in status.last.iter().flat_map(|last| &last.cards) {
        let holder = match (card.servers.is_empty(), card.has_strangers()) {
            (false, _) => "session",
            (true, true) => "unattributed",
            (true, false) => "nobody",
        };
        let labels = vec![("model", card.sample.model.clone()), ("held_by", holder.to_owned())];
        cards.get_or_create(&labels).inc();
    }
    if let Some(last) = status.last.as_ref().filter(|last| last.cluster_up.is_some()) {
        let pods = ConstGauge::new(i64::try_from(last.pods.len()).unwrap_or(i64::MAX));
        registry.register("unattributed_pods", "Pods that hold cards and are no server's", pods);
    }
    let seconds = Family::<Labels, Seconds>::default();
    for ((model, state), passed) in &status.counters.card_seconds {
        let labels = vec![("model", model.clone()), ("state", (*state).to_owned())];
        seconds.get_or_create(&labels).inc_by(*passed);
    }
    registry.register("sessions", "Servers by verdict of the last cycle", sessions);
    registry.register("cards", "Cards of this machine by model and holder", cards);
    let help = "Time that cards spent busy, idle and so on, by the verdict on who held them";
    registry.register_with_unit("card", help, Unit::Seconds, seconds);
}

/// One series for each session that holds a card: as many as there are, and they tell of people.
fn by_user(status: &Status, registry: &mut Registry) {
    let cards = Family::<Labels, Gauge>::default();
    for known in status.last.iter().flat_map(|last| &last.sessions) {
        let id = &known.session.server.id;
        let verdict = reasons::verdict_word(&known.decision.judgement.verdict);
        let labels = vec![
            ("user", id.user.to_string()),
            ("server", id.name.to_string()),
            ("verdict", verdict.to_owned()),
        ];
        cards.get_or_create(&labels).set(i64::try_from(known.cards()).unwrap_or(i64::MAX));
    }
    registry.register("session_cards", "Cards that a session holds, with its verdict", cards);
}

fn outcomes(status: &Status, registry: &mut Registry) {
    let counters = &status.counters;
    registry.register("cycles", "Cycles completed", ConstCounter::new(counters.cycles));
    let spent = ConstCounter::new(counters.cycle_seconds);
    registry.register_with_unit("cycle", "Time spent in cycles", Unit::Seconds, spent);
    let warnings = ConstCounter::new(counters.warnings);
    registry.register("warnings", "Warnings accepted by the mail server", warnings);
    let held_back = ConstCounter::new(counters.held_back);
    registry.register("held_back", "Times something due was held back", held_back);
    registry.register("freezes", "Times that stops froze", ConstCounter::new(counters.freezes));
    let stops = Family::<Labels, Counter>::default();
    for outcome in StopOutcome::ALL {
        let count = counters.stops.get(&outcome).copied().unwrap_or_default();
        stops.get_or_create(&vec![("outcome", outcome.word().to_owned())]).inc_by(count);
    }
    registry.register("stops", "Stops by outcome", stops);
}

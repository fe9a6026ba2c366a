//! The JSON interface: the same rights and the same inbox as the pages.

mod model;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::admin::{LogQuery, read_log};
use super::answer::{ask, wish, words};
use super::entry::{Client, Guest};
use super::posted::Posted;
use super::{App, Shared, arbiter, refused};
use crate::domain::ServerId;
use crate::executor::{Answer, Refusal, What};
use crate::message::said;
use crate::settings::length;

const OPENAPI: &str = include_str!("openapi.json");
/// Sessions of one answer.
const DEFAULT_LIMIT: usize = 200;
const MOST: usize = 1000;

/// Everything below `/api/v1`.
pub fn router(base: &str) -> Router<Shared> {
    let at = |path: &str| format!("{base}/api/v1{path}");
    Router::new()
        .route(&at("/openapi.json"), get(openapi))
        .route(&at("/sessions"), get(sessions))
        .route(&at("/sessions/{user}/"), get(default_server))
        .route(&at("/sessions/{user}/{server}"), get(named_server))
        .route(&at("/keep"), post(keep))
        .route(&at("/stop"), post(stop))
        .route(&at("/decisions"), get(decisions))
        .route(&at("/freeze/lift"), post(lift))
        .route(&at("/arbiter"), post(arbiter::arbiter))
}

async fn openapi(_: Client) -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// Which part of a list is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    offset: String,
    limit: String,
}

impl Part {
    fn bounds(&self) -> (usize, usize) {
        (self.offset.parse().unwrap_or(0), self.limit.parse().unwrap_or(DEFAULT_LIMIT).clamp(1, MOST))
    }
}

async fn sessions(State(app): State<Shared>, Client(guest): Client, Query(part): Query<Part>) -> Response {
    let (offset, limit) = part.bounds();
    let now = app.now();
    let answer = app.board.read(|status| {
        let all = status.last.iter().flat_map(|last| &last.sessions);
        let mine = all.filter(|known| guest.visitor.may_see(&known.session.server.id));
        let mine: Vec<_> = mine.collect();
        let part = mine.iter().skip(offset).take(limit).map(|known| model::session(known, now));
        let next = offset.saturating_add(limit);
        json!({
            "looked": status.last.as_ref().map(|last| last.at),
            "mode": status.policy.as_ref().map(|policy| policy.mode.to_string()),
            "frozen_since": status.last.as_ref().and_then(|last| last.freeze.as_ref()).map(|f| f.since),
            "waiting": status.last.as_ref().and_then(|last| last.waiting.as_ref()).map(model::queue),
            "total": mine.len(),
            "next_offset": (next < mine.len()).then_some(next),
            "sessions": part.collect::<Vec<_>>(),
        })
    });
    Json(answer).into_response()
}

async fn default_server(app: State<Shared>, client: Client, Path(user): Path<String>) -> Response {
    one(&app, &client.0, &ServerId::new(user, ""))
}

async fn named_server(
    app: State<Shared>,
    client: Client,
    Path((user, server)): Path<(String, String)>,
) -> Response {
    one(&app, &client.0, &ServerId::new(user, server))
}

fn one(app: &App, guest: &Guest, server: &ServerId) -> Response {
    if !guest.visitor.may_see(server) {
        return refused::json(StatusCode::FORBIDDEN, said::refused::NOT_YOURS);
    }
    let now = app.now();
    let found = app.board.read(|status| {
        let last = status.last.as_ref()?;
        let other = || last.other(server).map(model::other);
        last.known(server).map(|known| model::session(known, now)).or_else(other)
    });
    match found {
        Some(session) => Json(session).into_response(),
        None => refused::json(StatusCode::NOT_FOUND, said::NO_SERVER),
    }
}

/// What is asked for one server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    /// `alice` or `alice/training`.
    server: ServerId,
    /// Which run of it; any where absent.
    #[serde(default)]
    started: Option<Timestamp>,
    #[serde(default, rename = "for")]
    length: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    even_if_busy: bool,
}

async fn keep(State(app): State<Shared>, posted: Result<Posted<Ask>, Response>) -> Response {
    let Posted { guest, body } = match posted {
        Ok(posted) => posted,
        Err(page) => return refused::json_instead(&page),
    };
    if !guest.visitor.may_keep(&body.server) {
        return refused::json(StatusCode::FORBIDDEN, said::refused::NOT_YOURS);
    }
    let Ok(length) = length(&body.length) else {
        return refused::json(StatusCode::BAD_REQUEST, said::NO_LENGTH);
    };
    let as_admin = !guest.visitor.owns(&body.server);
    let what = What::Keep { server: body.server, started: body.started, length };
    let answer = ask(&app, wish(&guest, as_admin, &body.reason, what)).await;
    told(&app, answer.as_ref())
}

async fn stop(State(app): State<Shared>, posted: Result<Posted<Ask>, Response>) -> Response {
    let Posted { guest, body } = match posted {
        Ok(posted) => posted,
        Err(page) => return refused::json_instead(&page),
    };
    if !guest.visitor.may_stop(&body.server) {
        return refused::json(StatusCode::FORBIDDEN, said::refused::NOT_YOURS);
    }
    let as_admin = !guest.visitor.owns(&body.server);
    if as_admin && body.reason.trim().is_empty() {
        return refused::json(StatusCode::CONFLICT, said::NEEDS_REASON);
    }
    let even_if_busy = body.even_if_busy;
    let what = What::StopNow { server: body.server, started: body.started, even_if_busy };
    let answer = ask(&app, wish(&guest, as_admin, &body.reason, what)).await;
    told(&app, answer.as_ref())
}

/// Why the freeze is lifted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Why {
    #[serde(default)]
    reason: String,
}

async fn lift(State(app): State<Shared>, posted: Result<Posted<Why>, Response>) -> Response {
    let Posted { guest, body } = match posted {
        Ok(posted) => posted,
        Err(page) => return refused::json_instead(&page),
    };
    if !guest.visitor.admin {
        return refused::json(StatusCode::FORBIDDEN, said::refused::NOT_ADMIN);
    }
    let answer = ask(&app, wish(&guest, false, &body.reason, What::LiftFreeze)).await;
    told(&app, answer.as_ref())
}

fn told(app: &App, answer: Option<&Answer>) -> Response {
    let (status, outcome) = match answer {
        Some(Answer::Kept(_)) => (StatusCode::OK, "kept"),
        Some(Answer::Stopped) => (StatusCode::OK, "stopped"),
        Some(Answer::StillStopping) => (StatusCode::ACCEPTED, "stopping"),
        Some(Answer::Orphaned) => (StatusCode::OK, "orphaned"),
        Some(Answer::Lifted) => (StatusCode::OK, "lifted"),
        None => (StatusCode::ACCEPTED, "waiting"),
        Some(Answer::Refused(refusal)) => return refused::json(status(refusal), &words(answer, app, "")),
    };
    let kept_until = match answer {
        Some(Answer::Kept(keep)) => Some(keep.until),
        _ => None,
    };
    let words = words(answer, app, said::WAITING_FOR_STOP);
    (status, Json(json!({ "outcome": outcome, "kept_until": kept_until, "words": words }))).into_response()
}

fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::NoServer => StatusCode::NOT_FOUND,
        Refusal::Failed(_) => StatusCode::BAD_GATEWAY,
        Refusal::Busy | Refusal::NotWorking => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Restarted
        | Refusal::Keep(_)
        | Refusal::NotFrozen
        | Refusal::TooLate
        | Refusal::Computes(_)
        | Refusal::NoStopper(_) => StatusCode::CONFLICT,
    }
}

/// Which decisions are wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Decisions {
    server: String,
    event: String,
    before: String,
    limit: String,
}

async fn decisions(
    State(app): State<Shared>,
    Client(guest): Client,
    Query(query): Query<Decisions>,
) -> Response {
    let server: Option<ServerId> = query.server.parse().ok();
    let own = server.as_ref().is_some_and(|server| guest.visitor.owns(server));
    if !own && !guest.visitor.sees_all() {
        return refused::json(StatusCode::FORBIDDEN, said::refused::NOT_YOURS);
    }
    let limit = query.limit.parse().unwrap_or(100u32).clamp(1, 1000);
    let wanted = LogQuery { server: query.server, event: query.event, before: query.before };
    match read_log(&app, &wanted, limit).await {
        Ok(entries) => {
            let all: Vec<Value> = entries.iter().map(model::decision).collect();
            let full = entries.len() >= limit as usize;
            let next = entries.last().filter(|_| full).map(|entry| entry.number);
            Json(json!({ "decisions": all, "next_before": next })).into_response()
        }
        Err(error) => {
            tracing::error!("the log cannot be shown: {error}");
            refused::json(StatusCode::INTERNAL_SERVER_ERROR, said::refused::NO_LOG)
        }
    }
}

//! The pages of admins.

mod cards;
mod exemptions;
mod log;
mod sessions;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::entry::Guest;
use super::listing;
use super::owner::{flash, shown};
use super::{App, Shared, refused};
use crate::message::said::refused as words;

pub use log::LogQuery;

/// All sessions.
pub async fn sessions(
    State(app): State<Shared>,
    guest: Guest,
    Query(query): Query<listing::Query>,
) -> Response {
    if let Some(refusal) = not_for(&app, &guest) {
        return refusal;
    }
    let flash = flash(&app, &guest);
    let view = app.board.read(|status| sessions::view(&app, &guest.visitor, status, &query, flash));
    shown(&app, "sessions", &view)
}

/// All cards.
pub async fn cards(State(app): State<Shared>, guest: Guest) -> Response {
    if let Some(refusal) = not_for(&app, &guest) {
        return refusal;
    }
    let view = app.board.read(|status| cards::view(&app, &guest.visitor, status));
    shown(&app, "cards", &view)
}

/// What is exempt and what is kept.
pub async fn exemptions(State(app): State<Shared>, guest: Guest) -> Response {
    if let Some(refusal) = not_for(&app, &guest) {
        return refusal;
    }
    let view = app.board.read(|status| exemptions::view(&app, &guest.visitor, status));
    shown(&app, "exemptions", &view)
}

/// What happened.
pub async fn log(State(app): State<Shared>, guest: Guest, Query(query): Query<LogQuery>) -> Response {
    if let Some(refusal) = not_for(&app, &guest) {
        return refusal;
    }
    match log::read(&app, &query, log::ON_A_PAGE).await {
        Ok(entries) => shown(&app, "log", &log::view(&app, &guest.visitor, &query, entries)),
        Err(error) => {
            tracing::error!("the log cannot be shown: {error}");
            refused::page(&app, StatusCode::INTERNAL_SERVER_ERROR, words::NO_LOG)
        }
    }
}

/// The log's entries, for the JSON interface.
pub use log::read as read_log;

fn not_for(app: &App, guest: &Guest) -> Option<Response> {
    (!guest.visitor.sees_all()).then(|| refused::page(app, StatusCode::FORBIDDEN, words::NOT_ADMIN))
}

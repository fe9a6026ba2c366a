//! The way back from the Hub.

use std::time::Instant;

use axum::extract::{Query, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::cookies::Cookies;
use super::doors::Outside;
use super::entry::next;
use super::{Shared, refused};
use crate::message::said::refused as words;

/// What the Hub sends back.
#[derive(Deserialize)]
pub struct Back {
    #[serde(default)]
    code: String,
    #[serde(default)]
    state: String,
}

/// Lets a visitor in whose login was begun in this browser.
pub async fn callback(State(app): State<Shared>, headers: HeaderMap, Query(back): Query<Back>) -> Response {
    let Ok(doors) = &app.doors else {
        return refused::page(&app, StatusCode::SERVICE_UNAVAILABLE, words::NO_DOOR);
    };
    let (jar, pending) = app.cookies.came_back(&back.state, &headers, app.now());
    let strange = || refused::page(&app, StatusCode::FORBIDDEN, words::STRANGE_LOGIN);
    let Some(pending) = pending.filter(|_| !back.code.is_empty()) else {
        return (jar, strange()).into_response();
    };
    let hub_session = Cookies::hub_session(&headers);
    match doors.enter(back.code, pending.verifier, hub_session, Instant::now()).await {
        Ok(login) => {
            let cookie = app.cookies.logged_in(login, &headers);
            (StatusCode::FOUND, jar, cookie, [(LOCATION, next(&pending.next, &app))]).into_response()
        }
        Err(Outside::NoLogin) => (jar, strange()).into_response(),
        Err(Outside::NoAccess) => {
            (jar, refused::page(&app, StatusCode::FORBIDDEN, words::NO_ACCESS)).into_response()
        }
        Err(Outside::HubSilent(error)) => {
            tracing::warn!("a visitor cannot be let in: {error}");
            refused::page(&app, StatusCode::SERVICE_UNAVAILABLE, words::HUB_SILENT)
        }
    }
}

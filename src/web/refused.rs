//! What is said where something is not shown or not done.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use serde_json::json;

use super::frame::Frame;
use super::{App, Shared};
use crate::message::pages;
use crate::message::said::refused as words;

/// The words of a refusal, beside the page that shows them.
#[derive(Clone)]
struct Said(String);

/// A page that says why. It names nobody and tells nothing of what is there.
pub fn page(app: &App, status: StatusCode, words: &str) -> Response {
    let view =
        json!({ "frame": Frame::outside(app), "words": words, "again": status != StatusCode::NOT_FOUND });
    let html = pages::page("refused", &view).unwrap_or_else(|error| {
        tracing::error!("{error}");
        words.to_owned()
    });
    let mut response = (status, Html(html)).into_response();
    response.extensions_mut().insert(Said(words.to_owned()));
    response
}

/// The same, for programs.
pub fn json(status: StatusCode, words: &str) -> Response {
    (status, Json(json!({ "error": words }))).into_response()
}

/// Turns a page into what programs read.
pub fn json_instead(page: &Response) -> Response {
    let words = page.extensions().get::<Said>().map_or(words::NO_LOGIN, |said| said.0.as_str());
    json(page.status(), words)
}

/// There is nothing.
pub async fn not_found(State(app): State<Shared>) -> Response {
    page(&app, StatusCode::NOT_FOUND, words::NOT_FOUND)
}

/// A page that could not be written.
pub fn broken(app: &App, error: &dyn std::error::Error) -> Response {
    tracing::error!("a page could not be written: {error}");
    page(app, StatusCode::INTERNAL_SERVER_ERROR, words::BROKEN)
}

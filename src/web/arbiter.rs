//! Says to jupyterhub-idle-culler 2 whether it may stop a server (its `cull_arbiter_hook`).
//!
//! What holds a card, or may hold one, is never for somebody else to stop: nobody is stopped unwarned. For
//! the rest the Hub's activity counts as always, unless the server computes on the CPU, is kept, or was declared to
//! be needed for longer.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::json;

use super::posted::Posted;
use super::status::Other;
use super::{Shared, Status, refused};
use crate::domain::ServerId;
use crate::message::{reasons, said};

/// What the hook is called with; `inactive` in seconds.
#[derive(Debug, Deserialize)]
pub struct Question {
    server: Model,
    inactive: Option<f64>,
    inactive_limit: f64,
}

/// The parts of the Hub's server model that tell whose it is.
#[derive(Debug, Deserialize)]
struct Model {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    full_name: Option<String>,
}

/// Answers the hook.
pub async fn arbiter(State(app): State<Shared>, posted: Result<Posted<Question>, Response>) -> Response {
    let Posted { guest, body } = match posted {
        Ok(posted) => posted,
        Err(page) => return refused::json_instead(&page),
    };
    let Some(server) = body.server.id() else {
        return refused::json(StatusCode::BAD_REQUEST, said::refused::NOT_UNDERSTOOD);
    };
    if !guest.visitor.may_see(&server) {
        return refused::json(StatusCode::FORBIDDEN, said::refused::NOT_YOURS);
    }
    let (cull, reason) = app.board.read(|status| judge(status, &server, &body));
    Json(json!({ "cull": cull, "reason": reason, "server": server })).into_response()
}

fn judge(status: &Status, server: &ServerId, question: &Question) -> (bool, String) {
    let Some(last) = &status.last else {
        return (false, "gpu-culler has not looked yet".to_owned());
    };
    if let Some(known) = last.known(server) {
        let why = reasons::verdict(&known.decision.judgement.verdict);
        return (false, format!("gpu-culler looks after it: {why}"));
    }
    match last.other(server) {
        None => (false, "gpu-culler has not seen it yet".to_owned()),
        Some(other) if !other.no_card => (false, format!("it may hold a card: {}", other.why)),
        Some(other) if other.computes => (false, "its processes compute on the CPU".to_owned()),
        Some(Other { declared_until: Some(until), .. }) if last.at < *until => {
            (false, format!("it was declared to be needed until {}", reasons::time(*until)))
        }
        Some(_) => match question.inactive {
            None => (false, "the Hub knows of no activity".to_owned()),
            Some(inactive) => {
                let cull = inactive >= question.inactive_limit;
                (
                    cull,
                    format!(
                        "it holds no card; inactive for {inactive:.0} s of {:.0} s",
                        question.inactive_limit
                    ),
                )
            }
        },
    }
}

impl Model {
    /// The server, by its full name (JupyterHub 6) or by its address `…/user/alice/training/`.
    fn id(&self) -> Option<ServerId> {
        if let Some(name) = self.full_name.as_ref().filter(|name| !name.is_empty()) {
            return name.parse().ok();
        }
        let (_, path) = self.url.as_ref()?.split_once("/user/")?;
        let mut parts = path.trim_end_matches('/').split('/');
        let decode = |part: &str| percent_decode_str(part).decode_utf8().ok().map(|text| text.into_owned());
        let user = decode(parts.next()?).filter(|user| !user.is_empty())?;
        Some(ServerId::new(user, decode(parts.next().unwrap_or_default())?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    #[test]
    fn a_server_is_told_by_its_full_name_or_by_its_address() {
        for (full_name, url, id) in [
            (Some("alice/"), None, Some("alice/")),
            (Some("alice/x"), Some("/user/bob/"), Some("alice/x")),
            (None, Some("/user/alice/"), Some("alice/")),
            (None, Some("/hub/user/a%20b/x%C3%A9/"), Some("a b/xé")),
            (None, Some("https://alice.hub.example.org/user/alice/"), Some("alice/")),
            (None, Some("/user/"), None),
            (None, None, None),
            (Some(""), None, None),
        ] {
            let model = Model { url: url.map(str::to_owned), full_name: full_name.map(str::to_owned) };
            assert_eq!(model.id().map(|id| id.to_string()), id.map(str::to_owned), "{full_name:?} {url:?}");
        }
    }
}

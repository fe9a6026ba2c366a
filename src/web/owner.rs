//! The pages of owners.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use serde::Serialize;

use super::entry::Guest;
use super::frame::Frame;
use super::status::Status;
use super::view::SessionView;
use super::{App, Shared, refused};
use crate::domain::{ServerId, UserName};
use crate::message::pages;
use crate::message::said::refused as words;

#[derive(Serialize)]
struct Mine {
    frame: Frame,
    sessions: Vec<SessionView>,
    /// Servers without a card.
    others: Vec<OtherView>,
    starting: bool,
}

#[derive(Serialize)]
struct OtherView {
    title: String,
    why: String,
}

#[derive(Serialize)]
struct One {
    frame: Frame,
    title: String,
    session: Option<SessionView>,
    other: Option<OtherView>,
}

/// My sessions.
pub async fn mine(State(app): State<Shared>, guest: Guest) -> Response {
    let flash = flash(&app, &guest);
    let view = app.board.read(|status| {
        let user = UserName(guest.visitor.name.as_str().into());
        let (from, to) = (ServerId { user: user.clone(), name: Default::default() }, &user);
        let last = status.last.as_ref();
        let sessions = last.iter().flat_map(|last| {
            let begin = last.sessions.partition_point(|known| known.session.server.id < from);
            last.sessions[begin..].iter().take_while(move |known| known.session.server.id.user == *to)
        });
        let others = last.iter().flat_map(|last| {
            let begin = last.others.partition_point(|other| other.server < from);
            last.others[begin..].iter().take_while(move |other| other.server.user == *to)
        });
        let now = app.now();
        Mine {
            frame: Frame::of(&app, &guest.visitor, status, flash),
            sessions: sessions
                .filter(|known| guest.visitor.owns(&known.session.server.id))
                .map(|known| SessionView::of(known, status, &guest.visitor, now))
                .collect(),
            others: others.filter(|other| guest.visitor.owns(&other.server)).map(OtherView::of).collect(),
            starting: status.last.is_none(),
        }
    });
    shown(&app, "mine", &view)
}

/// One session of a default server.
pub async fn default_server(app: State<Shared>, guest: Guest, Path(user): Path<String>) -> Response {
    one(app, guest, &ServerId::new(user, "")).await
}

/// One session of a named server.
pub async fn named_server(
    app: State<Shared>,
    guest: Guest,
    Path((user, server)): Path<(String, String)>,
) -> Response {
    one(app, guest, &ServerId::new(user, server)).await
}

async fn one(State(app): State<Shared>, guest: Guest, server: &ServerId) -> Response {
    if !guest.visitor.may_see(server) {
        return refused::page(&app, StatusCode::FORBIDDEN, words::NOT_YOURS);
    }
    let flash = flash(&app, &guest);
    let view = app.board.read(|status| one_view(&app, &guest, server, status, flash));
    shown(&app, "session", &view)
}

fn one_view(app: &App, guest: &Guest, server: &ServerId, status: &Status, flash: Option<String>) -> One {
    let other = status.last.as_ref().and_then(|last| last.other(server));
    One {
        frame: Frame::of(app, &guest.visitor, status, flash),
        title: pages::server(server),
        session: status.known(server).map(|known| SessionView::of(known, status, &guest.visitor, app.now())),
        other: other.map(OtherView::of),
    }
}

impl OtherView {
    fn of(other: &super::status::Other) -> Self {
        Self { title: pages::server(&other.server), why: pages::capital(&other.why) }
    }
}

/// What was to be told on this page.
pub fn flash(app: &App, guest: &Guest) -> Option<String> {
    app.doors.as_ref().ok()?.take_word(&guest.pass)
}

/// A page, or why it could not be written.
pub fn shown(app: &App, name: &'static str, view: &impl Serialize) -> Response {
    match pages::page(name, view) {
        Ok(html) => Html(html).into_response(),
        Err(error) => refused::broken(app, &error),
    }
}

//! What people ask for: into the inbox, and what came of it in words.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::entry::Guest;
use super::frame::Frame;
use super::posted::Posted;
use super::{App, Shared, owner, refused};
use crate::domain::ServerId;
use crate::executor::{Answer, Refusal, What, Wish};
use crate::message::{pages, said};
use crate::settings::length;

/// The longest reason that is written down.
const LONGEST_REASON: usize = 300;

/// A form about one session. The secret of the form is checked before it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Form {
    user: String,
    server: String,
    started: String,
    #[serde(rename = "for")]
    length: String,
    reason: String,
    /// That the server computes is known.
    confirmed: String,
}

impl Form {
    fn server(&self) -> ServerId {
        ServerId::new(self.user.clone(), self.server.clone())
    }

    fn started(&self) -> Option<Timestamp> {
        self.started.parse().ok()
    }
}

/// *Keep*.
pub async fn keep(State(app): State<Shared>, Posted { guest, body }: Posted<Form>) -> Response {
    let server = body.server();
    if !guest.visitor.may_keep(&server) {
        return refused::page(&app, StatusCode::FORBIDDEN, said::refused::NOT_YOURS);
    }
    let Ok(length) = length(&body.length) else {
        return back(&app, &guest, &server, said::NO_LENGTH.to_owned());
    };
    let what = What::Keep { server: server.clone(), started: body.started(), length };
    let as_admin = !guest.visitor.owns(&server);
    let answer = ask(&app, wish(&guest, as_admin, &body.reason, what)).await;
    back(&app, &guest, &server, words(answer.as_ref(), &app, said::WAITING))
}

/// *Stop now*.
pub async fn stop(State(app): State<Shared>, Posted { guest, body }: Posted<Form>) -> Response {
    let server = body.server();
    if !guest.visitor.may_stop(&server) {
        return refused::page(&app, StatusCode::FORBIDDEN, said::refused::NOT_YOURS);
    }
    let as_admin = !guest.visitor.owns(&server);
    if as_admin && reason(&body.reason).is_none() {
        return back(&app, &guest, &server, said::NEEDS_REASON.to_owned());
    }
    let even_if_busy = body.confirmed == "yes";
    let what = What::StopNow { server: server.clone(), started: body.started(), even_if_busy };
    let answer = ask(&app, wish(&guest, as_admin, &body.reason, what)).await;
    if let Some(Answer::Refused(Refusal::Computes(what))) = &answer {
        return confirm(&app, &guest, &body, &said::computes(what));
    }
    back(&app, &guest, &server, words(answer.as_ref(), &app, said::WAITING_FOR_STOP))
}

/// *Lift*.
pub async fn lift(State(app): State<Shared>, Posted { guest, body }: Posted<Form>) -> Response {
    if !guest.visitor.admin {
        return refused::page(&app, StatusCode::FORBIDDEN, said::refused::NOT_ADMIN);
    }
    let answer = ask(&app, wish(&guest, false, &body.reason, What::LiftFreeze)).await;
    let words = words(answer.as_ref(), &app, said::WAITING_FOR_STOP);
    go(&app, &guest, &format!("{}/admin", app.base), words)
}

#[derive(Serialize)]
struct Confirm<'a> {
    frame: Frame,
    title: String,
    path: String,
    words: &'a str,
    fields: [(&'static str, &'a str); 4],
}

fn confirm(app: &App, guest: &Guest, form: &Form, words: &str) -> Response {
    let server = form.server();
    let view = app.board.read(|status| Confirm {
        frame: Frame::of(app, &guest.visitor, status, None),
        title: pages::server(&server),
        path: pages::session_path(&server),
        words,
        fields: [
            ("user", &form.user),
            ("server", &form.server),
            ("started", &form.started),
            ("reason", &form.reason),
        ],
    });
    owner::shown(app, "confirm", &view)
}

/// A wish of this visitor.
pub fn wish(guest: &Guest, as_admin: bool, reason_given: &str, what: What) -> Wish {
    Wish { by: guest.visitor.signature(), as_admin, reason: reason(reason_given), what }
}

/// A reason as one line of bounded length, where there is any.
pub fn reason(text: &str) -> Option<String> {
    let text = pages::cut(text, LONGEST_REASON);
    (!text.is_empty()).then_some(text)
}

/// Leaves a wish and waits for what comes of it; nothing where that takes too long. What was done is
/// shown at once.
pub async fn ask(app: &App, wish: Wish) -> Option<Answer> {
    let what = wish.what.clone();
    let answer = tokio::time::timeout(app.patience.answer, app.inbox.leave(wish)).await.ok()?;
    let answer = answer.unwrap_or(Answer::Refused(Refusal::NotWorking));
    match (&answer, &what) {
        (Answer::Kept(keep), What::Keep { server, .. }) => {
            app.board.write(|status| status.kept(server, keep.clone()));
        }
        (Answer::Stopped | Answer::Orphaned, What::StopNow { server, .. }) => {
            app.board.write(|status| status.stopped(server));
        }
        (Answer::Lifted, _) => app.board.write(super::Status::lifted),
        _ => {}
    }
    Some(answer)
}

/// What came of a wish, in words.
pub fn words(answer: Option<&Answer>, app: &App, waiting: &str) -> String {
    let zone = || app.board.read(super::Status::zone);
    let Some(answer) = answer else {
        return waiting.to_owned();
    };
    let refusal = match answer {
        Answer::Kept(keep) => return said::kept(keep.until, &zone()),
        Answer::Stopped => return said::STOPPED.to_owned(),
        Answer::StillStopping => return said::STILL_STOPPING.to_owned(),
        Answer::Orphaned => return said::ORPHANED.to_owned(),
        Answer::Lifted => return said::LIFTED.to_owned(),
        Answer::Refused(refusal) => refusal,
    };
    match refusal {
        Refusal::NoServer => said::NO_SERVER.to_owned(),
        Refusal::Restarted => said::RESTARTED.to_owned(),
        Refusal::Keep(why) => said::not_kept(why, &zone()),
        Refusal::NotFrozen => said::NOT_FROZEN.to_owned(),
        Refusal::TooLate => said::TOO_LATE.to_owned(),
        Refusal::Computes(what) => said::computes(what),
        Refusal::NoStopper(mode) => said::no_stopper(*mode),
        Refusal::Failed(why) => said::failed(why),
        Refusal::Busy => said::BUSY.to_owned(),
        Refusal::NotWorking => said::NOT_WORKING.to_owned(),
    }
}

fn back(app: &App, guest: &Guest, server: &ServerId, words: String) -> Response {
    go(app, guest, &format!("{}/{}", app.base, pages::session_path(server)), words)
}

/// To a page that tells what came of it; for who has no login, the words themselves.
fn go(app: &App, guest: &Guest, to: &str, words: String) -> Response {
    if let Ok(doors) = &app.doors {
        doors.leave_word(&guest.pass, words);
    }
    (StatusCode::SEE_OTHER, [(LOCATION, to.to_owned())]).into_response()
}

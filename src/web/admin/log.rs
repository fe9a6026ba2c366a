//! The log of what was decided and done, read beside the process's own connection.

use serde::{Deserialize, Serialize};

use crate::domain::ServerId;
use crate::message::pages;
use crate::store::{Logged, StoreError, Wanted, read_log};
use crate::web::App;
use crate::web::frame::Frame;
use crate::web::visitor::Visitor;

/// Entries of one page.
pub const ON_A_PAGE: u32 = 100;

/// Which entries are wanted, as in the address of the page.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct LogQuery {
    /// `alice` (all servers of hers) or `alice/training`.
    pub server: String,
    /// A kind of event.
    pub event: String,
    /// Only entries before this one.
    pub before: String,
}

#[derive(Serialize)]
pub struct View {
    frame: Frame,
    query: LogQuery,
    events: [&'static str; 11],
    entries: Vec<EntryView>,
    /// Where the next page begins.
    older: Option<String>,
}

#[derive(Serialize)]
struct EntryView {
    at: String,
    iso: String,
    event: String,
    title: String,
    path: String,
    reason: String,
}

const EVENTS: [&str; 11] = [
    "idle",
    "warned",
    "reminded",
    "unmarked",
    "kept",
    "stopping",
    "stopped",
    "orphaned",
    "held-back",
    "frozen",
    "lifted",
];

/// Reads the newest entries that are wanted.
pub async fn read(app: &App, query: &LogQuery, limit: u32) -> Result<Vec<Logged>, StoreError> {
    let store = app.board.read(|status| status.shown.as_ref().map(|shown| shown.store.clone()));
    let Some(path) = store else {
        return Ok(Vec::new());
    };
    let wanted = wanted(query, limit);
    let read = tokio::task::spawn_blocking(move || read_log(&path, &wanted));
    read.await.unwrap_or_else(|_| Ok(Vec::new()))
}

fn wanted(query: &LogQuery, limit: u32) -> Wanted {
    let given = |text: &String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let server: Option<ServerId> = given(&query.server).and_then(|text| text.parse().ok());
    // Without a slash all servers of a person are meant.
    let one = query.server.contains('/');
    Wanted {
        user: server.as_ref().map(|id| id.user.to_string()),
        server: server.filter(|_| one).map(|id| id.name.to_string()),
        event: given(&query.event),
        before: query.before.parse().ok(),
        limit,
    }
}

/// A page of entries.
pub fn view(app: &App, visitor: &Visitor, query: &LogQuery, entries: Vec<Logged>) -> View {
    app.board.read(|status| {
        let zone = status.zone();
        let full = entries.len() >= ON_A_PAGE as usize;
        let last = entries.last().filter(|_| full).map(|entry| entry.number.to_string());
        View {
            frame: Frame::of(app, visitor, status, None),
            query: query.clone(),
            events: EVENTS,
            older: last.map(|before| {
                let pairs = [("server", &query.server), ("event", &query.event), ("before", &before)];
                url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
            }),
            entries: entries
                .iter()
                .map(|Logged { entry, .. }| EntryView {
                    at: pages::instant(entry.at, &zone),
                    iso: entry.at.to_string(),
                    event: pages::name(&entry.event),
                    title: entry.server.as_ref().map(pages::server).unwrap_or_default(),
                    path: entry.server.as_ref().map(pages::session_path).unwrap_or_default(),
                    reason: pages::name(&entry.reason),
                })
                .collect(),
        }
    })
}

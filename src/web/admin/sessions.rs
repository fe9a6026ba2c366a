//! The table of all sessions.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::message::{pages, reasons};
use crate::policy::{Action, Mode};
use crate::web::App;
use crate::web::frame::Frame;
use crate::web::listing::{Query, Row, select, would};
use crate::web::status::{Known, Last, Status};
use crate::web::visitor::Visitor;

#[derive(Serialize)]
pub struct View {
    frame: Frame,
    query: Query,
    verdicts: Vec<(&'static str, usize)>,
    rows: Vec<RowView>,
    total: usize,
    page: usize,
    pages: usize,
    forecast: Option<String>,
    may_lift: bool,
    no_address: usize,
    /// The address of this list without its page and column, to be continued.
    same: String,
}

#[derive(Serialize)]
struct RowView {
    title: String,
    path: String,
    verdict: &'static str,
    why: String,
    cards: String,
    deadline: Option<(String, String)>,
    kept: Option<String>,
    would: String,
    no_address: bool,
}

pub fn view(app: &App, visitor: &Visitor, status: &Status, query: &Query, flash: Option<String>) -> View {
    let (now, zone) = (app.now(), status.zone());
    let selected = status.last.as_ref().map(|last| select(last, query, now));
    let (total, page, pages) = selected.as_ref().map_or((0, 1, 1), |s| (s.total, s.page, s.pages));
    let rows = selected.iter().flat_map(|selected| &selected.rows);
    let frame = Frame::of(app, visitor, status, flash);
    View {
        may_lift: visitor.admin && status.last.as_ref().is_some_and(|last| last.freeze.is_some()),
        frame,
        query: query.clone(),
        verdicts: ["busy", "idle", "unknown", "protected"]
            .map(|word| (word, status.last.as_ref().and_then(|l| l.verdicts.get(word).copied()).unwrap_or(0)))
            .to_vec(),
        rows: rows.map(|row| RowView::of(row, now, &zone)).collect(),
        total,
        page,
        pages,
        forecast: forecast(status),
        no_address: status
            .last
            .as_ref()
            .map_or(0, |last| last.sessions.iter().filter(|known| known.no_address).count()),
        same: same(query),
    }
}

fn same(query: &Query) -> String {
    let fields =
        [("q", &query.q), ("verdict", &query.verdict), ("model", &query.model), ("only", &query.only)];
    let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(given).finish()
}

/// What a mode that goes further would do now, and what that concerns.
fn forecast(status: &Status) -> Option<String> {
    let mode = status.policy.as_ref()?.mode;
    let last = status.last.as_ref().filter(|_| mode < Mode::Enforce)?;
    let count = |wanted: fn(&Action) -> bool| {
        let due = last.sessions.iter().filter(|known| would(known).is_some_and(wanted));
        due.fold((0, 0), |(sessions, cards), known| (sessions + 1, cards + known.cards()))
    };
    let (warned, warned_cards) = count(|action| matches!(action, Action::Warn { .. }));
    let (stopped, stopped_cards) = count(|action| matches!(action, Action::Stop));
    Some(format!(
        "Now, mode “enforce” would warn the owners of {warned} sessions with {warned_cards} cards and stop {stopped} sessions with {stopped_cards} cards. {}",
        cost(status, last)
    ))
}

fn cost(status: &Status, last: &Last) -> String {
    let Some(shown) = &status.shown else {
        return String::new();
    };
    let due = last.sessions.iter().filter(|known| would(known).is_some());
    let gpus = due.flat_map(|known| known.session.gpus.iter().flatten());
    let prices: Vec<f64> = gpus.filter_map(|gpu| shown.cost.per_hour(&gpu.model)).collect();
    if prices.is_empty() {
        return String::new();
    }
    format!("They cost {:.2} {} an hour.", prices.iter().sum::<f64>(), shown.cost.currency)
}

impl RowView {
    fn of(row: &Row<'_>, now: Timestamp, zone: &TimeZone) -> Self {
        let id = row.server();
        match row {
            Row::Known(known) => Self {
                title: pages::server(id),
                path: pages::session_path(id),
                verdict: row.verdict(),
                why: pages::verdict(&known.decision.judgement.verdict, known.cards(), now, zone),
                cards: cards(known),
                deadline: known.deadline(now).map(|at| (at.to_string(), pages::instant(at, zone))),
                kept: known.kept(now).map(|keep| {
                    format!("by {} until {}", pages::name(&keep.by), pages::instant(keep.until, zone))
                }),
                would: pages::capital(&reasons::would_do(&known.decision)),
                no_address: known.no_address,
            },
            Row::Other(other) => Self {
                title: pages::server(id),
                path: pages::session_path(id),
                verdict: other.verdict,
                why: format!("{}.", pages::capital(&other.why)),
                cards: if other.no_card { "none" } else { "not known" }.to_owned(),
                deadline: None,
                kept: None,
                would: "Nothing".to_owned(),
                no_address: false,
            },
        }
    }
}

/// `2 × NVIDIA A100`
fn cards(known: &Known) -> String {
    let mut models: Vec<&str> = known.session.gpus.iter().flatten().map(|gpu| gpu.model.as_str()).collect();
    models.sort_unstable();
    let groups = models.chunk_by(|a, b| a == b).map(|group| match group.len() {
        1 => pages::name(group[0]),
        n => format!("{n} × {}", pages::name(group[0])),
    });
    let words = groups.collect::<Vec<_>>().join(", ");
    match (&known.session.gpus, words.is_empty()) {
        (Err(_), _) => "not known".to_owned(),
        (Ok(_), true) => "none".to_owned(),
        (Ok(_), false) => words,
    }
}

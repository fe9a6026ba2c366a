//! All sessions, filtered, sorted and cut into pages. Only the rows of one page become words.

use std::cmp::Reverse;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::status::{Known, Last, Other};
use crate::domain::ServerId;
use crate::message::reasons;
use crate::policy::{Action, HeldBack, Mode, Verdict};

/// Rows of one page.
pub const ON_A_PAGE: usize = 50;

/// What is wanted, as in the address of the page. Nonsense is taken for nothing.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Query {
    /// A part of a user's or a server's name.
    pub q: String,
    /// A verdict's word.
    pub verdict: String,
    /// A part of a card's model.
    pub model: String,
    /// `acts` (something would be done), `kept`, `no-address`.
    pub only: String,
    /// The column to sort by.
    pub sort: String,
    /// The page, from 1.
    pub page: String,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// A session with cards.
    Known(&'a Known),
    /// A server without a known card.
    Other(&'a Other),
}

/// One page of rows.
#[derive(Debug)]
pub struct Selected<'a> {
    /// Its rows.
    pub rows: Vec<Row<'a>>,
    /// How many rows there are on all pages.
    pub total: usize,
    /// Which page it is, from 1.
    pub page: usize,
    /// How many pages there are.
    pub pages: usize,
}

/// The rows that are wanted. Servers without a card come along only where they are asked for.
pub fn select<'a>(last: &'a Last, query: &Query, now: Timestamp) -> Selected<'a> {
    let rows = last.sessions.iter().map(Row::Known).chain(last.others.iter().map(Row::Other));
    let needle = query.q.trim().to_lowercase();
    let mut rows: Vec<Row<'_>> = rows.filter(|row| row.is_wanted(query, &needle, now)).collect();
    sort(&mut rows, &query.sort, now);
    let pages = rows.len().div_ceil(ON_A_PAGE).max(1);
    let page = query.page.parse().unwrap_or(1).clamp(1, pages);
    let total = rows.len();
    let rows = rows.into_iter().skip((page - 1) * ON_A_PAGE).take(ON_A_PAGE).collect();
    Selected { rows, total, page, pages }
}

/// What a mode that goes further would do now.
pub fn would(known: &Known) -> Option<&Action> {
    match (&known.decision.action, &known.decision.held_back) {
        (Some(action), _) => Some(action),
        (None, Some(HeldBack::Mode(Mode::Observe | Mode::Warn, action))) => Some(action),
        _ => None,
    }
}

impl Row<'_> {
    /// Which server.
    pub fn server(&self) -> &ServerId {
        match self {
            Self::Known(known) => &known.session.server.id,
            Self::Other(other) => &other.server,
        }
    }

    /// What it is taken for, in a word.
    pub fn verdict(&self) -> &'static str {
        match self {
            Self::Known(known) => reasons::verdict_word(&known.decision.judgement.verdict),
            Self::Other(other) => other.verdict,
        }
    }

    fn known(&self) -> Option<&Known> {
        match self {
            Self::Known(known) => Some(known),
            Self::Other(_) => None,
        }
    }

    /// Since when it rests, where it does.
    fn idle_since(&self) -> Option<Timestamp> {
        match self.known()?.decision.judgement.verdict {
            Verdict::Idle(idle) => Some(idle.since),
            Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_) => None,
        }
    }

    fn is_wanted(&self, query: &Query, needle: &str, now: Timestamp) -> bool {
        let named = |needle: &str| {
            let id = self.server();
            id.user.0.to_lowercase().contains(needle) || id.name.0.to_lowercase().contains(needle)
        };
        let model = || {
            let mut gpus = self.known().into_iter().flat_map(|known| known.session.gpus.iter().flatten());
            gpus.any(|gpu| gpu.model.to_lowercase().contains(&query.model.to_lowercase()))
        };
        let only = |only: &str| match only {
            "acts" => self.known().is_some_and(|known| would(known).is_some()),
            "kept" => self.known().is_some_and(|known| known.kept(now).is_some()),
            "no-address" => self.known().is_some_and(|known| known.no_address),
            _ => true,
        };
        let without_card = matches!(self, Self::Other(other) if other.no_card);
        let asked_for = query.verdict == "protected" || query.only == "all" || !needle.is_empty();
        (!without_card || asked_for)
            && (needle.is_empty() || named(needle))
            && (query.verdict.is_empty() || query.verdict == self.verdict())
            && (query.model.is_empty() || model())
            && only(&query.only)
    }
}

/// They come sorted by server. Where a column has nothing to say, a row goes to the end.
fn sort(rows: &mut [Row<'_>], column: &str, now: Timestamp) {
    let last_if_none = |at: Option<Timestamp>| (at.is_none(), at);
    match column {
        "server" => rows.sort_by(|a, b| a.server().cmp(b.server())),
        "verdict" => rows.sort_by_key(Row::verdict),
        "cards" => rows.sort_by_key(|row| Reverse(row.known().map_or(0, Known::cards))),
        "deadline" => {
            rows.sort_by_key(|row| last_if_none(row.known().and_then(|known| known.deadline(now))));
        }
        "started" => {
            rows.sort_by_key(|row| last_if_none(row.known().and_then(|k| k.session.server.started)));
        }
        // What is due first, then who rests longest.
        _ => rows.sort_by_key(|row| {
            let deadline = row.known().and_then(|known| known.deadline(now));
            (last_if_none(deadline), last_if_none(row.idle_since()))
        }),
    }
}

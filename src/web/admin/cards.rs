//! The grid of all cards: who holds what, and what of it is idle.

use serde::Serialize;

use crate::domain::{Pod, ServerId};
use crate::message::{bytes_in_words, pages, reasons};
use crate::observer::Card;
use crate::web::App;
use crate::web::card::activity;
use crate::web::frame::Frame;
use crate::web::status::Status;
use crate::web::visitor::Visitor;

#[derive(Serialize)]
pub struct View {
    frame: Frame,
    /// Cards by what they are, in the order of the legend.
    counts: Vec<(&'static str, usize)>,
    cards: Vec<CardView>,
    strangers: Vec<StrangerView>,
    pods: Vec<PodView>,
    unknown: bool,
}

#[derive(Serialize)]
struct CardView {
    id: String,
    model: String,
    /// `busy`, `idle`, `unknown`, `protected`, `stranger`, `free`
    state: &'static str,
    memory: String,
    now: String,
    holders: Vec<(String, String)>,
}

#[derive(Serialize)]
struct StrangerView {
    card: String,
    pid: u32,
    name: String,
    uid: String,
    claims: String,
}

/// A pod that holds cards and is no server's.
#[derive(Serialize)]
struct PodView {
    name: String,
    node: String,
    cards: String,
    since: String,
}

pub fn view(app: &App, visitor: &Visitor, status: &Status) -> View {
    let all = status.last.as_ref().map_or(&[][..], |last| &last.cards);
    let cards: Vec<CardView> = all.iter().map(|card| CardView::of(card, status)).collect();
    let states = ["busy", "idle", "unknown", "protected", "stranger", "free"];
    let count = |state| cards.iter().filter(|card| card.state == state).count();
    View {
        frame: Frame::of(app, visitor, status, None),
        counts: states.into_iter().map(|state| (state, count(state))).collect(),
        strangers: all.iter().flat_map(strangers).collect(),
        pods: status.last.iter().flat_map(|last| &last.pods).map(|pod| PodView::of(pod, status)).collect(),
        unknown: all.is_empty(),
        cards,
    }
}

impl PodView {
    fn of(pod: &Pod, status: &Status) -> Self {
        let since = pod.started.or(pod.created);
        Self {
            name: pages::name(&pod.name.to_string()),
            node: pod.node.as_deref().map(pages::name).unwrap_or_default(),
            cards: pages::name(&pod.asks_for()),
            since: since.map_or_else(|| "not known".to_owned(), |at| pages::instant(at, &status.zone())),
        }
    }
}

impl CardView {
    fn of(card: &Card, status: &Status) -> Self {
        Self {
            id: pages::name(&card.sample.id.0),
            model: pages::name(&card.sample.model),
            state: state(card, status),
            memory: card.sample.memory_used.map_or_else(|| "memory not known".to_owned(), bytes_in_words),
            now: match &card.sample.unreadable {
                Some(why) => format!("cannot be read: {}", pages::name(why)),
                None => activity(&card.sample),
            },
            holders: card.servers.iter().map(|id| (pages::server(id), pages::session_path(id))).collect(),
        }
    }
}

/// What a card is to be shown as: a busy holder wins, since the card is then in use.
fn state(card: &Card, status: &Status) -> &'static str {
    let verdict = |id: &ServerId| {
        status.known(id).map_or("unknown", |known| reasons::verdict_word(&known.decision.judgement.verdict))
    };
    let verdicts: Vec<_> = card.servers.iter().map(verdict).collect();
    let strongest = ["busy", "unknown", "protected", "idle"];
    match strongest.into_iter().find(|state| verdicts.contains(state)) {
        Some(state) => state,
        None if card.has_strangers() => "stranger",
        None => "free",
    }
}

fn strangers(card: &Card) -> Vec<StrangerView> {
    let shown = card.unattributed.iter().map(|process| StrangerView {
        card: pages::name(&card.sample.id.0),
        pid: process.pid,
        name: pages::name(&process.name),
        uid: process.uid.map_or_else(|| "not known".to_owned(), |uid| uid.to_string()),
        claims: process.claims.as_ref().map(pages::server).unwrap_or_default(),
    });
    shown.collect()
}

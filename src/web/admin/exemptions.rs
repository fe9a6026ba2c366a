//! What is left alone by a rule or by somebody's word, until when, and what that costs.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::message::pages;
use crate::policy::{ProtectedReason, Rule, Verdict};
use crate::settings::Cost;
use crate::web::App;
use crate::web::frame::Frame;
use crate::web::status::{Known, Status};
use crate::web::visitor::Visitor;

#[derive(Serialize)]
pub struct View {
    frame: Frame,
    rules: Vec<RuleView>,
    keeps: Vec<KeepView>,
    /// Whether any price is known.
    priced: bool,
}

#[derive(Serialize)]
struct RuleView {
    name: String,
    reason: String,
    owner: String,
    end: String,
    over: bool,
    sessions: Vec<(String, String)>,
    cards: usize,
    cost: String,
}

#[derive(Serialize)]
struct KeepView {
    title: String,
    path: String,
    by: String,
    until: String,
    reason: String,
    cards: usize,
    cost: String,
    /// What it costs from now to its end.
    rest: String,
}

pub fn view(app: &App, visitor: &Visitor, status: &Status) -> View {
    let (now, zone) = (app.now(), status.zone());
    let prices = Prices(status.shown.as_ref().map(|shown| &shown.cost));
    let rules = status.policy.iter().flat_map(|policy| &policy.rules);
    let known = || status.last.iter().flat_map(|last| &last.sessions);
    View {
        frame: Frame::of(app, visitor, status, None),
        rules: rules
            .filter(|rule| rule.exempt.is_some())
            .map(|rule| {
                let covered: Vec<&Known> = known().filter(|known| is_exempt_by(known, rule)).collect();
                RuleView::of(rule, &covered, &prices, now, &zone)
            })
            .collect(),
        keeps: known().filter_map(|known| KeepView::of(known, &prices, now, &zone)).collect(),
        priced: known().any(|known| prices.per_hour(&[known]).is_some()),
    }
}

fn is_exempt_by(known: &Known, rule: &Rule) -> bool {
    matches!(&known.decision.judgement.verdict,
        Verdict::Protected(ProtectedReason::Exempt { rule: name, .. }) if *name == rule.name)
}

impl RuleView {
    fn of(rule: &Rule, covered: &[&Known], prices: &Prices<'_>, now: Timestamp, zone: &TimeZone) -> Self {
        let exempt = rule.exempt.as_ref();
        let end = exempt.and_then(|exempt| exempt.until);
        let server = |known: &&Known| {
            let id = &known.session.server.id;
            (pages::server(id), pages::session_path(id))
        };
        Self {
            name: pages::name(&rule.name),
            reason: exempt.map(|exempt| pages::name(&exempt.reason)).unwrap_or_default(),
            owner: exempt.map(|exempt| pages::name(&exempt.owner)).unwrap_or_default(),
            end: end.map_or_else(|| "never".to_owned(), |end| pages::instant(end, zone)),
            over: end.is_some_and(|end| end <= now),
            sessions: covered.iter().map(server).collect(),
            cards: covered.iter().map(|known| known.cards()).sum(),
            cost: prices.words(prices.per_hour(covered)),
        }
    }
}

impl KeepView {
    fn of(known: &Known, prices: &Prices<'_>, now: Timestamp, zone: &TimeZone) -> Option<Self> {
        let keep = known.kept(now)?;
        let per_hour = prices.per_hour(&[known]);
        let hours = keep.until.duration_since(now).as_secs_f64() / 3600.0;
        let id = &known.session.server.id;
        Some(Self {
            title: pages::server(id),
            path: pages::session_path(id),
            by: pages::name(&keep.by),
            until: pages::instant(keep.until, zone),
            reason: keep.reason.as_ref().map(|why| pages::name(why)).unwrap_or_default(),
            cards: known.cards(),
            cost: prices.words(per_hour),
            rest: prices.words(per_hour.map(|price| price * hours)),
        })
    }
}

struct Prices<'a>(Option<&'a Cost>);

impl Prices<'_> {
    fn per_hour(&self, sessions: &[&Known]) -> Option<f64> {
        let gpus = sessions.iter().flat_map(|known| known.session.gpus.iter().flatten());
        let prices: Vec<f64> = gpus.filter_map(|gpu| self.0?.per_hour(&gpu.model)).collect();
        (!prices.is_empty()).then(|| prices.iter().sum())
    }

    fn words(&self, price: Option<f64>) -> String {
        match (price, self.0) {
            (Some(price), Some(cost)) => format!("{price:.2} {}", pages::name(&cost.currency)),
            _ => "not known".to_owned(),
        }
    }
}

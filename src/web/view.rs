//! Sessions as the templates read them: every value in words, and none of it decided here.

mod evidence;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::card::{CardView, cards};
use super::status::{Known, Status};
use super::visitor::Visitor;
use crate::domain::UserName;
use crate::message::{pages, reasons, said};
use crate::policy::{self, Giver, Mode, ReasonNeed, Verdict};

/// One session, for its owner.
#[derive(Debug, Serialize)]
pub struct SessionView {
    /// `alice/training`
    title: String,
    user: String,
    server: String,
    /// Exactly as they are, for forms.
    raw_user: String,
    raw_server: String,
    started: Option<String>,
    path: String,
    own: bool,
    /// `idle`, `busy`, … for the colour; the heading says it in words.
    state: &'static str,
    heading: String,
    sentence: String,
    remedy: Option<&'static str>,
    kept: Option<String>,
    deadline: Option<Countdown>,
    held_back: Option<String>,
    no_address: bool,
    clocks: Vec<Moment>,
    cards: Vec<CardView>,
    keep: Option<KeepForm>,
    stop: Option<StopForm>,
    evidence: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Countdown {
    iso: String,
    words: String,
    remaining: String,
    passed: bool,
}

/// An instant with its name.
#[derive(Debug, Serialize)]
struct Moment {
    label: &'static str,
    words: String,
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct KeepForm {
    choices: Vec<Choice>,
    /// The first of them that can be chosen.
    first: usize,
    possible: bool,
    needs_reason: bool,
    budget: Option<String>,
}

#[derive(Debug, Serialize)]
struct Choice {
    value: String,
    words: String,
    until: String,
    refused: Option<String>,
}

#[derive(Debug, Serialize)]
struct StopForm {
    /// In this mode the Hub's own page is the place.
    possible: bool,
    needs_reason: bool,
    computes: bool,
}

impl SessionView {
    /// One session as this visitor may see it.
    pub fn of(known: &Known, status: &Status, visitor: &Visitor, now: Timestamp) -> Self {
        let zone = status.zone();
        let id = &known.session.server.id;
        let verdict = &known.decision.judgement.verdict;
        let idle = match verdict {
            Verdict::Idle(idle) => Some(idle),
            Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_) => None,
        };
        let kept = known.kept(now);
        let policy = status.policy.as_ref();
        let (state, heading) = match kept {
            Some(_) => ("protected", "Kept"),
            None => (reasons::verdict_word(verdict), pages::heading(verdict)),
        };
        Self {
            title: pages::server(id),
            user: pages::name(&id.user.0),
            server: pages::name(&id.name.0),
            raw_user: id.user.to_string(),
            raw_server: id.name.to_string(),
            started: known.session.server.started.map(|at| at.to_string()),
            path: pages::session_path(id),
            own: visitor.owns(id),
            state,
            heading: heading.to_owned(),
            sentence: pages::verdict(verdict, known.cards(), now, &zone),
            remedy: idle.map(pages::remedy),
            kept: kept.map(|keep| {
                let why = keep.reason.as_ref().map(|why| format!(": “{}”", pages::name(why)));
                let until = pages::instant(keep.until, &zone);
                format!("{} keeps it until {until}{}", pages::name(&keep.by), why.unwrap_or_default())
            }),
            deadline: known.deadline(now).map(|at| Countdown::to(at, now, &zone)),
            held_back: known.decision.held_back.as_ref().map(reasons::held_back),
            no_address: known.no_address,
            clocks: clocks(known, now, &zone),
            cards: cards(known, status, visitor, now, &zone),
            keep: KeepForm::of(known, status, visitor, now),
            stop: policy.filter(|_| visitor.may_stop(id)).map(|policy| StopForm {
                possible: policy.mode == Mode::Enforce,
                needs_reason: !visitor.owns(id),
                computes: matches!(verdict, Verdict::Busy(_)),
            }),
            evidence: evidence::evidence(
                known,
                policy,
                status.last.as_ref().and_then(|last| last.waiting.as_ref()),
                &zone,
                now,
            ),
        }
    }
}

impl KeepForm {
    fn of(known: &Known, status: &Status, visitor: &Visitor, now: Timestamp) -> Option<Self> {
        let id = &known.session.server.id;
        let policy = status.policy.as_ref().filter(|_| visitor.may_keep(id))?;
        let own = visitor.owns(id);
        let giver = if own { Giver::Owner } else { Giver::Admin(UserName(visitor.name.as_str().into())) };
        let zone = status.zone();
        let offers = status.last.as_ref()?.offers(known, policy, &giver, now);
        let choice = |choice: &policy::Choice| Choice {
            value: reasons::length(choice.length),
            words: pages::length(choice.length),
            until: pages::instant(choice.until, &zone),
            refused: choice.refused.as_ref().map(|why| said::keep_refused(why, &zone)),
        };
        Some(Self {
            needs_reason: !own || offers.reason == ReasonNeed::Required,
            possible: offers.choices.iter().any(|choice| choice.refused.is_none()),
            first: offers.choices.iter().position(|choice| choice.refused.is_none()).unwrap_or_default(),
            choices: offers.choices.iter().map(choice).collect(),
            budget: own.then(|| {
                format!(
                    "{} of {} are left this week",
                    pages::length(offers.left),
                    pages::length(offers.budget)
                )
            }),
        })
    }
}

impl Countdown {
    fn to(at: Timestamp, now: Timestamp, zone: &TimeZone) -> Self {
        Self {
            iso: at.to_string(),
            words: pages::instant(at, zone),
            remaining: pages::length(at.duration_since(now).max(jiff::SignedDuration::ZERO)),
            passed: at <= now,
        }
    }
}

fn clocks(known: &Known, now: Timestamp, zone: &TimeZone) -> Vec<Moment> {
    let Some(clocks) = known.decision.judgement.clocks else {
        return Vec::new();
    };
    let started = known.record.as_ref().map(|record| record.started);
    let words = |at: Option<Timestamp>| match at.filter(|at| started.is_none_or(|started| *at > started)) {
        Some(at) => pages::moment(at, now, zone),
        None => "not since it was first seen".to_owned(),
    };
    let sign = known.record.as_ref().and_then(|record| record.evidence.used_by.as_ref());
    let unwatched = clocks.card.filter(|card| Some(*card) > clocks.card_active);
    vec![
        Moment {
            label: "Card last computed",
            words: words(clocks.card_active),
            note: unwatched.filter(|card| started.is_none_or(|started| *card > started)).map(|card| {
                format!("the clock counts from {}, since when it was watched", pages::instant(card, zone))
            }),
        },
        Moment {
            label: "Kernel or terminal last used",
            words: words(Some(clocks.used)),
            note: sign.map(|sign| reasons::use_sign(Some(sign))),
        },
        Moment { label: "Somebody last there", words: words(Some(clocks.present)), note: None },
    ]
}

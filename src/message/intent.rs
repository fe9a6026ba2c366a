//! What a session is for and how long it was declared to be needed, in words.

use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use super::{foreign, measures, reasons};
use crate::domain::Intent;
use crate::policy::{Declared, Judgement};

/// What is declared of a session, for programs.
#[derive(Debug, Serialize)]
pub struct Declaration<'a> {
    project: Option<&'a str>,
    team: Option<&'a str>,
    owner: Option<&'a str>,
    /// When the time that counts ends, or has ended.
    declared_until: Option<Timestamp>,
    /// Whether more was declared than may be.
    capped: bool,
    /// Declared times that cannot be read, as they are written.
    unreadable: Vec<String>,
}

impl<'a> Declaration<'a> {
    /// Absent where nothing is declared.
    pub fn of(judgement: &'a Judgement) -> Option<Self> {
        let intent = judgement.intent.as_deref()?;
        Some(Self {
            project: intent.project.as_deref(),
            team: intent.team.as_deref(),
            owner: intent.owner.as_deref(),
            declared_until: judgement.declared.map(|declared| declared.until),
            capped: judgement.declared.is_some_and(|declared| declared.is_capped),
            unreadable: intent.unreadable.iter().map(ToString::to_string).collect(),
        })
    }
}

/// What a session is for, as far as that is declared: `project cats, team vision, for ann`.
pub fn purpose(intent: Option<&Intent>) -> Option<String> {
    let named = intent.into_iter().flat_map(parts).map(|(_, what, value)| format!("{what} {value}"));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// The same as lines with a label each, and until when it was declared to be needed.
pub fn rows(
    intent: Option<&Intent>,
    declared: Option<Declared>,
    now: Timestamp,
    zone: &TimeZone,
) -> Vec<(&'static str, String)> {
    let named = intent.into_iter().flat_map(parts).map(|(label, _, value)| (label, value));
    let until = declared.map(|Declared { until, is_capped }| {
        let left = match until <= now {
            true => "which has passed".to_owned(),
            false => format!("{} left", measures::duration_in_words(measures::age(now, until))),
        };
        let capped = if is_capped { "; more was declared than may be" } else { "" };
        (
            "Declared to be needed until",
            format!("{}, {left}{capped}", measures::instant_in_words(until, zone)),
        )
    });
    let unreadable = intent.into_iter().flat_map(unreadable).map(|words| ("Declared time", words));
    named.chain(until).chain(unreadable).collect()
}

/// `declared until …`.
pub fn declared(declared: Declared) -> String {
    let capped = if declared.is_capped { " (as long as may be; more was declared)" } else { "" };
    format!("declared until {}{capped}", reasons::time(declared.until))
}

fn parts(intent: &Intent) -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let all = [
        ("Project", "project", &intent.project),
        ("Team", "team", &intent.team),
        ("On behalf of", "for", &intent.owner),
    ];
    all.into_iter().filter_map(|(label, what, value)| Some((label, what, foreign::name(value.as_ref()?))))
}

/// Whoever wrote it may have meant to be protected, so it is told wherever the session is spoken of.
fn unreadable(intent: &Intent) -> impl Iterator<Item = String> {
    intent.unreadable.iter().map(|it| {
        let (key, text) = (foreign::name(&it.key), foreign::name(&it.text));
        format!(
            "{key} `{text}` cannot be read, so it protects nothing; it is written like 8h, 3d or 2027-01-31"
        )
    })
}

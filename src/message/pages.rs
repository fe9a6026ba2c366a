//! The words of the pages, and their templates.

use std::sync::LazyLock;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, syntax::SyntaxConfig, value::Serde};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use super::{foreign, measures, reasons, sentences};
use crate::domain::{Power, ServerId};
use crate::policy::{BusyReason, Idle, ProtectedReason, UnknownReason, Verdict};

const TEMPLATES: &[(&str, &str)] = &[
    ("frame.html", include_str!("pages/frame.html")),
    ("session_parts.html", include_str!("pages/session_parts.html")),
    ("chart.html", include_str!("pages/chart.html")),
    ("mine.html", include_str!("pages/mine.html")),
    ("session.html", include_str!("pages/session.html")),
    ("confirm.html", include_str!("pages/confirm.html")),
    ("sessions.html", include_str!("pages/sessions.html")),
    ("cards.html", include_str!("pages/cards.html")),
    ("exemptions.html", include_str!("pages/exemptions.html")),
    ("log.html", include_str!("pages/log.html")),
    ("refused.html", include_str!("pages/refused.html")),
];

static ENVIRONMENT: LazyLock<Result<Environment<'static>, minijinja::Error>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    templates.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    for (name, source) in TEMPLATES {
        templates.add_template(name, source)?;
    }
    Ok(templates)
});

/// A page could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the page `{template}` could not be written; please report this as a bug: {source}")]
pub struct PageError {
    template: &'static str,
    source: minijinja::Error,
}

/// Writes the page called `name`.
pub fn page(name: &'static str, view: &impl Serialize) -> Result<String, PageError> {
    let failed = |source| PageError { template: name, source };
    let broken = |error: &minijinja::Error| minijinja::Error::new(error.kind(), error.to_string());
    let templates = ENVIRONMENT.as_ref().map_err(|error| failed(broken(error)))?;
    templates.get_template(&format!("{name}.html")).and_then(|t| t.render(Serde(view))).map_err(failed)
}

/// Everything but the characters that are safe in any part of an address.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');

/// Where a session's page is, below the service's own address: `session/alice/` or `session/alice/training`.
pub fn session_path(server: &ServerId) -> String {
    let encode = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
    format!("session/{}/{}", encode(&server.user.0), encode(&server.name.0))
}

/// A name that somebody else chose, as one line of visible characters.
pub fn name(text: &str) -> String {
    foreign::name(text)
}

/// What somebody wrote, as one line of at most so many visible characters, for storing.
pub fn cut(text: &str, most: usize) -> String {
    foreign::cut(text, most)
}

/// `alice` for the default server and `alice/training` for a named one.
pub fn server(id: &ServerId) -> String {
    foreign::server(id)
}

/// `71 W of 400 W, at most 90 W`
pub fn power(power: &Power) -> String {
    measures::power(power)
}

/// Who else holds a card. It is idle only when it is idle as a whole.
pub fn shared(others: &[&ServerId], strangers: bool, by_name: bool) -> Option<String> {
    let sessions = match others {
        [] => None,
        others if by_name => Some(others.iter().map(|id| server(id)).collect::<Vec<_>>().join(", ")),
        [_] => Some("1 other session".to_owned()),
        others => Some(format!("{} other sessions", others.len())),
    };
    let strangers = strangers.then(|| "work that belongs to no session".to_owned());
    let all = sessions.into_iter().chain(strangers).collect::<Vec<_>>().join(" and ");
    (!all.is_empty()).then(|| format!("shared with {all}: it is idle only while nobody works on it"))
}

/// An instant, as the mails write it.
pub fn instant(at: Timestamp, zone: &TimeZone) -> String {
    measures::instant_in_words(at, zone)
}

/// An instant and how long ago it was.
pub fn moment(at: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    measures::moment(at, now, zone)
}

/// A length of time in its two largest units.
pub fn length(length: SignedDuration) -> String {
    measures::duration_in_words(length.unsigned_abs())
}

/// The heading of a verdict.
pub fn heading(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Busy(_) => "In use",
        Verdict::Idle(_) => "Idle",
        Verdict::Unknown(_) => "Cannot be judged",
        Verdict::Protected(ProtectedReason::NoCard) => "Holds no card",
        Verdict::Protected(ProtectedReason::Exempt { .. }) => "Exempt",
        Verdict::Protected(ProtectedReason::Kept { .. }) => "Kept",
        Verdict::Protected(ProtectedReason::Declared { .. }) => "Idle, within its declared time",
    }
}

/// What a verdict means, in a sentence or two.
pub fn verdict(verdict: &Verdict, cards: usize, now: Timestamp, zone: &TimeZone) -> String {
    match verdict {
        Verdict::Busy(busy) => in_use(busy, now, zone),
        Verdict::Idle(idle) => at_rest(idle, cards, now, zone),
        Verdict::Unknown(UnknownReason::WarmUp(until)) => {
            format!("It is too young to be judged before {}.", instant(*until, zone))
        }
        Verdict::Unknown(UnknownReason::Gap(until)) => format!(
            "Its cards could not be watched until {}. What was not seen counts as use.",
            instant(*until, zone)
        ),
        Verdict::Unknown(UnknownReason::WatchedSince(at)) => {
            format!("Its cards are watched only since {}.", instant(*at, zone))
        }
        Verdict::Unknown(_) => {
            format!("{}. What is not known is never taken for idle.", capital(&reasons::verdict(verdict)))
        }
        Verdict::Protected(ProtectedReason::NoCard) => "It holds no card, so it is left alone.".to_owned(),
        Verdict::Protected(ProtectedReason::Exempt { rule, until, reason }) => {
            let end = until
                .map_or_else(|| "without an end".to_owned(), |end| format!("until {}", instant(end, zone)));
            format!("The rule “{}” exempts it {end}: {}.", foreign::name(rule), foreign::name(reason))
        }
        Verdict::Protected(ProtectedReason::Kept { until, by }) => {
            format!("{} keeps it until {}.", foreign::name(by), instant(*until, zone))
        }
        Verdict::Protected(ProtectedReason::Declared { idle, declared, .. }) => {
            let left = measures::duration_in_words(measures::age(now, declared.until));
            let until = instant(declared.until, zone);
            format!(
                "{} It was declared to be needed until {until} ({left} left), so it is left alone until then.",
                at_rest(idle, cards, now, zone)
            )
        }
    }
}

fn in_use(reason: &BusyReason, now: Timestamp, zone: &TimeZone) -> String {
    match reason {
        BusyReason::Card(at) => format!("A card of it computed {}.", moment(*at, now, zone)),
        BusyReason::Kernel => "A kernel is computing.".to_owned(),
        BusyReason::Cpu(cores) => format!("Its processes use {cores:.1} CPU cores."),
        BusyReason::Used(at, sign) => {
            format!("{} was active {}.", capital(&reasons::use_sign(sign.as_ref())), moment(*at, now, zone))
        }
        BusyReason::Present(at) => format!("Somebody was there {}.", moment(*at, now, zone)),
        BusyReason::Waiting(_) => {
            format!("{}.", capital(&reasons::verdict(&Verdict::Busy(reason.clone()))))
        }
    }
}

fn at_rest(idle: &Idle, cards: usize, now: Timestamp, zone: &TimeZone) -> String {
    let lasted = measures::duration_in_words(measures::age(idle.since, now));
    let why = sentences::why(idle.kind, idle.limit, cards);
    format!("{why} This has lasted {lasted}, since {}.", instant(idle.since, zone))
}

/// What keeps it from being stopped.
pub fn remedy(idle: &Idle) -> &'static str {
    sentences::remedy(idle.limit)
}

/// The first letter as a capital.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_one_address_whatever_its_name_holds() {
        for (user, name, path) in [
            ("alice", "", "session/alice/"),
            ("alice", "training", "session/alice/training"),
            ("a@example.org", "", "session/a@example.org/"),
            ("../admin", "", "session/..%2Fadmin/"),
            ("a b", "x?y#z", "session/a%20b/x%3Fy%23z"),
            ("<é>", "\r\n", "session/%3C%C3%A9%3E/%0D%0A"),
        ] {
            assert_eq!(session_path(&ServerId::new(user, name)), path);
        }
    }

    #[test]
    fn who_shares_a_card_is_named_to_admins_only() {
        let (bob, carl) = (ServerId::new("bob", ""), ServerId::new("carl", "x"));
        for (others, strangers, by_name, words) in [
            (vec![], false, true, None),
            (vec![&bob], false, false, Some("1 other session")),
            (vec![&bob, &carl], false, false, Some("2 other sessions")),
            (vec![&bob, &carl], true, true, Some("bob, carl/x and work that belongs to no session")),
            (vec![], true, false, Some("work that belongs to no session")),
        ] {
            let words =
                words.map(|words| format!("shared with {words}: it is idle only while nobody works on it"));
            assert_eq!(shared(&others, strangers, by_name), words);
        }
    }

    #[test]
    fn all_templates_parse() {
        assert!(ENVIRONMENT.is_ok(), "{:?}", ENVIRONMENT.as_ref().err());
    }
}

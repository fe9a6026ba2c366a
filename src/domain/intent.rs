//! What a session is said to be for, and for how long: by the platform (labels and annotations of its pod), or by
//! its owner (an option chosen at the start).

use std::fmt;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp, ToSpan};

use super::Server;

/// Labels that begin so are what the user chose (the Hub's `user_options`), not what the platform set.
pub const CHOSEN: &str = "user_options.";
/// What may stand before a key on a pod, where bare names are taken by others.
const PREFIX: &str = "gpu-culler.io/";
/// The longest value that is kept, in characters. Annotations may hold a quarter of a megabyte.
pub const LONGEST_LABEL: usize = 200;

/// Under which names an intent is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentKeys {
    /// Who answers for it.
    pub owner: String,
    /// Whose budget it is.
    pub team: String,
    /// What it is for.
    pub project: String,
    /// How long it is needed, from its start on.
    pub expected_duration: String,
    /// Until when it is needed.
    pub expected_until: String,
}

impl Default for IntentKeys {
    fn default() -> Self {
        Self {
            owner: "owner".to_owned(),
            team: "team".to_owned(),
            project: "project".to_owned(),
            expected_duration: "expected-duration".to_owned(),
            expected_until: "expected-until".to_owned(),
        }
    }
}

impl IntentKeys {
    /// All of them.
    pub fn all(&self) -> [&str; 5] {
        [&self.owner, &self.team, &self.project, &self.expected_duration, &self.expected_until]
    }

    /// Whether `name` is one of them, however it is spelled.
    pub fn contain(&self, name: &str) -> bool {
        self.all().iter().any(|key| alike(bare(name), bare(key)))
    }
}

/// What is declared of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// Who answers for it.
    pub owner: Option<String>,
    /// Whose budget it is.
    pub team: Option<String>,
    /// What it is for.
    pub project: Option<String>,
    /// How long it is needed, from its start on.
    pub duration: Option<SignedDuration>,
    /// Until when it is needed.
    pub until: Option<Timestamp>,
    /// Times that could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// A declared time that says nothing we understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its key, as it is written.
    pub key: String,
    /// What stands there.
    pub text: String,
}

impl Intent {
    /// What the labels of a server declare. Days without an hour and hours without a zone are those of `zone`.
    ///
    /// A time that cannot be read protects nothing, or any typing error would hold a card for as long as may be
    /// declared. It is told instead, in the warning too: whoever meant to be protected learns of it with the whole
    /// grace to come, and can keep the session.
    pub fn of(server: &Server, keys: &IntentKeys, zone: &TimeZone) -> Self {
        let text = |key: &str| {
            let mut values = server.labelled(key).into_iter().map(|(_, value)| value.trim());
            values.find(|value| !value.is_empty()).map(shortened)
        };
        let mut unreadable = Vec::new();
        let duration = read(server, &keys.expected_duration, duration, &mut unreadable);
        let until = read(server, &keys.expected_until, |text| instant(text, zone), &mut unreadable);
        let (owner, team, project) = (text(&keys.owner), text(&keys.team), text(&keys.project));
        Self { owner, team, project, duration, until, unreadable }
    }

    /// Whether nothing at all is declared.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.key, self.text)
    }
}

/// The first value that can be read; where none can, those that are there are told.
fn read<T>(
    server: &Server,
    key: &str,
    read: impl Fn(&str) -> Option<T>,
    unreadable: &mut Vec<Unreadable>,
) -> Option<T> {
    let values = server.labelled(key);
    let found = values.iter().find_map(|(_, text)| read(text.trim()));
    if found.is_none() {
        let told = |(key, text): &(&str, &str)| Unreadable { key: shortened(key), text: shortened(text) };
        unreadable.extend(values.iter().map(told));
    }
    found
}

/// `8h`, `2h 30m`, `3 days`, `1.5h`, `08:30:00`, `P3D`.
fn duration(text: &str) -> Option<SignedDuration> {
    if let Ok(length) = humantime::parse_duration(text) {
        return Some(SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX));
    }
    let span: Span = text.parse().ok()?;
    let length = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    (!length.is_negative()).then_some(length)
}

/// `2026-12-04T18:00:00Z`, `2026-12-04T18:00`, or `2026-12-04`, which is through that whole day.
fn instant(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    let day = text.len() <= "2026-12-04".len();
    let end = match day {
        true => {
            text.parse::<Date>().ok()?.checked_add(1.day()).ok()?.to_datetime(jiff::civil::Time::midnight())
        }
        false => text.parse::<DateTime>().ok()?,
    };
    end.to_zoned_datetime(zone.clone()).ok().map(|at| at.timestamp())
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST_LABEL).collect()
}

impl Server {
    /// The labels called `key`, however they are spelled: with the prefix `gpu-culler.io/` or without, `-` and
    /// `_` alike. What the platform set comes before what the user chose, and the exact spelling before others.
    pub fn labelled(&self, key: &str) -> Vec<(&str, &str)> {
        let wanted = bare(key);
        let mut found: Vec<(&str, &str)> = self
            .labels
            .iter()
            .filter(|(name, _)| {
                *name == key || alike(bare(name.strip_prefix(CHOSEN).unwrap_or(name)), wanted)
            })
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        found.sort_by_key(|(name, _)| rank(name, key));
        found
    }
}

/// What is asked for first.
fn rank(name: &str, key: &str) -> (bool, bool, bool) {
    (name.starts_with(CHOSEN), !name.starts_with(PREFIX), name.strip_prefix(PREFIX).unwrap_or(name) != key)
}

fn bare(key: &str) -> &str {
    key.strip_prefix(PREFIX).unwrap_or(key)
}

/// `-` and `_` alike: Python's forms have the one, Kubernetes the other.
fn alike(a: &str, b: &str) -> bool {
    let same = |c: u8| if c == b'_' { b'-' } else { c };
    a.len() == b.len() && a.bytes().map(same).eq(b.bytes().map(same))
}

#[cfg(test)]
mod tests;

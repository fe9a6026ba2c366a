//! The lines of a trace as they are written. Reading is patient: what is absent or `null` is taken for
//! what can do no harm, which is "not known" wherever a decision hangs on it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::domain::{Power, ServerId};

#[derive(Debug, Deserialize, Serialize)]
pub struct Header {
    pub trace: String,
    #[serde(default)]
    pub note: String,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Observation {
    pub at: Timestamp,
    #[serde(default, deserialize_with = "or_default")]
    pub hub: State,
    #[serde(default, deserialize_with = "or_default")]
    pub telemetry: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Waiting>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<Server>>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub keeps: Vec<Keep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<Mail>,
}

/// How many wait for any card, or who waits for which.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Waiting {
    Count(u32),
    Lines(Vec<Line>),
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Line {
    pub count: u32,
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Whose cards would serve them; absent where any would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_by: Option<BTreeSet<ServerId>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    #[default]
    Ok,
    Down,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mail {
    Accepting,
    Refusing,
    Down,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Server {
    pub user: String,
    #[serde(default, deserialize_with = "or_default")]
    pub server: String,
    #[serde(default, deserialize_with = "or_default")]
    pub groups: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub admin: bool,
    #[serde(default)]
    pub profile: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "stamp")]
    pub started: Option<Timestamp>,
    #[serde(default, deserialize_with = "stamp")]
    pub last_activity: Option<Timestamp>,
    #[serde(default)]
    pub pending: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub ready: bool,
    #[serde(default)]
    pub jupyter: Option<Jupyter>,
    #[serde(default)]
    pub gpus: Option<Vec<Gpu>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
    #[serde(default, deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Hold>,
}

/// What of the session holds memory on which of its cards.
#[derive(Debug, Deserialize, Serialize)]
pub struct Hold {
    pub gpu: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_used: Option<u64>,
    /// `None` where it is of no kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notebook: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Jupyter {
    #[serde(default, deserialize_with = "stamp")]
    pub last_activity: Option<Timestamp>,
    #[serde(default, deserialize_with = "or_default")]
    pub connections: u32,
    /// `None` is "not readable", and so is the whole of it then.
    #[serde(default)]
    pub kernels: Option<Vec<Kernel>>,
    /// Absent where the server has no terminals at all; `null` is "not readable".
    #[serde(default = "no_terminals")]
    pub terminals: Option<Vec<Terminal>>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Kernel {
    #[serde(default)]
    pub id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub state: String,
    #[serde(default, deserialize_with = "stamp")]
    pub last_activity: Option<Timestamp>,
    #[serde(default, deserialize_with = "or_default")]
    pub connections: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notebook: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Terminal {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, deserialize_with = "stamp")]
    pub last_activity: Option<Timestamp>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Gpu {
    pub id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub model: String,
    #[serde(default, deserialize_with = "reading")]
    pub sm: Option<f64>,
    #[serde(default, deserialize_with = "reading")]
    pub dram: Option<f64>,
    #[serde(default, deserialize_with = "offered", skip_serializing_if = "Option::is_none")]
    pub tensor: Option<Option<f64>>,
    #[serde(default, deserialize_with = "offered", skip_serializing_if = "Option::is_none")]
    pub copy: Option<Option<f64>>,
    #[serde(default, deserialize_with = "offered", skip_serializing_if = "Option::is_none")]
    pub encode: Option<Option<f64>>,
    #[serde(default, deserialize_with = "offered", skip_serializing_if = "Option::is_none")]
    pub decode: Option<Option<f64>>,
    #[serde(default)]
    pub memory_used: Option<u64>,
    #[serde(default)]
    pub processes: Option<u32>,
    #[serde(default)]
    pub covered: Option<String>,
    #[serde(default)]
    pub largest_gap: Option<String>,
    #[serde(default, deserialize_with = "power", skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past: Option<Past>,
}

/// What the source remembers of the card: rest since then, with so many seconds not watched, the newest
/// reading so many seconds ago.
#[derive(Debug, Deserialize, Serialize)]
pub struct Past {
    pub since: Timestamp,
    #[serde(default, deserialize_with = "or_default")]
    pub after_gap: bool,
    #[serde(default)]
    pub last_active: Option<Timestamp>,
    pub unwatched: f64,
    #[serde(default, deserialize_with = "or_default")]
    pub lag: f64,
}

/// `null` means what absence means.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// What is no number ("NaN", a blank) is no reading.
fn reading<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Value::deserialize(from).map(|value| value.as_f64())
}

/// What cannot be what a card draws is not known; nothing is decided by it.
fn power<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Power>, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).ok().filter(Power::is_sound))
}

/// An engine that is there but `null` was offered and not read; an absent one is not offered.
fn offered<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<f64>>, D::Error> {
    reading(from).map(Some)
}

#[expect(clippy::unnecessary_wraps, reason = "serde wants the field's type")]
fn no_terminals() -> Option<Vec<Terminal>> {
    Some(Vec::new())
}

fn stamp<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Timestamp>, D::Error> {
    let wrong = |text: &str| serde::de::Error::custom(format!("`{text}` is no instant"));
    let text: Option<String> = Option::deserialize(from)?;
    text.map(|text| instant(&text).ok_or_else(|| wrong(&text))).transpose()
}

/// Without a zone UTC is meant, as old Hubs do. A stamp beyond the end of time is a wrong clock
/// somewhere, which is worth a replay and no refusal.
fn instant(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let civil: DateTime = text.trim_end_matches('Z').parse().ok()?;
        let end = if civil.year() > 0 { Timestamp::MAX } else { Timestamp::MIN };
        Some(Offset::UTC.to_timestamp(civil).unwrap_or(end))
    })
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Keep {
    pub server: String,
    #[serde(rename = "for")]
    pub length: String,
    #[serde(default)]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Expect {
    #[serde(default)]
    pub server: Option<String>,
    pub event: String,
    #[serde(default)]
    pub between: Option<(Timestamp, Timestamp)>,
    #[serde(default, deserialize_with = "or_default")]
    pub never: bool,
}

//! The lines of a trace as they are written.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Debug, Deserialize, Serialize)]
pub struct Header {
    pub trace: String,
    #[serde(default)]
    pub note: String,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Observation {
    pub at: Timestamp,
    pub hub: State,
    pub telemetry: State,
    #[serde(default)]
    pub waiting: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<Server>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeps: Vec<Keep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail: Option<Mail>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
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
    #[serde(default)]
    pub server: String,
    #[serde(default)]
    pub groups: Vec<String>,
    #[serde(default)]
    pub admin: bool,
    #[serde(default)]
    pub profile: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub started: Option<Timestamp>,
    #[serde(default)]
    pub last_activity: Option<Timestamp>,
    #[serde(default)]
    pub pending: Option<String>,
    pub ready: bool,
    #[serde(default)]
    pub jupyter: Option<Jupyter>,
    #[serde(default)]
    pub gpus: Option<Vec<Gpu>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<f64>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Jupyter {
    #[serde(default)]
    pub last_activity: Option<Timestamp>,
    #[serde(default)]
    pub connections: u32,
    pub kernels: Vec<Kernel>,
    #[serde(default)]
    pub terminals: Vec<Terminal>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Kernel {
    pub id: String,
    pub state: String,
    #[serde(default)]
    pub last_activity: Option<Timestamp>,
    #[serde(default)]
    pub connections: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notebook: Option<String>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Terminal {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default)]
    pub last_activity: Option<Timestamp>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Gpu {
    pub id: String,
    #[serde(default)]
    pub model: String,
    #[serde(default)]
    pub sm: Option<f64>,
    #[serde(default)]
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
    pub covered: String,
    pub largest_gap: String,
}

/// An engine that is there but `null` was offered and not read; an absent one is not offered.
fn offered<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[derive(Debug, Deserialize, Serialize)]
pub struct Keep {
    pub server: String,
    #[serde(rename = "for")]
    pub length: String,
    pub by: String,
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
    #[serde(default)]
    pub never: bool,
}

//! How to reach a server of this kind, and how to read what it holds.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::names::Names;

/// Everything about one server.
#[derive(Clone, Debug)]
pub struct PrometheusSettings {
    /// The base of its API, without `/api/v1`.
    pub url: Url,
    /// Who we are.
    pub login: Login,
    /// Certificates to trust instead of the system's (PEM).
    pub ca_file: Option<PathBuf>,
    /// Our certificate and its key (PEM).
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The way there.
    pub proxy: Proxy,
    /// Sent with each request (`X-Scope-OrgID`).
    pub headers: Vec<(String, String)>,
    /// Sent with each query (`partial_response`, `dedup`, `deny_partial_response`).
    pub params: Vec<(String, String)>,
    /// How queries are sent.
    pub method: Method,
    /// Label matchers that every query gets (`cluster="a"`).
    pub matchers: Vec<String>,
    /// What metrics and labels are called.
    pub names: Names,
    /// Whether a card that shows nothing but its utilization may be judged by it.
    pub weak_utilization: bool,
    /// The longest wait for one answer.
    pub timeout: Duration,
    /// The most series that one answer may hold.
    pub max_series: usize,
    /// How far back one reading of the exporter speaks: its collect interval.
    pub collect_interval: Duration,
    /// How long after its start a pod may still be without its label.
    pub label_delay: Duration,
    /// From which share of its SMs on a card works.
    pub sm_threshold: f64,
    /// From which share of its memory bandwidth on a card works.
    pub dram_threshold: f64,
    /// A longer time without readings ends all certainty about what was before.
    pub max_gap: Duration,
    /// How far back history is read after a start.
    pub history: Duration,
}

/// Who we are to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// Nobody.
    None,
    /// The bearer of the token in this file, which is read anew for each look.
    Token(PathBuf),
    /// A name, and the password in this file.
    Password(String, PathBuf),
}

/// The way to the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// As `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say.
    Environment,
    /// Straight there.
    None,
    /// Through this proxy.
    Through(Url),
}

/// How queries are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// In the address; for servers and proxies that allow reading only.
    Get,
    /// As a form, which may be long.
    Post,
}

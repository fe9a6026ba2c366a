//! The config file as it is written. Every key is optional; unknown keys are errors.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use url::Url;

pub use super::values::Length;
use super::values::{Grace, Limit, Pattern, Share, Stops};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub mode: Option<Mode>,
    pub cycle: Option<Length>,
    #[serde(default)]
    pub hub: Hub,
    #[serde(default)]
    pub telemetry: Telemetry,
    #[serde(default)]
    pub policy: Policy,
    #[serde(default)]
    pub rule: Vec<Rule>,
    #[serde(default)]
    pub safety: Safety,
    #[serde(default)]
    pub cpu_servers: CpuServers,
    pub mail: Option<Mail>,
    pub webhook: Option<Webhook>,
    #[serde(default)]
    pub store: Store,
    #[serde(default)]
    pub cost: Cost,
    #[serde(default)]
    pub web: Web,
    #[serde(default)]
    pub agent: Agent,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Observe,
    Warn,
    Enforce,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hub {
    pub api_url: Option<Url>,
    pub api_token_file: Option<PathBuf>,
    pub public_url: Option<Url>,
    pub page_size: Option<u32>,
    pub concurrency: Option<usize>,
    pub request_timeout: Option<Length>,
    pub probe_kernels: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    pub source: Option<Source>,
    pub sm_threshold: Option<Share>,
    pub dram_threshold: Option<Share>,
    pub cpu_busy_threshold: Option<f64>,
    pub max_gap: Option<Length>,
    pub min_coverage: Option<Share>,
    pub warm_up: Option<Length>,
    #[serde(default)]
    pub nvml: Nvml,
    pub agents: Option<Agents>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Nvml,
    Agents,
    Prometheus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nvml {
    pub library: Option<PathBuf>,
    pub poll: Option<Length>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agents {
    #[serde(default)]
    pub nodes: Vec<String>,
    pub dns: Option<String>,
    pub token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    pub timeout: Option<Length>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    pub listen: Option<String>,
    pub token_file: Option<PathBuf>,
    pub tls_cert_file: Option<PathBuf>,
    pub tls_key_file: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub warn_after: Option<Length>,
    pub grace: Option<Grace>,
    pub remind_before: Option<Vec<Length>>,
    pub connected_warn_after: Option<Limit>,
    pub card_unused_warn_after: Option<Limit>,
    pub busy_kernel_limit: Option<Limit>,
    pub busy_kernel_action: Option<BusyKernelAction>,
    pub max_age: Option<Limit>,
    pub max_age_even_if_busy: Option<bool>,
    pub action: Option<StopAction>,
    pub interrupt: Option<bool>,
    pub save_wait: Option<Length>,
    #[serde(default)]
    pub when_waiting: Overrides,
    #[serde(default)]
    pub when_free: Overrides,
    #[serde(default)]
    pub keep: Keep,
    pub stop_hours: Option<StopHours>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keep {
    pub choices: Option<Vec<Length>>,
    pub weekly_budget: Option<Length>,
    pub reason: Option<ReasonNeed>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasonNeed {
    Optional,
    Required,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopHours {
    pub days: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub time_zone: Option<String>,
    #[serde(default)]
    pub holidays: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: String,
    #[serde(default, rename = "match")]
    pub matches: Match,
    pub exempt: Option<Exempt>,
    pub warn_after: Option<Length>,
    pub grace: Option<Grace>,
    pub remind_before: Option<Vec<Length>>,
    pub connected_warn_after: Option<Limit>,
    pub card_unused_warn_after: Option<Limit>,
    pub busy_kernel_limit: Option<Limit>,
    pub busy_kernel_action: Option<BusyKernelAction>,
    pub max_age: Option<Limit>,
    pub max_age_even_if_busy: Option<bool>,
    pub action: Option<StopAction>,
    pub interrupt: Option<bool>,
    pub save_wait: Option<Length>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopAction {
    StopServer,
    StopKernels,
}

/// Limits that stand for others while somebody, or nobody, waits for a card.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    pub warn_after: Option<Length>,
    pub grace: Option<Grace>,
    pub remind_before: Option<Vec<Length>>,
    pub connected_warn_after: Option<Limit>,
    pub card_unused_warn_after: Option<Limit>,
    pub busy_kernel_limit: Option<Limit>,
    pub max_age: Option<Limit>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BusyKernelAction {
    Notice,
    Stop,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    pub users: Option<Vec<Pattern>>,
    pub groups: Option<Vec<Pattern>>,
    pub servers: Option<Vec<Pattern>>,
    pub profiles: Option<Vec<Pattern>>,
    pub gpu_models: Option<Vec<Pattern>>,
    pub labels: Option<BTreeMap<String, Pattern>>,
    pub admin: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exempt {
    pub until: Option<String>,
    pub reason: String,
    pub owner: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Safety {
    pub max_stops_per_cycle: Option<Stops>,
    pub freeze_share: Option<Share>,
    pub freeze_min_sessions: Option<usize>,
    pub min_uptime: Option<Length>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuServers {
    pub cull: Option<bool>,
    pub idle_after: Option<Length>,
    pub max_age: Option<Limit>,
    pub admins: Option<bool>,
    pub default_servers: Option<bool>,
    pub named_servers: Option<bool>,
    pub remove_named_servers: Option<bool>,
    pub cull_users: Option<bool>,
    pub cull_admin_users: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mail {
    pub from: Option<String>,
    pub server: Option<String>,
    pub username: Option<String>,
    pub password_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    pub timeout: Option<Length>,
    pub time_zone: Option<String>,
    pub max_per_owner: Option<usize>,
    pub max_in_all: Option<usize>,
    pub templates: Option<PathBuf>,
    #[serde(default)]
    pub address: Vec<String>,
    #[serde(default)]
    pub admins: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    pub url_file: PathBuf,
    pub ca_file: Option<PathBuf>,
    pub timeout: Option<Length>,
    pub events: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Store {
    pub path: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    pub currency: Option<String>,
    #[serde(default)]
    pub rates: Vec<Rate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    pub gpu_model: Pattern,
    pub per_hour: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    pub metrics: Option<Metrics>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metrics {
    Open,
    Token,
}

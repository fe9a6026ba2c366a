//! The config file as it is written. Every key is optional; unknown keys are errors.

mod policy;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use url::Url;

pub use super::values::Length;
use super::values::{Cap, Pattern, Share};
pub use policy::{
    BusyKernelAction, CpuServers, Exempt, Keep, Overrides, Policy, ReasonNeed, Rule, Safety, StopAction,
    StopHours,
};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    pub mode: Option<Mode>,
    pub cycle: Option<Length>,
    #[serde(default)]
    pub hub: Hub,
    #[serde(default)]
    pub telemetry: Telemetry,
    pub kubernetes: Option<Kubernetes>,
    #[serde(default)]
    pub policy: Policy,
    #[serde(default)]
    pub intent: Intent,
    #[serde(default)]
    pub demand: Demand,
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
pub struct Demand {
    pub promql: Option<String>,
    pub prometheus: Option<Prometheus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    pub expected_duration_cap: Option<Cap>,
    pub owner: Option<String>,
    pub team: Option<String>,
    pub project: Option<String>,
    pub expected_duration: Option<String>,
    pub expected_until: Option<String>,
    pub user_options: Option<bool>,
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
    pub prometheus: Option<Prometheus>,
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prometheus {
    pub url: String,
    pub token_file: Option<PathBuf>,
    pub username: Option<String>,
    pub password_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    pub cert_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
    pub proxy: Option<String>,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    pub method: Option<Method>,
    #[serde(default)]
    pub matchers: Vec<String>,
    #[serde(default)]
    pub metrics: BTreeMap<String, String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub weak_utilization: Option<bool>,
    pub timeout: Option<Length>,
    pub max_series: Option<usize>,
    pub collect_interval: Option<Length>,
    pub label_delay: Option<Length>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Get,
    Post,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kubernetes {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    pub namespaces: Option<Vec<String>>,
    pub resources: Option<Vec<String>>,
    pub direct: Option<bool>,
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
    pub metrics_users: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metrics {
    Open,
    Token,
}

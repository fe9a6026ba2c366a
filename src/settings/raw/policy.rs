//! What is decided by, as it is written: `[policy]`, `[[rule]]`, `[safety]`, `[cpu_servers]`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::values::{Grace, Length, Limit, Pattern, Share, Stops};

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

//! The flags of jupyterhub-idle-culler, so that an existing service entry keeps working.

use clap::Args;
use jiff::SignedDuration;
use url::Url;

use super::SettingsError;

/// Each with the meaning it has there; times are whole seconds. Both `--cull-every` and `--cull_every`
/// are understood, and a switch may stand alone or with `=true` or `=false`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Flags of jupyterhub-idle-culler (times in seconds)")]
pub struct Flags {
    /// Idle limit: `policy.warn_after` for servers with a card, and the limit for servers without one
    #[arg(long, global = true, value_name = "SECONDS")]
    pub timeout: Option<u32>,
    /// Time between two cycles; at most `telemetry.max_gap` is used
    #[arg(long, global = true, value_name = "SECONDS")]
    pub cull_every: Option<u32>,
    /// Age from which on servers are stopped although they are used; 0 is never
    #[arg(long, global = true, value_name = "SECONDS")]
    pub max_age: Option<u32>,
    /// Requests in flight at once; 0 is no limit
    #[arg(long, global = true, value_name = "NUMBER")]
    pub concurrency: Option<usize>,
    /// Users per request; 0 is the Hub's default
    #[arg(long, global = true, value_name = "NUMBER")]
    pub api_page_size: Option<u32>,
    /// The Hub's API
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<Url>,
    /// Whether admins' servers without a card are stopped, too; with `--cull-users`, whether admins are
    /// deleted, which they are only with `=true`
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub cull_admin_users: Option<bool>,
    /// Whether default servers without a card are stopped
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub cull_default_servers: Option<bool>,
    /// Whether named servers without a card are stopped
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub cull_named_servers: Option<bool>,
    /// Whether users who were not there for `--timeout` are deleted
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub cull_users: Option<bool>,
    /// Whether a stopped named server is removed, which may delete its volume
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub remove_named_servers: Option<bool>,
    /// Whether the Hub uses internal_ssl; it is noticed from the environment anyway
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub ssl_enabled: Option<bool>,
    /// Where the certificates of internal_ssl are; the environment tells it anyway
    #[arg(long, global = true, value_name = "DIR")]
    pub internal_certs_location: Option<String>,
}

impl Flags {
    /// Whether servers without a card are to be culled: whoever sets an idle limit this way says so.
    pub fn ask_for_cpu_servers(&self) -> bool {
        self.timeout.is_some() || self.max_age.is_some_and(|age| age > 0) || self.cull_users == Some(true)
    }

    /// `--timeout` as a length of time.
    pub fn idle_limit(&self) -> Result<Option<SignedDuration>, SettingsError> {
        match self.timeout {
            Some(0) => Err(SettingsError::key(
                "--timeout",
                "0 would stop everybody at once; leave it out or set seconds",
            )),
            seconds => Ok(seconds.map(seconds_of)),
        }
    }

    /// `--cull-every`, or half of `--timeout` as there.
    pub fn cycle(&self) -> Option<SignedDuration> {
        let half = self.timeout.map(|seconds| seconds / 2);
        self.cull_every.filter(|seconds| *seconds > 0).or(half).map(|seconds| seconds_of(seconds.max(1)))
    }

    /// `--max-age`; an inner `None` is never.
    pub fn max_age(&self) -> Option<Option<SignedDuration>> {
        self.max_age.map(|seconds| (seconds > 0).then(|| seconds_of(seconds)))
    }
}

fn seconds_of(seconds: u32) -> SignedDuration {
    SignedDuration::from_secs(i64::from(seconds))
}

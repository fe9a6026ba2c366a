//! File, environment and flags → validated settings.
//!
//! Nothing here opens a connection; files are read (the config, secrets), and that is all.

mod agent;
mod cost;
mod demand;
mod environment;
mod error;
mod flags;
mod intent;
mod kubernetes;
mod mail;
mod policy;
mod prometheus;
mod raw;
mod stop_hours;
mod telemetry;
mod values;
mod webhook;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use secrecy::SecretString;
use url::Url;

pub use agent::{AgentFlags, AgentSettings};
pub use cost::Cost;
pub use demand::DemandSource;
pub use environment::{Environment, Service};
pub use error::SettingsError;
pub use flags::Flags;
pub use kubernetes::Kubernetes;
pub use mail::PostSettings;
pub use values::length;
use values::{Limit, Pattern, Share};
pub use webhook::Announcements;

use crate::hub::HubSettings;
use crate::message::Wording;
use crate::policy::{CullUsers, Mode, Policy};
pub use telemetry::Source;

/// Everything the service needs to know.
#[derive(Debug)]
pub struct Settings {
    /// Time between two cycles.
    pub cycle: Duration,
    /// The Hub.
    pub hub: HubSettings,
    /// Whether kernels may be asked.
    pub probe_kernels: bool,
    /// The address people use, where it is set.
    pub public_url: Option<Url>,
    /// Where the cards are read.
    pub source: Source,
    /// Whom it is asked how many wait for a card, where anybody is.
    pub demand: Option<DemandSource>,
    /// The cluster in which sessions run in pods, where one is named.
    pub kubernetes: Option<Kubernetes>,
    /// What is decided by.
    pub policy: Policy,
    /// Mail; always there in the modes `warn` and `enforce`.
    pub post: Option<PostSettings>,
    /// What is announced, and where.
    pub announcements: Option<Announcements>,
    /// Where the ledger is.
    pub store: PathBuf,
    /// What cards cost.
    pub cost: Cost,
    /// The absolute address of the pages, where it is known.
    pub page: Option<Url>,
    /// Whether the metrics are shown to everybody.
    pub metrics_are_open: bool,
    /// Whether the metrics name people.
    pub metrics_name_users: bool,
    /// Which users are deleted; nobody where absent.
    pub cull_users: Option<CullUsers>,
}

/// Where settings come from.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The config file; the defaults where there is none.
    pub file: Option<PathBuf>,
    /// The environment.
    pub environment: Environment,
    /// `--mode`, which wins over the file.
    pub mode: Option<Mode>,
    /// What an entry for jupyterhub-idle-culler passes; wins over the file.
    pub flags: Flags,
    /// What is wrong with the command line itself, if so: nothing can be loaded then.
    pub misuse: Option<String>,
}

impl Sources {
    /// Reads and checks everything.
    pub fn load(&self) -> Result<Settings, SettingsError> {
        if let Some(problem) = &self.misuse {
            return Err(SettingsError::new(problem.trim()));
        }
        let (file, text) = read(self.file.as_deref())?;
        self.settings(&file).map_err(|error| match &self.file {
            Some(path) if error.file.is_none() => error.locate(&text).in_file(path),
            _ => error,
        })
    }

    fn settings(&self, file: &raw::File) -> Result<Settings, SettingsError> {
        let mut policy = policy::policy(file, &self.flags)?;
        policy.mode = self.mode.unwrap_or(policy.mode);
        let cycle =
            self.flags.cycle().map_or_else(|| cycle(&policy), |every| Ok(std(every.min(policy.max_gap))))?;
        policy.cycle = SignedDuration::try_from(cycle).unwrap_or(policy.max_gap);
        let cull_users = policy::cull_users(&file.cpu_servers, policy.cpu_servers.as_ref(), &self.flags)?;
        let post =
            file.mail.as_ref().map(|mail| mail::post(mail, policy.mode, &self.environment)).transpose()?;
        if policy.mode > Mode::Observe && post.is_none() && policy.cpu_servers.is_none() {
            let what = format!(
                "mode \"{}\" warns people by mail: add a [mail] section, or use \"observe\"",
                policy.mode
            );
            return Err(SettingsError::key("mode", what));
        }
        let public_url = file.hub.public_url.clone().or_else(|| self.environment.public_url());
        Ok(Settings {
            page: self.environment.page_url(public_url.as_ref()),
            metrics_name_users: file.web.metrics_users.unwrap_or_default(),
            metrics_are_open: file.web.metrics.is_some_and(|metrics| matches!(metrics, raw::Metrics::Open)),
            cycle,
            hub: HubSettings { chosen: intent::chosen(&file.intent)?, ..self.hub(&file.hub)? },
            probe_kernels: file.hub.probe_kernels.unwrap_or(true),
            public_url,
            source: telemetry::source(&file.telemetry, &policy)?,
            demand: demand::source(&file.demand, file.telemetry.prometheus.as_ref(), &policy)?,
            kubernetes: file.kubernetes.as_ref().map(kubernetes::settings).transpose()?,
            policy,
            post,
            announcements: file.webhook.as_ref().map(webhook::announcements).transpose()?,
            cost: Cost::new(&file.cost)?,
            cull_users,
            store: file.store.path.clone().unwrap_or_else(|| PathBuf::from("gpu-culler.sqlite")),
        })
    }

    fn hub(&self, raw: &raw::Hub) -> Result<HubSettings, SettingsError> {
        let missing = |key, variable| {
            SettingsError::key(
                key,
                format!(
                    "not known: JupyterHub passes it to a managed service as ${variable}; elsewhere set it here"
                ),
            )
        };
        let api_url = match (
            self.flags.url.as_ref().or(raw.api_url.as_ref()),
            self.environment.get("JUPYTERHUB_API_URL"),
        ) {
            (Some(url), _) => url.clone(),
            (None, Some(url)) => Url::parse(url)
                .map_err(|e| SettingsError::new(format!("$JUPYTERHUB_API_URL is no address: {e}")))?,
            (None, None) => return Err(missing("hub.api_url", "JUPYTERHUB_API_URL")),
        };
        let token = match (&raw.api_token_file, self.environment.secret("JUPYTERHUB_API_TOKEN")) {
            (Some(path), _) => secret_file("hub.api_token_file", path)?,
            (None, Some(token)) => token,
            (None, None) => return Err(missing("hub.api_token_file", "JUPYTERHUB_API_TOKEN")),
        };
        Ok(HubSettings {
            api_url,
            token,
            page_size: self.flags.api_page_size.or(raw.page_size).filter(|size| *size > 0),
            concurrency: self.flags.concurrency.or(raw.concurrency).map_or(10, requests_at_once),
            request_timeout: raw.request_timeout.map_or(Duration::from_secs(30), |time| std(time.0)),
            tls: self.environment.tls(),
            chosen: None,
        })
    }
}

/// The policy of a config file, or the defaults where there is none, for a replay: a trace tells
/// itself whether mail went out.
pub fn policy_of(file: Option<&Path>) -> Result<Policy, SettingsError> {
    let (raw, text) = read(file)?;
    let policy = policy::policy(&raw, &Flags::default()).map_err(|error| match file {
        Some(path) => error.locate(&text).in_file(path),
        None => error,
    })?;
    Ok(Policy { can_warn: true, ..policy })
}

/// The words of a config file's mails, for a look at them: the rest of the file need not be complete.
pub fn wording_of(file: Option<&Path>) -> Result<Wording, SettingsError> {
    let (raw, text) = read(file)?;
    let templates = raw.mail.as_ref().and_then(|mail| mail.templates.as_deref());
    templates.map_or_else(|| Ok(Wording::default()), mail::wording).map_err(|error| match file {
        Some(path) => error.locate(&text).in_file(path),
        None => error,
    })
}

fn read(file: Option<&Path>) -> Result<(raw::File, String), SettingsError> {
    let Some(path) = file else {
        return Ok((raw::File::default(), String::new()));
    };
    let text = std::fs::read_to_string(path).map_err(|e| {
        SettingsError::new(format!("the config file cannot be read ({e}); check the path and its rights"))
            .in_file(path)
    })?;
    let raw = toml::from_str(&text).map_err(|e| SettingsError::from_toml(&e, &text).in_file(path))?;
    Ok((raw, text))
}

/// A cycle longer than `max_gap` would look like a gap each time.
fn cycle(policy: &Policy) -> Result<Duration, SettingsError> {
    let cycle = policy.cycle;
    if cycle > policy.max_gap {
        let gap = values::in_words(policy.max_gap);
        return Err(SettingsError::key(
            "cycle",
            format!("must not be longer than telemetry.max_gap ({gap}): every pause would count as a gap"),
        ));
    }
    Ok(std(cycle))
}

/// No limit means as many as a Hub can take without harm.
fn requests_at_once(wanted: usize) -> usize {
    if wanted == 0 { 100 } else { wanted.min(100) }
}

/// A secret, from a file of its own so that it stands in no config and no process list.
fn secret_file(key: &str, path: &Path) -> Result<SecretString, SettingsError> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        SettingsError::key(
            key,
            format!("{} cannot be read ({e}); check the path and its rights", path.display()),
        )
    })?;
    match text.trim() {
        "" => Err(SettingsError::key(key, format!("{} is empty", path.display()))),
        secret => Ok(SecretString::from(secret.to_owned())),
    }
}

fn std(duration: SignedDuration) -> Duration {
    duration.unsigned_abs()
}

#[cfg(test)]
mod tests;

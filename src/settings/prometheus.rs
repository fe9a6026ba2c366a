//! `[telemetry.prometheus]`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use url::Url;

use super::{SettingsError, raw, std};
use crate::policy::Policy;
use crate::telemetry::PrometheusSettings;
use crate::telemetry::prometheus::{Login, Method, Names, Proxy, Role, Tag};

/// What exporters take for their collect interval unless told otherwise.
const COLLECT: Duration = Duration::from_secs(30);

/// How late exporters have been seen to label a new pod.
const LABELS: Duration = Duration::from_secs(600);

/// The section, checked.
pub(super) fn settings(
    raw: Option<&raw::Prometheus>,
    policy: &Policy,
) -> Result<PrometheusSettings, SettingsError> {
    let raw = raw.ok_or_else(|| {
        let what = "\"prometheus\" needs [telemetry.prometheus] with url = \"http://prometheus:9090\"";
        SettingsError::key("telemetry.source", what)
    })?;
    let length =
        |length: Option<super::values::Length>, default| length.map_or(default, |length| std(length.0));
    Ok(PrometheusSettings {
        url: url(&raw.url)?,
        login: login(raw)?,
        ca_file: raw.ca_file.clone(),
        identity: identity(raw)?,
        proxy: proxy(raw.proxy.as_deref())?,
        headers: pairs(&raw.headers),
        params: params(&raw.params)?,
        method: match raw.method {
            Some(raw::Method::Get) => Method::Get,
            Some(raw::Method::Post) | None => Method::Post,
        },
        matchers: raw.matchers.iter().map(|one| matcher(one)).collect::<Result<_, _>>()?,
        names: Names {
            metrics: named("metrics", &raw.metrics, Role::ALL.map(|role| (role.key(), role)).as_slice())?,
            labels: named("labels", &raw.labels, Tag::ALL.map(|tag| (tag.key(), tag)).as_slice())?,
        },
        weak_utilization: raw.weak_utilization.unwrap_or(false),
        timeout: length(raw.timeout, Duration::from_secs(30)),
        max_series: raw.max_series.unwrap_or(100_000).max(1),
        collect_interval: length(raw.collect_interval, COLLECT),
        label_delay: length(raw.label_delay, LABELS),
        sm_threshold: policy.thresholds.sm,
        dram_threshold: policy.thresholds.dram,
        max_gap: std(policy.max_gap),
        history: std(longest(policy)),
    })
}

fn bad(key: &str, what: impl std::fmt::Display) -> SettingsError {
    SettingsError::key(&format!("telemetry.prometheus.{key}"), what)
}

/// The longest limit that any session may have: what lies further back decides nothing.
fn longest(policy: &Policy) -> SignedDuration {
    let limits = &policy.limits;
    let own = [Some(limits.warn_after), limits.connected_warn_after, limits.card_unused_warn_after];
    let of_rules = policy.rules.iter().flat_map(|rule| {
        let over = &rule.overrides;
        [over.warn_after, over.connected_warn_after.flatten(), over.card_unused_warn_after.flatten()]
    });
    // Some of it was before the limit began to count.
    own.into_iter().chain(of_rules).flatten().max().unwrap_or_default() + policy.limits.grace
}

fn url(text: &str) -> Result<Url, SettingsError> {
    let whole =
        |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none();
    let url = Url::parse(text).ok().filter(whole).ok_or_else(|| {
        bad(
            "url",
            "is no address like \"http://prometheus.monitoring:9090\" or \"https://thanos.example.org/api\"",
        )
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("url", "holds a name or password: give username and password_file instead"));
    }
    if url.path().trim_end_matches('/').ends_with("/api/v1") {
        return Err(bad("url", "leave out /api/v1, which is added to it"));
    }
    Ok(url)
}

fn login(raw: &raw::Prometheus) -> Result<Login, SettingsError> {
    match (&raw.token_file, &raw.username, &raw.password_file) {
        (None, None, None) => Ok(Login::None),
        (Some(token), None, None) => Ok(Login::Token(token.clone())),
        (None, Some(name), Some(password)) => Ok(Login::Password(name.clone(), password.clone())),
        (Some(_), ..) => Err(bad("token_file", "give either token_file, or username and password_file")),
        (None, Some(_), None) => Err(bad("username", "needs password_file beside it")),
        (None, None, Some(_)) => Err(bad("password_file", "needs username beside it")),
    }
}

fn identity(raw: &raw::Prometheus) -> Result<Option<(PathBuf, PathBuf)>, SettingsError> {
    match (&raw.cert_file, &raw.key_file) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some((cert.clone(), key.clone()))),
        (Some(_), None) => Err(bad("cert_file", "needs key_file beside it")),
        (None, Some(_)) => Err(bad("key_file", "needs cert_file beside it")),
    }
}

fn proxy(text: Option<&str>) -> Result<Proxy, SettingsError> {
    match text {
        None => Ok(Proxy::Environment),
        Some("none") => Ok(Proxy::None),
        Some(text) => {
            let url = Url::parse(text).ok().filter(Url::has_host);
            url.map(Proxy::Through)
                .ok_or_else(|| bad("proxy", "is neither \"none\" nor an address like \"http://proxy:3128\""))
        }
    }
}

fn pairs(all: &BTreeMap<String, String>) -> Vec<(String, String)> {
    all.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn params(all: &BTreeMap<String, String>) -> Result<Vec<(String, String)>, SettingsError> {
    match all.keys().find(|name| matches!(name.as_str(), "query" | "time")) {
        Some(ours) => Err(bad("params", format!("\"{ours}\" is set for each query by the service itself"))),
        None => Ok(pairs(all)),
    }
}

/// A matcher has to be whole, or it would take part of the query's braces with it.
fn matcher(text: &str) -> Result<String, SettingsError> {
    let wrong =
        || bad("matchers", format!("`{text}` is no label matcher like `cluster=\"a\"` or `job=~\"dcgm.*\"`"));
    let name_end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).ok_or_else(wrong)?;
    let (name, rest) = text.split_at(name_end);
    let rest = ["=~", "!~", "!=", "="].iter().find_map(|sign| rest.strip_prefix(sign)).ok_or_else(wrong)?;
    let inside = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or_else(wrong)?;
    let mut escaped = false;
    let whole = inside.chars().all(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        !ends && !c.is_control()
    });
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && whole && !escaped { Ok(text.to_owned()) } else { Err(wrong()) }
}

fn named<T: Copy + Ord>(
    table: &str,
    given: &BTreeMap<String, String>,
    known: &[(&str, T)],
) -> Result<BTreeMap<T, String>, SettingsError> {
    let name = |(key, name): (&String, &String)| {
        let known_keys = || known.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", ");
        let (_, what) = known
            .iter()
            .find(|(known, _)| known == key)
            .ok_or_else(|| bad(table, format!("unknown key `{key}`; known here: {}", known_keys())))?;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        if name.is_empty() || !name.chars().all(fits) {
            return Err(bad(
                table,
                format!("\"{name}\" of `{key}` is no name: letters, digits, _ and : only"),
            ));
        }
        Ok((*what, name.clone()))
    };
    given.iter().map(name).collect()
}

#[cfg(test)]
mod tests;

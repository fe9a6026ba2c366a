//! The limits for when somebody, or nobody, waits for a card, and who is asked how many do.

use jiff::SignedDuration;

use super::{SettingsError, prometheus, raw, values};
use crate::policy::{Demand, Limits, Overrides, Policy};
use crate::telemetry::PrometheusSettings;

/// Whom an expression is asked that gives how many wait.
#[derive(Clone, Debug)]
pub struct DemandSource {
    /// The expression.
    pub promql: String,
    /// The section in which the server stands.
    pub section: &'static str,
    /// The server.
    pub server: Box<PrometheusSettings>,
}

/// `[demand]`, checked: the server is its own, or else that of the cards.
pub(super) fn source(
    raw: &raw::Demand,
    cards: Option<&raw::Prometheus>,
    policy: &Policy,
) -> Result<Option<DemandSource>, SettingsError> {
    let promql = match raw.promql.as_deref().map(str::trim) {
        None if raw.prometheus.is_none() => return Ok(None),
        None | Some("") => {
            let what = "write an expression that gives how many wait, like \"count(…) or vector(0)\"";
            return Err(SettingsError::key("demand.promql", what));
        }
        Some(promql) => promql.to_owned(),
    };
    let Some(server) = raw.prometheus.as_ref().or(cards) else {
        let what = "nobody can be asked: add [demand.prometheus] (or [telemetry.prometheus]) with a url";
        return Err(SettingsError::key("demand.promql", what));
    };
    let section = if raw.prometheus.is_some() { "demand.prometheus" } else { "telemetry.prometheus" };
    let named = |error: SettingsError| SettingsError {
        what: error.what.replace("telemetry.prometheus", section),
        ..error
    };
    let server = prometheus::settings(Some(server), policy).map_err(named)?;
    Ok(Some(DemandSource { promql, section, server: Box::new(server) }))
}

/// What a config file says of demand. A table that would do the contrary of its name is refused.
pub fn demand(raw: &raw::Policy, limits: &Limits) -> Result<Demand, SettingsError> {
    let demand = Demand { when_waiting: overrides(&raw.when_waiting), when_free: overrides(&raw.when_free) };
    compare("when_waiting", &demand.when_waiting, limits, "longer", |it, usual| it > usual)?;
    compare("when_free", &demand.when_free, limits, "shorter", |it, usual| it < usual)?;
    Ok(demand)
}

fn overrides(raw: &raw::Overrides) -> Overrides {
    Overrides {
        warn_after: raw.warn_after.map(|time| time.0),
        grace: raw.grace.map(|grace| grace.0),
        remind_before: raw.remind_before.as_ref().map(|all| all.iter().map(|time| time.0).collect()),
        connected_warn_after: raw.connected_warn_after.map(|limit| limit.0),
        card_unused_warn_after: raw.card_unused_warn_after.map(|limit| limit.0),
        busy_kernel_limit: raw.busy_kernel_limit.map(|limit| limit.0),
        max_age: raw.max_age.map(|limit| limit.0),
        ..Overrides::default()
    }
}

fn compare(
    table: &str,
    changed: &Overrides,
    limits: &Limits,
    than: &str,
    is_wrong: impl Fn(SignedDuration, SignedDuration) -> bool,
) -> Result<(), SettingsError> {
    let never = |limit: Option<SignedDuration>| limit.unwrap_or(SignedDuration::MAX);
    let pairs = [
        ("warn_after", changed.warn_after, limits.warn_after),
        ("grace", changed.grace, limits.grace),
        ("connected_warn_after", changed.connected_warn_after.map(never), never(limits.connected_warn_after)),
        (
            "card_unused_warn_after",
            changed.card_unused_warn_after.map(never),
            never(limits.card_unused_warn_after),
        ),
        ("busy_kernel_limit", changed.busy_kernel_limit.map(never), never(limits.busy_kernel_limit)),
        ("max_age", changed.max_age.map(never), never(limits.max_age)),
    ];
    for (key, changed, usual) in pairs {
        if changed.is_some_and(|changed| is_wrong(changed, usual)) {
            let usual =
                if usual == SignedDuration::MAX { "never".to_owned() } else { values::in_words(usual) };
            return Err(SettingsError::key(
                &format!("policy.{table}.{key}"),
                format!("must not be {than} than policy.{key} ({usual})"),
            ));
        }
    }
    Ok(())
}

//! From what stands in the file to a [`Policy`], with the defaults.

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan};

use super::demand::demand;
use super::intent::intents;
use super::raw;
use super::stop_hours::stop_hours;
use super::{Flags, Limit, SettingsError};
use crate::policy::{
    BusyKernelAction, CpuServers, CullUsers, Exemption, KeepOffer, KernelSource, Limits, Manner, Match, Mode,
    Overrides, Policy, ReasonNeed, Rule, Safety, StopBudget, Thresholds,
};

const fn minutes(minutes: i64) -> SignedDuration {
    SignedDuration::from_mins(minutes)
}

const fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

/// The policy of a config file.
pub fn policy(file: &raw::File, flags: &Flags) -> Result<Policy, SettingsError> {
    let telemetry = &file.telemetry;
    let stop_hours = file.policy.stop_hours.as_ref().map(stop_hours).transpose()?;
    let zone = stop_hours.as_ref().map_or(TimeZone::UTC, |hours| hours.zone.clone());
    let rules = file.rule.iter().map(|rule| self::rule(rule, &zone)).collect::<Result<Vec<_>, _>>()?;
    unique_names(&rules)?;
    let limits = limits(&file.policy, flags)?;
    let ratio = |share: Option<super::Share>, default: f64| share.map_or(default, |share| share.0);
    let max_gap = telemetry.max_gap.map_or(minutes(3), |gap| gap.0);
    Ok(Policy {
        mode: mode(file.mode, flags),
        cycle: file.cycle.map_or(minutes(1), |cycle| cycle.0),
        thresholds: Thresholds {
            sm: positive("telemetry.sm_threshold", ratio(telemetry.sm_threshold, 0.01))?,
            dram: positive("telemetry.dram_threshold", ratio(telemetry.dram_threshold, 0.01))?,
            cpu_cores: positive(
                "telemetry.cpu_busy_threshold",
                telemetry.cpu_busy_threshold.unwrap_or(0.25),
            )?,
        },
        max_gap,
        min_coverage: ratio(telemetry.min_coverage, 0.95),
        warm_up: telemetry.warm_up.map_or(minutes(15), |time| time.0),
        kernels: match file.hub.probe_kernels {
            Some(false) => KernelSource::HubOnly,
            Some(true) | None => KernelSource::Probed,
        },
        demand: demand(&file.policy, &limits)?,
        intents: intents(&file.intent, &zone)?,
        limits,
        can_warn: file.mail.is_some(),
        cpu_servers: cpu_servers(&file.cpu_servers, flags)?,
        rules,
        keep: keep(&file.policy.keep),
        stop_hours,
        safety: Safety {
            max_stops: file.safety.max_stops_per_cycle.map_or(StopBudget::Share(0.1), |stops| stops.0),
            freeze_share: positive("safety.freeze_share", ratio(file.safety.freeze_share, 0.5))?,
            freeze_min_sessions: file.safety.freeze_min_sessions.unwrap_or(10),
            // For so long the time before the start, when nobody watched, may not count as a gap.
            min_uptime: file.safety.min_uptime.map_or(max_gap, |time| time.0),
        },
    })
}

/// An entry for jupyterhub-idle-culler means to stop servers, and has no word for modes.
fn mode(mode: Option<raw::Mode>, flags: &Flags) -> Mode {
    match mode {
        None if flags.ask_for_cpu_servers() => Mode::Enforce,
        None | Some(raw::Mode::Observe) => Mode::Observe,
        Some(raw::Mode::Warn) => Mode::Warn,
        Some(raw::Mode::Enforce) => Mode::Enforce,
    }
}

/// A threshold of zero would call every reading active, or freeze always.
fn positive(key: &str, value: f64) -> Result<f64, SettingsError> {
    if value.is_finite() && value > 0.0 {
        return Ok(value);
    }
    Err(SettingsError::key(key, format!("{value} must be more than 0")))
}

fn limits(raw: &raw::Policy, flags: &Flags) -> Result<Limits, SettingsError> {
    let limit = |limit: Option<Limit>, default| limit.map_or(Some(default), |limit| limit.0);
    let warn_after = raw.warn_after.map_or(hours(1), |time| time.0);
    Ok(Limits {
        warn_after: flags.idle_limit()?.unwrap_or(warn_after),
        grace: raw.grace.map_or(hours(1), |grace| grace.0),
        remind_before: raw
            .remind_before
            .as_ref()
            .map_or(vec![minutes(15)], |all| all.iter().map(|t| t.0).collect()),
        connected_warn_after: limit(raw.connected_warn_after, hours(4)),
        card_unused_warn_after: limit(raw.card_unused_warn_after, hours(24)),
        busy_kernel_limit: raw.busy_kernel_limit.and_then(|limit| limit.0),
        busy_kernel_action: raw.busy_kernel_action.map_or(BusyKernelAction::Notice, busy_kernel_action),
        max_age: flags.max_age().unwrap_or_else(|| raw.max_age.and_then(|limit| limit.0)),
        max_age_even_if_busy: raw.max_age_even_if_busy.unwrap_or(false),
        manner: Manner {
            kernels_only: raw.action == Some(raw::StopAction::StopKernels),
            interrupt: raw.interrupt.unwrap_or(false),
            save_wait: save_wait(raw.save_wait)?.unwrap_or(minutes(1)),
        },
    })
}

/// Everything else waits as long.
fn save_wait(raw: Option<raw::Length>) -> Result<Option<SignedDuration>, SettingsError> {
    match raw.map(|time| time.0) {
        Some(time) if time > minutes(10) => Err(SettingsError::key(
            "policy.save_wait",
            "at most \"10m\": warnings and other stops wait meanwhile",
        )),
        time => Ok(time),
    }
}

fn busy_kernel_action(raw: raw::BusyKernelAction) -> BusyKernelAction {
    match raw {
        raw::BusyKernelAction::Notice => BusyKernelAction::Notice,
        raw::BusyKernelAction::Stop => BusyKernelAction::Stop,
    }
}

/// Servers without a card are none of our business unless the file or the flags say so.
fn cpu_servers(raw: &raw::CpuServers, flags: &Flags) -> Result<Option<CpuServers>, SettingsError> {
    if !(raw.cull.unwrap_or(false) || flags.ask_for_cpu_servers()) {
        return Ok(None);
    }
    let switch = |flag: Option<bool>, key: Option<bool>, default| flag.or(key).unwrap_or(default);
    let idle_after = raw.idle_after.map_or(hours(1), |time| time.0);
    Ok(Some(CpuServers {
        idle_after: flags.idle_limit()?.unwrap_or(idle_after),
        max_age: flags.max_age().unwrap_or_else(|| raw.max_age.and_then(|limit| limit.0)),
        admins: switch(flags.cull_admin_users, raw.admins, true),
        default_servers: switch(flags.cull_default_servers, raw.default_servers, true),
        named_servers: switch(flags.cull_named_servers, raw.named_servers, true),
        remove_named: switch(flags.remove_named_servers, raw.remove_named_servers, false),
    }))
}

/// Users are deleted by the same limit, and admins only where somebody says so in words.
pub fn cull_users(
    raw: &raw::CpuServers,
    servers: Option<&CpuServers>,
    flags: &Flags,
) -> Result<Option<CullUsers>, SettingsError> {
    if !flags.cull_users.or(raw.cull_users).unwrap_or(false) {
        return Ok(None);
    }
    let Some(servers) = servers else {
        return Err(SettingsError::key("cpu_servers.cull_users", "needs `cull = true` beside it"));
    };
    let admins = flags.cull_admin_users.or(raw.cull_admin_users).unwrap_or(false);
    Ok(Some(CullUsers { inactive_after: servers.idle_after, admins }))
}

fn keep(raw: &raw::Keep) -> KeepOffer {
    let choices = raw.choices.as_ref().map(|all| all.iter().map(|time| time.0).collect());
    KeepOffer {
        choices: choices.unwrap_or_else(|| vec![hours(2), hours(8), hours(24)]),
        weekly_budget: raw.weekly_budget.map_or(hours(72), |time| time.0),
        reason: match raw.reason {
            Some(raw::ReasonNeed::Required) => ReasonNeed::Required,
            Some(raw::ReasonNeed::Optional) | None => ReasonNeed::Optional,
        },
    }
}

fn rule(raw: &raw::Rule, zone: &TimeZone) -> Result<Rule, SettingsError> {
    let patterns = |list: &Option<Vec<super::Pattern>>| {
        list.as_ref().map(|all| all.iter().map(|pattern| pattern.0.clone()).collect())
    };
    let matches = &raw.matches;
    Ok(Rule {
        name: raw.name.clone(),
        matches: Match {
            users: patterns(&matches.users),
            groups: patterns(&matches.groups),
            servers: patterns(&matches.servers),
            profiles: patterns(&matches.profiles),
            gpu_models: patterns(&matches.gpu_models),
            labels: matches
                .labels
                .as_ref()
                .map(|labels| labels.iter().map(|(key, pattern)| (key.clone(), pattern.0.clone())).collect()),
            admin: matches.admin,
        },
        exempt: raw.exempt.as_ref().map(|exempt| exemption(exempt, zone)).transpose()?,
        overrides: Overrides {
            warn_after: raw.warn_after.map(|time| time.0),
            grace: raw.grace.map(|grace| grace.0),
            remind_before: raw.remind_before.as_ref().map(|all| all.iter().map(|time| time.0).collect()),
            connected_warn_after: raw.connected_warn_after.map(|limit| limit.0),
            card_unused_warn_after: raw.card_unused_warn_after.map(|limit| limit.0),
            busy_kernel_limit: raw.busy_kernel_limit.map(|limit| limit.0),
            busy_kernel_action: raw.busy_kernel_action.map(busy_kernel_action),
            max_age: raw.max_age.map(|limit| limit.0),
            max_age_even_if_busy: raw.max_age_even_if_busy,
            kernels_only: raw.action.map(|action| action == raw::StopAction::StopKernels),
            interrupt: raw.interrupt,
            save_wait: save_wait(raw.save_wait)?,
        },
    })
}

fn unique_names(rules: &[Rule]) -> Result<(), SettingsError> {
    let mut seen = BTreeSet::new();
    match rules.iter().find(|rule| !seen.insert(&rule.name)) {
        Some(twice) => Err(SettingsError::key(
            "rule.name",
            format!("two rules are called \"{}\"; rename one", twice.name),
        )),
        None => Ok(()),
    }
}

/// An end date protects through that whole day.
fn exemption(raw: &raw::Exempt, zone: &TimeZone) -> Result<Exemption, SettingsError> {
    let until = raw.until.as_deref().map(|text| {
        let end =
            text.parse::<Date>().and_then(|date| date.checked_add(1.day())?.to_zoned_datetime(zone.clone()));
        end.map(|end| end.timestamp()).map_err(|_| {
            SettingsError::key("exempt.until", format!("\"{text}\" is no date like \"2027-03-31\""))
        })
    });
    Ok(Exemption { until: until.transpose()?, reason: raw.reason.clone(), owner: raw.owner.clone() })
}

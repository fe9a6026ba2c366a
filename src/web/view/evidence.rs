//! What else led to a verdict, line by line.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::super::status::Known;
use crate::domain::{KernelState, Queue};
use crate::message::{intent, pages, reasons};
use crate::policy::{Policy, limits_of};

/// What else led to the verdict.
pub fn evidence(
    known: &Known,
    policy: Option<&Policy>,
    queue: Option<&Queue>,
    zone: &TimeZone,
    now: Timestamp,
) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let mut row = |key: &str, value: String| rows.push((key.to_owned(), value));
    let rule = known.decision.judgement.rule.as_deref();
    row("Rule", rule.map_or_else(|| "none; the defaults apply".to_owned(), pages::name));
    if let Some(policy) = policy {
        let waiting = queue.map(|queue| queue.for_server(&known.session.server.id));
        let limits = limits_of(rule, waiting, policy);
        let or_never =
            |limit: Option<jiff::SignedDuration>| limit.map_or_else(|| "never".to_owned(), pages::length);
        row("Warned after nobody and nothing", pages::length(limits.warn_after));
        row("Warned after nothing, though connected", or_never(limits.connected_warn_after));
        row("Warned after the card alone rested", or_never(limits.card_unused_warn_after));
        row("Time between warning and stop", pages::length(limits.grace));
    }
    let judgement = &known.decision.judgement;
    let declared = intent::rows(judgement.intent.as_deref(), judgement.declared, now, zone);
    declared.into_iter().for_each(|(key, value)| row(key, value));
    if let Some(started) = known.session.server.started {
        row("Started", pages::moment(started, now, zone));
    }
    for held in known.session.holds.iter().filter_map(reasons::hold) {
        row("Held by", held);
    }
    match &known.session.jupyter {
        Err(why) => row("Kernels", pages::name(why)),
        Ok(jupyter) => {
            row("Connected clients", jupyter.connections.to_string());
            for kernel in &jupyter.kernels {
                let state: String = KernelState::clone(&kernel.state).into();
                let used = kernel.last_activity.map(|at| pages::moment(at, now, zone));
                let name = pages::name(kernel.notebook.as_deref().unwrap_or(&kernel.id));
                let used = used.unwrap_or_else(|| "not known when".to_owned());
                row(&format!("Kernel {name}"), format!("{}, last used {used}", pages::name(&state)));
            }
        }
    }
    if let Some(cores) = known.session.cpu {
        row("CPU", format!("{cores:.2} cores since the last look"));
    }
    let warning = known.record.as_ref().and_then(|record| record.warning.as_ref());
    if let Some(warning) = warning {
        row("Warned", pages::moment(warning.accepted, now, zone));
    }
    rows
}

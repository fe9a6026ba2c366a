//! `explain`: everything that is known about one session, and what follows from it.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::look::{Look, look};
use super::{Format, say, say_json};
use crate::domain::{Jupyter, ServerId};
use crate::message::{bytes_in_words, intent, power, reasons};
use crate::policy::{CardEvidence, ClockMove, Decision, Limits, Record, Session, Watch, Why, limits_of};
use crate::settings::Sources;

/// Explains one session; `false` where there is none such.
pub async fn run(sources: &Sources, id: &ServerId, format: Format) -> anyhow::Result<bool> {
    let look = look(sources).await?;
    let sessions = look.report.snapshot.sessions.as_ref().map_err(|why| anyhow::anyhow!(why.clone()))?;
    let session = sessions.iter().find(|session| session.server.id == *id);
    let (Some(session), Some(decision)) = (session, look.report.plan.of(id)) else {
        let known: Vec<String> = sessions.iter().map(|s| s.server.id.to_string()).collect();
        say(&format!("{id} has no running server; running: {}", known.join(", ")));
        return Ok(false);
    };
    let lines = explanation(&look, session, decision);
    match format {
        Format::Text => lines.iter().for_each(|(key, value)| say(&format!("{key:<22} {value}"))),
        Format::Json => say_json(&json!({
            "server": id,
            "verdict": reasons::verdict_word(&decision.judgement.verdict),
            "evidence": lines.iter().map(|(key, value)| json!([key, value])).collect::<Vec<_>>(),
        })),
    }
    Ok(true)
}

type Lines = Vec<(String, String)>;

fn explanation(look: &Look, session: &Session, decision: &Decision) -> Lines {
    let now = look.report.at;
    let verdict = &decision.judgement.verdict;
    let mut lines = vec![
        line("server", decision.server.to_string()),
        line("verdict", format!("{}: {}", reasons::verdict_word(verdict), reasons::verdict(verdict))),
        line("would do", reasons::would_do(decision)),
        line(
            "rule",
            decision.judgement.rule.clone().unwrap_or_else(|| "none; the defaults apply".to_owned()),
        ),
    ];
    let judgement = &decision.judgement;
    let declared = intent::rows(judgement.intent.as_deref(), judgement.declared, now, &TimeZone::UTC);
    lines.extend(declared.into_iter().map(|(key, value)| line(key.to_lowercase(), value)));
    lines.extend(hub(session, now));
    lines.extend(cards(session, look.ledger.records.get(&decision.server), now));
    lines.extend(session.holds.iter().filter_map(reasons::hold).map(|held| line("held by", held)));
    lines.extend(jupyter(session.jupyter.as_ref(), now));
    lines.extend(slow_clocks(look, &decision.server));
    if let Some(cores) = session.cpu {
        lines.push(line("CPU", format!("{cores:.2} cores since the last look")));
    }
    lines.extend(clocks(decision, look.ledger.records.get(&decision.server), now));
    lines.extend(limits(&limits_of(
        decision.judgement.rule.as_deref(),
        look.report.plan.waiting_for(&decision.server),
        &look.policy,
    )));
    lines.extend(look.report.plan.waiting.as_ref().map(|queue| line("waiting", reasons::queue(queue))));
    lines.extend(ladder(look.ledger.records.get(&decision.server)));
    lines
}

fn line(key: impl Into<String>, value: impl Into<String>) -> (String, String) {
    (key.into(), value.into())
}

/// An instant and how long ago; a stamp from the future is a clock that is wrong somewhere.
fn stamp(at: Option<Timestamp>, now: Timestamp) -> String {
    match at {
        None => "not known".to_owned(),
        Some(at) if at > now => {
            format!("{} (in the future: a clock is wrong; counts as now)", reasons::time(at))
        }
        Some(at) => format!("{} ({} ago)", reasons::time(at), reasons::length(now.duration_since(at))),
    }
}

fn hub(session: &Session, now: Timestamp) -> Lines {
    let server = &session.server;
    let state = match &server.pending {
        Some(pending) => format!("pending: {pending}"),
        None if server.ready => "ready".to_owned(),
        None => "not ready".to_owned(),
    };
    vec![
        line("started", stamp(server.started, now)),
        line("Hub's last activity", stamp(server.last_activity, now)),
        line("Hub's state", state),
    ]
}

fn cards(session: &Session, record: Option<&Record>, now: Timestamp) -> Lines {
    let gpus = match &session.gpus {
        Err(why) => return vec![line("cards", format!("not known: {why}"))],
        Ok(gpus) if gpus.is_empty() => return vec![line("cards", "none")],
        Ok(gpus) => gpus,
    };
    let evidence = |id| record.and_then(|record| record.evidence.cards.get(id));
    gpus.iter()
        .map(|gpu| {
            let memory = gpu.memory_used.map_or_else(|| "unknown memory".to_owned(), bytes_in_words);
            let told = evidence(&gpu.id).map(|card| card_words(card, now)).unwrap_or_default();
            let power = gpu.power.map(|drawn| format!(", {}", power(&drawn))).unwrap_or_default();
            line(format!("card {}", gpu.id), format!("{}, {memory} held{power}; {told}", gpu.model))
        })
        .collect()
}

fn card_words(card: &CardEvidence, now: Timestamp) -> String {
    let moved = match card.moved_by {
        ClockMove::Activity => "worked",
        ClockMove::Gap => "could not be watched",
        ClockMove::FirstSeen => "was not seen before",
    };
    let readable = match &card.watch {
        Watch::Readable => String::new(),
        Watch::Unreadable(why) => format!("; cannot be read now: {why}"),
    };
    let share = card.coverage(now) * 100.0;
    format!(
        "{moved} until {}, watched {share:.0} % of the time since{readable}",
        stamp(Some(card.clock), now)
    )
}

fn jupyter(jupyter: Result<&Jupyter, &Why>, now: Timestamp) -> Lines {
    let Jupyter { last_activity, connections, kernels, terminals } = match jupyter {
        Err(why) => return vec![line("kernels", &**why)],
        Ok(jupyter) => jupyter,
    };
    let mut lines = vec![
        line("server's own activity", stamp(*last_activity, now)),
        line("connected clients", connections.to_string()),
    ];
    for kernel in kernels {
        let state: String = kernel.state.clone().into();
        let name = reasons::name(kernel.notebook.as_deref().unwrap_or(&kernel.id));
        lines.push(line(
            format!("kernel {name}"),
            format!("{state}, last used {}", stamp(kernel.last_activity, now)),
        ));
    }
    for terminal in terminals {
        lines.push(line(
            format!("terminal {}", reasons::name(&terminal.name)),
            format!("last used {}", stamp(terminal.last_activity, now)),
        ));
    }
    lines
}

/// A clock that runs behind would make its stamps look idle: they count for as much later.
fn slow_clocks(look: &Look, id: &ServerId) -> Lines {
    let hub = ("Hub's clock", Some(look.slow.hub).filter(|behind| !behind.is_zero()));
    let server = ("server's clock", look.slow.servers.get(id).copied());
    let told = |(whose, behind): (&str, Option<jiff::SignedDuration>)| {
        let words = format!("{} behind ours; its stamps count as much later", reasons::length(behind?));
        Some(line(whose, words))
    };
    [hub, server].into_iter().filter_map(told).collect()
}

fn clocks(decision: &Decision, record: Option<&Record>, now: Timestamp) -> Lines {
    let Some(clocks) = decision.judgement.clocks else {
        return Vec::new();
    };
    let moved_by = match record.and_then(|record| record.evidence.used_by.as_ref()) {
        Some(sign) => format!("; moved by {}", reasons::use_sign(Some(sign))),
        None => "; not used since the start".to_owned(),
    };
    vec![
        line("card clock", stamp(clocks.card, now)),
        line("use clock", stamp(Some(clocks.used), now) + &moved_by),
        line("presence clock", stamp(Some(clocks.present), now)),
    ]
}

fn limits(limits: &Limits) -> Lines {
    let or_never =
        |limit: Option<jiff::SignedDuration>| limit.map_or_else(|| "never".to_owned(), reasons::length);
    vec![line(
        "limits",
        format!(
            "warn_after {}, connected_warn_after {}, card_unused_warn_after {}, busy_kernel_limit {}, max_age {}, grace {}",
            reasons::length(limits.warn_after),
            or_never(limits.connected_warn_after),
            or_never(limits.card_unused_warn_after),
            or_never(limits.busy_kernel_limit),
            or_never(limits.max_age),
            reasons::length(limits.grace)
        ),
    )]
}

fn ladder(record: Option<&Record>) -> Lines {
    let Some(record) = record else { return Vec::new() };
    let warned = record.warning.as_ref().map(|warning| {
        let (accepted, deadline) = (reasons::time(warning.accepted), reasons::time(warning.deadline));
        line("warned", format!("{accepted}; deadline {deadline}"))
    });
    let kept = record
        .keep
        .as_ref()
        .map(|keep| line("kept", format!("by {} until {}", keep.by, reasons::time(keep.until))));
    warned.into_iter().chain(kept).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;
    use crate::domain::{Kernel, KernelState, Terminal};

    #[test]
    fn stamps_that_are_missing_or_ahead_are_shown_as_what_they_are() {
        let now: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
        for (stamped, words) in [
            (None, "not known"),
            (Some("2026-12-01T08:59:00Z"), "2026-12-01 08:59:00Z (1m ago)"),
            (
                Some("2026-12-01T09:00:01Z"),
                "2026-12-01 09:00:01Z (in the future: a clock is wrong; counts as now)",
            ),
        ] {
            let last_activity = stamped.map(|stamped| stamped.parse().unwrap());
            let seen = Jupyter {
                last_activity,
                connections: 0,
                kernels: vec![Kernel {
                    id: "k1".to_owned(),
                    state: KernelState::Idle,
                    last_activity,
                    connections: 0,
                    notebook: None,
                }],
                terminals: vec![Terminal { name: "1".to_owned(), last_activity }],
            };
            let shown = jupyter(Ok(&seen), now);
            assert_eq!(shown[0], line("server's own activity", words));
            assert_eq!(shown[2], line("kernel k1", format!("idle, last used {words}")));
            assert_eq!(shown[3], line("terminal 1", format!("last used {words}")));
        }
    }
}

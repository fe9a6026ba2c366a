//! `plan`: what one cycle would do, and why.

use std::collections::BTreeSet;

use comfy_table::{ContentArrangement, Table, presets::UTF8_HORIZONTAL_ONLY};
use serde_json::json;

use super::look::{Look, look};
use super::{Format, exempt, say, say_json};
use crate::cycle::CycleReport;
use crate::domain::{Pod, ServerId};
use crate::message::intent::Declaration;
use crate::message::reasons;
use crate::observer::Card;
use crate::policy::{Action, Decision, IdleKind, Verdict, exemptions};
use crate::settings::{Cost, Sources};

/// Prints the plan of one cycle; `false` where something could not be learned.
pub async fn run(sources: &Sources, format: Format) -> anyhow::Result<bool> {
    let Look { report, ledger, policy, notes, cost, .. } = look(sources).await?;
    let decisions = &report.plan.decisions;
    let exempted = exemptions(&policy, &ledger, &report.plan);
    match format {
        Format::Json => {
            decisions.iter().for_each(|decision| say_json(&as_json(decision)));
            exempted.iter().for_each(|exempted| say_json(&exempt::as_json(exempted, &cost)));
            report.pods.iter().for_each(|pod| say_json(&pod_as_json(pod)));
        }
        Format::Text => {
            say(&format!(
                "mode {}, {} servers, at {}",
                policy.mode,
                decisions.len(),
                reasons::time(report.at)
            ));
            if !decisions.is_empty() {
                say(&table(decisions).to_string());
            }
            say(&idle_cards(&report, &cost));
            report.plan.waiting.iter().for_each(|queue| say(&reasons::queue(queue)));
            exempted.iter().for_each(|exempted| say(&exempt::line(exempted, &cost, report.at)));
            report.cards.iter().filter_map(shared).for_each(|line| say(&line));
            for card in report.cards.iter().filter(|card| !card.unattributed.is_empty()) {
                for process in &card.unattributed {
                    let uid = process.uid.map_or_else(|| "unknown".to_owned(), |uid| uid.to_string());
                    let claims = process.claims.as_ref().map(|id| format!(", says it is {id}'s"));
                    say(&format!(
                        "unattributed: card {} is held by pid {} ({}, uid {uid}{})",
                        card.sample.id,
                        process.pid,
                        process.name,
                        claims.unwrap_or_default()
                    ));
                }
            }
            report.pods.iter().for_each(|pod| say(&pod_line(pod)));
        }
    }
    for line in notes.iter().chain(&report.troubles) {
        tracing::warn!("{line}");
    }
    Ok(report.troubles.is_empty() && report.snapshot.sessions.is_ok())
}

/// A pod that holds cards and is no server's.
fn pod_line(pod: &Pod) -> String {
    let since = pod.started.or(pod.created);
    format!(
        "unattributed: pod {} on {} holds {} since {}, and is no server of this Hub",
        pod.name,
        pod.node.as_deref().unwrap_or("no node"),
        pod.asks_for(),
        since.map_or_else(|| "not known".to_owned(), reasons::time)
    )
}

fn pod_as_json(pod: &Pod) -> serde_json::Value {
    json!({
        "pod": pod.name.to_string(),
        "node": pod.node,
        "cards": pod.cards,
        "since": pod.started.or(pod.created),
    })
}

/// Who shares a card (time-slicing, MPS), which is idle only as a whole.
fn shared(card: &Card) -> Option<String> {
    let servers: Vec<String> = card.servers.iter().map(ToString::to_string).collect();
    let strangers = card.unattributed.len() + card.workloads.len();
    let among = match (servers.len(), strangers) {
        (0, _) | (1, 0) => return None,
        (_, 0) => servers.join(", "),
        _ => format!("{} and {strangers} unattributed processes or pods", servers.join(", ")),
    };
    Some(format!("shared: card {} is held by {among}; it is idle only when nobody uses it", card.sample.id))
}

/// How much is idle, and what that costs where prices are known.
fn idle_cards(report: &CycleReport, cost: &Cost) -> String {
    let at_rest = |verdict: &Verdict| verdict.at_rest().is_some_and(|idle| idle.kind != IdleKind::AtWork);
    let idle = || report.plan.decisions.iter().filter(|decision| at_rest(&decision.judgement.verdict));
    let ids: BTreeSet<&ServerId> = idle().map(|decision| &decision.server).collect();
    let sessions = || report.snapshot.sessions.iter().flatten().filter(|s| ids.contains(&s.server.id));
    let declared =
        idle().filter(|decision| matches!(decision.judgement.verdict, Verdict::Protected(_))).count();
    let declared = match declared {
        0 => String::new(),
        some => format!("; {some} of them within their declared time"),
    };
    let models: Vec<&str> =
        sessions().flat_map(|s| s.gpus.iter().flatten()).map(|gpu| gpu.model.as_str()).collect();
    let prices: Vec<f64> = models.iter().filter_map(|model| cost.per_hour(model)).collect();
    let price = if prices.is_empty() {
        String::new()
    } else {
        format!(", {:.2} {} an hour", prices.iter().sum::<f64>(), cost.currency)
    };
    format!("{} idle sessions hold {} cards{price}{declared}", sessions().count(), models.len())
}

fn table(decisions: &[Box<Decision>]) -> Table {
    let mut table = Table::new();
    *table.style_mut() = UTF8_HORIZONTAL_ONLY;
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["server", "verdict", "would do", "why"]);
    for decision in decisions {
        let verdict = &decision.judgement.verdict;
        table.add_row([
            decision.server.to_string(),
            reasons::verdict_word(verdict).to_owned(),
            reasons::would_do(decision),
            reasons::verdict(verdict),
        ]);
    }
    table
}

fn as_json(decision: &Decision) -> serde_json::Value {
    let verdict = &decision.judgement.verdict;
    let action = decision.action.as_ref().map(|action| match action {
        Action::Warn { .. } => "warn",
        Action::Remind { .. } => "remind",
        Action::Stop => "stop",
        Action::Unmark => "unmark",
        Action::Withdraw => "withdraw",
        Action::Notice(_) => "notice",
    });
    json!({
        "server": decision.server,
        "started": decision.started,
        "verdict": reasons::verdict_word(verdict),
        "reason": reasons::verdict(verdict),
        "action": action,
        "held_back": decision.held_back.as_ref().map(reasons::held_back),
        "rule": decision.judgement.rule,
        "intent": Declaration::of(&decision.judgement),
        "card_clock": decision.judgement.clocks.and_then(|clocks| clocks.card),
        "use_clock": decision.judgement.clocks.map(|clocks| clocks.used),
        "presence_clock": decision.judgement.clocks.map(|clocks| clocks.present),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::GpuSample;

    fn card(servers: &[&str]) -> Card {
        let sample = GpuSample::unread("GPU-1");
        let servers = servers.iter().map(|user| ServerId::new(*user, "")).collect();
        Card { machine: None, sample, servers, holds: vec![], unattributed: vec![], workloads: vec![] }
    }

    #[test]
    fn a_pod_that_is_no_session_is_said_with_its_node_and_cards() {
        let mut pod = Pod::named("lab", "batch-7");
        pod.cards = [("nvidia.com/gpu".to_owned(), 2)].into();
        let line = "unattributed: pod lab/batch-7 on no node holds 2 nvidia.com/gpu since not known, and is no server of \
                    this Hub";
        assert_eq!(pod_line(&pod), line);
    }

    #[test]
    fn who_shares_a_card_is_said() {
        assert_eq!(shared(&card(&[])), None);
        assert_eq!(shared(&card(&["ann"])), None);
        let line = "shared: card GPU-1 is held by ann/, bob/; it is idle only when nobody uses it";
        assert_eq!(shared(&card(&["ann", "bob"])).as_deref(), Some(line));
    }
}

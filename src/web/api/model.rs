//! Sessions and decisions as JSON. `openapi.json` beside this describes them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::domain::{GpuSample, Queue, QueueLine, Ratio};
use crate::message::intent::Declaration;
use crate::message::reasons;
use crate::policy::Verdict;
use crate::store::Logged;
use crate::web::status::{Known, Other};

/// A session with everything that is known of it.
pub fn session(known: &Known, now: Timestamp) -> Value {
    let judgement = &known.decision.judgement;
    let warning = known.record.as_ref().and_then(|record| record.warning.as_ref());
    let idle_since = match judgement.verdict {
        Verdict::Idle(idle) => Some(idle.since),
        Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_) => None,
    };
    json!({
        "server": known.session.server.id,
        "user": known.session.server.id.user,
        "started": known.session.server.started,
        "verdict": reasons::verdict_word(&judgement.verdict),
        "reason": reasons::verdict(&judgement.verdict),
        "idle_since": idle_since,
        "rule": judgement.rule,
        "intent": Declaration::of(judgement),
        "card_clock": judgement.clocks.and_then(|clocks| clocks.card),
        "use_clock": judgement.clocks.map(|clocks| clocks.used),
        "presence_clock": judgement.clocks.map(|clocks| clocks.present),
        "cards": known.session.gpus.as_ref().ok().map(|gpus| gpus.iter().map(card).collect::<Vec<_>>()),
        "warned": warning.map(|warning| warning.accepted),
        "deadline": known.deadline(now),
        "kept": known.kept(now).map(|keep| json!({ "until": keep.until, "by": keep.by, "reason": keep.reason })),
        "would_do": reasons::would_do(&known.decision),
        "no_address": known.no_address,
    })
}

/// Who waits for a card. Whose cards would serve them is no business of other owners.
pub fn queue(queue: &Queue) -> Value {
    let line = |line: &QueueLine| json!({ "count": line.count, "for": line.what, "since": line.since });
    queue.lines.iter().map(line).collect()
}

/// A server without a known card.
pub fn other(other: &Other) -> Value {
    json!({
        "server": other.server,
        "user": other.server.user,
        "verdict": other.verdict,
        "reason": other.why.as_ref(),
        "cards": other.no_card.then(|| json!([])),
    })
}

/// What happened once.
pub fn decision(logged: &Logged) -> Value {
    let entry = &logged.entry;
    json!({
        "number": logged.number,
        "at": entry.at,
        "server": entry.server,
        "event": entry.event,
        "reason": entry.reason,
    })
}

/// Peaks since the last look; what could not be read is null and not zero.
fn card(gpu: &GpuSample) -> Value {
    json!({
        "id": gpu.id,
        "model": gpu.model,
        "sm": gpu.sm.map(Ratio::get),
        "memory_bandwidth": gpu.dram.map(Ratio::get),
        "memory_used": gpu.memory_used,
    })
}

//! Fills the notices that mails are made of from what was observed and decided.

use jiff::Timestamp;

use crate::domain::Queue;
use crate::message::{CardNotice, SessionNotice, reasons};
use crate::policy::{Clocks, Decision, Idle, Record, Session, Target, Verdict};

/// What the owner has to know about one session.
pub fn session_notice(
    session: &Session,
    decision: &Decision,
    record: &Record,
    deadline: Timestamp,
    queue: Option<&Queue>,
) -> Option<SessionNotice> {
    let clocks = decision.judgement.clocks?;
    let Verdict::Idle(idle) = decision.judgement.verdict else {
        return None;
    };
    let waiting = queue.filter(|_| decision.judgement.for_demand());
    let waiting = waiting.map(|queue| queue.line_for(&decision.server));
    let kernels = match decision.target.as_ref()? {
        Target::Server => None,
        Target::Kernels(kernels) => Some(kernels.iter().map(reasons::kernel_name).collect()),
    };
    let save_wait = decision.save_wait;
    let notice = notice(session, &clocks, idle, record, deadline);
    let (intent, declared) = (decision.judgement.intent.clone(), decision.judgement.declared);
    Some(SessionNotice { waiting, intent, declared, kernels, save_wait, ..notice })
}

fn notice(
    session: &Session,
    clocks: &Clocks,
    idle: Idle,
    record: &Record,
    deadline: Timestamp,
) -> SessionNotice {
    let after_start = |at: Timestamp| (at > record.started).then_some(at);
    SessionNotice {
        server: session.server.id.clone(),
        cards: session.gpus.iter().flatten().map(card).collect(),
        holds: session.holds.clone(),
        notebooks: notebooks(session),
        idle_since: idle.since,
        card_active: clocks.card_active,
        used: after_start(clocks.used),
        used_by: record.evidence.used_by.clone(),
        present: after_start(clocks.present),
        started: Some(record.started),
        kind: idle.kind,
        limit: idle.limit,
        deadline,
        waiting: None,
        intent: None,
        declared: None,
        kernels: None,
        save_wait: None,
    }
}

fn card(gpu: &crate::domain::GpuSample) -> CardNotice {
    CardNotice { model: gpu.model.clone(), memory_used: gpu.memory_used, id: gpu.id.0.clone() }
}

fn notebooks(session: &Session) -> Vec<String> {
    let kernels = session.jupyter.iter().flat_map(|jupyter| &jupyter.kernels);
    kernels.into_iter().filter_map(|kernel| kernel.notebook.clone()).collect()
}

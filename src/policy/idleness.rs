//! From clocks and limits to a verdict with its reason.

use jiff::{SignedDuration, Timestamp};

use super::protection::protection;
use super::schedule::later;
use super::{
    BusyReason, ClockMove, Clocks, Evidence, Idle, IdleKind, Judgement, Keep, KernelSource, LimitKind,
    Limits, Policy, ProtectedReason, Rule, Session, UnknownReason, Verdict, Watch,
};
use crate::domain::KernelState;

/// Judges one session.
pub fn judge(
    session: &Session,
    evidence: Option<&Evidence>,
    keep: Option<&Keep>,
    policy: &Policy,
    now: Timestamp,
) -> Judgement {
    let rule = policy.rule_for(session);
    let limits = rule.map_or_else(|| policy.limits.clone(), |r| r.overrides.over(&policy.limits));
    let clocks = evidence.map(clocks);
    let reached = clocks.and_then(|clocks| reached(&clocks, session, &limits, now));
    let verdict = match (protection(session, rule, keep, now), evidence) {
        (Some(ProtectedReason::NoCard), _) => return without_card(session, rule, clocks, policy, now),
        (Some(reason), _) => Verdict::Protected(reason),
        (None, Some(evidence)) => verdict(session, evidence, reached, policy, now),
        (None, None) => Verdict::Unknown(UnknownReason::HubRecord("started")),
    };
    Judgement {
        verdict,
        reached: reached.map(|reached| reached.limit),
        quiet_since: reached.map(|reached| reached.quiet_since),
        clocks,
        rule: rule.map(|r| r.name.clone()),
    }
}

fn without_card(
    session: &Session,
    rule: Option<&Rule>,
    clocks: Option<Clocks>,
    policy: &Policy,
    now: Timestamp,
) -> Judgement {
    let asked_for = policy.cpu_servers.as_ref();
    let verdict = asked_for.map_or(Verdict::Protected(ProtectedReason::NoCard), |cpu| {
        cpu.judge(session, policy.thresholds.cpu_cores, now)
    });
    let idle = match &verdict {
        Verdict::Idle(idle) => Some(*idle),
        Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_) => None,
    };
    Judgement {
        verdict,
        reached: idle.map(|idle| idle.limit),
        quiet_since: idle.map(|idle| idle.since),
        clocks,
        rule: rule.map(|r| r.name.clone()),
    }
}

/// The limits that apply to a session: those of the first rule that matches, over the defaults.
pub fn limits_of(rule: Option<&str>, policy: &Policy) -> Limits {
    let rule = rule.and_then(|name| policy.rules.iter().find(|r: &&Rule| r.name == name));
    rule.map_or_else(|| policy.limits.clone(), |r| r.overrides.over(&policy.limits))
}

fn clocks(evidence: &Evidence) -> Clocks {
    let active = evidence.cards.values().filter_map(|card| card.last_active).max();
    Clocks {
        card: evidence
            .card_clock()
            .map(|card| card.clock.max(evidence.given_up.map_or(card.clock, |cards| cards.clock))),
        card_active: active.max(evidence.given_up.and_then(|cards| cards.last_active)),
        used: evidence.used,
        present: evidence.present,
    }
}

/// A limit that is reached.
#[derive(Clone, Copy)]
struct Reached {
    limit: LimitKind,
    /// Since when the session is idle by it.
    since: Timestamp,
    /// The earliest of the clocks of all limits that are reached.
    quiet_since: Timestamp,
}

/// The first limit that is reached. A busy kernel on a resting card is work, whatever the card or the
/// calendar says.
fn reached(clocks: &Clocks, session: &Session, limits: &Limits, now: Timestamp) -> Option<Reached> {
    let card = clocks.card?;
    let worked = card.max(clocks.used);
    let nobody = worked.max(clocks.present);
    let started = session.server.started.map_or(now, |started| started.min(now));
    let busy = has_busy_kernel(session);
    let over = |since: Timestamp, limit: Option<SignedDuration>| {
        limit.is_some_and(|l| now.duration_since(since) >= l)
    };
    let aged = over(started, limits.max_age) && over(card, Some(limits.warn_after));
    // Each limit with the clock that decides it and the instant from which its idleness is told.
    let all = [
        (LimitKind::Nobody, over(nobody, Some(limits.warn_after)), nobody, nobody),
        (LimitKind::Connected, over(worked, limits.connected_warn_after), worked, worked),
        (LimitKind::CardUnused, over(card, limits.card_unused_warn_after) && !busy, card, card),
        (LimitKind::MaxAge, aged && !busy, card, started),
    ];
    let mut over = all.into_iter().filter(|(_, reached, _, _)| *reached);
    let (limit, _, clock, since) = over.next()?;
    let quiet_since = over.map(|(_, _, clock, _)| clock).fold(clock, Timestamp::min);
    Some(Reached { limit, since, quiet_since })
}

fn verdict(
    session: &Session,
    evidence: &Evidence,
    reached: Option<Reached>,
    policy: &Policy,
    now: Timestamp,
) -> Verdict {
    if let Some(reason) = unsettled(session) {
        return Verdict::Unknown(reason);
    }
    let Some(Reached { limit, since, .. }) = reached else {
        return in_use(session, evidence, policy);
    };
    match doubt(session, evidence, policy, now) {
        Some(reason) => Verdict::Unknown(reason),
        None => Verdict::Idle(Idle { since, kind: kind(evidence), limit }),
    }
}

/// Whether the Hub's record or the cards are such that no clock means anything.
fn unsettled(session: &Session) -> Option<UnknownReason> {
    let server = &session.server;
    if let Some(pending) = &server.pending {
        return Some(UnknownReason::Pending(pending.clone()));
    }
    if !server.ready {
        return Some(UnknownReason::HubRecord("ready"));
    }
    if server.last_activity.is_none() {
        return Some(UnknownReason::HubRecord("last_activity"));
    }
    session.gpus.as_ref().err().map(|why| UnknownReason::Cards(why.clone()))
}

/// What keeps a session from being taken for idle although a limit is reached.
fn doubt(session: &Session, evidence: &Evidence, policy: &Policy, now: Timestamp) -> Option<UnknownReason> {
    let started = session.server.started.map(|started| started.min(now));
    let young = started.map(|started| later(started, policy.warm_up)).filter(|end| now < *end);
    let coverage = evidence.coverage(now);
    unreadable_card(evidence)
        .or_else(|| unreadable_kernels(session, policy))
        .or_else(|| young.map(UnknownReason::WarmUp))
        .or_else(|| (coverage < policy.min_coverage).then_some(UnknownReason::Coverage(coverage)))
}

fn unreadable_card(evidence: &Evidence) -> Option<UnknownReason> {
    evidence.cards.iter().find_map(|(id, card)| match &card.watch {
        Watch::Unreadable(why) => Some(UnknownReason::Card(id.clone(), why.clone())),
        Watch::Readable => None,
    })
}

fn unreadable_kernels(session: &Session, policy: &Policy) -> Option<UnknownReason> {
    let jupyter = match &session.jupyter {
        Ok(jupyter) => jupyter,
        Err(_) if policy.kernels == KernelSource::HubOnly => return None,
        Err(why) => return Some(UnknownReason::Kernels(why.clone())),
    };
    if jupyter.terminals.iter().any(|terminal| terminal.last_activity.is_none()) {
        return Some(UnknownReason::Kernels("a terminal has no last_activity".to_owned()));
    }
    jupyter.kernels.iter().find_map(|kernel| match &kernel.state {
        KernelState::Other(state) => Some(UnknownReason::KernelState(state.clone())),
        _ if kernel.last_activity.is_none() => {
            Some(UnknownReason::KernelState("no last_activity".to_owned()))
        }
        _ => None,
    })
}

/// Why a session none of whose limits is reached is left alone: what moved its latest clock.
fn in_use(session: &Session, evidence: &Evidence, policy: &Policy) -> Verdict {
    if has_busy_kernel(session) {
        return Verdict::Busy(BusyReason::Kernel);
    }
    if let Some(cores) = session.cpu.filter(|cores| *cores >= policy.thresholds.cpu_cores) {
        return Verdict::Busy(BusyReason::Cpu(cores));
    }
    let Some(card) = evidence.card_clock() else {
        return Verdict::Busy(BusyReason::Present(evidence.present));
    };
    let people = evidence.used.max(evidence.present);
    if let Some(cards) = evidence.given_up.filter(|cards| cards.clock > card.clock.max(people)) {
        let worked = cards.last_active.filter(|worked| *worked == cards.clock);
        return worked.map_or_else(|| gap(evidence, cards.clock), |at| Verdict::Busy(BusyReason::Card(at)));
    }
    match card.moved_by {
        ClockMove::Activity if card.clock >= people => Verdict::Busy(BusyReason::Card(card.clock)),
        ClockMove::Gap if card.clock > people => gap(evidence, card.clock),
        ClockMove::FirstSeen if card.clock > people => {
            Verdict::Unknown(UnknownReason::WatchedSince(card.clock))
        }
        _ if evidence.used >= evidence.present => {
            Verdict::Busy(BusyReason::Used(evidence.used, evidence.used_by.clone()))
        }
        _ => Verdict::Busy(BusyReason::Present(evidence.present)),
    }
}

fn gap(evidence: &Evidence, until: Timestamp) -> Verdict {
    Verdict::Unknown(unreadable_card(evidence).unwrap_or(UnknownReason::Gap(until)))
}

fn kind(evidence: &Evidence) -> IdleKind {
    let cards = || evidence.cards.values();
    if cards().all(|card| card.processes == Some(0)) {
        IdleKind::Reserved
    } else if clocks(evidence).card_active.is_none() {
        IdleKind::NeverUsed
    } else {
        IdleKind::Held
    }
}

fn has_busy_kernel(session: &Session) -> bool {
    let kernels = session.jupyter.iter().flat_map(|jupyter| &jupyter.kernels);
    kernels.into_iter().any(|kernel| kernel.state == KernelState::Busy)
}

//! From clocks and limits to a verdict with its reason.

use jiff::{SignedDuration, Timestamp};

use super::protection::protection;
use super::schedule::later;
use super::{
    BusyKernelAction, BusyReason, ClockMove, Clocks, Evidence, Idle, IdleKind, Judgement, Keep, KernelSource,
    LimitKind, Limits, Policy, ProtectedReason, Session, UnknownReason, Verdict, Waiting, Watch, waits,
};
use crate::domain::KernelState;

/// Judges one session.
pub fn judge(
    session: &Session,
    evidence: Option<&Evidence>,
    keep: Option<&Keep>,
    waiting: Option<u32>,
    policy: &Policy,
    now: Timestamp,
) -> Judgement {
    let rule = policy.rule_for(session);
    let case = evidence.map(|evidence| Case { session, evidence, clocks: clocks(evidence), policy, now });
    let limits = policy.limits_for(rule, waiting);
    let reached = case.as_ref().and_then(|case| case.reached(&limits));
    let (verdict, reached) = match (protection(session, rule, keep, now), &case) {
        (Some(ProtectedReason::NoCard), _) => without_card(session, policy, now),
        (Some(reason), _) => (Verdict::Protected(reason), reached),
        (None, Some(case)) => (case.verdict(reached.as_ref(), &limits), reached),
        (None, None) => (Verdict::Unknown(UnknownReason::HubRecord("started")), reached),
    };
    let intent = policy.intents.of(&session.server).map(Box::new);
    let declared = intent.as_ref().and_then(|it| policy.intents.declared(it, session.server.started));
    let usual = policy.limits_for(rule, None);
    let usually_reached = if usual == limits || !session.may_hold_cards() {
        reached.is_some()
    } else {
        case.as_ref().is_some_and(|case| case.reached(&usual).is_some())
    };
    Judgement {
        verdict: policy.spared(verdict, declared, now),
        reached: reached.as_ref().map(|reached| reached.limit),
        quiet_since: reached.as_ref().map(|reached| reached.quiet_since),
        all_reached: reached.map(|reached| reached.all).unwrap_or_default(),
        usually_reached,
        clocks: case.map(|case| case.clocks),
        rule: rule.map(|r| r.name.clone()),
        intent,
        declared,
    }
}

/// A server without a card is judged by the limit for such, if there is one.
fn without_card(session: &Session, policy: &Policy, now: Timestamp) -> (Verdict, Option<Reached>) {
    let Some(cpu) = &policy.cpu_servers else {
        return (Verdict::Protected(ProtectedReason::NoCard), None);
    };
    let verdict = cpu.judge(session, policy.thresholds.cpu_cores, now);
    let reached = match verdict {
        Verdict::Idle(Idle { limit, since, .. }) => {
            Some(Reached { limit, since, quiet_since: since, all: vec![limit] })
        }
        Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_) => None,
    };
    (verdict, reached)
}

/// The limits that apply to a session: those of its rule, over those of the demand, over the defaults.
pub fn limits_of(rule: Option<&str>, waiting: Option<u32>, policy: &Policy) -> Limits {
    policy.limits_for(rule.and_then(|name| policy.rules.iter().find(|r| r.name == name)), waiting)
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

/// Everything that one session is judged by, besides its limits.
struct Case<'a> {
    session: &'a Session,
    evidence: &'a Evidence,
    clocks: Clocks,
    policy: &'a Policy,
    now: Timestamp,
}

/// Limits that are reached.
struct Reached {
    /// The one to tell of.
    limit: LimitKind,
    /// Since when the session is idle by it.
    since: Timestamp,
    /// The earliest of the clocks of all limits that are reached.
    quiet_since: Timestamp,
    all: Vec<LimitKind>,
}

impl Case<'_> {
    /// The limits that are reached. A busy kernel on a resting card is work, whatever the card or the
    /// calendar says, until it has waited for `busy_kernel_limit` or the admin says that age alone counts.
    fn reached(&self, limits: &Limits) -> Option<Reached> {
        let Clocks { card, used, present, .. } = self.clocks;
        let card = card?;
        let worked = card.max(used);
        let nobody = worked.max(present);
        let started = self.started();
        let busy = has_busy_kernel(self.session);
        let aged = self.over(started, limits.max_age);
        let rests = self.over(card, Some(limits.warn_after)) && !busy;
        let aged_by = if limits.max_age_even_if_busy { started } else { card };
        let waits = self.waits_to_be_stopped(card, limits);
        // Each limit with the clock that decides it and the instant from which its idleness is told. Of
        // several the first is told: what its owner has to do then ends the others as well.
        let all = [
            (LimitKind::MaxAge, aged && (rests || limits.max_age_even_if_busy), aged_by, started),
            (LimitKind::BusyKernel, waits.is_some(), waits.unwrap_or(card), waits.unwrap_or(card)),
            (LimitKind::CardUnused, self.over(card, limits.card_unused_warn_after) && !busy, card, card),
            (LimitKind::Nobody, self.over(nobody, Some(limits.warn_after)), nobody, nobody),
            (LimitKind::Connected, self.over(worked, limits.connected_warn_after), worked, worked),
        ];
        let over: Vec<_> = all.into_iter().filter(|(_, reached, _, _)| *reached).collect();
        let (limit, _, _, since) = *over.first()?;
        let quiet_since = over.iter().map(|(_, _, clock, _)| *clock).min()?;
        Some(Reached { limit, since, quiet_since, all: over.iter().map(|(limit, ..)| *limit).collect() })
    }

    fn over(&self, since: Timestamp, limit: Option<SignedDuration>) -> bool {
        limit.is_some_and(|limit| self.now.duration_since(since) >= limit)
    }

    fn started(&self) -> Timestamp {
        self.session.server.started.map_or(self.now, |started| started.min(self.now))
    }

    /// Since when the whole session does nothing but wait, where that is long enough to be stopped for.
    fn waits_to_be_stopped(&self, card: Timestamp, limits: &Limits) -> Option<Timestamp> {
        let limit = limits.busy_kernel_limit.filter(|_| limits.busy_kernel_action == BusyKernelAction::Stop);
        limit?;
        let max_gap = self.policy.max_gap;
        let since = waits::all_wait_since(&self.evidence.waits, self.session, max_gap, self.now)?.max(card);
        self.over(since, limit).then_some(since)
    }

    fn verdict(&self, reached: Option<&Reached>, limits: &Limits) -> Verdict {
        let Self { session, evidence, policy, now, .. } = *self;
        if let Some(reason) = unsettled(session) {
            return Verdict::Unknown(reason);
        }
        let Some(reached) = reached else {
            let waiting = self.waiting(limits);
            let certain = !waiting.is_empty() && doubt(session, evidence, policy, now).is_none();
            return if certain {
                Verdict::Busy(BusyReason::Waiting(waiting))
            } else {
                in_use(session, evidence, policy)
            };
        };
        match doubt(session, evidence, policy, now) {
            Some(reason) => Verdict::Unknown(reason),
            None => {
                let kind = self.kind(reached, limits);
                Verdict::Idle(Idle { since: reached.since, kind, limit: reached.limit })
            }
        }
    }

    fn waiting(&self, limits: &Limits) -> Vec<Waiting> {
        let limit = limits.busy_kernel_limit.zip(self.clocks.card);
        limit.map_or_else(Vec::new, |(limit, card)| {
            let max_gap = self.policy.max_gap;
            waits::waiting(&self.evidence.waits, self.session, card, limit, max_gap, self.now)
        })
    }

    fn kind(&self, reached: &Reached, limits: &Limits) -> IdleKind {
        let cards = || self.evidence.cards.values();
        if reached.all == [LimitKind::MaxAge] && self.is_at_work(limits) {
            IdleKind::AtWork
        } else if cards().all(|card| card.processes == Some(0)) {
            IdleKind::Reserved
        } else if self.clocks.card_active.is_none() {
            IdleKind::NeverUsed
        } else {
            IdleKind::Held
        }
    }

    fn is_at_work(&self, limits: &Limits) -> bool {
        let recently = |at: Timestamp| !self.over(at, Some(limits.warn_after));
        let computes = |cores: f64| cores >= self.policy.thresholds.cpu_cores;
        self.clocks.card_active.is_some_and(recently)
            || has_busy_kernel(self.session)
            || self.session.cpu.is_some_and(computes)
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
        return Some(UnknownReason::Kernels("a terminal has no last_activity".into()));
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

fn has_busy_kernel(session: &Session) -> bool {
    let kernels = session.jupyter.iter().flat_map(|jupyter| &jupyter.kernels);
    kernels.into_iter().any(waits::is_busy)
}

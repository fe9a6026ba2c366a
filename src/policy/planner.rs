//! From a snapshot and the ledger to a plan.

use jiff::{SignedDuration, Timestamp};

use super::demand::no_more_than_wait;
use super::freeze::{freeze, holding};
use super::idleness::{judge, limits_of};
use super::schedule::{self, earlier, later};
use super::target::{save_wait, target};
use super::{
    Action, BusyReason, Decision, FreezeChange, HeldBack, Idle, IdleKind, Judgement, Keep, KernelDoubt,
    Ledger, Limits, Mode, Plan, Policy, Record, Session, Snapshot, Target, UnknownReason, Verdict, Waiting,
    Warning,
};

/// Plans one cycle. The snapshot must have been folded into the ledger ([`Ledger::observe`]).
/// Planning twice at the same instant gives the same plan.
pub fn plan(snapshot: &Snapshot, ledger: &Ledger, policy: &Policy, now: Timestamp) -> Plan {
    let sessions = snapshot.sessions.as_deref().unwrap_or_default();
    let mut decisions = Vec::with_capacity(sessions.len());
    let known = sessions.iter().map(|session| (session, record_of(session, ledger)));
    let here = known.filter(|(_, record)| record.is_none_or(|record| record.stopped.is_none()));
    let queue = snapshot.waiting.as_ref();
    decisions.extend(here.map(|(session, record)| {
        let waiting = queue.map(|queue| queue.for_server(&session.server.id));
        Box::new(decide(session, record, waiting, policy, now))
    }));
    decisions.sort_unstable_by(|a, b| (idle_since(a), &a.server).cmp(&(idle_since(b), &b.server)));
    no_more_than_wait(&mut decisions, ledger, queue);
    let freeze = freeze(&decisions, snapshot, ledger, policy, now);
    brake(&mut decisions, &freeze, ledger, policy, now);
    Plan { decisions, freeze, waiting: snapshot.waiting.clone() }
}

fn idle_since(decision: &Decision) -> Timestamp {
    match &decision.judgement.verdict {
        Verdict::Idle(idle) => idle.since,
        Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_) => Timestamp::MAX,
    }
}

fn record_of<'a>(session: &Session, ledger: &'a Ledger) -> Option<&'a Record> {
    session.server.started?;
    ledger.records.get(&session.server.id)
}

fn decide(
    session: &Session,
    record: Option<&Record>,
    waiting: Option<u32>,
    policy: &Policy,
    now: Timestamp,
) -> Decision {
    let keep: Option<&Keep> = record.and_then(|record| record.keep.as_deref());
    let judgement = judge(session, record.map(|record| &record.evidence), keep, waiting, policy, now);
    let limits = limits_of(judgement.rule.as_deref(), waiting, policy);
    let save_wait = save_wait(session, limits.manner, &judgement.verdict);
    let target = target(session, limits.manner, &judgement.verdict, policy);
    let announced =
        |warning: &Warning| target.as_ref().map_or(true, |target| target.is_announced_by(warning));
    let step = record
        .map_or(Step::Nothing, |record| next_step(record, &judgement, &limits, announced, policy, now))
        .within(policy)
        .at(&target);
    let (action, held_back) = match step {
        Step::Nothing => (None, None),
        Step::Do(action) => (Some(action), None),
        Step::Wait(why) => (None, Some(why)),
    };
    Decision {
        server: session.server.id.clone(),
        started: session.server.started,
        may_hold_cards: session.may_hold_cards(),
        judgement,
        target: target.ok(),
        save_wait,
        action,
        held_back,
    }
}

enum Step {
    Nothing,
    Do(Action),
    Wait(HeldBack),
}

impl Step {
    /// What the mode leaves of a step. Forgetting a warning is always allowed.
    fn within(self, policy: &Policy) -> Self {
        let mode = policy.mode;
        match self {
            Self::Do(action) if mode < needed(&action) => Self::Wait(HeldBack::Mode(mode, Box::new(action))),
            Self::Do(Action::Warn { .. } | Action::Notice(_)) if !policy.can_warn => {
                Self::Wait(HeldBack::NoMail)
            }
            step => step,
        }
    }

    /// Whoever is told has to be told what is stopped, and a stop has to know it.
    fn at(self, target: &Result<Target, KernelDoubt>) -> Self {
        match (self, target) {
            (Self::Do(Action::Warn { .. } | Action::Remind { .. } | Action::Stop), Err(doubt)) => {
                Self::Wait(HeldBack::Kernels(doubt.clone()))
            }
            (step, _) => step,
        }
    }
}

fn needed(action: &Action) -> Mode {
    match action {
        Action::Unmark => Mode::Observe,
        Action::Warn { .. } | Action::Notice(_) | Action::Withdraw => Mode::Warn,
        Action::Remind { .. } | Action::Stop => Mode::Enforce,
    }
}

/// The ladder: one rung at a time, and the last one needs the first.
fn next_step(
    record: &Record,
    judgement: &Judgement,
    limits: &Limits,
    announced: impl Fn(&Warning) -> bool,
    policy: &Policy,
    now: Timestamp,
) -> Step {
    let marked = record.warning.is_some() || record.sending.is_some();
    match &judgement.verdict {
        // As jupyterhub-idle-culler does it, for whoever asks for that and has no mail.
        Verdict::Idle(Idle { kind: IdleKind::NoCard, .. }) if !policy.can_warn => Step::Do(Action::Stop),
        Verdict::Idle(_) => match &record.warning {
            Some(warning) if is_over(warning, judgement) => Step::Do(Action::Unmark),
            Some(warning) if counts(warning, policy.mode) && announced(warning) => {
                after_the_warning(warning, limits, policy, now)
            }
            Some(_) | None => warn(record, limits, policy, now),
        },
        Verdict::Unknown(_) if marked && judgement.reached.is_some() => Step::Wait(HeldBack::Unknown),
        // Perhaps by us: its owner must not be told that it goes on.
        Verdict::Unknown(UnknownReason::Pending(what)) if marked && what == "stop" => {
            Step::Wait(HeldBack::Unknown)
        }
        Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_) if marked => Step::Do(Action::Unmark),
        Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_) => to_tell(record, judgement, now),
    }
}

/// How long after its deadline a warning that was taken back is no longer worth a mail.
const STALE: SignedDuration = SignedDuration::from_hours(1);

/// What the owner of a session that is left alone has to know: that a warning was taken back, or that kernels have waited for long. Each once.
fn to_tell(record: &Record, judgement: &Judgement, now: Timestamp) -> Step {
    if record.taken_back.as_ref().is_some_and(|warning| now < later(warning.deadline, STALE)) {
        return Step::Do(Action::Withdraw);
    }
    let Verdict::Busy(BusyReason::Waiting(waiting)) = &judgement.verdict else {
        return Step::Nothing;
    };
    let untold =
        |kernel: &&Waiting| record.evidence.waits.get(&kernel.kernel).is_some_and(|wait| wait.told.is_none());
    let untold: Vec<Waiting> = waiting.iter().filter(untold).cloned().collect();
    if untold.is_empty() { Step::Nothing } else { Step::Do(Action::Notice(untold)) }
}

/// Whether a warning no longer says what is the matter. Its idle spell has ended, unseen at the time: its owner
/// came back and left again while the Hub or the service was down. Or its owner did what it asked for, and only
/// a limit is left that it did not tell of.
fn is_over(warning: &Warning, judgement: &Judgement) -> bool {
    judgement.quiet_since.is_some_and(|since| since > warning.accepted)
        || !judgement.is_covered_by(warning.limit)
}

/// A mail that announced no stop is no warning of one.
fn counts(warning: &Warning, mode: Mode) -> bool {
    warning.stop_follows || mode != Mode::Enforce
}

fn warn(record: &Record, limits: &Limits, policy: &Policy, now: Timestamp) -> Step {
    let grace = limits.grace;
    match record.sending.map(|began| later(began, grace)) {
        Some(again) if now < again => Step::Wait(HeldBack::Interrupted(again)),
        _ => Step::Do(Action::Warn {
            deadline: schedule::deadline(now, grace, policy.stop_hours.as_ref()),
            grace,
            stop_follows: policy.mode != Mode::Warn,
        }),
    }
}

fn after_the_warning(warning: &Warning, limits: &Limits, policy: &Policy, now: Timestamp) -> Step {
    // A shorter grace never shortens what was promised; a longer one holds at once.
    let granted = schedule::deadline(warning.accepted, limits.grace, policy.stop_hours.as_ref());
    let deadline = warning.deadline.max(granted);
    if now >= deadline {
        return match schedule::next_opening(now, policy.stop_hours.as_ref()) {
            Some(opening) if opening > now => Step::Wait(HeldBack::Hours(opening)),
            _ => Step::Do(Action::Stop),
        };
    }
    let time_has_come = |before: &&SignedDuration| {
        earlier(deadline, **before) > warning.accepted && now >= earlier(deadline, **before)
    };
    match limits.remind_before.iter().filter(time_has_come).min().copied() {
        Some(before) if !warning.reminded.contains(&before) => Step::Do(Action::Remind { before, deadline }),
        _ => Step::Wait(HeldBack::Warned(deadline)),
    }
}

/// Takes back the stops that the brakes do not allow.
fn brake(
    decisions: &mut [Box<Decision>],
    freeze: &FreezeChange,
    ledger: &Ledger,
    policy: &Policy,
    now: Timestamp,
) {
    let with_cards = holding(decisions);
    // Many servers without a card must not raise the number of those with one that may be stopped.
    let mut budgets = [decisions.len(), with_cards].map(|n| Budget::of(n, policy));
    for decision in decisions.iter_mut().filter(|d| d.action == Some(Action::Stop)) {
        decision.held_back = frozen(freeze)
            .or_else(|| just_started(ledger, policy, now))
            .or_else(|| stale(ledger.records.get(&decision.server), policy))
            .or_else(|| budgets[usize::from(decision.may_hold_cards)].take());
        if decision.held_back.is_some() {
            decision.action = None;
        }
    }
}

fn frozen(freeze: &FreezeChange) -> Option<HeldBack> {
    match freeze {
        FreezeChange::Begins(freeze) | FreezeChange::Holds(freeze) => Some(HeldBack::Frozen(freeze.since)),
        FreezeChange::None | FreezeChange::Ends => None,
    }
}

fn just_started(ledger: &Ledger, policy: &Policy, now: Timestamp) -> Option<HeldBack> {
    let ready = later(ledger.began?, policy.safety.min_uptime);
    (now < ready).then_some(HeldBack::JustStarted(ready))
}

/// What the Hub and the kernels say is of this cycle, or it is not known at all; of a card it may be that
/// only the older part of the time was watched.
fn stale(record: Option<&Record>, policy: &Policy) -> Option<HeldBack> {
    let unwatched = record?.evidence.unwatched();
    (unwatched > policy.cycle).then_some(HeldBack::Stale(unwatched))
}

/// The stops that one cycle may make.
struct Budget {
    allowed: usize,
    made: usize,
}

impl Budget {
    fn of(sessions: usize, policy: &Policy) -> Self {
        Self { allowed: policy.safety.max_stops.of(sessions), made: 0 }
    }

    /// One more stop, or why not.
    fn take(&mut self) -> Option<HeldBack> {
        self.made += 1;
        (self.made > self.allowed).then_some(HeldBack::Budget(self.allowed))
    }
}

//! The service's view of a world, and what must hold in it at every step.

use std::collections::BTreeSet;

use gpu_culler::domain::{Queue, ServerId};
use gpu_culler::policy::{
    Action, Decision, FreezeChange, Giver, Ledger, Limits, Mode, Plan, Policy, Session, Snapshot, Verdict,
    Warning, keep, limits_of, offers, plan,
};
use jiff::{SignedDuration, Timestamp};

use crate::admin::{BUDGET, MOST_STOPS, limits, policy, rules};
use crate::history::{CHOICES, Change, Doing, Step};
use crate::truth::{Has, SESSIONS, Truth, id, mins};

pub struct World {
    policy: Policy,
    ledger: Ledger,
    pub sessions: Vec<Truth>,
    now: i64,
    wall: Timestamp,
    latest_wall: Timestamp,
    hub: bool,
    /// Whom the Hub leaves out of its list, which is then not complete.
    lacks: Option<usize>,
    mail: bool,
    cut_short: bool,
    /// Whether the source counts on while the Hub is down.
    counts_on: bool,
    brakes: bool,
    last_listed: i64,
    /// Whether the service has only just been started.
    just_started: bool,
    /// Who was idle when that could last be judged.
    idle: BTreeSet<ServerId>,
    /// What each owner has kept of the budget.
    spent: [SignedDuration; SESSIONS],
    /// How many wait for a card, where that is known.
    waiting: Option<u32>,
    /// Every mail that was accepted, by what stands in it. A clock that is set back repeats its hours.
    mails: BTreeSet<String>,
}

impl World {
    pub fn new(brakes: bool, odd: bool, counts_on: bool) -> Self {
        let wall: Timestamp = "2026-12-01T08:00:00Z".parse().unwrap();
        Self {
            policy: policy(brakes, odd),
            ledger: Ledger::default(),
            sessions: vec![Truth::new(0, wall); SESSIONS],
            now: 0,
            wall,
            latest_wall: wall,
            hub: true,
            lacks: None,
            mail: true,
            cut_short: false,
            counts_on,
            brakes,
            last_listed: 0,
            just_started: true,
            idle: BTreeSet::new(),
            spent: [SignedDuration::ZERO; SESSIONS],
            waiting: None,
            mails: BTreeSet::new(),
        }
    }

    pub fn step(&mut self, step: &Step) {
        if let Some(change) = step.change {
            self.change(change);
        }
        for (number, doing) in &step.doings {
            self.sessions[*number].happens(*doing, self.now, self.wall);
            match doing {
                Doing::Keep { choice, admin } => self.keep(*number, mins(CHOICES[*choice]), *admin),
                Doing::Restart => _ = self.idle.remove(&id(*number)),
                _ => {}
            }
        }
        self.now += step.minutes;
        self.wall += mins(step.minutes);
        self.latest_wall = self.latest_wall.max(self.wall);
        for truth in &mut self.sessions {
            truth.passes(self.now, self.wall);
        }
        let counted = if self.counts_on { self.now - self.last_listed } else { step.minutes };
        self.cycle(counted);
        if !self.counts_on {
            self.sessions.iter_mut().for_each(|truth| truth.untold = [false; 2]);
        }
        self.cut_short = false;
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Hub(up) => self.hub = up,
            Change::Lacks(whom) => self.lacks = whom,
            Change::Mail(up) => self.mail = up,
            Change::ServiceRestarts => self.restart(),
            Change::CutShort => self.cut_short = true,
            Change::ClockSet(minutes) => {
                self.wall += mins(minutes);
                self.mails.clear();
            }
            Change::Limits(strict) => self.policy.limits = limits(strict),
            Change::Mode(mode) => self.policy.mode = mode,
            Change::Rules(new) => self.policy.rules = rules(new, self.wall),
            Change::Waiting(waiting) => self.waiting = waiting,
            Change::Lift => {
                self.ledger.lift_freeze("admin", self.wall);
            }
        }
    }

    /// What is remembered goes through the words in which it is stored.
    fn restart(&mut self) {
        for record in self.ledger.records.values_mut() {
            let stored = serde_json::to_string(record).unwrap();
            let read = serde_json::from_str(&stored).unwrap();
            assert_eq!(*record, read);
            *record = read;
        }
        let keeps = serde_json::to_string(&self.ledger.keeps).unwrap();
        self.ledger.keeps = serde_json::from_str(&keeps).unwrap();
        let freeze = serde_json::to_string(&self.ledger.freeze).unwrap();
        self.ledger.freeze = serde_json::from_str(&freeze).unwrap();
        (self.ledger.began, self.just_started) = (None, true);
    }

    fn keep(&mut self, number: usize, length: SignedDuration, admin: bool) {
        let giver = if admin { Giver::Admin(id(9).user) } else { Giver::Owner };
        let server = id(number);
        let Ok(given) = keep(&self.ledger, &self.policy, &server, &giver, length, None, self.wall) else {
            return;
        };
        let truth = &mut self.sessions[number];
        assert!(given.until > truth.kept_until, "a keep is shortened");
        truth.kept_until = given.until;
        self.spent[number] += given.cost;
        self.ledger.kept(&server, given);
        let left = offers(&self.ledger, &self.policy, &server, &giver, self.wall).left;
        assert_eq!(left, BUDGET - self.spent[number], "of the budget of u{number}");
        assert!(!left.is_negative());
    }

    fn cycle(&mut self, minutes: i64) {
        let snapshot = Snapshot {
            at: self.wall,
            sessions: if self.hub { Ok(self.listed(minutes)) } else { Err("down".to_owned()) },
            complete: self.hub && self.lacks.is_none(),
            telemetry_down: None,
            waiting: self.waiting.map(Queue::of),
        };
        self.ledger.watches(self.wall);
        self.ledger.observe(&snapshot, &self.policy);
        let plan = plan(&snapshot, &self.ledger, &self.policy, self.wall);
        self.same_again(&snapshot, &plan);
        self.brakes_hold(&plan);
        self.ledger.settled(&plan);
        for decision in &plan.decisions {
            self.carry_out(decision);
        }
        self.just_started = false;
        if self.cut_short {
            self.restart();
        }
    }

    fn listed(&mut self, minutes: i64) -> Vec<Session> {
        self.last_listed = self.now;
        let lacks = self.lacks;
        let running = self.sessions.iter_mut().enumerate().filter(|(_, truth)| truth.running);
        let all = running.map(|(number, truth)| (number, truth.seen(number, minutes)));
        all.filter(|(number, _)| Some(*number) != lacks).map(|(_, session)| session).collect()
    }

    fn same_again(&self, snapshot: &Snapshot, plan: &Plan) {
        let again = gpu_culler::policy::plan(snapshot, &self.ledger, &self.policy, self.wall);
        assert_eq!(*plan, again, "planning twice at the same instant gives the same plan");
    }

    /// A freeze is for those who turn idle, a cycle makes few stops, and none right after a start.
    fn brakes_hold(&mut self, plan: &Plan) {
        if let FreezeChange::Begins(freeze) = &plan.freeze {
            let known: Vec<_> = freeze.flipped.intersection(&self.idle).collect();
            assert!(known.is_empty(), "known to be idle, {known:?} freeze stops anew");
        }
        for decision in &plan.decisions {
            let judgement = &decision.judgement;
            match &judgement.verdict {
                Verdict::Unknown(_) => {}
                verdict if verdict.at_rest().is_some() && judgement.usually_reached => {
                    self.idle.insert(decision.server.clone());
                }
                _ => _ = self.idle.remove(&decision.server),
            }
        }
        let for_others = |d: &&Decision| d.judgement.for_demand() && d.action == Some(Action::Stop);
        let taken = plan.decisions.iter().map(Box::as_ref).filter(for_others).count();
        assert!(taken <= self.waiting.unwrap_or(0) as usize, "{taken} are stopped for {:?}", self.waiting);
        let stops = plan.decisions.iter().filter(|decision| decision.action == Some(Action::Stop)).count();
        assert!(!self.brakes || stops <= MOST_STOPS, "{stops} stops in one cycle");
        assert!(stops == 0 || !(self.just_started || plan.freeze.is_frozen()), "the brakes do not hold");
    }

    fn carry_out(&mut self, decision: &Decision) {
        let Some(action) = &decision.action else { return };
        assert!(
            self.policy.mode != Mode::Observe || *action == Action::Unmark,
            "observe must do nothing, not {action:?}"
        );
        let number = (0..SESSIONS).find(|number| id(*number) == decision.server).unwrap();
        match action {
            Action::Warn { deadline, grace, stop_follows } => {
                self.warn(number, decision, *deadline, *grace, *stop_follows);
            }
            Action::Remind { before, deadline } => {
                assert!(self.sessions[number].has.is_some(), "a reminder without a warning");
                if self.mail {
                    self.mailed(decision, &format!("{before:?} are left until {deadline}"));
                    self.ledger.reminded(&decision.server, *before);
                }
            }
            Action::Unmark => {
                self.ledger.unmarked(&decision.server);
                (self.sessions[number].has, self.sessions[number].cut_short) = (None, None);
            }
            Action::Withdraw => {
                assert!(self.sessions[number].has.is_none(), "a warning that holds is withdrawn");
                if self.mail {
                    let told = self.ledger.withdrawn(&decision.server, None);
                    assert!(told.is_some(), "nothing was taken back");
                }
            }
            Action::Notice(waits) => {
                // Two cells in a row may look like one, which is no more than told.
                assert!(self.sessions[number].busy, "no cell of u{number} waits");
                if self.mail {
                    self.mailed(decision, "a cell waits");
                    self.ledger.noticed(&decision.server, waits.iter(), Some(self.wall));
                }
            }
            Action::Stop => self.stop(number, decision),
        }
    }

    fn limits_of(&self, decision: &Decision) -> Limits {
        limits_of(decision.judgement.rule.as_deref(), self.waiting, &self.policy)
    }

    /// The mail server accepted this.
    fn mailed(&mut self, decision: &Decision, text: &str) {
        let mail = format!("{} {:?}: {text}", decision.server, decision.judgement.verdict);
        assert!(self.mails.insert(mail.clone()), "twice the same mail: {mail}");
    }

    fn warn(
        &mut self,
        number: usize,
        decision: &Decision,
        deadline: Timestamp,
        grace: SignedDuration,
        stop_follows: bool,
    ) {
        let limits = self.limits_of(decision);
        let truth = &self.sessions[number];
        let twice = truth.has.is_some_and(|has| has.stop_follows == stop_follows);
        assert!(!twice, "{} is warned twice for the same idle spell", decision.server);
        let rested = truth.is_idle(self.now, self.now, &limits);
        assert!(rested && truth.is_readable(), "u{number} is warned in use at {}: {truth:?}", self.now);
        assert!(self.wall >= truth.kept_until, "u{number} is warned although kept: {truth:?}");
        assert!(self.wall >= truth.declared_until(), "u{number} is warned in its declared time: {truth:?}");
        assert!(deadline >= self.wall + grace, "less than the grace is promised");
        if let Some((began, then)) = truth.cut_short {
            let waited = mins(self.now - began);
            assert!(
                waited >= grace.min(then),
                "a warning that may have gone out is sent again after {waited:?}"
            );
        }
        self.ledger.warning_began(&decision.server, self.wall);
        if self.cut_short {
            self.sessions[number].cut_short = Some((self.now, grace));
            return;
        }
        self.sessions[number].cut_short = None;
        if !self.mail {
            return self.ledger.warning_failed(&decision.server);
        }
        let limit = decision.judgement.reached.unwrap();
        self.mailed(decision, &format!("a stop follows: {stop_follows}, at {deadline}"));
        let (accepted, message_id, reminded) = (self.wall, String::new(), Vec::new());
        let warning =
            Warning { accepted, deadline, limit, stop_follows, message_id, reminded, kernels: None };
        self.ledger.warned(&decision.server, warning);
        self.sessions[number].has = Some(Has { since: self.now, grace, stop_follows });
    }

    fn stop(&mut self, number: usize, decision: &Decision) {
        let limits = self.limits_of(decision);
        let truth = &mut self.sessions[number];
        let Some(has) = truth.has else { panic!("u{number} is stopped unwarned") };
        assert!(has.stop_follows, "u{number} is stopped although its mail announced none");
        let waited = mins(self.now - has.since);
        assert!(waited >= has.grace, "u{number} is stopped {waited:?} after its warning");
        assert!(self.hub && self.lacks != Some(number), "u{number} is stopped and not listed");
        assert!(truth.is_readable(), "u{number} is stopped although unreadable: {truth:?}");
        assert!(!truth.was_patchy, "u{number} is stopped on old readings");
        assert!(self.wall >= truth.kept_until, "u{number} is stopped although kept: {truth:?}");
        assert!(self.wall >= truth.declared_until(), "u{number} is stopped in its declared time: {truth:?}");
        let exempt = self.policy.rules.iter().find_map(|rule| rule.exempt.as_ref());
        let spared = exempt.is_some_and(|exemption| number == 0 && exemption.holds(self.wall));
        assert!(!spared, "u{number} is stopped although exempt");
        let rested = truth.is_idle(self.now, has.since, &limits);
        assert!(rested, "u{number} is stopped in use at {}: {truth:?}", self.now);
        self.ledger.stopped(&id(number), self.wall);
        truth.running = false;
    }

    /// Everything works, the clock is right again, and nobody does anything any more.
    pub fn rests_for_good(&mut self) {
        (self.hub, self.lacks, self.mail, self.waiting) = (true, None, true, None);
        (self.policy.mode, self.wall) = (Mode::Enforce, self.latest_wall);
        for truth in &mut self.sessions {
            truth.falls_asleep(self.now);
        }
        for _ in 0..20 {
            // What is idle at once may freeze stops: somebody has a look at it.
            self.ledger.lift_freeze("admin", self.wall);
            self.step(&Step { minutes: 10, change: None, doings: Vec::new() });
        }
    }
}

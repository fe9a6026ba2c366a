//! What must hold in every history, however unlucky: random days of a few sessions, run through the
//! ledger and the planner as a cycle does it, next to what was really going on.
//!
//! The world has a true time that only runs forward, and a wall clock that somebody may set. Every
//! step is longer than `max_gap`, so whatever is not seen in one step is a gap that counts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test should stop at once")]

use std::collections::BTreeMap;
use std::time::Duration;

use gpu_culler::domain::{
    GpuId, GpuSample, Jupyter, Kernel, KernelState, Ratio, Server, ServerId, SpawnerState,
};
use gpu_culler::policy::{
    Action, Decision, Keep, Ledger, Limits, Mode, Plan, Policy, Session, Snapshot, StopBudget, Warning, plan,
};
use gpu_culler::settings::policy_of;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

/// Something that happens to one session.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Work(usize),
    Rest(usize),
    Burst(usize),
    TakeCard,
    GiveCardBack,
    KernelBusy,
    KernelIdle,
    UseKernel,
    Connect,
    Disconnect,
    Restart,
    Leave,
    CardsReadable(bool),
    CardReadable(bool),
    KernelsReadable(bool),
    Pending(bool),
    Patchy,
    Keep(i64),
}

/// Something that happens to everybody.
#[derive(Clone, Copy, Debug)]
enum Change {
    Hub(bool),
    Mail(bool),
    ServiceRestarts,
    /// The service dies while its warnings are on their way.
    CutShort,
    ClockSet(i64),
    Limits(bool),
    Mode(Mode),
}

#[derive(Clone, Debug)]
struct Step {
    minutes: i64,
    change: Option<Change>,
    doings: Vec<(usize, Doing)>,
}

const SESSIONS: usize = 3;

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        3 => (0..2usize).prop_map(Doing::Work),
        6 => (0..2usize).prop_map(Doing::Rest),
        2 => (0..2usize).prop_map(Doing::Burst),
        1 => Just(Doing::TakeCard),
        1 => Just(Doing::GiveCardBack),
        2 => Just(Doing::KernelBusy),
        4 => Just(Doing::KernelIdle),
        2 => Just(Doing::UseKernel),
        2 => Just(Doing::Connect),
        4 => Just(Doing::Disconnect),
        1 => Just(Doing::Restart),
        1 => Just(Doing::Leave),
        2 => prop::bool::weighted(0.8).prop_map(Doing::CardsReadable),
        2 => prop::bool::weighted(0.8).prop_map(Doing::CardReadable),
        2 => prop::bool::weighted(0.8).prop_map(Doing::KernelsReadable),
        2 => prop::bool::weighted(0.2).prop_map(Doing::Pending),
        1 => Just(Doing::Patchy),
        1 => (5..60i64).prop_map(Doing::Keep),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => prop::bool::weighted(0.7).prop_map(Change::Hub),
        3 => prop::bool::weighted(0.7).prop_map(Change::Mail),
        1 => Just(Change::ServiceRestarts),
        1 => Just(Change::CutShort),
        1 => prop::sample::select(vec![-120, -40, -15, 60, 120]).prop_map(Change::ClockSet),
        1 => any::<bool>().prop_map(Change::Limits),
        1 => prop_oneof![
            1 => Just(Change::Mode(Mode::Observe)),
            1 => Just(Change::Mode(Mode::Warn)),
            3 => Just(Change::Mode(Mode::Enforce)),
        ],
    ]
}

fn history() -> impl Strategy<Value = Vec<Step>> {
    let doings = prop::collection::vec((0..SESSIONS, doing()), 0..3);
    let step = (4..=6i64, prop::option::weighted(0.2, change()), doings, prop::bool::weighted(0.6));
    // Most steps are quiet, or nobody would ever be idle for long enough.
    let step = step.prop_map(|(minutes, change, doings, quiet)| {
        let (change, doings) = if quiet { (None, Vec::new()) } else { (change, doings) };
        Step { minutes, change, doings }
    });
    prop::collection::vec(step, 1..40)
}

fn mins(minutes: i64) -> SignedDuration {
    SignedDuration::from_mins(minutes)
}

fn limits(strict: bool) -> Limits {
    let factor = if strict { 1 } else { 2 };
    Limits {
        warn_after: mins(20 * factor),
        grace: mins(15 * factor),
        remind_before: vec![mins(5)],
        connected_warn_after: Some(mins(50 * factor)),
        card_unused_warn_after: Some(mins(90 * factor)),
        max_age: None,
    }
}

/// Odd worlds are those in which one net alone must hold: little coverage is asked for.
fn policy(brakes: bool, odd: bool) -> Policy {
    let mut policy = policy_of(None).unwrap();
    policy.mode = Mode::Enforce;
    policy.limits = limits(true);
    policy.warm_up = mins(5);
    policy.min_coverage = if odd { 0.1 } else { 0.95 };
    policy.safety.freeze_min_sessions = if brakes { 2 } else { usize::MAX };
    policy.safety.max_stops = StopBudget::Count(if brakes { 2 } else { usize::MAX });
    policy
}

/// A warning that its owner has, by the true time.
#[derive(Clone, Copy, Debug)]
struct Has {
    since: i64,
    grace: SignedDuration,
    stop_follows: bool,
}

/// One session as it really is. Times without a name are minutes of the true time.
#[derive(Clone, Debug)]
struct Truth {
    running: bool,
    started: Timestamp,
    cards: usize,
    working: [bool; 2],
    burst: [bool; 2],
    /// What the source still has to tell.
    untold: [bool; 2],
    busy: bool,
    connected: bool,
    /// The stamps that the kernel, its server and the Hub hold.
    kernel_stamp: Timestamp,
    seen_stamp: Timestamp,
    cards_readable: bool,
    second_readable: bool,
    kernels_readable: bool,
    pending: bool,
    patchy: bool,
    kept_until: Timestamp,
    worked: i64,
    used: i64,
    present: i64,
    has: Option<Has>,
    cut_short: Option<(i64, SignedDuration)>,
}

impl Truth {
    fn new(now: i64, wall: Timestamp) -> Self {
        Self {
            running: true,
            // Two runs never start at the same instant, not even where the clock was set back in between.
            started: wall + SignedDuration::from_nanos(now),
            cards: 1,
            working: [false; 2],
            burst: [false; 2],
            untold: [false; 2],
            busy: false,
            connected: false,
            kernel_stamp: wall,
            seen_stamp: wall,
            cards_readable: true,
            second_readable: true,
            kernels_readable: true,
            pending: false,
            patchy: false,
            kept_until: Timestamp::MIN,
            worked: now,
            used: now,
            present: now,
            has: None,
            cut_short: None,
        }
    }

    fn happens(&mut self, doing: Doing, now: i64, wall: Timestamp) {
        match doing {
            Doing::Work(card) => self.working[card] = card < self.cards,
            Doing::Rest(card) => self.working[card] = false,
            Doing::Burst(card) => self.burst[card] = card < self.cards,
            Doing::TakeCard => self.cards = 2,
            // Of a card that comes and goes between two looks nobody can know.
            Doing::GiveCardBack if self.untold[1] => {}
            Doing::GiveCardBack => {
                self.cards = 1;
                (self.working[1], self.burst[1]) = (false, false);
            }
            Doing::KernelBusy => self.busy = true,
            Doing::KernelIdle if self.busy => self.uses(now, wall),
            Doing::KernelIdle => {}
            Doing::UseKernel => self.uses(now, wall),
            Doing::Connect => self.connected = true,
            Doing::Disconnect => self.connected = false,
            Doing::Restart => *self = Self { kept_until: self.kept_until, ..Self::new(now, wall) },
            Doing::Leave => self.running = false,
            Doing::CardsReadable(yes) => self.cards_readable = yes,
            Doing::CardReadable(yes) => self.second_readable = yes,
            Doing::KernelsReadable(yes) => self.kernels_readable = yes,
            Doing::Pending(yes) => self.pending = yes,
            Doing::Patchy => self.patchy = true,
            Doing::Keep(_) => {}
        }
    }

    fn uses(&mut self, now: i64, wall: Timestamp) {
        self.busy = false;
        (self.used, self.kernel_stamp) = (now, wall);
        (self.present, self.seen_stamp) = (now, wall);
    }

    /// What went on up to now.
    fn passes(&mut self, now: i64, wall: Timestamp) {
        for card in 0..self.cards {
            if self.working[card] || self.burst[card] {
                (self.worked, self.untold[card]) = (now, true);
            }
        }
        self.burst = [false; 2];
        if self.busy {
            self.used = now;
        }
        if self.connected {
            (self.present, self.seen_stamp) = (now, wall);
        }
    }

    /// What the Hub, the server and the cards say, `minutes` after they were last asked.
    fn seen(&mut self, number: usize, minutes: i64) -> Session {
        let sample = |card: usize| GpuSample {
            id: GpuId(format!("GPU-{number}-{card}")),
            model: "A100".to_owned(),
            sm: if card == 1 && !self.second_readable {
                None
            } else {
                Ratio::reading(if self.untold[card] { 0.5 } else { 0.0 })
            },
            dram: Ratio::reading(0.0),
            engines: BTreeMap::new(),
            memory_used: None,
            processes: Some(1),
            covered: Duration::from_secs(60 * (minutes - if self.patchy { 2 } else { 0 }).unsigned_abs()),
            largest_gap: Duration::from_secs(1),
            unreadable: None,
        };
        let kernel = Kernel {
            id: "k".to_owned(),
            state: if self.busy { KernelState::Busy } else { KernelState::Idle },
            last_activity: Some(self.kernel_stamp),
            connections: 0,
            notebook: None,
        };
        let jupyter = Jupyter {
            last_activity: Some(self.seen_stamp),
            connections: u32::from(self.connected),
            kernels: vec![kernel],
            terminals: Vec::new(),
        };
        let gpus: Vec<GpuSample> = (0..self.cards).map(sample).collect();
        (self.untold, self.patchy) = ([false; 2], false);
        Session {
            server: Server {
                id: id(number),
                groups: Vec::new(),
                admin: false,
                profile: None,
                labels: BTreeMap::new(),
                started: Some(self.started),
                last_activity: Some(self.seen_stamp),
                pending: self.pending.then(|| "stop".to_owned()),
                ready: true,
                addresses: Vec::new(),
                spawner: SpawnerState::default(),
                path: String::new(),
            },
            jupyter: if self.kernels_readable { Ok(jupyter) } else { Err("refused".to_owned()) },
            gpus: if self.cards_readable { Ok(gpus) } else { Err("down".to_owned()) },
            holds: Vec::new(),
            cpu: None,
        }
    }

    fn is_readable(&self) -> bool {
        let second = self.cards == 1 || self.second_readable;
        self.cards_readable && second && self.kernels_readable && !self.pending
    }

    /// Whether it really was idle for as long as one of the limits says, and all the time since `began`.
    fn is_idle(&self, now: i64, began: i64, limits: &Limits) -> bool {
        let over = |since: i64, limit: SignedDuration| mins(now - since) >= limit && since <= began;
        let worked = self.worked.max(self.used);
        over(worked.max(self.present), limits.warn_after)
            || limits.connected_warn_after.is_some_and(|limit| over(worked, limit))
            || limits.card_unused_warn_after.is_some_and(|limit| !self.busy && over(self.worked, limit))
    }
}

fn id(number: usize) -> ServerId {
    ServerId::new(format!("u{number}"), "")
}

struct World {
    policy: Policy,
    ledger: Ledger,
    sessions: Vec<Truth>,
    now: i64,
    wall: Timestamp,
    latest_wall: Timestamp,
    hub: bool,
    mail: bool,
    cut_short: bool,
    /// Whether the source counts on while the Hub is down.
    counts_on: bool,
    last_listed: i64,
}

impl World {
    fn new(brakes: bool, odd: bool, counts_on: bool) -> Self {
        let wall: Timestamp = "2026-12-01T08:00:00Z".parse().unwrap();
        Self {
            policy: policy(brakes, odd),
            ledger: Ledger::default(),
            sessions: vec![Truth::new(0, wall); SESSIONS],
            now: 0,
            wall,
            latest_wall: wall,
            hub: true,
            mail: true,
            cut_short: false,
            counts_on,
            last_listed: 0,
        }
    }

    fn step(&mut self, step: &Step) {
        if let Some(change) = step.change {
            self.change(change);
        }
        for (number, doing) in &step.doings {
            self.sessions[*number].happens(*doing, self.now, self.wall);
            if let Doing::Keep(minutes) = doing {
                self.keep(*number, *minutes);
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
            Change::Mail(up) => self.mail = up,
            Change::ServiceRestarts => self.restart(),
            Change::CutShort => self.cut_short = true,
            Change::ClockSet(minutes) => self.wall += mins(minutes),
            Change::Limits(strict) => self.policy.limits = limits(strict),
            Change::Mode(mode) => self.policy.mode = mode,
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
    }

    fn keep(&mut self, number: usize, minutes: i64) {
        if self.ledger.records.contains_key(&id(number)) {
            let until = self.wall + mins(minutes);
            let keep = Keep {
                until,
                by: "owner".to_owned(),
                at: self.wall,
                reason: None,
                cost: SignedDuration::ZERO,
            };
            self.ledger.kept(&id(number), keep);
            self.sessions[number].kept_until = until;
        }
    }

    fn cycle(&mut self, minutes: i64) {
        let snapshot = Snapshot {
            at: self.wall,
            sessions: if self.hub { Ok(self.listed(minutes)) } else { Err("down".to_owned()) },
            complete: self.hub,
            telemetry_down: None,
            waiting: 0,
        };
        self.ledger.observe(&snapshot, &self.policy);
        let plan = plan(&snapshot, &self.ledger, &self.policy, self.wall);
        self.same_again(&snapshot, &plan);
        self.ledger.settled(&plan);
        for decision in &plan.decisions {
            self.carry_out(decision);
        }
        if self.cut_short {
            self.restart();
        }
    }

    fn listed(&mut self, minutes: i64) -> Vec<Session> {
        self.last_listed = self.now;
        let running = self.sessions.iter_mut().enumerate().filter(|(_, truth)| truth.running);
        running.map(|(number, truth)| truth.seen(number, minutes)).collect()
    }

    fn same_again(&self, snapshot: &Snapshot, plan: &Plan) {
        let again = gpu_culler::policy::plan(snapshot, &self.ledger, &self.policy, self.wall);
        assert_eq!(*plan, again, "planning twice at the same instant gives the same plan");
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
            Action::Remind { before, .. } => {
                assert!(self.sessions[number].has.is_some(), "a reminder without a warning");
                if self.mail {
                    self.ledger.reminded(&decision.server, *before);
                }
            }
            Action::Unmark => {
                self.ledger.unmarked(&decision.server);
                (self.sessions[number].has, self.sessions[number].cut_short) = (None, None);
            }
            Action::Stop => self.stop(number),
        }
    }

    fn warn(
        &mut self,
        number: usize,
        decision: &Decision,
        deadline: Timestamp,
        grace: SignedDuration,
        stop_follows: bool,
    ) {
        let truth = &mut self.sessions[number];
        let twice = truth.has.is_some_and(|has| has.stop_follows == stop_follows);
        assert!(!twice, "{} is warned twice for the same idle spell", decision.server);
        let rested = truth.is_idle(self.now, self.now, &self.policy.limits);
        assert!(rested && truth.is_readable(), "u{number} is warned in use at {}: {truth:?}", self.now);
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
            truth.cut_short = Some((self.now, grace));
        } else if self.mail {
            let limit = decision.judgement.reached.unwrap();
            let (accepted, message_id, reminded) = (self.wall, String::new(), Vec::new());
            let warning = Warning { accepted, deadline, limit, stop_follows, message_id, reminded };
            self.ledger.warned(&decision.server, warning);
            truth.has = Some(Has { since: self.now, grace, stop_follows });
            truth.cut_short = None;
        } else {
            self.ledger.warning_failed(&decision.server);
            truth.cut_short = None;
        }
    }

    fn stop(&mut self, number: usize) {
        let truth = &mut self.sessions[number];
        let Some(has) = truth.has else { panic!("u{number} is stopped unwarned") };
        assert!(has.stop_follows, "u{number} is stopped although its mail announced none");
        let waited = mins(self.now - has.since);
        assert!(waited >= has.grace, "u{number} is stopped {waited:?} after its warning");
        assert!(self.hub && truth.is_readable(), "u{number} is stopped although unreadable: {truth:?}");
        assert!(self.wall >= truth.kept_until, "u{number} is stopped although kept: {truth:?}");
        let limits = &self.policy.limits;
        let rested = truth.is_idle(self.now, has.since, limits);
        assert!(rested, "u{number} is stopped in use at {}: {truth:?}", self.now);
        self.ledger.stopped(&id(number), self.wall);
        truth.running = false;
    }

    /// Everything works, the clock is right again, and nobody does anything any more.
    fn rests_for_good(&mut self) {
        (self.hub, self.mail, self.policy.mode, self.wall) = (true, true, Mode::Enforce, self.latest_wall);
        for truth in &mut self.sessions {
            let asleep = Truth { worked: self.now, ..Truth::new(self.now, truth.started) };
            let (kernel_stamp, seen_stamp) = (truth.kernel_stamp, truth.seen_stamp);
            let (running, started, kept_until) = (truth.running, truth.started, truth.kept_until);
            let (has, cut_short) = (truth.has, truth.cut_short);
            let (used, present, cards) = (truth.used, truth.present, truth.cards);
            // A last sign of work, so that earlier holes in the coverage no longer count.
            let burst = [true; 2];
            *truth = Truth {
                running,
                started,
                kept_until,
                has,
                cut_short,
                used,
                present,
                cards,
                kernel_stamp,
                seen_stamp,
                burst,
                ..asleep
            };
        }
        for _ in 0..14 {
            self.step(&Step { minutes: 10, change: None, doings: Vec::new() });
        }
    }
}

/// Ten thousand histories; `PROPTEST_CASES` can only raise that.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(10_000), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_history_stops_work_and_every_rest_ends(
        history in history(),
        brakes in prop::bool::weighted(0.2),
        odd in any::<bool>(),
        counts_on in any::<bool>(),
    ) {
        let mut world = World::new(brakes, odd, counts_on);
        for step in &history {
            world.step(step);
        }
        world.rests_for_good();
        let left = world.sessions.iter().filter(|truth| truth.running).count();
        prop_assert!(brakes || left == 0, "{left} idle sessions are never stopped: {:?}", world.sessions);
    }
}

//! The rules, one sentence each. A [`Day`] is a small world in which they can be watched.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should stop at once")]

mod audit;
mod brakes;
mod cpu_servers;
mod cull_users;
mod demand;
mod evidence;
mod exemptions;
mod idleness;
mod intent;
mod keeps;
mod kernels;
mod ladder;
mod past;
mod rules;
mod schedule;
mod stamps;
mod waits;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::domain::{
    Engine, GpuId, GpuSample, Jupyter, Kernel, KernelState, Past, Queue, QueueLine, Ratio, Server, ServerId,
    SpawnerState, Terminal,
};

const STEP: SignedDuration = SignedDuration::from_mins(5);

fn mins(minutes: i64) -> SignedDuration {
    SignedDuration::from_mins(minutes)
}

fn hours(hours: i64) -> SignedDuration {
    SignedDuration::from_hours(hours)
}

/// `09:30` on the first of December, a Tuesday; or any instant written out.
fn at(text: &str) -> Timestamp {
    let day = if text.len() == 5 { format!("2026-12-01T{text}:00Z") } else { text.to_owned() };
    day.parse().unwrap()
}

/// The design's defaults, in earnest.
fn policy() -> Policy {
    Policy {
        mode: Mode::Enforce,
        cycle: mins(1),
        thresholds: Thresholds { sm: 0.01, dram: 0.01, cpu_cores: 0.1 },
        max_gap: mins(3),
        min_coverage: 0.95,
        warm_up: mins(15),
        kernels: KernelSource::Probed,
        limits: Limits {
            warn_after: hours(1),
            grace: hours(1),
            remind_before: vec![mins(15)],
            connected_warn_after: Some(hours(4)),
            card_unused_warn_after: Some(hours(24)),
            busy_kernel_limit: None,
            busy_kernel_action: BusyKernelAction::Notice,
            max_age: None,
            max_age_even_if_busy: false,
            manner: Manner::default(),
        },
        rules: Vec::new(),
        keep: KeepOffer { choices: Vec::new(), weekly_budget: hours(72), reason: ReasonNeed::Optional },
        demand: Demand::default(),
        intents: Intents::default(),
        stop_hours: None,
        safety: Safety {
            max_stops: StopBudget::Share(0.1),
            freeze_share: 0.5,
            freeze_min_sessions: 10,
            min_uptime: mins(3),
        },
        can_warn: true,
        cpu_servers: None,
    }
}

/// A card that was watched for the last five minutes and did nothing.
fn card(id: &str) -> GpuSample {
    GpuSample {
        id: GpuId(id.to_owned()),
        model: "NVIDIA A100-SXM4-80GB".to_owned(),
        sm: Ratio::reading(0.0),
        dram: Ratio::reading(0.0),
        engines: BTreeMap::new(),
        memory_used: Some(1 << 30),
        processes: Some(1),
        covered: Duration::from_secs(300),
        largest_gap: Duration::from_secs(2),
        unreadable: None,
        power: None,
        past: None,
    }
}

/// A server started at eight, with a card and an idle kernel, and nobody there.
fn session(user: &str) -> Session {
    let start = Some(at("08:00"));
    let id = "k1".to_owned();
    let kernel =
        Kernel { id, state: KernelState::Idle, last_activity: start, connections: 0, notebook: None };
    Session {
        server: Box::new(Server {
            id: ServerId::new(user, ""),
            groups: Vec::new(),
            admin: false,
            profile: None,
            labels: BTreeMap::new(),
            started: start,
            last_activity: start,
            pending: None,
            ready: true,
            contacts: Vec::new(),
            spawner: SpawnerState::default(),
            path: String::new(),
        }),
        jupyter: Ok(Jupyter {
            last_activity: start,
            connections: 0,
            kernels: vec![kernel],
            terminals: Vec::new(),
        }),
        gpus: Ok(vec![card("GPU-1")]),
        holds: Vec::new(),
        cpu: None,
    }
}

impl Session {
    fn card(&mut self) -> &mut GpuSample {
        &mut self.gpus.as_mut().unwrap()[0]
    }

    fn jupyter(&mut self) -> &mut Jupyter {
        self.jupyter.as_mut().unwrap()
    }

    fn kernel(&mut self) -> &mut Kernel {
        &mut self.jupyter().kernels[0]
    }

    fn works(&mut self, works: bool) {
        self.card().sm = Ratio::reading(if works { 0.5 } else { 0.0 });
    }
}

/// A world that is looked at every five minutes, as the service does it.
struct Day {
    policy: Policy,
    ledger: Ledger,
    sessions: Vec<Session>,
    /// Whether the Hub lists anything.
    hub: bool,
    /// Whether the mail server takes anything.
    mail: bool,
    /// Who waits for a card.
    waiting: Option<Queue>,
    now: Timestamp,
    plan: Plan,
    events: Vec<(Timestamp, ServerId, &'static str)>,
}

impl Day {
    /// Eight o'clock: everybody of `users` has just started a server.
    fn of(users: &[&str], policy: Policy) -> Self {
        let mut day = Self {
            policy,
            ledger: Ledger::default(),
            sessions: users.iter().map(|user| session(user)).collect(),
            hub: true,
            mail: true,
            waiting: None,
            now: at("08:00"),
            plan: Plan { decisions: Vec::new(), freeze: FreezeChange::None, waiting: None },
            events: Vec::new(),
        };
        day.look();
        day
    }

    fn new() -> Self {
        Self::of(&["alice"], policy())
    }

    fn alice(&mut self) -> &mut Session {
        &mut self.sessions[0]
    }

    fn record(&self) -> &Record {
        &self.ledger.records[&ServerId::new("alice", "")]
    }

    /// Looks every five minutes up to and including `end`.
    fn run(&mut self, end: &str) {
        let end = at(end);
        while self.now < end {
            self.now += STEP;
            self.look();
        }
        assert_eq!(self.now, end, "a day is looked at every five minutes");
    }

    /// As [`Day::run`]; what is decided about alice at its end.
    fn until(&mut self, end: &str) -> Decision {
        self.run(end);
        self.decision("alice")
    }

    fn decision(&self, user: &str) -> Decision {
        self.plan.of(&ServerId::new(user, "")).expect("it was judged").clone()
    }

    fn verdict(&mut self, end: &str) -> Verdict {
        self.until(end).judgement.verdict
    }

    /// One cycle at `self.now`.
    fn look(&mut self) {
        let snapshot = Snapshot {
            at: self.now,
            sessions: if self.hub { Ok(self.sessions.clone()) } else { Err("down".to_owned()) },
            complete: self.hub,
            telemetry_down: None,
            waiting: self.waiting.clone(),
        };
        self.ledger.observe(&snapshot, &self.policy);
        self.plan = plan(&snapshot, &self.ledger, &self.policy, self.now);
        self.ledger.settled(&self.plan);
        for decision in self.plan.decisions.clone() {
            self.carry_out(&decision);
        }
    }

    fn carry_out(&mut self, decision: &Decision) {
        let id = &decision.server;
        let event = match decision.action.clone() {
            Some(Action::Warn { deadline, stop_follows, .. }) if self.mail => {
                let limit = decision.judgement.reached.unwrap();
                let message_id = String::new();
                let reminded = Vec::new();
                let accepted = self.now;
                let kernels = decision.target.as_ref().unwrap().kernels();
                let warning =
                    Warning { accepted, deadline, limit, stop_follows, message_id, reminded, kernels };
                self.ledger.warned(id, warning);
                "warned"
            }
            Some(Action::Remind { before, .. }) if self.mail => {
                self.ledger.reminded(id, before);
                "reminded"
            }
            Some(Action::Unmark) => {
                self.ledger.unmarked(id);
                "unmarked"
            }
            Some(Action::Stop) => {
                self.ledger.stopped(id, self.now);
                "stopped"
            }
            Some(Action::Withdraw) if self.mail => {
                self.ledger.withdrawn(id, None);
                "withdrawn"
            }
            Some(Action::Notice(waiting)) if self.mail => {
                self.ledger.noticed(id, waiting.iter(), Some(self.now));
                "noticed"
            }
            Some(_) | None => return,
        };
        self.events.push((self.now, id.clone(), event));
    }

    /// What happened to alice, and when.
    fn story(&self) -> Vec<(&'static str, Timestamp)> {
        self.of_user("alice")
    }

    fn of_user(&self, user: &str) -> Vec<(&'static str, Timestamp)> {
        let id = ServerId::new(user, "");
        self.events.iter().filter(|(_, who, _)| *who == id).map(|(at, _, what)| (*what, *at)).collect()
    }

    fn stopped(&self) -> usize {
        self.events.iter().filter(|(_, _, what)| *what == "stopped").count()
    }
}

fn is_idle(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Idle(_))
}

fn is_unknown(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unknown(_))
}

#[test]
fn the_plain_case_is_warned_after_an_hour_reminded_and_stopped_after_another() {
    let mut day = Day::new();
    day.run("10:30");
    let expected = [("warned", at("09:00")), ("reminded", at("09:45")), ("stopped", at("10:00"))];
    assert_eq!(day.story(), expected);
}

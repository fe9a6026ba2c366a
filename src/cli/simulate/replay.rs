//! One trace, observation by observation, through the ledger and the planner. The world of a trace
//! answers at once: mail is accepted or not as the line says, and a stopped server is gone.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::account::{Account, Sequel, Summary};
use crate::domain::ServerId;
use crate::message::reasons;
use crate::policy::{
    Action, Decision, FreezeChange, HeldBack, Keep, Ledger, Policy, Target, Verdict, Warning, plan,
};
use crate::trace::{GivenKeep, MailState, Observation};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// To which server; `null` for what concerns all.
    pub server: Option<ServerId>,
    /// What.
    pub event: &'static str,
    /// Why.
    pub reason: String,
    /// The deadline promised, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
}

/// The state of a replay.
pub struct Replay<'a> {
    policy: &'a Policy,
    ledger: Ledger,
    idle: BTreeSet<ServerId>,
    held_back: BTreeMap<ServerId, HeldBack>,
    account: Account,
    events: Vec<Event>,
}

impl<'a> Replay<'a> {
    /// Nothing observed yet.
    pub fn new(policy: &'a Policy) -> Self {
        Self {
            policy,
            ledger: Ledger::default(),
            idle: BTreeSet::new(),
            held_back: BTreeMap::new(),
            account: Account::default(),
            events: Vec::new(),
        }
    }

    /// The numbers so far.
    pub fn summary(&self) -> Summary {
        self.account.summary()
    }

    /// Takes one observation and returns what it led to.
    pub fn observe(&mut self, seen: &Observation) -> Vec<Event> {
        let now = seen.snapshot.at;
        let warned = self.warned();
        self.ledger.observe(&seen.snapshot, self.policy);
        let still = self.warned();
        for id in warned.iter().filter(|id| !still.contains(id)) {
            self.account.unmarked();
            self.push(now, id, "unmarked", "it is a new session or gone");
        }
        for Sequel { server, event, after } in self.account.observe(&seen.snapshot, &self.ledger) {
            self.push(now, &server, event, &format!("{} after its stop", reasons::length(after)));
        }
        self.keep(seen);
        let plan = plan(&seen.snapshot, &self.ledger, self.policy, now);
        if let FreezeChange::Begins(freeze) = &plan.freeze {
            let reason = format!("{} sessions turned idle at once", freeze.flipped.len());
            self.events.push(Event { at: now, server: None, event: "frozen", reason, deadline: None });
        }
        for decision in &plan.decisions {
            self.decided(decision, seen, now);
        }
        self.ledger.settled(&plan);
        std::mem::take(&mut self.events)
    }

    fn warned(&self) -> Vec<ServerId> {
        let warned = self.ledger.records.iter().filter(|(_, record)| record.warning.is_some());
        warned.filter(|(_, record)| record.stopped.is_none()).map(|(id, _)| id.clone()).collect()
    }

    fn keep(&mut self, seen: &Observation) {
        let at = seen.snapshot.at;
        let known = |given: &&GivenKeep| self.ledger.records.contains_key(&given.server);
        for given in seen.keeps.iter().filter(known).cloned().collect::<Vec<_>>() {
            let length = SignedDuration::try_from(given.length).unwrap_or(SignedDuration::MAX);
            let until = at.checked_add(length).unwrap_or(Timestamp::MAX);
            let keep = Keep { until, by: given.by.clone(), at, reason: given.reason.clone(), cost: length };
            let words = reasons::kept(&keep);
            self.ledger.kept(&given.server, keep);
            self.push(at, &given.server, "kept", &words);
        }
    }

    fn decided(&mut self, decision: &Decision, seen: &Observation, now: Timestamp) {
        let why = reasons::verdict(&decision.judgement.verdict);
        self.turned_idle(decision, &why, now);
        if let Some(action) = &decision.action {
            self.act(decision, action, &why, seen, now);
        }
        self.hold_back(decision, now);
    }

    fn counted(&mut self, decision: &Decision, seen: &Observation, now: Timestamp) {
        let session = seen.snapshot.sessions.iter().flatten().find(|s| s.server.id == decision.server);
        let cards = session.map_or(0, |session| session.gpus.iter().flatten().count());
        if let (Some(started), Some(limit)) = (decision.started, decision.judgement.reached) {
            self.account.stopped(&decision.server, now, started, cards, limit);
        }
    }

    /// A line when it turns idle, and when that is over and nobody was warned of it. Not to be judged for a moment ends no idle spell; a limit that is
    /// no longer reached does.
    fn turned_idle(&mut self, decision: &Decision, why: &str, now: Timestamp) {
        let id = &decision.server;
        match (&decision.judgement.verdict, decision.judgement.reached) {
            (Verdict::Idle(_), _) if self.idle.insert(id.clone()) => self.push(now, id, "idle", why),
            (Verdict::Idle(_), _) | (Verdict::Unknown(_), Some(_)) => {}
            (Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_), _) => {
                let warned = self.ledger.records.get(id).is_some_and(|record| record.warning.is_some());
                if self.idle.remove(id) && !warned {
                    self.push(now, id, "recovered", why);
                }
            }
        }
    }

    fn act(&mut self, decision: &Decision, action: &Action, why: &str, seen: &Observation, now: Timestamp) {
        let (id, mail) = (&decision.server, seen.mail);
        match action {
            Action::Unmark => {
                self.ledger.unmarked(id);
                self.account.unmarked();
                self.push(now, id, "unmarked", why);
            }
            Action::Withdraw | Action::Notice(_) if mail != MailState::Accepting => {}
            Action::Withdraw => {
                self.ledger.withdrawn(id, None);
                self.push(now, id, "withdrawn", why);
            }
            Action::Notice(waiting) => {
                self.ledger.noticed(id, waiting.iter(), Some(now));
                self.push(now, id, "noticed", why);
            }
            Action::Warn { .. } | Action::Remind { .. } if mail != MailState::Accepting => {
                self.push(now, id, "held-back", "the mail server does not accept the warning");
            }
            Action::Warn { deadline, stop_follows, .. } => {
                let Some(limit) = decision.judgement.reached else { return };
                let warning = Warning {
                    accepted: now,
                    deadline: *deadline,
                    limit,
                    stop_follows: *stop_follows,
                    message_id: String::new(),
                    reminded: Vec::new(),
                    kernels: decision.target.as_ref().and_then(Target::kernels),
                };
                self.ledger.warned(id, warning);
                self.account.warned();
                self.push_deadline(now, id, "warned", why, *deadline);
            }
            Action::Remind { before, deadline } => {
                self.ledger.reminded(id, *before);
                self.push_deadline(now, id, "reminded", why, *deadline);
            }
            Action::Stop => {
                self.push(now, id, "stopping", why);
                self.ledger.stopped(id, now);
                self.counted(decision, seen, now);
                match &decision.target {
                    Some(target @ Target::Kernels(_)) => {
                        self.push(now, id, "stopped", &format!("{}: {why}", reasons::shut_down(target)));
                    }
                    Some(Target::Server) | None => self.push(now, id, "stopped", why),
                }
            }
        }
    }

    /// A line for each new reason, not for each observation.
    fn hold_back(&mut self, decision: &Decision, now: Timestamp) {
        let id = &decision.server;
        let Some(why) = decision.held_back.clone().filter(|why| !matches!(why, HeldBack::Warned(_))) else {
            self.held_back.remove(id);
            return;
        };
        if self.held_back.get(id) != Some(&why) {
            let verdict = reasons::verdict(&decision.judgement.verdict);
            self.push(now, id, "held-back", &format!("{}: {verdict}", reasons::held_back(&why)));
            self.held_back.insert(id.clone(), why);
        }
    }

    fn push(&mut self, at: Timestamp, id: &ServerId, event: &'static str, reason: &str) {
        self.events.push(Event {
            at,
            server: Some(id.clone()),
            event,
            reason: reason.to_owned(),
            deadline: None,
        });
    }

    fn push_deadline(
        &mut self,
        at: Timestamp,
        id: &ServerId,
        event: &'static str,
        why: &str,
        deadline: Timestamp,
    ) {
        self.push(at, id, event, why);
        if let Some(event) = self.events.last_mut() {
            event.deadline = Some(deadline);
        }
    }
}

//! What must survive a restart, as plain data, and the transitions it knows.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    Evidence, Freeze, FreezeChange, Grant, Keep, Lifted, LimitKind, Plan, Policy, Session, Snapshot, Spared,
    Verdict, Waiting,
};
use crate::domain::{ServerId, UserName};

/// New sessions that are taken in together, so that the first look at thousands needs no room for a copy of all.
const AT_ONCE: usize = 1000;

/// The memory between cycles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// By server.
    pub records: BTreeMap<ServerId, Record>,
    /// Since when this process watches; not known to those that only tell.
    pub began: Option<Timestamp>,
    /// The brake, when it is on.
    pub freeze: Option<Freeze>,
    /// Who lifted the brake last.
    pub lifted: Option<Lifted>,
    /// The keeps of the last days, by the owner of the server: also of servers that are gone.
    pub keeps: BTreeMap<UserName, Vec<Grant>>,
    /// What is remembered of each exemption, by the rule's name.
    pub spared: BTreeMap<String, Spared>,
    /// The servers whose record changed, or went, since it was last saved.
    pub unsaved: BTreeSet<ServerId>,
    /// The owners whose keeps changed since they were last saved.
    pub unsaved_keeps: BTreeSet<UserName>,
}

/// What is remembered of one run of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which run: a new value is a new session.
    pub started: Timestamp,
    /// Its clocks.
    pub evidence: Evidence,
    /// Whether it was idle when it could last be judged.
    pub idle: bool,
    /// Whether it was so by the usual limits, whoever waits for a card: what the brake counts by.
    #[serde(default)]
    pub usually_idle: bool,
    /// A warning that is being sent, and when that began. Still here after a restart, it was cut
    /// short and nobody knows whether it went out.
    pub sending: Option<Timestamp>,
    /// When the admins were told that its owner has no address.
    pub admins_told: Option<Timestamp>,
    /// The warning its owner has. Of thousands of records few hold one, hence the boxes.
    pub warning: Option<Box<Warning>>,
    /// A warning of a stop that was taken back, until its owner knows.
    #[serde(default)]
    pub taken_back: Option<Box<Warning>>,
    /// How many warnings of this run were accepted, so that each has a name of its own.
    #[serde(default)]
    pub warnings: u32,
    /// The keep that was last given.
    pub keep: Option<Box<Keep>>,
    /// When it was stopped.
    pub stopped: Option<Timestamp>,
}

/// A warning that the mail server accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// When it was accepted.
    pub accepted: Timestamp,
    /// When the promised time ends.
    pub deadline: Timestamp,
    /// The limit it was about.
    pub limit: LimitKind,
    /// Whether it announced a stop: the mails of mode `warn` do not, so no stop may follow them.
    #[serde(default)]
    pub stop_follows: bool,
    /// Its Message-ID, so that later mails can answer it.
    pub message_id: String,
    /// The reminders that went out, by how long before the deadline.
    pub reminded: Vec<SignedDuration>,
    /// The kernels that it named; absent where it announced the end of the whole server.
    #[serde(default)]
    pub kernels: Option<Vec<String>>,
}

impl Record {
    /// A session seen for the first time at `at`; a start later than that is a wrong clock somewhere.
    fn first_seen(started: Timestamp, at: Timestamp) -> Self {
        Self { evidence: Evidence::new(started.min(at)), ..Self::new(started) }
    }

    /// A session seen for the first time.
    pub fn new(started: Timestamp) -> Self {
        Self {
            started,
            evidence: Evidence::new(started),
            idle: false,
            usually_idle: false,
            sending: None,
            admins_told: None,
            warning: None,
            taken_back: None,
            warnings: 0,
            keep: None,
            stopped: None,
        }
    }
}

impl Ledger {
    /// Folds what was observed into the clocks. A changed `started` is a new session; an absent
    /// server is forgotten only where the listing was complete.
    pub fn observe(&mut self, snapshot: &Snapshot, policy: &Policy) {
        self.forget_old_keeps(snapshot.at);
        self.know_exemptions(policy, snapshot.at);
        let Ok(sessions) = &snapshot.sessions else {
            return;
        };
        for some in sessions.chunks(AT_ONCE) {
            let mut new: Vec<&Session> = some.iter().collect();
            new.retain(|session| !self.observe_one(session, snapshot.at, policy));
            self.add_new(&new, snapshot.at);
            for session in new {
                self.observe_one(session, snapshot.at, policy);
            }
        }
        if snapshot.complete {
            self.forget_absent(sessions, snapshot.at);
        }
    }

    fn forget_absent(&mut self, sessions: &[Session], at: Timestamp) {
        let mut listed: Vec<&ServerId> = sessions.iter().map(|session| &session.server.id).collect();
        listed.sort_unstable();
        // Both are in the same order, so that one pass tells.
        let mut listed = listed.into_iter().peekable();
        self.records.retain(|id, record| {
            while listed.next_if(|listed| *listed < id).is_some() {}
            let stays = listed.peek() == Some(&id) || record.is_kept(at);
            if !stays {
                self.unsaved.insert(id.clone());
            }
            stays
        });
    }

    fn add_new(&mut self, sessions: &[&Session], at: Timestamp) {
        let fresh = sessions.iter().filter_map(|session| {
            let started = session.server.started?;
            Some((session.server.id.clone(), Record::first_seen(started, at)))
        });
        let mut fresh: BTreeMap<ServerId, Record> = fresh.collect();
        self.unsaved.extend(fresh.keys().cloned());
        self.records.append(&mut fresh);
    }

    /// Folds a session into the record of this run; whether there is one. Where the Hub leaves out when it
    /// started, what is seen still counts for the run that is known.
    fn observe_one(&mut self, session: &Session, at: Timestamp, policy: &Policy) -> bool {
        let Some(record) = self.records.get_mut(&session.server.id) else {
            return false;
        };
        let before = (record.started, record.evidence.clone());
        if let Some(started) = session.server.started.filter(|started| *started != record.started) {
            *record = Record { keep: record.keep.take(), ..Record::first_seen(started, at) };
        }
        record.evidence.observe(session, at, policy);
        if (record.started, &record.evidence) != (before.0, &before.1) {
            self.unsaved.insert(session.server.id.clone());
        }
        true
    }

    /// This process watches, at the latest since `at`. A clock that was set back makes it begin anew.
    pub fn watches(&mut self, at: Timestamp) {
        self.began = Some(self.began.map_or(at, |began| began.min(at)));
    }

    /// Takes over what a plan concluded: who was idle, and the brake. A session that could not be
    /// judged for a moment has not turned idle when it can be judged again.
    pub fn settled(&mut self, plan: &Plan) {
        for decision in &plan.decisions {
            let idle = match decision.judgement.verdict {
                Verdict::Idle(_) => true,
                Verdict::Busy(_) | Verdict::Protected(_) => false,
                Verdict::Unknown(_) => continue,
            };
            let verdict = &decision.judgement.verdict;
            let protected = matches!(verdict, Verdict::Protected(_)) && verdict.at_rest().is_none();
            let now = (idle, decision.judgement.usually_reached && !protected);
            let changed = |record: &Record| (record.idle, record.usually_idle) != now;
            if self.records.get(&decision.server).is_some_and(changed) {
                self.change(&decision.server, |record| (record.idle, record.usually_idle) = now);
            }
        }
        self.count_exempt(plan);
        match &plan.freeze {
            FreezeChange::Begins(freeze) => self.freeze = Some(freeze.clone()),
            // It may have been lifted since that was planned.
            FreezeChange::Holds(freeze) if self.freeze.is_some() => self.freeze = Some(freeze.clone()),
            FreezeChange::Ends => self.freeze = None,
            FreezeChange::Holds(_) | FreezeChange::None => {}
        }
    }

    /// A warning is about to be sent; must be saved before it is.
    pub fn warning_began(&mut self, id: &ServerId, at: Timestamp) {
        self.change(id, |record| record.sending = Some(at));
    }

    /// The warning was not accepted; it may be tried again.
    pub fn warning_failed(&mut self, id: &ServerId) {
        self.change(id, |record| record.sending = None);
    }

    /// The warning was accepted and that could not be saved, so that nobody will know after a restart.
    pub fn warning_in_doubt(&mut self, id: &ServerId, began: Timestamp) {
        self.change(id, |record| {
            record.warning = None;
            record.sending = Some(began);
        });
    }

    /// The mail server accepted the warning.
    pub fn warned(&mut self, id: &ServerId, warning: Warning) {
        self.change(id, |record| {
            record.sending = None;
            record.taken_back = None;
            record.warning = Some(Box::new(warning));
            record.warnings = record.warnings.saturating_add(1);
        });
    }

    /// The admins know that the owner has no address, or (`None`) could not be told.
    pub fn admins_told(&mut self, id: &ServerId, at: Option<Timestamp>) {
        self.change(id, |record| record.admins_told = at);
    }

    /// The reminder was not accepted; it may be tried again.
    pub fn reminder_failed(&mut self, id: &ServerId, before: SignedDuration) {
        self.change(id, |record| {
            if let Some(warning) = &mut record.warning {
                warning.reminded.retain(|sent| *sent != before);
            }
        });
    }

    /// A reminder goes out.
    pub fn reminded(&mut self, id: &ServerId, before: SignedDuration) {
        self.change(id, |record| {
            if let Some(warning) = &mut record.warning {
                warning.reminded.push(before);
            }
        });
    }

    /// The warning no longer holds; the next one has its full grace.
    pub fn unmarked(&mut self, id: &ServerId) {
        self.change(id, |record| {
            let warning = record.warning.take().filter(|warning| warning.stop_follows);
            record.taken_back = warning.or_else(|| record.taken_back.take());
            record.sending = None;
            record.admins_told = None;
        });
    }

    /// The owner is told that a warning was taken back; returns which. Not told after all where the mail
    /// server was in trouble, it can be put back.
    pub fn withdrawn(&mut self, id: &ServerId, or_not: Option<Warning>) -> Option<Warning> {
        let before = self.records.get(id).and_then(|record| record.taken_back.clone());
        self.change(id, |record| record.taken_back = or_not.map(Box::new));
        before.map(|warning| *warning)
    }

    /// The owner is told of kernels that wait, at this instant; or after all not.
    pub fn noticed<'a>(
        &mut self,
        id: &ServerId,
        kernels: impl Iterator<Item = &'a Waiting>,
        at: Option<Timestamp>,
    ) {
        self.change(id, |record| {
            for waiting in kernels {
                if let Some(wait) = record.evidence.waits.get_mut(&waiting.kernel) {
                    wait.told = at;
                }
            }
        });
    }

    /// The kernels that a warning named are shut down; the server stays.
    pub fn kernels_stopped(&mut self, id: &ServerId) {
        self.change(id, |record| {
            record.warning = None;
            record.sending = None;
        });
    }

    /// The server was stopped and is gone.
    pub fn stopped(&mut self, id: &ServerId, at: Timestamp) {
        self.change(id, |record| record.stopped = Some(at));
    }

    pub(super) fn change(&mut self, id: &ServerId, change: impl FnOnce(&mut Record)) {
        if let Some(record) = self.records.get_mut(id) {
            change(record);
            self.unsaved.insert(id.clone());
        }
    }
}

impl Record {
    fn is_kept(&self, at: Timestamp) -> bool {
        self.keep.as_ref().is_some_and(|keep| at < keep.until)
    }
}

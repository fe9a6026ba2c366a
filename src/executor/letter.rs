//! Letters to owners: which ones a plan asks for, and what one means once it is accepted.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::{SignedDuration, Timestamp};

use super::notice::session_notice;
use super::{Happening, Journal};
use crate::domain::{Queue, Server, ServerId, UserName};
use crate::message::SessionNotice;
use crate::policy::{Action, Decision, Plan, Session, Snapshot, Warning};

/// One letter to one owner about all their sessions.
pub struct Letter {
    /// Whom it goes to.
    pub owner: Box<Server>,
    /// Which step of the ladder it is: a warning where it holds one.
    pub rung: Rung,
    /// What it is about.
    pub sessions: Vec<Due>,
}

/// Which step of the ladder a letter is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// The first one; nothing is stopped without it.
    Warning,
    /// This long before the deadline.
    Reminder(SignedDuration),
}

/// One session of a letter.
pub struct Due {
    /// Which step of the ladder it is for this session.
    pub rung: Rung,
    /// What its owner has to know.
    pub notice: SessionNotice,
    /// How many warnings of this session were accepted before.
    warnings: u32,
    /// The least time between acceptance and the stop.
    grace: SignedDuration,
    /// Whether it announces a stop.
    stop_follows: bool,
    /// The kernels that it names; absent where the whole server is meant.
    kernels: Option<Vec<String>>,
    /// The warning's Message-ID, where there was one.
    pub warned: Option<String>,
}

/// The letters that a plan asks for: one per owner, however many servers, be they warned or reminded.
pub fn letters(plan: &Plan, seen: &Snapshot, journal: &Journal) -> Vec<Letter> {
    let mut letters: BTreeMap<UserName, Letter> = BTreeMap::new();
    for decision in plan.decisions.iter().filter(|decision| decision.action.is_some()) {
        let Some(session) = session_of(seen, &decision.server) else { continue };
        let Some(due) = due(session, decision, plan.waiting.as_ref(), journal) else { continue };
        let letter = letters.entry(decision.server.user.clone()).or_insert_with(|| Letter {
            owner: session.server.clone(),
            rung: due.rung,
            sessions: Vec::new(),
        });
        letter.rung = letter.rung.min(due.rung);
        letter.sessions.push(due);
    }
    letters.into_values().collect()
}

impl Letter {
    /// The servers it is about.
    pub fn servers(&self) -> Vec<ServerId> {
        self.sessions.iter().map(|due| due.notice.server.clone()).collect()
    }

    /// Why it does not go out now.
    pub fn held_back(&self, why: &str, at: Timestamp) -> Vec<Happening> {
        self.sessions.iter().map(|due| Happening::to(&due.notice.server, at, "held-back", why)).collect()
    }

    /// The same letter has the same name however often it is tried, so that a mail server can tell. Another
    /// warning of the same idle spell, as after a keep, is another letter: with the name of the first it might
    /// be dropped as a copy.
    pub fn name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        for due in &self.sessions {
            (&due.notice.server, due.notice.started, due.notice.idle_since, due.warnings).hash(&mut hasher);
        }
        let rung = match self.rung {
            Rung::Warning => "warning".to_owned(),
            Rung::Reminder(before) => format!("reminder-{}", before.as_secs()),
        };
        format!("{rung}.{:016x}", hasher.finish())
    }
}

pub fn session_of<'a>(seen: &'a Snapshot, id: &ServerId) -> Option<&'a Session> {
    seen.sessions.iter().flatten().find(|session| session.server.id == *id)
}

fn due(session: &Session, decision: &Decision, waiting: Option<&Queue>, journal: &Journal) -> Option<Due> {
    let (rung, deadline, grace, stop_follows) = match decision.action {
        Some(Action::Warn { deadline, grace, stop_follows }) => {
            (Rung::Warning, deadline, grace, stop_follows)
        }
        Some(Action::Remind { before, deadline }) => {
            (Rung::Reminder(before), deadline, SignedDuration::ZERO, true)
        }
        Some(Action::Stop | Action::Unmark | Action::Withdraw | Action::Notice(_)) | None => return None,
    };
    let record = journal.record(&decision.server)?;
    let notice = session_notice(session, decision, record, deadline, waiting)?;
    let warned = record.warning.as_ref().map(|warning| warning.message_id.clone());
    let warnings = record.warnings;
    let kernels = decision.target.as_ref()?.kernels();
    Some(Due { rung, notice, warnings, grace, stop_follows, kernels, warned })
}

impl Due {
    /// The deadline is the promised one, or `grace` after the acceptance where that is later.
    pub fn accepted(&self, message_id: &str, at: Timestamp) -> Warning {
        let earliest = at.checked_add(self.grace).unwrap_or(Timestamp::MAX);
        Warning {
            accepted: at,
            deadline: self.notice.deadline.max(earliest),
            limit: self.notice.limit,
            stop_follows: self.stop_follows,
            message_id: message_id.to_owned(),
            reminded: Vec::new(),
            kernels: self.kernels.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;
    use crate::policy::{IdleKind, LimitKind};

    fn letter(deadline: &str, warnings: u32) -> Letter {
        let at = |text: &str| format!("2026-12-01T{text}:00Z").parse().unwrap();
        let id = ServerId::new("alice", "");
        let notice = SessionNotice {
            server: id.clone(),
            cards: Vec::new(),
            holds: Vec::new(),
            notebooks: Vec::new(),
            idle_since: at("09:00"),
            card_active: None,
            used: None,
            used_by: None,
            present: None,
            started: Some(at("08:00")),
            kind: IdleKind::Held,
            limit: LimitKind::Nobody,
            deadline: at(deadline),
            waiting: None,
            intent: None,
            declared: None,
            kernels: None,
            save_wait: None,
        };
        let owner = Server::named(id);
        let grace = SignedDuration::from_hours(1);
        let due = Due {
            rung: Rung::Warning,
            notice,
            warnings,
            grace,
            stop_follows: true,
            kernels: None,
            warned: None,
        };
        Letter { owner: Box::new(owner), rung: Rung::Warning, sessions: vec![due] }
    }

    #[test]
    fn a_letter_that_is_tried_again_keeps_its_name_and_another_one_has_its_own() {
        assert_eq!(letter("11:00", 0).name(), letter("11:05", 0).name());
        assert_ne!(letter("11:00", 0).name(), letter("14:00", 1).name());
    }
}

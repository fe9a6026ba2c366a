//! Which mails a cycle sends: one per owner, whatever happens to however many servers.

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Journal;
use super::letter::{Rung, letters};
use super::news::{News, news};
use crate::domain::ServerId;
use crate::policy::{Action, Mode, Plan, Policy, Snapshot, plan};
use crate::settings::policy_of;
use crate::store::Store;
use crate::trace::{self, Line};

/// A small Hub, looked at every five minutes from eight on.
struct Office {
    policy: Policy,
    journal: Journal,
    now: Timestamp,
    seen: Option<Snapshot>,
    plan: Option<Plan>,
    _folder: tempfile::TempDir,
}

/// A server: its owner, its name, when its kernel was last used, and whether that is busy now.
type Server = (&'static str, &'static str, &'static str, bool);

fn at(time: &str) -> Timestamp {
    format!("2026-12-01T{time}:00Z").parse().unwrap()
}

fn server((user, name, used, busy): Server) -> Value {
    let state = if busy { "busy" } else { "idle" };
    json!({"user": user, "server": name, "started": at("08:00"), "last_activity": at(used), "ready": true, "cpu": 0,
        "jupyter": {"kernels": [{"id": "k", "state": state, "last_activity": at(used)}]},
        "gpus": [{"id": format!("{user}{name}"), "sm": 0, "dram": 0, "covered": "5m", "largest_gap": "2s"}]})
}

impl Office {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("ledger.sqlite")).unwrap();
        let mut policy = Policy { mode: Mode::Enforce, ..policy_of(None).unwrap() };
        policy.limits.busy_kernel_limit = Some(SignedDuration::from_mins(60));
        let journal = Journal::open(store).unwrap();
        Self { policy, journal, now: at("07:55"), seen: None, plan: None, _folder: folder }
    }

    /// Looks until `end`, and carries out in the journal what is planned before it.
    fn until(&mut self, end: &str, servers: &[Server]) -> (&Plan, &Snapshot, &Journal) {
        while self.now < at(end) {
            if let Some(plan) = self.plan.take() {
                self.carry_out(&plan);
            }
            self.now += SignedDuration::from_mins(5);
            let servers: Vec<Value> = servers.iter().copied().map(server).collect();
            let line = json!({"at": self.now, "servers": servers}).to_string();
            let text = format!("{{\"trace\":\"gpu-culler/1\"}}\n{line}\n");
            let Line::Observed(seen) = trace::read(text.as_bytes()).next().unwrap().unwrap() else {
                unreachable!("it is no expectation")
            };
            self.journal.observe(&seen.snapshot, &self.policy);
            self.plan = Some(plan(&seen.snapshot, self.journal.ledger(), &self.policy, self.now));
            self.seen = Some(seen.snapshot);
        }
        (self.plan.as_ref().unwrap(), self.seen.as_ref().unwrap(), &self.journal)
    }

    fn carry_out(&mut self, plan: &Plan) {
        let letters = letters(plan, self.seen.as_ref().unwrap(), &self.journal);
        for due in letters.iter().flat_map(|letter| &letter.sessions) {
            let (id, warning) = (&due.notice.server, due.accepted("id@x", self.now));
            match due.rung {
                Rung::Warning => self.journal.warned(id, warning).unwrap(),
                Rung::Reminder(before) => {
                    self.journal.letters_begin(&[], &[(id.clone(), before)], self.now).unwrap()
                }
            }
        }
        for decision in plan.decisions.iter().filter(|d| d.action == Some(Action::Unmark)) {
            self.journal.unmarked(&decision.server).unwrap();
        }
    }
}

fn named(news: &[News]) -> Vec<Vec<String>> {
    news.iter().map(|news| news.items.iter().map(|item| item.server.to_string()).collect()).collect()
}

#[test]
fn a_warning_and_a_reminder_of_the_same_cycle_share_a_letter() {
    let mut office = Office::new();
    let servers =
        [("alice", "", "08:00", false), ("alice", "b", "08:45", false), ("bob", "", "08:45", false)];
    let (plan, seen, journal) = office.until("09:45", &servers);
    let letters = letters(plan, seen, journal);
    let owners: Vec<String> = letters.iter().map(|letter| letter.owner.id.user.to_string()).collect();
    assert_eq!(owners, ["alice", "bob"]);
    assert!(letters[0].rung == Rung::Warning && letters[0].sessions.len() == 2);
    let warned: Vec<ServerId> = letters[0]
        .sessions
        .iter()
        .filter(|due| due.rung == Rung::Warning)
        .map(|due| due.notice.server.clone())
        .collect();
    assert_eq!(warned, [ServerId::new("alice", "b")], "the other one is reminded by it");
}

#[test]
fn news_wait_for_a_cycle_in_which_their_owner_gets_no_letter() {
    let mut office = Office::new();
    // The kernel of `wait` has been busy since eight, the other server is due for its warning at nine.
    let servers =
        [("alice", "", "08:00", false), ("alice", "wait", "08:00", true), ("bob", "wait", "08:00", true)];
    let (plan, seen, journal) = office.until("09:00", &servers);
    assert_eq!(named(&news(plan, seen, journal)), [["bob/wait"]]);
    let (plan, seen, journal) = office.until("09:05", &servers);
    assert_eq!(named(&news(plan, seen, journal)), [["alice/wait"], ["bob/wait"]]);
}

#[test]
fn of_two_kinds_of_news_the_warning_that_was_taken_back_goes_first_and_alone() {
    let mut office = Office::new();
    let idle =
        [("alice", "a", "08:00", false), ("alice", "b", "08:00", false), ("alice", "wait", "08:10", true)];
    office.until("09:05", &idle);
    let used =
        [("alice", "a", "09:06", false), ("alice", "b", "09:06", false), ("alice", "wait", "08:10", true)];
    office.until("09:10", &used);
    let (plan, seen, journal) = office.until("09:15", &used);
    assert_eq!(named(&news(plan, seen, journal)), [["alice/a", "alice/b"]], "both in one mail");
}

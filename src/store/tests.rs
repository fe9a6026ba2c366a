#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should stop at once")]

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::policy::{Concerned, Freeze, Keep, Lifted, LimitKind, Spared, Warning};

mod faults;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn ledger() -> Ledger {
    let mut record = Record::new(at(1_000));
    record.warning = Some(Box::new(Warning {
        accepted: at(5_000),
        deadline: at(8_600),
        limit: LimitKind::Nobody,
        stop_follows: true,
        message_id: "1@example.org".to_owned(),
        reminded: vec![SignedDuration::from_mins(15)],
        kernels: None,
    }));
    let mut ledger = Ledger::default();
    ledger.records.insert(ServerId::new("a/b @ö", "n 1"), record);
    ledger.records.insert(ServerId::new("a/b @ö", ""), Record::new(at(2_000)));
    ledger.freeze =
        Some(Freeze { since: at(9), flipped: [ServerId::new("alice", "")].into(), told: Some(at(10)) });
    ledger.lifted = Some(Lifted { by: "root".to_owned(), at: at(8), since: at(7), flipped: 12 });
    ledger.kept(&ServerId::new("a/b @ö", "that is gone"), keep(at(3_000)));
    ledger.unsaved_keeps.clear();
    let spared = Spared {
        since: at(1),
        idle: [("A100".to_owned(), SignedDuration::from_mins(5))].into(),
        told: [(Concerned::Owner, at(20_000))].into(),
    };
    ledger.spared.insert("standby".to_owned(), spared);
    ledger
}

fn keep(given: Timestamp) -> Keep {
    let (by, reason) = ("a/b @ö".to_owned(), Some("thesis".to_owned()));
    Keep {
        until: given + SignedDuration::from_hours(8),
        by,
        at: given,
        reason,
        cost: SignedDuration::from_hours(8),
    }
}

fn connection(store: &mut Store) -> &mut Connection {
    &mut store.opened().unwrap().connection
}

fn unsaved(ledger: Ledger) -> Ledger {
    let unsaved = ledger.records.keys().cloned().collect();
    Ledger { unsaved, unsaved_keeps: ledger.keeps.keys().cloned().collect(), ..ledger }
}

#[test]
fn what_is_saved_is_there_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let mut store = Store::open(&path).unwrap();
    store.save(&unsaved(ledger())).unwrap();
    // No orderly end: the file is looked at while the first process has it open.
    let seen = Store::peek(&path).unwrap().unwrap();
    assert_eq!(seen, ledger());
}

#[test]
fn a_session_that_is_gone_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("l.sqlite")).unwrap();
    store.save(&unsaved(ledger())).unwrap();
    let all = unsaved(ledger());
    let (unsaved, unsaved_keeps) = (all.unsaved, all.unsaved_keeps);
    store.save(&Ledger { unsaved, unsaved_keeps, ..Ledger::default() }).unwrap();
    assert_eq!(store.load().unwrap(), Ledger::default());
}

#[test]
fn only_what_changed_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("l.sqlite")).unwrap();
    store.save(&unsaved(ledger())).unwrap();
    let mut after = ledger();
    let changed = ServerId::new("a/b @ö", "");
    after.records.get_mut(&changed).unwrap().idle = true;
    after.records.remove(&ServerId::new("a/b @ö", "n 1")); // but nobody said so
    after.unsaved.insert(changed.clone());
    store.save(&after).unwrap();
    let seen = store.load().unwrap();
    assert!(seen.records[&changed].idle);
    assert_eq!(seen.records.len(), 2);
}

#[test]
fn a_second_process_is_refused_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    let _first = Store::open(&path).unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Held(_))));
}

#[test]
fn a_ledger_of_a_newer_version_is_left_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    connection(&mut Store::open(&path).unwrap()).pragma_update(None, "user_version", 99).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(error.to_string().contains("use the newer gpu-culler"), "{error}");
}

#[test]
fn a_file_that_is_no_ledger_is_refused_and_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    std::fs::write(&path, "not a database, but somebody's notes").unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Sqlite { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "not a database, but somebody's notes");
}

#[test]
fn a_record_that_does_not_parse_is_an_error_and_not_an_empty_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("l.sqlite")).unwrap();
    store.save(&unsaved(ledger())).unwrap();
    connection(&mut store).execute("UPDATE session SET record = '{}'", []).unwrap();
    assert!(matches!(store.load(), Err(StoreError::Corrupt { .. })));
}

#[test]
fn what_happened_is_kept_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("l.sqlite")).unwrap();
    let entry = |event: &str| Entry {
        at: at(1),
        server: Some(ServerId::new("alice", "")),
        event: event.to_owned(),
        reason: "why".to_owned(),
    };
    store.log(&[entry("warned"), entry("stopped")]).unwrap();
    let mut rows = connection(&mut store).prepare("SELECT event FROM event ORDER BY id").unwrap();
    let events: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(events, ["warned", "stopped"]);
}

#[test]
fn letters_are_counted_by_their_moment_not_by_the_servers_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("ledger.sqlite")).unwrap();
    let entry = |seconds, server, event: &str| Entry {
        at: at(seconds),
        server: Some(ServerId::new("nora", server)),
        event: event.to_owned(),
        reason: String::new(),
    };
    let two_in_one = [entry(100, "a", "warned"), entry(100, "b", "warned")];
    let others = [entry(200, "a", "reminded"), entry(300, "a", "stopped"), entry(10, "a", "warned")];
    store.log(&two_in_one).unwrap();
    store.log(&others).unwrap();
    let counted = store.moments_of(&["warned", "reminded"], at(50)).unwrap();
    assert_eq!(counted, [(UserName("nora".into()), 2)].into());
}

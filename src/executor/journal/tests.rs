#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::policy::LimitKind;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn alice() -> ServerId {
    ServerId::new("alice", "")
}

/// A journal that knows one session, and its file.
fn journal() -> (TempDir, PathBuf, Journal) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    let mut store = Store::open(&path).unwrap();
    let mut ledger = Ledger::default();
    ledger.records.insert(alice(), Record::new(at(0)));
    ledger.unsaved.insert(alice());
    store.save(&ledger).unwrap();
    (folder, path, Journal::open(store).unwrap())
}

fn warning() -> Warning {
    Warning {
        accepted: at(100),
        deadline: at(200),
        limit: LimitKind::Nobody,
        stop_follows: true,
        message_id: "1@example.org".to_owned(),
        reminded: Vec::new(),
        kernels: None,
    }
}

/// While this is held, nobody else can write to the file.
fn locked(path: &Path) -> Connection {
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

fn saved(path: &Path) -> Record {
    Store::peek(path).unwrap().unwrap().records[&alice()].clone()
}

#[test]
fn a_letter_that_cannot_be_noted_has_not_begun() {
    let (_folder, path, mut journal) = journal();
    journal.letters_begin(&[alice()], &[], at(90)).unwrap();
    journal.warned(&alice(), warning()).unwrap();
    let before = journal.record(&alice()).unwrap().clone();
    let other = locked(&path);
    let reminder = (alice(), SignedDuration::from_secs(50));
    journal.letters_begin(&[alice()], &[reminder], at(150)).unwrap_err();
    assert_eq!((journal.record(&alice()).unwrap(), &saved(&path)), (&before, &before));
    drop(other);
    journal.letters_begin(&[], &[(alice(), SignedDuration::from_secs(50))], at(150)).unwrap();
    assert_eq!(saved(&path).warning.unwrap().reminded, [SignedDuration::from_secs(50)]);
}

#[test]
fn a_warning_that_was_accepted_and_cannot_be_saved_does_not_count() {
    let (_folder, path, mut journal) = journal();
    journal.letters_begin(&[alice()], &[], at(90)).unwrap();
    let other = locked(&path);
    journal.warned(&alice(), warning()).unwrap_err();
    assert_eq!(journal.record(&alice()).unwrap().warning, None);
    drop(other);
    journal.warning_failed(&ServerId::new("bob", "")).unwrap(); // any step saves what is not saved yet
    assert_eq!(&saved(&path), journal.record(&alice()).unwrap());
    assert!(saved(&path).sending.is_some(), "it may have gone out: not again before its grace has passed");
}

#[test]
fn what_happened_while_the_file_was_locked_is_logged_afterwards() {
    let (_folder, path, mut journal) = journal();
    let happened = |event| [Happening::to(&alice(), at(1), event, "why")];
    let other = locked(&path);
    journal.log(&happened("warned")).unwrap_err();
    drop(other);
    journal.log(&happened("stopped")).unwrap();
    let file = Connection::open(&path).unwrap();
    let mut rows = file.prepare("SELECT event FROM event ORDER BY id").unwrap();
    let events: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(events, ["warned", "stopped"]);
}

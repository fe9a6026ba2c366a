//! A file that cannot be used: the error says why and what to do, nothing in it changes, and it is used again
//! as soon as it can be.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use tempfile::TempDir;

use super::*;

/// A ledger of many pages, closed in an orderly way.
fn saved() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    Store::open(&path).unwrap().save(&many()).unwrap();
    (folder, path)
}

fn many() -> Ledger {
    let record = |number: i64| (ServerId::new(format!("user{number}"), ""), Record::new(at(number)));
    unsaved(Ledger { records: (0..300).map(record).collect(), ..Ledger::default() })
}

/// Root may write anything: this thread no longer.
fn without_rights_of_root() {
    let mut sets = capabilities(None).unwrap();
    sets.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    set_capabilities(None, sets).unwrap();
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What holds the ledger: the file and the log beside it.
fn content(path: &Path) -> [Vec<u8>; 2] {
    ["", "-wal"].map(|ending| fs::read(format!("{}{ending}", path.display())).unwrap_or_default())
}

#[test]
fn a_full_disk_is_told_and_what_was_saved_before_is_still_there() {
    let (_folder, path) = saved();
    let mut store = Store::open(&path).unwrap();
    let pages: i64 = connection(&mut store).pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    connection(&mut store).pragma_update(None, "max_page_count", pages).unwrap();
    let mut more = many();
    more.records.extend((0..300).map(|n| (ServerId::new("late", format!("{n}")), Record::new(at(n)))));
    more = unsaved(more);
    let error = store.save(&more).unwrap_err().to_string();
    assert!(error.contains("cannot write the ledger") && error.contains("make room"), "{error}");
    assert_eq!(Store::peek(&path).unwrap().unwrap().records, many().records);
    store.save(&more).unwrap(); // room was made: the limit went with the connection
    assert_eq!(Store::peek(&path).unwrap().unwrap().records, more.records);
}

#[test]
fn a_file_that_may_not_be_written_is_told_until_it_may() {
    let (_folder, path) = saved();
    without_rights_of_root();
    allow(&path, 0o444);
    for refused in [Store::open(&path).map(|_| ()), Store::examine(&path).map(|_| ())] {
        let error = refused.unwrap_err().to_string();
        assert!(
            error.contains("Permission denied (os error 13)): make the file and its folder writable"),
            "{error}"
        );
    }
    allow(&path, 0o644);
    let before = content(&path);
    assert_eq!(Store::examine(&path).unwrap().unwrap().records, many().records);
    assert!(content(&path) == before);
    assert_eq!(Store::open(&path).unwrap().load().unwrap().records, many().records);
}

#[test]
fn a_folder_that_may_not_be_written_is_told_until_it_may() {
    for lock_is_there in [true, false] {
        let (folder, path) = saved();
        if !lock_is_there {
            fs::remove_file(folder.path().join("l.sqlite.lock")).unwrap();
        }
        let before = content(&path);
        without_rights_of_root();
        allow(folder.path(), 0o555);
        for refused in [Store::open(&path).map(|_| ()), Store::examine(&path).map(|_| ())] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("folder") && error.contains("writable"), "{error}");
        }
        assert!(content(&path) == before);
        allow(folder.path(), 0o755);
        assert_eq!(Store::open(&path).unwrap().load().unwrap().records, many().records);
    }
}

#[test]
fn a_file_that_another_program_has_locked_is_waited_for() {
    let (_folder, path) = saved();
    let mut store = Store::open(&path).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for refused in [store.save(&many()), Store::examine(&path).map(|_| ())] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("another program has it locked"), "{error}");
    }
    other.execute_batch("ROLLBACK").unwrap();
    store.save(&many()).unwrap();
}

#[test]
fn a_damaged_file_is_refused_and_not_a_byte_of_it_changes() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 5] = [
        ("its header is overwritten", |bytes| bytes[..100].fill(b'x')),
        ("a page in the middle is overwritten", |bytes| {
            let middle = bytes.len() / 4096 / 2 * 4096;
            bytes[middle..middle + 4096].fill(0xa5);
        }),
        ("a page in the middle is blank", |bytes| {
            let middle = bytes.len() / 4096 / 2 * 4096;
            bytes[middle..middle + 4096].fill(0);
        }),
        ("half of it is missing", |bytes| bytes.truncate(bytes.len() / 2)),
        ("its last page is cut", |bytes| bytes.truncate(bytes.len() - 1000)),
    ];
    for (what, damage) in damages {
        let (_folder, path) = saved();
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let before = content(&path);
        for refused in [Store::open(&path).map(|_| ()), Store::examine(&path).map(|_| ())] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("put a good copy in its place"), "{what}: {error}");
        }
        assert!(content(&path) == before, "{what}");
    }
}

/// SQLite itself would take the empty file for a new one, and delete what is beside it.
#[test]
fn a_file_cut_to_nothing_is_refused_while_its_log_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    let mut store = Store::open(&path).unwrap();
    store.save(&many()).unwrap();
    let log = fs::read(folder.path().join("l.sqlite-wal")).unwrap();
    drop(store);
    fs::write(&path, "").unwrap();
    fs::write(folder.path().join("l.sqlite-wal"), &log).unwrap();
    let before = content(&path);
    let error = Store::open(&path).unwrap_err().to_string();
    assert!(error.contains("it is empty, though its -wal file is not"), "{error}");
    assert!(content(&path) == before);
}

#[test]
fn a_file_that_was_made_and_not_written_yet_is_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("l.sqlite");
    fs::write(&path, "").unwrap();
    assert_eq!(Store::open(&path).unwrap().load().unwrap(), Ledger::default());
}

#[test]
fn a_file_of_a_newer_version_keeps_every_byte() {
    let (_folder, path) = saved();
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "journal_mode", "DELETE").unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let before = content(&path);
    for refused in [Store::open(&path).map(|_| ()), Store::examine(&path).map(|_| ())] {
        assert!(matches!(refused, Err(StoreError::Newer { found: 99, .. })));
    }
    assert!(content(&path) == before);
}

#[test]
fn where_the_file_went_away_everything_is_saved_to_a_new_one() {
    let (folder, path) = saved();
    let mut store = Store::open(&path).unwrap();
    let elsewhere = folder.path().with_extension("moved");
    fs::rename(folder.path(), &elsewhere).unwrap();
    let nothing_new = || Ledger { unsaved: std::collections::BTreeSet::new(), ..many() };
    let error = store.save(&nothing_new()).unwrap_err().to_string();
    assert!(error.contains("check that its folder exists"), "{error}");
    fs::create_dir(folder.path()).unwrap();
    store.save(&nothing_new()).unwrap();
    assert_eq!(Store::peek(&path).unwrap().unwrap().records, many().records);
    fs::remove_dir_all(elsewhere).unwrap();
}

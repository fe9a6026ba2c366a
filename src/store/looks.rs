//! Looks of other processes (`plan`, `explain`) that left a trace at the Hub: the service, which holds the
//! ledger, must not take them for somebody.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use super::file::BUSY;
use super::{Store, StoreError, migrations};
use crate::domain::ServerId;

/// A look at a server that left a trace, from and to when.
pub type Look = (ServerId, Timestamp, Timestamp);

const KEY: &str = "looks of commands";

/// Tells the service of looks. Where there is no ledger there is no service to tell.
pub fn leave(path: &Path, looks: &[Look]) -> Result<(), StoreError> {
    if looks.is_empty() || !path.exists() {
        return Ok(());
    }
    let failed = |source| StoreError::Sqlite { what: "note a look in", path: path.to_owned(), source };
    let mut connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    migrations::check(&connection, path)?;
    let mut write = || {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let all = [saved(&transaction)?, looks.to_vec()].concat();
        let json = serde_json::to_string(&all).unwrap_or_default();
        transaction.execute("INSERT OR REPLACE INTO state (key, value) VALUES (?1, ?2)", [KEY, &json])?;
        transaction.commit()
    };
    write().map_err(failed)
}

impl Store {
    /// The looks that were left here since they were last taken.
    pub fn take_looks(&mut self) -> Result<Vec<Look>, StoreError> {
        if self.read(saved)?.is_empty() {
            return Ok(Vec::new());
        }
        let mut looks = Vec::new();
        self.write(|transaction| {
            looks = saved(transaction)?;
            transaction.execute("DELETE FROM state WHERE key = ?1", [KEY]).map(|_| ())
        })?;
        Ok(looks)
    }
}

/// What does not parse is nothing: then a look of ours passes for somebody, which only delays.
fn saved(connection: &Connection) -> rusqlite::Result<Vec<Look>> {
    let query = "SELECT value FROM state WHERE key = ?1";
    let json: Option<String> = connection.query_row(query, [KEY], |row| row.get(0)).optional()?;
    Ok(json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    fn look(user: &str) -> Look {
        (ServerId::new(user, ""), Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn looks_of_several_commands_reach_the_service_once_while_it_holds_the_ledger() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        leave(&path, &[look("early")]).unwrap();
        let mut store = Store::open(&path).unwrap();
        assert_eq!(store.take_looks().unwrap(), [], "without a ledger there was nobody to tell");
        leave(&path, &[look("alice")]).unwrap();
        leave(&path, &[look("bob"), look("carl")]).unwrap();
        assert_eq!(store.take_looks().unwrap(), [look("alice"), look("bob"), look("carl")]);
        assert_eq!(store.take_looks().unwrap(), []);
        assert!(store.load().is_ok());
    }
}

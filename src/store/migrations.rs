//! The ledger's tables, version by version. A migration that was released is never changed.

use std::path::Path;

use rusqlite::Connection;

use super::StoreError;

const MIGRATIONS: [&str; 1] = [
    // 1: what is remembered of each session, what concerns all, and the log
    "CREATE TABLE session (user TEXT NOT NULL, server TEXT NOT NULL, record TEXT NOT NULL, PRIMARY KEY (user, server));
     CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL);
     CREATE TABLE event (
         id INTEGER PRIMARY KEY, at TEXT NOT NULL, user TEXT, server TEXT, event TEXT NOT NULL, reason TEXT NOT NULL
     );
     CREATE INDEX event_at ON event (at);",
];

/// Brings the tables up to date, one numbered step at a time.
pub fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let version = check(connection, path)?;
    let failed = |source| StoreError::Sqlite { what: "bring up to date", path: path.to_owned(), source };
    for (number, migration) in (1..).zip(MIGRATIONS).skip(version) {
        let transaction = connection.transaction().map_err(failed)?;
        transaction.execute_batch(migration).map_err(failed)?;
        transaction.pragma_update(None, "user_version", number).map_err(failed)?;
        transaction.commit().map_err(failed)?;
    }
    Ok(())
}

/// The version of the file, refused where a newer program wrote it.
pub fn check(connection: &Connection, path: &Path) -> Result<usize, StoreError> {
    let failed = |source| StoreError::Sqlite { what: "read", path: path.to_owned(), source };
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
    let found = usize::try_from(found).unwrap_or(usize::MAX);
    if found > MIGRATIONS.len() {
        return Err(StoreError::Newer { path: path.to_owned(), found, known: MIGRATIONS.len() });
    }
    Ok(found)
}

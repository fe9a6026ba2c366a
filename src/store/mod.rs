//! Keeps the ledger in SQLite, so that a promise survives a crash.
//!
//! Every change is committed before anybody acts on it (WAL, `synchronous = FULL`). The fields are
//! not looked into here: a record is a value of [`crate::policy`] as JSON under its server's name.

mod error;
mod file;
mod migrations;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::ServerId;
use crate::policy::{Freeze, Ledger, Record};

pub use error::StoreError;
use file::Ours;

/// Something that happened, for the log that admins read later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// To which server; absent for what concerns all.
    pub server: Option<ServerId>,
    /// What, in the words of the trace format.
    pub event: String,
    /// Why.
    pub reason: String,
}

/// The ledger's file, for the one process that may write it.
///
/// After any failure it is closed, and opened anew for the next write: rights, disks and files may have
/// been mended meanwhile.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: Option<Ours>,
    /// Whether the file lacks what was saved before: it is another one now.
    lacks_all: bool,
    /// The file that everything was saved to so far.
    known: (u64, u64),
}

impl Store {
    /// Opens (or makes) the ledger for the one process that may write it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file = Ours::open(path)?;
        Ok(Self { path: path.to_owned(), known: file.identity(), file: Some(file), lacks_all: false })
    }

    /// Everything that is remembered.
    pub fn load(&mut self) -> Result<Ledger, StoreError> {
        let path = self.path.clone();
        load(&self.opened()?.connection, &path)
    }

    /// Reads the ledger without holding it; `None` where there is none yet.
    pub fn peek(path: &Path) -> Result<Option<Ledger>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        load(&file::read_only(path)?, path).map(Some)
    }

    /// Reads it and looks whether it could be written, which it is not.
    pub fn examine(path: &Path) -> Result<Option<Ledger>, StoreError> {
        file::writable(path)?;
        Self::peek(path)
    }

    /// Saves what is not saved yet, forgetting what is gone.
    pub fn save(&mut self, ledger: &Ledger) -> Result<(), StoreError> {
        self.opened()?;
        let all = if self.lacks_all { ledger.records.keys().collect() } else { Vec::new() };
        self.write(|transaction| {
            for id in ledger.unsaved.iter().chain(all) {
                match ledger.records.get(id) {
                    Some(record) => put_record(transaction, id, record)?,
                    None => forget_record(transaction, id)?,
                }
            }
            put_state(transaction, "freeze", ledger.freeze.as_ref())
        })?;
        self.lacks_all = false;
        Ok(())
    }

    /// Appends to the log of what happened.
    pub fn log(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        if entries.is_empty() {
            return Ok(());
        }
        self.write(|transaction| {
            for entry in entries {
                let (user, server) = entry.server.as_ref().map(|id| (&id.user.0, &id.name.0)).unzip();
                transaction.execute(
                    "INSERT INTO event (at, user, server, event, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![entry.at.to_string(), user, server, entry.event, entry.reason],
                )?;
            }
            Ok(())
        })
    }

    fn write(
        &mut self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let ours = self.opened()?;
        let all = || {
            let transaction = ours.connection.transaction()?;
            work(&transaction)?;
            transaction.commit()
        };
        all().map_err(|source| {
            self.file = None;
            StoreError::Sqlite { what: "write", path: self.path.clone(), source }
        })
    }

    /// The file, opened anew where it was closed or the path leads to another one.
    fn opened(&mut self) -> Result<&mut Ours, StoreError> {
        let held = self.file.take().filter(|ours| ours.is_at(&self.path));
        let ours = match held {
            Some(ours) => ours,
            None => Ours::open(&self.path)?,
        };
        self.lacks_all |= !ours.is(self.known);
        self.known = ours.identity();
        Ok(self.file.insert(ours))
    }
}

fn load(connection: &Connection, path: &Path) -> Result<Ledger, StoreError> {
    let failed = |source| StoreError::Sqlite { what: "read", path: path.to_owned(), source };
    let mut ledger = Ledger::default();
    let mut rows = connection.prepare("SELECT user, server, record FROM session").map_err(failed)?;
    let rows = rows
        .query_map([], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
        })
        .map_err(failed)?;
    for row in rows {
        let (user, server, json) = row.map_err(failed)?;
        let id = ServerId::new(user, server);
        let record: Record = parse(path, &id.to_string(), &json)?;
        ledger.records.insert(id, record);
    }
    ledger.freeze = state(connection, path, "freeze")?;
    Ok(ledger)
}

fn state<T: DeserializeOwned>(
    connection: &Connection,
    path: &Path,
    key: &str,
) -> Result<Option<T>, StoreError> {
    let json: Option<String> = connection
        .query_row("SELECT value FROM state WHERE key = ?1", [key], |row| row.get(0))
        .optional()
        .map_err(|source| StoreError::Sqlite { what: "read", path: path.to_owned(), source })?;
    json.map(|json| parse(path, key, &json)).transpose()
}

fn parse<T: DeserializeOwned>(path: &Path, what: &str, json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json)
        .map_err(|e| StoreError::Corrupt { path: path.to_owned(), what: format!("{what}: {e}") })
}

fn put_record(connection: &Connection, id: &ServerId, record: &Record) -> rusqlite::Result<()> {
    let mut put = connection
        .prepare_cached("INSERT OR REPLACE INTO session (user, server, record) VALUES (?1, ?2, ?3)")?;
    put.execute(params![id.user.0, id.name.0, json(record)?])?;
    Ok(())
}

fn forget_record(connection: &Connection, id: &ServerId) -> rusqlite::Result<()> {
    let mut forget = connection.prepare_cached("DELETE FROM session WHERE user = ?1 AND server = ?2")?;
    forget.execute(params![id.user.0, id.name.0])?;
    Ok(())
}

fn put_state(connection: &Connection, key: &str, value: Option<&Freeze>) -> rusqlite::Result<()> {
    match value {
        Some(value) => connection.execute(
            "INSERT OR REPLACE INTO state (key, value) VALUES (?1, ?2)",
            params![key, json(value)?],
        )?,
        None => connection.execute("DELETE FROM state WHERE key = ?1", [key])?,
    };
    Ok(())
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}

#[cfg(test)]
mod tests;

//! Keeps the ledger in SQLite, so that a promise survives a crash.
//!
//! Every change is committed before anybody acts on it (WAL, `synchronous = FULL`). The fields are
//! not looked into here: a record is a value of [`crate::policy`] as JSON under its server's name.

pub mod beside;
mod error;
mod file;
mod log;
pub mod looks;
mod migrations;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::{ServerId, UserName};
use crate::policy::{Ledger, Record};

pub use error::StoreError;
use file::Ours;
pub use log::{Logged, Wanted, read_log};

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

/// What the key of an owner's keeps begins with.
const KEEPS: &str = "keeps of ";

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
        let lacks_all = self.lacks_all;
        let all = || ledger.records.keys().filter(|_| lacks_all);
        let all_keeps = || ledger.keeps.keys().filter(|_| lacks_all);
        self.write(|transaction| {
            for id in ledger.unsaved.iter().chain(all()) {
                match ledger.records.get(id) {
                    Some(record) => put_record(transaction, id, record)?,
                    None => forget_record(transaction, id)?,
                }
            }
            for owner in ledger.unsaved_keeps.iter().chain(all_keeps()) {
                put_state(transaction, &keeps_of(owner), ledger.keeps.get(owner))?;
            }
            put_state(transaction, "freeze", ledger.freeze.as_ref())?;
            put_state(transaction, "spared", Some(&ledger.spared).filter(|spared| !spared.is_empty()))?;
            put_state(transaction, "lifted", ledger.lifted.as_ref())
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

    /// At how many instants since `begins` the log has one of `events` for a server of each user.
    pub fn moments_of(
        &mut self,
        events: &[&str],
        begins: Timestamp,
    ) -> Result<BTreeMap<UserName, usize>, StoreError> {
        let events = serde_json::json!(events).to_string();
        self.read(|connection| {
            let mut rows = connection.prepare_cached(
                "SELECT user, COUNT(DISTINCT at) FROM event
                 WHERE at >= ?1 AND user IS NOT NULL AND event IN (SELECT value FROM json_each(?2)) GROUP BY user",
            )?;
            let rows = rows.query_map(params![begins.to_string(), events], |row| {
                let moments: u32 = row.get(1)?;
                Ok((UserName(row.get(0)?), moments as usize))
            })?;
            rows.collect()
        })
    }

    fn read<T>(&mut self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let found = work(&self.opened()?.connection);
        found.map_err(|source| {
            self.file = None;
            StoreError::Sqlite { what: "read", path: self.path.clone(), source }
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
    load_state(connection, path, &mut ledger)?;
    Ok(ledger)
}

/// What concerns all, and what concerns an owner.
fn load_state(connection: &Connection, path: &Path, ledger: &mut Ledger) -> Result<(), StoreError> {
    let failed = |source| StoreError::Sqlite { what: "read", path: path.to_owned(), source };
    let mut rows = connection.prepare("SELECT key, value FROM state").map_err(failed)?;
    let pair = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    for row in rows.query_map([], pair).map_err(failed)? {
        let (key, json) = row.map_err(failed)?;
        match key.as_str() {
            "freeze" => ledger.freeze = Some(parse(path, &key, &json)?),
            "spared" => ledger.spared = parse(path, &key, &json)?,
            "lifted" => ledger.lifted = Some(parse(path, &key, &json)?),
            other => {
                if let Some(owner) = other.strip_prefix(KEEPS) {
                    ledger.keeps.insert(UserName(owner.into()), parse(path, &key, &json)?);
                }
            }
        }
    }
    Ok(())
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

fn keeps_of(owner: &UserName) -> String {
    format!("{KEEPS}{owner}")
}

fn put_state(connection: &Connection, key: &str, value: Option<&impl Serialize>) -> rusqlite::Result<()> {
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

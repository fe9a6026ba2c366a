//! Keeps the ledger in SQLite, so that a promise survives a crash.
//!
//! Every change is committed before anybody acts on it (WAL, `synchronous = FULL`). The fields are
//! not looked into here: a record is a value of [`crate::policy`] as JSON under its server's name.

mod log;
pub mod looks;
mod migrations;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::domain::{ServerId, UserName};
use crate::policy::{Ledger, Record};

pub use log::{Logged, Wanted, read_log};

/// What can go wrong with the ledger's file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process works with it.
    #[error("another gpu-culler holds the ledger {}: only one may run; end the other one", .0.display())]
    Held(PathBuf),
    /// The lock file cannot be made.
    #[error("cannot lock the ledger {}: {source}; check that its folder exists and is writable", path.display())]
    Lock {
        /// The ledger's file.
        path: PathBuf,
        /// What came back.
        source: std::io::Error,
    },
    /// SQLite refused.
    #[error("cannot {what} the ledger {}: {source}; check the disk and the file's rights", path.display())]
    Sqlite {
        /// What was attempted.
        what: &'static str,
        /// The ledger's file.
        path: PathBuf,
        /// What came back.
        source: rusqlite::Error,
    },
    /// Written by a newer version.
    #[error("the ledger {} is of version {found}, this program knows {known}: use the newer gpu-culler", path.display())]
    Newer {
        /// The ledger's file.
        path: PathBuf,
        /// Its version.
        found: usize,
        /// The newest version known.
        known: usize,
    },
    /// A record does not parse.
    #[error("the ledger {} holds a record that does not parse ({what}); nothing was changed in it", path.display())]
    Corrupt {
        /// The ledger's file.
        path: PathBuf,
        /// Which record, and why.
        what: String,
    },
}

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

/// An open ledger file.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    _lock: Option<File>,
}

const BUSY: Duration = Duration::from_secs(2);
/// What the key of an owner's keeps begins with.
const KEEPS: &str = "keeps of ";

impl Store {
    /// Opens (or makes) the ledger for the one process that may write it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        let failed = |what| move |source| StoreError::Sqlite { what, path: path.to_owned(), source };
        let mut connection = Connection::open(path).map_err(failed("open"))?;
        connection.busy_timeout(BUSY).map_err(failed("open"))?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed("open"))?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(failed("open"))?;
        connection.pragma_update(None, "cache_size", -256).map_err(failed("open"))?; // KiB: it is only written
        migrations::migrate(&mut connection, path)?;
        Ok(Self { connection, path: path.to_owned(), _lock: Some(lock) })
    }

    /// Opens the ledger for looking only; `None` where there is none yet.
    pub fn open_read_only(path: &Path) -> Result<Option<Self>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let failed = |source| StoreError::Sqlite { what: "open", path: path.to_owned(), source };
        let connection =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        migrations::check(&connection, path)?;
        Ok(Some(Self { connection, path: path.to_owned(), _lock: None }))
    }

    /// Everything that is remembered.
    pub fn load(&self) -> Result<Ledger, StoreError> {
        let mut ledger = Ledger::default();
        let mut rows = self
            .connection
            .prepare("SELECT user, server, record FROM session")
            .map_err(|e| self.failed("read", e))?;
        let rows = rows
            .query_map([], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
            })
            .map_err(|e| self.failed("read", e))?;
        for row in rows {
            let (user, server, json) = row.map_err(|e| self.failed("read", e))?;
            let id = ServerId::new(user, server);
            let record: Record = self.parse(&id.to_string(), &json)?;
            ledger.records.insert(id, record);
        }
        self.load_state(&mut ledger)?;
        Ok(ledger)
    }

    /// Saves what is not saved yet, forgetting what is gone.
    pub fn save(&mut self, ledger: &Ledger) -> Result<(), StoreError> {
        self.write(|transaction| {
            for id in &ledger.unsaved {
                match ledger.records.get(id) {
                    Some(record) => put_record(transaction, id, record)?,
                    None => forget_record(transaction, id)?,
                }
            }
            for owner in &ledger.unsaved_keeps {
                put_state(transaction, &keeps_of(owner), ledger.keeps.get(owner))?;
            }
            put_state(transaction, "freeze", ledger.freeze.as_ref())?;
            put_state(transaction, "spared", Some(&ledger.spared).filter(|spared| !spared.is_empty()))?;
            put_state(transaction, "lifted", ledger.lifted.as_ref())
        })
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
        &self,
        events: &[&str],
        begins: Timestamp,
    ) -> Result<BTreeMap<UserName, usize>, StoreError> {
        let events = serde_json::json!(events).to_string();
        let all = || {
            let mut rows = self.connection.prepare_cached(
                "SELECT user, COUNT(DISTINCT at) FROM event
                 WHERE at >= ?1 AND user IS NOT NULL AND event IN (SELECT value FROM json_each(?2)) GROUP BY user",
            )?;
            let rows = rows.query_map(params![begins.to_string(), events], |row| {
                let moments: u32 = row.get(1)?;
                Ok((UserName(row.get(0)?), moments as usize))
            })?;
            rows.collect::<rusqlite::Result<_>>()
        };
        all().map_err(|e| self.failed("read", e))
    }

    fn write(
        &mut self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let failed = move |source| StoreError::Sqlite { what: "write", path, source };
        let all = || {
            let transaction = self.connection.transaction()?;
            work(&transaction)?;
            transaction.commit()
        };
        all().map_err(failed)
    }

    /// What concerns all, and what concerns an owner.
    fn load_state(&self, ledger: &mut Ledger) -> Result<(), StoreError> {
        let failed = |e| self.failed("read", e);
        let mut rows = self.connection.prepare("SELECT key, value FROM state").map_err(failed)?;
        let pair = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        for row in rows.query_map([], pair).map_err(failed)? {
            let (key, json) = row.map_err(failed)?;
            match key.as_str() {
                "freeze" => ledger.freeze = Some(self.parse(&key, &json)?),
                "spared" => ledger.spared = self.parse(&key, &json)?,
                "lifted" => ledger.lifted = Some(self.parse(&key, &json)?),
                other => {
                    if let Some(owner) = other.strip_prefix(KEEPS) {
                        ledger.keeps.insert(UserName(owner.to_owned()), self.parse(&key, &json)?);
                    }
                }
            }
        }
        Ok(())
    }

    fn parse<T: DeserializeOwned>(&self, what: &str, json: &str) -> Result<T, StoreError> {
        serde_json::from_str(json)
            .map_err(|e| StoreError::Corrupt { path: self.path.clone(), what: format!("{what}: {e}") })
    }

    fn failed(&self, what: &'static str, source: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { what, path: self.path.clone(), source }
    }
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let failed = |source| StoreError::Lock { path: path.to_owned(), source };
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(name).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Held(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
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

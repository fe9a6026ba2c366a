//! The ledger's file: opened with care, since what is in it cannot be had again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

use super::StoreError;
use super::migrations;

/// How long to wait for another program that has the file locked.
pub(super) const BUSY: Duration = Duration::from_secs(2);

/// What tells one file from another that has taken its name.
type Identity = (u64, u64);

/// An open file that this process may write.
#[derive(Debug)]
pub(super) struct Ours {
    pub connection: Connection,
    identity: Identity,
    _lock: File,
}

impl Ours {
    /// Opens the file, or makes it where there is none. One that is damaged, or of a newer version, is not touched.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = lock(path)?;
        refuse_read_only(path)?;
        refuse_truncated(path)?;
        let failed = |source| StoreError::Sqlite { what: "open", path: path.to_owned(), source };
        let mut connection = Connection::open(path).map_err(failed)?;
        examined(&connection, path)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        connection.pragma_update(None, "cache_size", -256).map_err(failed)?; // KiB: it is only written
        migrations::migrate(&mut connection, path)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(failed)?;
        let identity = identity(path).map_err(|source| StoreError::Lock { path: path.to_owned(), source })?;
        Ok(Self { connection, identity, _lock: lock })
    }

    /// Whether the path still leads to this file: SQLite would go on writing to one that was moved or deleted.
    pub fn is_at(&self, path: &Path) -> bool {
        identity(path).is_ok_and(|found| found == self.identity)
    }

    /// Whether it is the same file as `other`.
    pub fn is(&self, other: Identity) -> bool {
        self.identity == other
    }

    /// What tells it from others.
    pub fn identity(&self) -> Identity {
        self.identity
    }
}

/// Opens the file for looking only.
pub(super) fn read_only(path: &Path) -> Result<Connection, StoreError> {
    let failed = |source| StoreError::Sqlite { what: "open", path: path.to_owned(), source };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    migrations::check(&connection, path)?;
    Ok(connection)
}

/// Whether the service could write here, short of doing so.
pub(super) fn writable(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let rights = Access::WRITE_OK | Access::EXEC_OK;
    match accessat(CWD, folder, rights, AtFlags::EACCESS) {
        Ok(()) | Err(Errno::NOSYS) => {}
        Err(error) => return Err(StoreError::Lock { path: path.to_owned(), source: error.into() }),
    }
    if !path.exists() {
        return Ok(());
    }
    refuse_read_only(path)?;
    refuse_truncated(path)?;
    let failed = |source| StoreError::Sqlite { what: "write", path: path.to_owned(), source };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    examined(&connection, path)?;
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").map_err(failed)
}

/// A sound file of a version we know. Until that is settled, not even the log beside it is worked into it.
fn examined(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Sqlite { what: "read", path: path.to_owned(), source };
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    migrations::check(connection, path)?;
    let found: String =
        connection.pragma_query_value(None, "quick_check", |row| row.get(0)).map_err(failed)?;
    match found.as_str() {
        "ok" => Ok(()),
        _ => Err(StoreError::Damaged { path: path.to_owned(), what: in_one_line(&found) }),
    }
}

fn in_one_line(found: &str) -> String {
    const LONGEST: usize = 120;
    found.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect()
}

/// SQLite would open it for reading, and leave files beside it that are in the way once it may be written.
fn refuse_read_only(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(StoreError::ReadOnly { path: path.to_owned(), source: error })
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// SQLite takes an empty file for a new one and deletes the log beside it, which may hold everything.
fn refuse_truncated(path: &Path) -> Result<(), StoreError> {
    let length = |path: &Path| fs::metadata(path).map(|data| data.len()).ok();
    if length(path) == Some(0) && length(&beside(path, "-wal")).is_some_and(|length| length > 0) {
        let what = "it is empty, though its -wal file is not".to_owned();
        return Err(StoreError::Damaged { path: path.to_owned(), what });
    }
    Ok(())
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let failed = |source| StoreError::Lock { path: path.to_owned(), source };
    let name = beside(path, ".lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(name).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Held(path.to_owned())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn identity(path: &Path) -> std::io::Result<Identity> {
    fs::metadata(path).map(|data| (data.dev(), data.ino()))
}

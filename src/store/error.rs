//! What can go wrong with the ledger's file, each with what to do about it.

use std::path::PathBuf;

use rusqlite::ErrorCode;

/// What can go wrong with the ledger's file. Nothing here ever deletes or replaces it.
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
    #[error("cannot {what} the ledger {}: {source}; {}", path.display(), remedy(source))]
    Sqlite {
        /// What was attempted.
        what: &'static str,
        /// The ledger's file.
        path: PathBuf,
        /// What came back.
        source: rusqlite::Error,
    },
    /// It may not be written.
    #[error("the ledger {} cannot be written ({source}): make the file and its folder writable for the user this service runs as", path.display())]
    ReadOnly {
        /// The ledger's file.
        path: PathBuf,
        /// What came back.
        source: std::io::Error,
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
    /// Its content is not what SQLite wrote.
    #[error("the ledger {} is damaged ({what}); {DAMAGED}", path.display())]
    Damaged {
        /// The ledger's file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// A record does not parse.
    #[error("the ledger {} holds a record that does not parse ({what}); nothing was changed in it: use the version that wrote it, or move the file away, and everybody is warned anew", path.display())]
    Corrupt {
        /// The ledger's file.
        path: PathBuf,
        /// Which record, and why.
        what: String,
    },
}

const DAMAGED: &str = "nothing was changed in it: put a good copy in its place, or move it away (with its -wal file), \
                       and a new one is begun that warns everybody anew";

/// What helps against an error of SQLite.
fn remedy(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full: make room on it",
        Some(ErrorCode::SystemIoFailure) => {
            "the disk or its file system refused (full, over a quota, or broken): see the kernel's log"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program has it locked: end that one (a backup, or somebody's sqlite3)"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "make the file and its folder writable for the user this service runs as"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => DAMAGED,
        _ => "check the disk and the file's rights",
    }
}

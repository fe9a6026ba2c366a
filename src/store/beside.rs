//! A file beside the ledger for what may be lost: it is never locked, never waited for, and where it cannot be
//! read or written the ledger does not know of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// More than thousands of cards need; a longer file is none of ours.
const LONGEST: u64 = 64 << 20;

fn path(ledger: &Path, what: &str) -> PathBuf {
    super::file::beside(ledger, &format!(".{what}"))
}

/// Replaces the file as a whole, so that a reader finds the old one or the new one.
pub fn save(ledger: &Path, what: &str, content: &[u8]) -> io::Result<()> {
    let (path, new) = (path(ledger, what), path(ledger, &format!("{what}.new")));
    let write = || -> io::Result<()> {
        // It names people, as the ledger does.
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(content)?;
        fs::rename(&new, &path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&new)))
}

/// What was saved last; nothing where there is none.
pub fn load(ledger: &Path, what: &str) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let file = File::open(path(ledger, what)).ok()?;
    file.take(LONGEST + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= LONGEST).then_some(content)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;
    use crate::store::Store;

    #[test]
    fn what_was_saved_last_is_there_again_and_the_ledger_knows_nothing_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger.sqlite");
        let mut store = Store::open(&ledger).unwrap();
        assert_eq!(load(&ledger, "charts"), None);
        save(&ledger, "charts", b"a long first one").unwrap();
        save(&ledger, "charts", b"the second").unwrap();
        assert_eq!(load(&ledger, "charts").unwrap(), b"the second");
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(!names.iter().any(|name| name.to_string_lossy().contains(".new")), "{names:?}");
        store.load().unwrap();
    }

    #[test]
    fn where_it_cannot_be_written_the_last_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger.sqlite");
        save(&ledger, "charts", b"the first").unwrap();
        // A folder in the way of the new file, as good as a full disk.
        fs::create_dir(path(&ledger, "charts.new")).unwrap();
        assert!(save(&ledger, "charts", b"the second").is_err());
        assert_eq!(load(&ledger, "charts").unwrap(), b"the first");
    }
}

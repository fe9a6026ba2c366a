//! Notices that the config file changed.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Watches one file by its time of change and length: a network file system tells no more.
#[derive(Debug)]
pub struct Watch {
    file: Option<PathBuf>,
    seen: Option<Stamp>,
}

type Stamp = (SystemTime, u64);

impl Watch {
    /// Watches `file` from now on.
    pub fn new(file: Option<PathBuf>) -> Self {
        let mut watch = Self { file, seen: None };
        watch.seen = watch.stamp();
        watch
    }

    /// Returns when the file is another one than before; never where there is none to watch.
    pub async fn changed(&mut self) {
        if self.file.is_none() {
            return std::future::pending().await;
        }
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let stamp = self.stamp();
            // While an editor replaces it the file may be absent for a moment; that is no change.
            if stamp.is_some() && stamp != self.seen {
                self.seen = stamp;
                return;
            }
        }
    }

    fn stamp(&self) -> Option<Stamp> {
        let data = std::fs::metadata(self.file.as_ref()?).ok()?;
        Some((data.modified().ok()?, data.len()))
    }
}

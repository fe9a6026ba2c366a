//! Notices that the Hub that started this service is gone.
//!
//! A Hub that was killed leaves its services running, with a token that is still valid and the port
//! taken, so that the next Hub's copy could not bind. Such an orphan must end by itself.

use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// How often it is looked who the parent is, should the kernel's signal not come.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Watches over the parent process.
#[derive(Debug)]
pub struct Guardian {
    parent: Option<Pid>,
}

impl Guardian {
    /// A managed service ends with its parent; one that somebody else started does not.
    pub fn new(managed: bool) -> Self {
        let parent = managed.then(getppid).flatten();
        if parent.is_some()
            && let Err(error) = set_parent_process_death_signal(Some(Signal::TERM))
        {
            tracing::debug!(%error, "the kernel will not tell when the Hub ends; it is looked for");
        }
        Self { parent }
    }

    /// Returns when the parent is gone; never where there is nobody to watch over.
    pub async fn gone(&self) {
        let Some(parent) = self.parent else {
            return std::future::pending().await;
        };
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            look.tick().await;
            if getppid() != Some(parent) {
                tracing::warn!("the Hub that started this service is gone; ending");
                return;
            }
        }
    }
}

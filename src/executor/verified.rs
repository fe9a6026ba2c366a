//! Sends a stop, and looks whether the server is really gone: an answer of the Hub proves nothing.

use std::time::Duration;

use jiff::Timestamp;

use super::Clock;
use crate::domain::{Afterwards, ServerId};
use crate::hub::{StopAnswer, Stopper};
use crate::observer::{Observer, Resident};

/// How long a stop may take before it is reported as not done. The Hub itself waits ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is looked whether a stop happened that the Hub did not answer.
const DOUBT: Duration = Duration::from_secs(5);
/// How often it is looked whether a server is gone.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Processes that outlived the stop of their server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Whose they were.
    pub server: ServerId,
    /// The processes, and where they run.
    pub processes: Vec<Resident>,
}

/// What became of a stop that was sent.
pub enum Stopped {
    /// The Hub did not do it.
    Failed(String),
    /// The server is gone and so are its processes.
    Gone,
    /// The Hub has forgotten the server, its processes live on.
    Orphaned(Orphan),
    /// The Hub still has it.
    StillThere,
}

/// Stops one run of a server.
pub async fn send_and_verify(
    id: &ServerId,
    started: Option<Timestamp>,
    afterwards: Afterwards,
    stopper: &Stopper,
    observer: &Observer,
    clock: Clock,
) -> Stopped {
    let sent = Sent { id, started, before: observer.processes(id, clock()).await };
    match stopper.stop(id, afterwards).await {
        Ok(StopAnswer::Gone | StopAnswer::Slow) => sent.wait_until_gone(observer, clock, PATIENCE).await,
        // Nobody knows whether the Hub did it before it failed.
        Err(error) if error.is_transient() => match sent.wait_until_gone(observer, clock, DOUBT).await {
            Stopped::StillThere => Stopped::Failed(error.to_string()),
            stopped => stopped,
        },
        Err(error) => Stopped::Failed(error.to_string()),
    }
}

/// A stop that is on its way.
struct Sent<'a> {
    id: &'a ServerId,
    started: Option<Timestamp>,
    before: Vec<Resident>,
}

impl Sent<'_> {
    /// The server must be gone from the Hub, and its processes too.
    async fn wait_until_gone(self, observer: &Observer, clock: Clock, patience: Duration) -> Stopped {
        let deadline = tokio::time::Instant::now() + patience;
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let listed = match observer.server(self.id).await {
                Ok(server) => server.is_some_and(|server| server.started == self.started),
                Err(_) => true,
            };
            let alive = if listed {
                self.before.clone()
            } else {
                observer.still_running(&self.before, clock()).await
            };
            if !listed && alive.is_empty() {
                return Stopped::Gone;
            }
            if tokio::time::Instant::now() >= deadline {
                return if listed {
                    Stopped::StillThere
                } else {
                    Stopped::Orphaned(Orphan { server: self.id.clone(), processes: alive })
                };
            }
        }
    }
}

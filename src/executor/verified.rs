//! Sends a stop, and looks whether the server is really gone: an answer of the Hub proves nothing.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Clock;
use crate::domain::{Afterwards, Server, ServerId};
use crate::hub::{StopAnswer, Stopper};
use crate::observer::{Observer, Remains};

/// How long a stop may take before it is reported as not done. The Hub itself waits ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it is looked whether a stop happened that the Hub did not answer.
const DOUBT: Duration = Duration::from_secs(5);
/// How long after its grace a pod may take to go: its node ends it by force, and says so.
const SETTLES: SignedDuration = SignedDuration::from_secs(5);
/// The grace of a pod that is waited for. A longer one is reported as not gone yet, so that others' turn comes.
const LONGEST_GRACE: SignedDuration = SignedDuration::from_secs(30);
/// How often it is looked whether a server is gone.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What outlived the stop of its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Whose they were.
    pub server: ServerId,
    /// Its processes and its pod, as far as they are still there.
    pub left: Box<Remains>,
}

impl Orphan {
    /// What has still to be seen of a server that is gone, where anything has.
    pub fn to_be_seen(server: &Server, observer: &Observer, at: Timestamp) -> Option<Self> {
        Some(Self { server: server.id.clone(), left: Box::new(observer.to_be_seen(server, at)?) })
    }
}

/// What became of a stop that was sent.
pub enum Stopped {
    /// The Hub did not do it.
    Failed(String),
    /// The server is gone and so are its processes and its pod.
    Gone,
    /// Its processes or its pod live on, though the Hub has forgotten the server or waits for them in vain.
    Orphaned(Orphan),
    /// The Hub still has it.
    StillThere,
}

/// Stops one run of a server.
pub async fn send_and_verify(
    server: &Server,
    afterwards: Afterwards,
    stopper: &Stopper,
    observer: &Observer,
    clock: Clock,
) -> Stopped {
    let sent = Sent { server, before: observer.belongings(server, clock()).await };
    match stopper.stop(&server.id, afterwards).await {
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
    server: &'a Server,
    before: Remains,
}

impl Sent<'_> {
    /// The server must be gone from the Hub, and its processes too.
    async fn wait_until_gone(self, observer: &Observer, clock: Clock, patience: Duration) -> Stopped {
        let deadline = tokio::time::Instant::now() + patience;
        let mut look = tokio::time::interval(LOOK_EVERY);
        loop {
            look.tick().await;
            let listed = match observer.server(&self.server.id).await {
                Ok(server) => server.is_some_and(|server| server.started == self.server.started),
                Err(_) => true,
            };
            let left =
                if listed { self.before.clone() } else { observer.left_of(&self.before, clock()).await };
            if !listed && left.is_empty() {
                return Stopped::Gone;
            }
            let must_be_done = listed || !in_grace(&left, clock());
            if must_be_done && tokio::time::Instant::now() >= deadline {
                let left = if listed { observer.left_of(&self.before, clock()).await } else { left };
                return if listed && !hangs(&left, clock()) {
                    Stopped::StillThere
                } else {
                    Stopped::Orphaned(Orphan { server: self.server.id.clone(), left: Box::new(left) })
                };
            }
        }
    }
}

/// Whether a pod should have ended by now. A spawner waits minutes for such a pod, and the Hub for the spawner.
fn hangs(left: &Remains, now: Timestamp) -> bool {
    let ends = left.pod.as_ref().and_then(|pod| pod.ends);
    ends.is_some_and(|ends| now.duration_since(ends) > SETTLES)
}

/// Whether a pod still has the time it was promised to end in. A promise too long to wait for here is none.
fn in_grace(left: &Remains, now: Timestamp) -> bool {
    let ends = left.pod.as_ref().and_then(|pod| pod.ends);
    ends.is_some_and(|ends| {
        let time_left = ends.duration_since(now);
        time_left > -SETTLES && time_left <= LONGEST_GRACE
    })
}

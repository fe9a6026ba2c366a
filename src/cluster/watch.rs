//! Follows the pods of one namespace: a list in pages, then a watch that is renewed again and again.
//!
//! kube's own watcher resumes as well, but keeps bookmarks and the ends of watches to itself; these are what tells
//! a namespace in which nothing happens from a server that is gone.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures::{StreamExt, TryStreamExt};
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use tokio::time::timeout;

use super::seen::{ByName, Pods, Seen, locked};
use super::wire::{self, Trimmed};
use super::{ClusterError, ClusterSettings, Connection};

/// How long a page of a list, or the beginning of a watch, may take.
const ANSWER: Duration = Duration::from_secs(15);

/// How long after its time a watch may end.
const LATE: Duration = Duration::from_secs(5);

/// Pods per page: whole pods are large, and only one page is held at a time.
const PAGE: u32 = 200;

/// The longest pause after a failure, where the server asks for none.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// One namespace that is followed.
pub(super) struct Watch {
    namespace: Option<String>,
    place: String,
    settings: Arc<ClusterSettings>,
    seen: Arc<Mutex<Seen>>,
    /// Up to where everything is known; absent: it has to be listed.
    version: Option<String>,
}

impl Watch {
    pub fn new(namespace: Option<String>, settings: Arc<ClusterSettings>, seen: Arc<Mutex<Seen>>) -> Self {
        let place = namespace.clone().unwrap_or_else(|| "all namespaces".to_owned());
        Self { namespace, place, settings, seen, version: None }
    }

    /// Follows for ever. Nothing ends it but its end.
    pub async fn follow(mut self) {
        let mut pauses = pauses();
        loop {
            let connection = match Connection::open(&self.settings).await {
                Ok(connection) => connection,
                Err(error) => {
                    self.failed(&error);
                    tokio::time::sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
                    continue;
                }
            };
            let pods = connection.pods(self.namespace.as_deref());
            loop {
                let Err(error) = self.step(&pods).await else {
                    pauses = self::pauses();
                    continue;
                };
                self.failed(&error);
                let pause = pauses.next().unwrap_or(LONGEST_PAUSE);
                tokio::time::sleep(connection.told_to_wait().unwrap_or(pause)).await;
                // A token may have been renewed, a certificate too.
                if !matches!(error, ClusterError::Busy(_) | ClusterError::Forbidden { .. }) {
                    break;
                }
            }
        }
    }

    fn failed(&mut self, error: &ClusterError) {
        tracing::debug!(place = self.place, %error, "pods cannot be followed just now");
        locked(&self.seen).failed(error);
        // A server that came back from a backup does not know our version.
        if matches!(error, ClusterError::Refused { .. } | ClusterError::NoApi(_)) {
            self.version = None;
        }
    }

    async fn step(&mut self, pods: &Api<Trimmed>) -> Result<(), ClusterError> {
        // After too long a silence it may be another server, which counts from elsewhere on.
        if locked(&self.seen).known().is_err() {
            self.version = None;
        }
        let done = match self.version.clone() {
            None => self.list(pods).await,
            Some(version) => self.watch(pods, &version).await,
        };
        match done {
            // Too much happened since, or a page came too late: everything is listed anew.
            Err(ClusterError::Gone(words)) => {
                tracing::debug!(place = self.place, words, "listed anew");
                self.version = None;
                Ok(())
            }
            done => done,
        }
    }

    /// Lists everything, page by page. Until the last one has come what was known before stands.
    async fn list(&mut self, pods: &Api<Trimmed>) -> Result<(), ClusterError> {
        let mut found = Pods::new();
        let mut params = ListParams::default().limit(PAGE);
        loop {
            let page = timeout(ANSWER, pods.list(&params)).await;
            let page = page.map_err(|_| ClusterError::TimedOut(ANSWER.as_secs()))?;
            let page = page.map_err(|error| ClusterError::of(error, "list", &self.place))?;
            for pod in page.items {
                found.extend(wire::pod(pod, &self.settings.cards).1.map(|pod| ByName(Arc::new(pod))));
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                self.version = page.metadata.resource_version.filter(|version| !version.is_empty());
                break;
            }
        }
        if self.version.is_none() {
            return Err(ClusterError::NoApi("a list without a resourceVersion".to_owned()));
        }
        locked(&self.seen).listed(found);
        Ok(())
    }

    /// Takes in what happens, until the watch ends.
    async fn watch(&mut self, pods: &Api<Trimmed>, version: &str) -> Result<(), ClusterError> {
        let renew = self.settings.renew;
        let wanted = WatchParams::default().timeout(u32::try_from(renew.as_secs()).unwrap_or(u32::MAX));
        let began = Instant::now();
        let events = timeout(ANSWER, pods.watch(&wanted, version)).await;
        let events = events.map_err(|_| ClusterError::TimedOut(ANSWER.as_secs()))?;
        let mut events = events.map_err(|error| ClusterError::of(error, "watch", &self.place))?.boxed();
        let patience = renew + LATE;
        loop {
            let next = timeout(patience, events.try_next()).await;
            let next = next.map_err(|_| ClusterError::TimedOut(patience.as_secs()))?;
            match next.map_err(|error| ClusterError::of(error, "watch", &self.place))? {
                Some(event) => self.take(event)?,
                // The server ends a watch at the time that was asked for. What ends long before proves nothing.
                None if began.elapsed() >= renew / 2 => {
                    locked(&self.seen).word();
                    return Ok(());
                }
                None => return Err(ClusterError::Unreachable("a watch ended before its time".to_owned())),
            }
        }
    }

    fn take(&mut self, event: WatchEvent<Trimmed>) -> Result<(), ClusterError> {
        let (pod, is_there) = match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, true),
            WatchEvent::Deleted(pod) => (pod, false),
            WatchEvent::Bookmark(mark) => {
                self.version = Some(mark.metadata.resource_version);
                locked(&self.seen).word();
                return Ok(());
            }
            WatchEvent::Error(status) => {
                return Err(ClusterError::refused(&status, "watch", &self.place));
            }
        };
        let version = pod.metadata.resource_version.clone().filter(|version| !version.is_empty());
        let Some(version) = version else {
            self.version = None;
            return Err(ClusterError::NoApi("an event without a resourceVersion".to_owned()));
        };
        self.version = Some(version);
        let (name, pod) = wire::pod(pod, &self.settings.cards);
        locked(&self.seen).changed(&name, pod.filter(|_| is_there));
        Ok(())
    }
}

/// The pauses between failures: from a fifth of a second on, with some chance, so that many clients of a server
/// that comes back do not all come at once.
fn pauses() -> ExponentialBackoff {
    let builder = ExponentialBuilder::default().with_min_delay(Duration::from_millis(200));
    builder.with_max_delay(LONGEST_PAUSE).with_jitter().without_max_times().build()
}

//! What is known of one namespace, and whether that may still be believed.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::ClusterError;
use crate::domain::{Pod, PodName};

/// The pods of one namespace, or of all.
pub(super) type Pods = BTreeSet<ByName>;

/// A pod that is found by its name. There may be thousands, so that the name is not kept twice.
#[derive(Debug)]
pub(super) struct ByName(pub Arc<Pod>);

impl Borrow<PodName> for ByName {
    fn borrow(&self) -> &PodName {
        &self.0.name
    }
}

impl Ord for ByName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(&other.0.name)
    }
}

impl PartialOrd for ByName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

/// What a watch has brought.
#[derive(Debug)]
pub(super) struct Seen {
    /// What people call the place.
    place: String,
    patience: Duration,
    pods: Pods,
    /// When it was last certain that this is all: a list, an event, a bookmark, or a watch that ran its time.
    heard: Option<Instant>,
    /// Told of each word.
    news: Arc<Notify>,
    trouble: Option<String>,
}

/// Takes a lock; whoever panicked while holding it left nothing half done.
pub(super) fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seen {
    pub fn new(namespace: Option<&str>, patience: Duration, news: Arc<Notify>) -> Self {
        let place = namespace.map_or_else(|| "all namespaces".to_owned(), str::to_owned);
        Self { place, patience, pods: Pods::new(), heard: None, news, trouble: None }
    }

    /// The pods that matter, or why they are not known.
    pub fn known(&self) -> Result<&Pods, String> {
        let why = || self.trouble.clone().unwrap_or_else(|| "no answer has come".to_owned());
        match self.heard.map(|heard| heard.elapsed()) {
            None => Err(format!("the pods of {} are not known yet: {}", self.place, why())),
            Some(since) if since > self.patience => {
                // The same words for as long as it lasts: who reads the log is told once.
                let seconds = self.patience.as_secs();
                Err(format!(
                    "nothing was heard of the pods of {} for over {seconds} s: {}",
                    self.place,
                    why()
                ))
            }
            Some(_) => Ok(&self.pods),
        }
    }

    /// A whole list came.
    pub fn listed(&mut self, pods: Pods) {
        self.pods = pods;
        self.word();
    }

    /// A pod is new or changed; `None`: one that does not matter (any more).
    pub fn changed(&mut self, name: &PodName, pod: Option<Pod>) {
        match pod {
            Some(pod) => drop(self.pods.replace(ByName(Arc::new(pod)))),
            None => drop(self.pods.take(name)),
        }
        self.word();
    }

    /// The server is there and has nothing (more) to say.
    pub fn word(&mut self) {
        self.heard = Some(Instant::now());
        self.trouble = None;
        self.news.notify_waiters();
    }

    /// Something failed; what is known is believed until the patience ends.
    pub fn failed(&mut self, error: &ClusterError) {
        self.trouble = Some(error.to_string());
    }
}

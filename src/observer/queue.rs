//! Who waits for a card: by an expression where there is one, else by the pods that no node has room for. Whoever
//! writes an expression knows better, so that nothing is added to it.
//!
//! Shorter limits are for those whose card would really serve somebody. A pod that waits is served by a card of the
//! very resource it asks for: a slice of MIG is no whole card, nor the other way round. Where the sessions that hold
//! this resource have cards of several models, a pod may be bound to one of them by its node selector; nobody can
//! tell whose card would do, so none is taken for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::Observer;
use crate::domain::{Pod, Queue, QueueLine, ServerId};
use crate::policy::Session;

impl Observer {
    /// What the expression gives, or why nothing; absent where there is none.
    pub(super) async fn asked(&self, now: Timestamp) -> Option<Result<Queue, String>> {
        let trouble = |why| format!("who waits for a card is not known: {why}");
        Some(self.demand.as_ref()?.waiting(now).await.map(Queue::of).map_err(trouble))
    }
}

/// One line for each resource that pods wait for.
pub(super) fn of_pods(waiting: &[Arc<Pod>], pods: &[Arc<Pod>], sessions: &[Session]) -> Queue {
    let mut lines: BTreeMap<&str, QueueLine> = BTreeMap::new();
    let lacking = waiting.iter().filter(|pod| pod.deletion_timestamp.is_none() && !pod.is_over());
    for want in lacking.filter_map(|pod| pod.wants.as_ref()) {
        let new = || QueueLine {
            what: Some(want.resource.clone()),
            served_by: Some(serving(&want.resource, pods, sessions)),
            ..QueueLine::default()
        };
        let line = lines.entry(&want.resource).or_insert_with(new);
        line.count = line.count.saturating_add(1);
        line.since = Some(line.since.map_or(want.since, |since| since.min(want.since)));
    }
    Queue { lines: lines.into_values().collect() }
}

/// The sessions that hold this resource, where all of their cards are of one model.
fn serving(resource: &str, pods: &[Arc<Pod>], sessions: &[Session]) -> BTreeSet<ServerId> {
    let holding = pods.iter().filter(|pod| pod.holds_cards() && pod.cards.contains_key(resource));
    let holders: BTreeSet<&ServerId> = holding.filter_map(|pod| pod.session.as_ref()).collect();
    let sessions: Vec<&Session> = sessions.iter().filter(|s| holders.contains(&s.server.id)).collect();
    let cards = sessions.iter().flat_map(|session| session.gpus.iter().flatten());
    let models: BTreeSet<&str> = cards.map(|card| card.model.as_str()).collect();
    if models.len() > 1 {
        return BTreeSet::new();
    }
    sessions.into_iter().map(|session| session.server.id.clone()).collect()
}

#[cfg(test)]
mod tests;

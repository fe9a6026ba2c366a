//! Demand: other limits while somebody waits for a card, and while nobody does.
//!
//! The tables stand between the defaults and the rules: what a rule sets itself is meant for its sessions
//! whoever waits. Where it is not known how many wait, neither table applies.

use std::collections::BTreeSet;

use super::{Action, Decision, HeldBack, Ledger, Limits, Overrides, Policy, Rule, Verdict};
use crate::domain::{Queue, QueueLine, ServerId};

/// What the demand for cards changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// While somebody waits: shorter limits.
    pub when_waiting: Overrides,
    /// While nobody does: longer ones.
    pub when_free: Overrides,
}

impl Policy {
    /// The limits of a session: the defaults, changed by the demand, changed by its rule.
    pub fn limits_for(&self, rule: Option<&Rule>, waiting: Option<u32>) -> Limits {
        let by_demand = match waiting {
            Some(0) => self.demand.when_free.over(&self.limits),
            Some(_) => self.demand.when_waiting.over(&self.limits),
            None => self.limits.clone(),
        };
        rule.map_or(by_demand.clone(), |rule| rule.overrides.over(&by_demand))
    }
}

/// Takes back what is done for those who wait beyond what they need: of the sessions whose card serves a line, as
/// many as wait in it, those already warned first, then the longest idle. The decisions come in that order: longest
/// idle first.
pub fn no_more_than_wait(decisions: &mut [Box<Decision>], ledger: &Ledger, queue: Option<&Queue>) {
    let Some(queue) = queue.filter(|_| decisions.iter().any(|d| d.judgement.for_demand())) else {
        return;
    };
    let needed: BTreeSet<ServerId> =
        queue.lines.iter().flat_map(|line| needed_for(line, decisions, ledger)).collect();
    let spared = |d: &&mut Box<Decision>| d.judgement.for_demand() && goes(d) && !needed.contains(&d.server);
    for decision in decisions.iter_mut().filter(spared) {
        if warns(decision) || decision.action == Some(Action::Stop) {
            decision.action = None;
            decision.held_back = Some(HeldBack::EnoughForDemand(queue.for_server(&decision.server)));
        }
    }
}

/// Whose cards a line needs, of those that are idle only because it waits.
fn needed_for(line: &QueueLine, decisions: &[Box<Decision>], ledger: &Ledger) -> Vec<ServerId> {
    let is_warned = |d: &Decision| ledger.records.get(&d.server).is_some_and(|r| r.warning.is_some());
    let serve = || decisions.iter().filter(|d| goes(d) && line.is_served_by(&d.server));
    // Those that go anyway serve the waiting as well.
    let anyway = serve().filter(|d| !d.judgement.for_demand() && (is_warned(d) || warns(d))).count();
    let left = usize::try_from(line.count).unwrap_or(usize::MAX).saturating_sub(anyway);
    let due = |warned| serve().filter(move |d| d.judgement.for_demand() && is_warned(d) == warned);
    due(true).chain(due(false)).take(left).map(|decision| decision.server.clone()).collect()
}

fn goes(decision: &Decision) -> bool {
    decision.may_hold_cards && matches!(decision.judgement.verdict, Verdict::Idle(_))
}

fn warns(decision: &Decision) -> bool {
    matches!(decision.action, Some(Action::Warn { .. }))
}

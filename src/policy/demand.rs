//! Demand: other limits while somebody waits for a card, and while nobody does.
//!
//! The tables stand between the defaults and the rules: what a rule sets itself is meant for its sessions
//! whoever waits. Where it is not known how many wait, neither table applies.

use super::{Action, Decision, HeldBack, Ledger, Limits, Overrides, Policy, Rule, Verdict};

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

/// Takes back what is done for those who wait beyond what they need: as many sessions as wait, those already
/// warned first, then the longest idle. The decisions come in that order: longest idle first.
pub fn no_more_than_wait(decisions: &mut [Decision], ledger: &Ledger, waiting: Option<u32>) {
    let Some(waiting) = waiting.filter(|_| decisions.iter().any(|d| d.judgement.for_demand())) else {
        return;
    };
    let needed = usize::try_from(waiting).unwrap_or(usize::MAX);
    let is_warned = |d: &Decision| ledger.records.get(&d.server).is_some_and(|r| r.warning.is_some());
    let goes = |d: &Decision| d.may_hold_cards && matches!(d.judgement.verdict, Verdict::Idle(_));
    // Those that go anyway serve the waiting as well.
    let anyway = |d: &&Decision| goes(d) && !d.judgement.for_demand() && (is_warned(d) || warns(d));
    let mut taken = decisions.iter().filter(anyway).count();
    for already_warned in [true, false] {
        let due = decisions.iter_mut().filter(|d| d.judgement.for_demand() && goes(d));
        for decision in due.filter(|d| is_warned(d) == already_warned) {
            taken += 1;
            if taken > needed && (warns(decision) || decision.action == Some(Action::Stop)) {
                decision.action = None;
                decision.held_back = Some(HeldBack::EnoughForDemand(waiting));
            }
        }
    }
}

fn warns(decision: &Decision) -> bool {
    matches!(decision.action, Some(Action::Warn { .. }))
}

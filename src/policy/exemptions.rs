//! Exemptions as what they are: cards that nobody asks about. What each costs, and when it ends.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::schedule::earlier;
use super::{Exemption, Ledger, Plan, Policy, ProtectedReason, Verdict};
use crate::domain::ServerId;

/// How long before the end of an exemption its owner and the admins are told.
const NOTICE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// What is remembered of one exemption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spared {
    /// Since when it is counted.
    pub since: Timestamp,
    /// How long cards were seen at rest under it, all cards of a model together.
    pub idle: BTreeMap<String, SignedDuration>,
    /// Who was told, and of which end: another end is told anew.
    pub told: BTreeMap<Concerned, Timestamp>,
}

/// Who has to know when an exemption ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Concerned {
    /// Who answers for it.
    Owner,
    /// The admins.
    Admins,
}

/// One exemption with what it protects and what it costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exempted<'a> {
    /// The rule that grants it.
    pub rule: &'a str,
    /// The reason, the owner and the end.
    pub exemption: &'a Exemption,
    /// The servers that it protects now.
    pub servers: Vec<&'a ServerId>,
    /// What it has cost; absent where nothing was counted yet.
    pub spared: Option<&'a Spared>,
}

impl Exempted<'_> {
    /// How long cards were seen at rest under it, all together.
    pub fn idle(&self) -> SignedDuration {
        self.spared.iter().flat_map(|spared| spared.idle.values()).sum()
    }
}

/// Every exemption of the policy, in the order of the rules.
pub fn exemptions<'a>(policy: &'a Policy, ledger: &'a Ledger, plan: &'a Plan) -> Vec<Exempted<'a>> {
    let protected =
        |rule: &'a str| plan.decisions.iter().filter(move |d| exempt_by(&d.judgement.verdict) == Some(rule));
    let exempt = policy.rules.iter().filter_map(|rule| Some((rule.name.as_str(), rule.exempt.as_ref()?)));
    exempt
        .map(|(rule, exemption)| Exempted {
            rule,
            exemption,
            servers: protected(rule).map(|decision| &decision.server).collect(),
            spared: ledger.spared.get(rule),
        })
        .collect()
}

/// Those of whose end somebody has to be told now: a week before it, and once.
pub fn endings<'a>(all: &[Exempted<'a>], now: Timestamp) -> Vec<(Exempted<'a>, Timestamp, Vec<Concerned>)> {
    let ending = all.iter().filter_map(|exempted| {
        let end = exempted.exemption.until.filter(|end| earlier(*end, NOTICE) <= now && now < *end)?;
        let told =
            |whom: &Concerned| exempted.spared.is_some_and(|spared| spared.told.get(whom) == Some(&end));
        let untold: Vec<_> =
            [Concerned::Owner, Concerned::Admins].into_iter().filter(|whom| !told(whom)).collect();
        (!untold.is_empty()).then(|| (exempted.clone(), end, untold))
    });
    ending.collect()
}

fn exempt_by(verdict: &Verdict) -> Option<&str> {
    match verdict {
        Verdict::Protected(ProtectedReason::Exempt { rule, .. }) => Some(rule),
        Verdict::Busy(_) | Verdict::Idle(_) | Verdict::Unknown(_) | Verdict::Protected(_) => None,
    }
}

impl Ledger {
    /// Begins to count for exemptions that are new, and forgets those that are no longer in the policy.
    pub(super) fn know_exemptions(&mut self, policy: &Policy, at: Timestamp) {
        let exempt = || policy.rules.iter().filter(|rule| rule.exempt.is_some());
        self.spared.retain(|name, _| exempt().any(|rule| rule.name == *name));
        for rule in exempt() {
            let new = || Spared { since: at, idle: BTreeMap::new(), told: BTreeMap::new() };
            self.spared.entry(rule.name.clone()).or_insert_with(new);
        }
    }

    /// Adds the time up to the last look for which cards were seen at rest under an exemption.
    pub(super) fn count_exempt(&mut self, plan: &Plan) {
        for decision in &plan.decisions {
            let Some(spared) =
                exempt_by(&decision.judgement.verdict).and_then(|rule| self.spared.get_mut(rule))
            else {
                continue;
            };
            let cards =
                self.records.get(&decision.server).into_iter().flat_map(|r| r.evidence.cards.values());
            for card in cards {
                let idle = spared.idle.entry(card.model.clone()).or_default();
                *idle = idle.saturating_add(card.rested);
            }
        }
    }

    /// Somebody is told of an exemption's end; or (`None`) could not be told.
    pub fn ending_told(&mut self, rule: &str, whom: Concerned, end: Option<Timestamp>) {
        let Some(spared) = self.spared.get_mut(rule) else { return };
        match end {
            Some(end) => _ = spared.told.insert(whom, end),
            None => _ = spared.told.remove(&whom),
        }
    }
}

//! The rules: to whom each applies now, and what is odd about it.

use super::{Finding, PATIENCE, fine, note};
use crate::daemon;
use crate::hub::Hub;
use crate::message::reasons;
use crate::observer::{Kernels, Observer};
use crate::policy::{Policy, RuleOddity, Session, audit};
use crate::settings::Settings;

/// Looks whom the rules meet. No kernel is asked: a rule does not depend on it.
pub async fn rules(settings: &Settings) -> Vec<Finding> {
    if settings.policy.rules.is_empty() {
        return vec![fine("rules", "none; the defaults apply to everybody".to_owned())];
    }
    let pods = daemon::pods(settings).await.unwrap_or_default();
    let seen = match (Hub::new(settings.hub.clone()), daemon::source(&settings.source)) {
        (Ok(hub), Ok(source)) => {
            let kernels = Kernels { prober: None, public_url: None, of_working: false, concurrency: 1 };
            let observer = Observer::new(hub, kernels, source, settings.policy.thresholds);
            let mut observer = observer.with_pods(pods);
            // That the cards cannot be read is said elsewhere.
            observer.begin(PATIENCE).await;
            let seen = observer.observe(daemon::now()).await;
            let models = seen.cards.into_iter().map(|card| card.sample.model).collect();
            seen.snapshot.sessions.ok().map(|sessions| (sessions, models))
        }
        _ => None,
    };
    findings(&settings.policy, seen)
}

/// Where the servers could not be listed, only what is certain without them.
fn findings(policy: &Policy, seen: Option<(Vec<Session>, Vec<String>)>) -> Vec<Finding> {
    let listed = seen.is_some();
    let (sessions, models) = seen.unwrap_or_default();
    let odd = audit(policy, &sessions, &models, daemon::now());
    let certain = |oddity: &RuleOddity| !matches!(oddity, RuleOddity::NothingMatches(..));
    let odd = odd.iter().filter(|(_, oddity)| listed || certain(oddity));
    let mut findings: Vec<Finding> =
        odd.map(|(rule, oddity)| note("rules", reasons::rule_oddity(rule, oddity))).collect();
    if listed {
        findings.insert(0, fine("rules", applied(policy, &sessions)));
    }
    findings
}

/// How many servers each rule decides about: `standby: 2, scarce cards: none, no rule: 5`.
fn applied(policy: &Policy, sessions: &[Session]) -> String {
    let count = |name: Option<&str>| {
        let of_rule = |session: &&Session| policy.rule_for(session).map(|rule| rule.name.as_str()) == name;
        match sessions.iter().filter(of_rule).count() {
            0 => "none".to_owned(),
            n => n.to_string(),
        }
    };
    let rules = policy.rules.iter().map(|rule| format!("\"{}\": {}", rule.name, count(Some(&rule.name))));
    let all: Vec<String> = rules.chain([format!("no rule: {}", count(None))]).collect();
    format!("of {} servers decides {}", sessions.len(), all.join(", "))
}

//! What the admin of these worlds sets.

use gpu_culler::policy::{
    BusyKernelAction, Demand, Exemption, KeepOffer, Limits, Manner, Match, Mode, Overrides, Policy,
    ReasonNeed, Rule, StopBudget, pattern,
};
use gpu_culler::settings::policy_of;
use jiff::{SignedDuration, Timestamp};

use crate::history::{CHOICES, Rules};
use crate::truth::{id, mins};

/// What an owner may keep in a week.
pub const BUDGET: SignedDuration = SignedDuration::from_mins(60);
/// The most that a declared time protects.
pub const CAP: SignedDuration = SignedDuration::from_mins(60);
/// The most stops that one cycle may make where there are brakes.
pub const MOST_STOPS: usize = 2;

pub fn limits(strict: bool) -> Limits {
    let factor = if strict { 1 } else { 2 };
    Limits {
        warn_after: mins(20 * factor),
        grace: mins(15 * factor),
        remind_before: vec![mins(5)],
        connected_warn_after: Some(mins(50 * factor)),
        card_unused_warn_after: Some(mins(90 * factor)),
        busy_kernel_limit: Some(mins(40 * factor)),
        busy_kernel_action: BusyKernelAction::Stop,
        max_age: None,
        max_age_even_if_busy: false,
        manner: Manner::default(),
    }
}

/// Odd worlds are those in which one net alone must hold: little coverage is asked for.
pub fn policy(brakes: bool, odd: bool) -> Policy {
    let mut policy = policy_of(None).unwrap();
    policy.mode = Mode::Enforce;
    policy.limits = limits(true);
    policy.warm_up = mins(5);
    policy.min_coverage = if odd { 0.1 } else { 0.95 };
    policy.keep = KeepOffer {
        choices: CHOICES.map(mins).to_vec(),
        weekly_budget: BUDGET,
        reason: ReasonNeed::Optional,
    };
    policy.intents.cap = Some(CAP);
    policy.demand = demand();
    policy.safety.freeze_min_sessions = if brakes { 2 } else { usize::MAX };
    policy.safety.max_stops = StopBudget::Count(if brakes { MOST_STOPS } else { usize::MAX });
    policy
}

/// Half of the strict limit while somebody waits, a bit more than the lenient one while nobody does.
fn demand() -> Demand {
    let warn_after = |minutes| Overrides { warn_after: Some(mins(minutes)), ..Overrides::default() };
    Demand { when_waiting: warn_after(10), when_free: warn_after(45) }
}

/// The rules, which all concern the first session.
pub fn rules(rules: Rules, wall: Timestamp) -> Vec<Rule> {
    let with = |exempt, overrides| {
        let users = Some(vec![pattern(&id(0).user.0).unwrap()]);
        vec![Rule {
            name: "first".to_owned(),
            matches: Match { users, ..Match::default() },
            exempt,
            overrides,
        }]
    };
    let of = |change: fn(SignedDuration) -> SignedDuration| {
        let base = limits(true);
        Overrides {
            warn_after: Some(change(base.warn_after)),
            grace: Some(change(base.grace)),
            connected_warn_after: Some(base.connected_warn_after.map(change)),
            card_unused_warn_after: Some(base.card_unused_warn_after.map(change)),
            ..Overrides::default()
        }
    };
    match rules {
        Rules::None => Vec::new(),
        Rules::Strict => with(None, of(|length| length / 2)),
        Rules::Patient => with(None, of(|length| length * 2)),
        Rules::Exempt(minutes) => {
            let exemption = Exemption {
                until: Some(wall + mins(minutes)),
                reason: "scoring".to_owned(),
                owner: "mlops".to_owned(),
            };
            with(Some(exemption), Overrides::default())
        }
    }
}

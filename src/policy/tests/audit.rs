//! Which rules can certainly never match, and which match nothing just now.

use super::rules::{globs, rule};
use super::*;

fn of(users: &[&str]) -> Match {
    Match { users: globs(users), ..Match::default() }
}

/// What is odd about the second of two rules, as long as every pattern matches something.
fn second(first: Match, second: Match) -> Option<RuleOddity> {
    let rules = vec![rule("first", first), rule("second", second)];
    let certain = |oddity: &RuleOddity| !matches!(oddity, RuleOddity::NothingMatches(..));
    let found = audit(&Policy { rules, ..policy() }, &[], &[], at("12:00"));
    found.into_iter().find(|(name, oddity)| name == "second" && certain(oddity)).map(|(_, oddity)| oddity)
}

fn shadowed(first: Match, then: Match) -> bool {
    second(first, then) == Some(RuleOddity::Shadowed("first".to_owned()))
}

#[test]
fn a_rule_after_one_for_everybody_never_matches() {
    assert!(shadowed(Match::default(), of(&["alice"])));
    assert!(shadowed(Match::default(), Match::default()));
    assert!(shadowed(of(&["*"]), Match::default()), "every session has a user");
    assert!(!shadowed(of(&["alice"]), Match::default()));
}

#[test]
fn a_rule_never_matches_whose_every_pattern_an_earlier_one_has() {
    assert!(shadowed(of(&["svc-*", "bob"]), of(&["svc-*"])));
    assert!(shadowed(of(&["svc-*"]), of(&["svc-scoring"])), "a plain name");
    assert!(!shadowed(of(&["svc-scoring"]), of(&["svc-*"])));
    assert!(!shadowed(of(&["svc-*"]), of(&["svc-scoring", "bob"])));
    assert!(!shadowed(of(&["svc-*"]), of(&["svc-s*"])), "true, but nothing that is certain for patterns");
}

#[test]
fn a_condition_that_only_the_earlier_rule_has_lets_others_through() {
    let card = Match { gpu_models: globs(&["*"]), ..Match::default() };
    assert!(!shadowed(card, of(&["alice"])), "a session may have no card");
    let admin = Match { admin: Some(true), ..Match::default() };
    assert!(!shadowed(admin.clone(), Match::default()));
    assert!(!shadowed(admin.clone(), Match { admin: Some(false), ..Match::default() }));
    assert!(shadowed(admin, Match { admin: Some(true), ..of(&["alice"]) }));
    let label = |value: &str| {
        let labels = Some([("tier".to_owned(), pattern(value).unwrap())].into());
        Match { labels, ..Match::default() }
    };
    assert!(shadowed(label("*"), label("free")));
    assert!(!shadowed(label("free"), label("*")));
    assert!(!shadowed(label("*"), Match::default()));
}

#[test]
fn more_conditions_make_a_rule_narrower() {
    let narrow = Match { groups: globs(&["phd"]), servers: globs(&["train"]), ..of(&["alice"]) };
    assert!(shadowed(of(&["alice"]), narrow.clone()));
    assert!(!shadowed(narrow, of(&["alice"])));
}

#[test]
fn a_condition_that_lists_nothing_is_never_met() {
    assert_eq!(second(of(&["bob"]), of(&[])), Some(RuleOddity::EmptyCondition("users")));
    assert!(!shadowed(of(&[]), of(&["bob"])), "what never matches takes nothing away");
}

#[test]
fn an_exemption_that_ended_is_named() {
    let until = Some(at("11:00"));
    let exempt = Some(Exemption { until, reason: "demo".to_owned(), owner: "it".to_owned() });
    let rules = vec![Rule { exempt, ..rule("demo", Match::default()) }];
    let policy = Policy { rules, ..policy() };
    let at_noon = audit(&policy, &[], &[], at("12:00"));
    assert_eq!(at_noon, [("demo".to_owned(), RuleOddity::ExemptionEnded(at("11:00")))]);
    assert_eq!(audit(&policy, &[], &[], at("10:59")), []);
}

#[test]
fn patterns_that_match_nothing_there_is_are_named_one_by_one() {
    let mut alice = session("alice");
    alice.server.groups = vec!["phd".to_owned()];
    alice.server.profile = Some("a100".to_owned());
    alice.server.labels = [("tier".to_owned(), "free".to_owned())].into();
    let labels = |value: &str| Some([("tier".to_owned(), pattern(value).unwrap())].into());
    let matches = Match {
        users: globs(&["al*", "bob"]),
        groups: globs(&["phd", "staff"]),
        servers: globs(&["", "train*"]),
        profiles: globs(&["a100", "h100"]),
        gpu_models: globs(&["*A100*", "*H200*"]),
        labels: labels("paid"),
        admin: Some(true),
    };
    let policy = Policy { rules: vec![rule("all", matches)], ..policy() };
    let found = audit(&policy, &[alice], &["NVIDIA A100".to_owned()], at("12:00"));
    let nothing = |(field, text): (&'static str, &str)| {
        ("all".to_owned(), RuleOddity::NothingMatches(field, text.to_owned()))
    };
    let expected = [
        ("users", "bob"),
        ("groups", "staff"),
        ("servers", "train*"),
        ("profiles", "h100"),
        ("gpu_models", "*H200*"),
        ("labels", "tier = paid"),
    ];
    assert_eq!(found, expected.map(nothing));
}

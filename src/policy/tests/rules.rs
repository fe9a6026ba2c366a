//! Who gets which limits, and who is exempt.

use globset::GlobMatcher;

use super::*;

pub fn globs(texts: &[&str]) -> Option<Vec<GlobMatcher>> {
    Some(texts.iter().map(|text| pattern(text).unwrap()).collect())
}

pub fn rule(name: &str, matches: Match) -> Rule {
    Rule { name: name.to_owned(), matches, exempt: None, overrides: Overrides::default() }
}

fn after(minutes: i64, rule: Rule) -> Rule {
    Rule { overrides: Overrides { warn_after: Some(mins(minutes)), ..Overrides::default() }, ..rule }
}

/// The rule that decides about alice's session.
fn applied(rules: Vec<Rule>, session: Session) -> Option<String> {
    let mut day = Day::of(&["alice"], Policy { rules, ..policy() });
    *day.alice() = session;
    day.until("08:05").judgement.rule
}

#[test]
fn the_first_rule_that_matches_decides_and_no_later_one() {
    let first = after(120, rule("first", Match { users: globs(&["al*"]), ..Match::default() }));
    let second = after(30, rule("second", Match::default()));
    let mut day = Day::of(&["alice", "bob"], Policy { rules: vec![first, second], ..policy() });
    day.run("10:00");
    assert_eq!(day.story(), [("warned", at("10:00"))]);
    assert_eq!(day.of_user("bob")[0], ("warned", at("08:30")));
}

#[test]
fn every_condition_given_must_be_met() {
    let all = Match {
        users: globs(&["alice"]),
        groups: globs(&["phd", "staff"]),
        servers: globs(&[""]),
        profiles: globs(&["a100*"]),
        gpu_models: globs(&["*A100*"]),
        labels: Some([("tier".to_owned(), pattern("free").unwrap())].into()),
        admin: Some(false),
    };
    let mut fits = session("alice");
    fits.server.groups = vec!["guests".to_owned(), "phd".to_owned()];
    fits.server.profile = Some("a100-small".to_owned());
    fits.server.labels = [("tier".to_owned(), "free".to_owned())].into();
    assert_eq!(applied(vec![rule("all", all.clone())], fits.clone()), Some("all".to_owned()));
    let misfits: [fn(&mut Session); 7] = [
        |session| session.server.groups = vec!["guests".to_owned()],
        |session| session.server.groups.clear(),
        |session| session.server.profile = None,
        |session| session.card().model = "NVIDIA H100".to_owned(),
        |session| _ = session.server.labels.insert("tier".to_owned(), "paid".to_owned()),
        |session| session.server.labels.clear(),
        |session| session.server.admin = true,
    ];
    for (case, change) in misfits.into_iter().enumerate() {
        let mut other = fits.clone();
        change(&mut other);
        assert_eq!(applied(vec![rule("all", all.clone())], other), None, "case {case}");
    }
}

#[test]
fn named_servers_are_told_apart() {
    let named = rule("named", Match { servers: globs(&["train*"]), ..Match::default() });
    assert_eq!(applied(vec![named.clone()], session("alice")), None);
    let mut day = Day::of(&["alice"], Policy { rules: vec![named], ..policy() });
    day.alice().server.id = ServerId::new("alice", "training");
    day.now += STEP;
    day.look();
    assert_eq!(day.plan.decisions[0].judgement.rule, Some("named".to_owned()));
}

#[test]
fn one_matching_card_of_several_is_enough() {
    let mut two = session("alice");
    two.gpus.as_mut().unwrap().push(GpuSample { model: "NVIDIA H100 NVL".to_owned(), ..card("GPU-2") });
    let scarce = rule("scarce", Match { gpu_models: globs(&["*H100*", "*H200*"]), ..Match::default() });
    assert_eq!(applied(vec![scarce], two), Some("scarce".to_owned()));
}

#[test]
fn an_exemption_protects_until_its_end_and_names_its_reason() {
    let exempt = Some(Exemption {
        until: Some(at("12:00")),
        reason: "nightly scoring".to_owned(),
        owner: "mlops".to_owned(),
    });
    let standby = Rule { exempt, ..rule("standby", Match::default()) };
    let mut day = Day::of(&["alice"], Policy { rules: vec![standby], ..policy() });
    let reason = ProtectedReason::Exempt {
        rule: "standby".to_owned(),
        until: Some(at("12:00")),
        reason: "nightly scoring".to_owned(),
    };
    assert_eq!(day.verdict("11:55"), Verdict::Protected(reason));
    day.run("12:00");
    assert_eq!(day.story(), [("warned", at("12:00"))]);
}

#[test]
fn an_exemption_without_an_end_never_ends() {
    let exempt = Some(Exemption { until: None, reason: "demo".to_owned(), owner: "it".to_owned() });
    let rules = vec![Rule { exempt, ..rule("demo", Match::default()) }];
    let mut day = Day::of(&["alice"], Policy { rules, ..policy() });
    day.run("2026-12-04T08:00:00Z");
    assert_eq!(day.story(), []);
}

#[test]
fn a_rule_changes_the_limits_it_names_and_leaves_the_others() {
    let overrides = Overrides { connected_warn_after: Some(None), ..Overrides::default() };
    let limits = overrides.over(&policy().limits);
    assert_eq!(limits, Limits { connected_warn_after: None, ..policy().limits });
}

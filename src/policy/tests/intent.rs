//! Declared times protect until they end, at most as long as the admin grants.

use super::*;

fn declares(labels: &[(&str, &str)]) -> Day {
    declares_under(policy(), labels)
}

fn declares_under(policy: Policy, labels: &[(&str, &str)]) -> Day {
    let mut day = Day::of(&["alice"], policy);
    day.alice().server.labels = of(labels);
    day
}

fn of(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn capped_at(cap: Option<SignedDuration>) -> Policy {
    Policy { intents: Intents { cap, ..Intents::default() }, ..policy() }
}

#[test]
fn an_idle_card_within_its_declared_time_is_shown_as_such_and_warned_of_when_it_ends() {
    let mut day = declares(&[("expected-duration", "4h"), ("team", "vision")]);
    let decision = day.until("11:00");
    let Verdict::Protected(ProtectedReason::Declared { idle, declared, seen }) = decision.judgement.verdict
    else {
        panic!("{:?}", decision.judgement.verdict)
    };
    assert_eq!((idle.since, idle.limit, seen), (at("08:00"), LimitKind::Nobody, at("11:00")));
    assert_eq!(declared, Declared { until: at("12:00"), is_capped: false });
    assert_eq!(decision.judgement.intent.unwrap().team.as_deref(), Some("vision"));
    assert_eq!(day.story(), []);
    day.run("13:30");
    let expected = [("warned", at("12:00")), ("reminded", at("12:45")), ("stopped", at("13:00"))];
    assert_eq!(day.story(), expected, "with the whole grace");
}

#[test]
fn who_is_at_work_is_at_work_whatever_was_declared() {
    let mut day = declares(&[("expected-duration", "4h")]);
    day.alice().works(true);
    assert!(matches!(day.verdict("10:00"), Verdict::Busy(BusyReason::Card(_))));
    day.alice().gpus = Err("down".into());
    assert!(is_unknown(&day.verdict("11:00")));
}

#[test]
fn no_more_is_protected_than_may_be_declared() {
    let mut day = declares_under(capped_at(Some(hours(3))), &[("expected-until", "2027-12-01")]);
    let judgement = day.until("10:00").judgement;
    assert_eq!(judgement.declared, Some(Declared { until: at("11:00"), is_capped: true }));
    day.run("12:00");
    assert_eq!(day.story().last(), Some(&("stopped", at("12:00"))));
    let mut day = declares_under(capped_at(Some(SignedDuration::ZERO)), &[("expected-duration", "9h")]);
    day.run("10:00");
    assert_eq!(day.story().last(), Some(&("stopped", at("10:00"))), "a cap of nothing protects nobody");
    let mut day = declares_under(capped_at(None), &[("expected-duration", "99999999w")]);
    day.run("20:00");
    assert_eq!(day.story(), []);
    assert_eq!(day.decision("alice").judgement.declared.unwrap().until, Timestamp::MAX);
}

#[test]
fn an_unreadable_time_and_one_that_has_passed_protect_nothing() {
    for labels in [
        &[("expected-duration", "3 bananas")][..],
        &[("expected-until", "2026-11-30")],
        &[("expected-duration", "0s")],
        &[("team", "vision")],
    ] {
        let mut day = declares(labels);
        day.run("10:00");
        let expected = [("warned", at("09:00")), ("reminded", at("09:45")), ("stopped", at("10:00"))];
        assert_eq!(day.story(), expected, "{labels:?}");
    }
}

#[test]
fn of_two_declared_times_the_later_one_counts() {
    for labels in [
        [("expected-duration", "1h"), ("expected-until", "2026-12-01T12:00:00Z")],
        [("expected-duration", "4h"), ("expected-until", "2026-12-01T09:00:00Z")],
        [("expected-duration", "4h"), ("expected-until", "soon")],
    ] {
        let until = declares(&labels).until("08:30").judgement.declared.map(|declared| declared.until);
        assert_eq!(until, Some(at("12:00")), "{labels:?}");
    }
}

#[test]
fn a_declaration_that_turns_up_takes_a_warning_back() {
    let mut day = declares(&[]);
    day.run("09:30");
    day.alice().server.labels = of(&[("gpu-culler.io/expected-duration", "6h")]);
    day.run("15:30");
    let expected = [
        ("warned", at("09:00")),
        ("unmarked", at("09:35")),
        ("withdrawn", at("09:40")),
        ("warned", at("14:00")),
        ("reminded", at("14:45")),
        ("stopped", at("15:00")),
    ];
    assert_eq!(day.story(), expected);
}

#[test]
fn it_stands_against_every_limit_and_whoever_waits() {
    let mut policy = policy();
    policy.limits.max_age = Some(hours(2));
    policy.limits.max_age_even_if_busy = true;
    policy.demand.when_waiting.warn_after = Some(mins(10));
    let mut day = declares_under(policy, &[("expected-duration", "5h")]);
    day.alice().works(true);
    day.waiting = Some(Queue::of(7));
    let verdict = day.verdict("12:30");
    assert!(matches!(verdict, Verdict::Protected(ProtectedReason::Declared { .. })), "{verdict:?}");
    day.run("14:00");
    assert_eq!(day.story().first(), Some(&("warned", at("13:00"))));
}

#[test]
fn a_restart_declares_anew_and_nothing_protects_without_a_start() {
    let mut day = declares(&[("expected-duration", "2h")]);
    day.run("09:30");
    day.alice().server.started = Some(at("09:30"));
    assert_eq!(day.until("09:45").judgement.declared.unwrap().until, at("11:30"));
    day.alice().server.started = None;
    assert!(is_unknown(&day.verdict("10:00")));
}

#[test]
fn rules_see_what_is_declared_however_it_is_spelled() {
    for key in ["team", "gpu-culler.io/team", "user_options.team"] {
        let mut policy = policy();
        let glob = pattern("vis*").unwrap();
        policy.rules = vec![Rule {
            name: "vision".to_owned(),
            matches: Match { labels: Some([("team".to_owned(), glob)].into()), ..Match::default() },
            exempt: None,
            overrides: Overrides { warn_after: Some(hours(3)), ..Overrides::default() },
        }];
        let mut day = declares_under(policy, &[(key, "vision")]);
        day.run("11:00");
        assert_eq!(day.story(), [("warned", at("11:00"))], "{key}");
    }
}

#[test]
fn many_that_turn_idle_at_once_freeze_stops_also_within_their_declared_time_and_not_when_it_ends() {
    let users: Vec<String> = (0..12).map(|number| format!("u{number}")).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let mut day = Day::of(&users, policy());
    for session in &mut day.sessions {
        session.server.labels = of(&[("expected-duration", "6h")]);
    }
    day.run("08:55");
    assert_eq!(day.plan.freeze, FreezeChange::None);
    day.run("09:00");
    assert!(day.plan.freeze.is_frozen(), "the cards may just as well be misread");
    day.ledger.lift_freeze("admin", day.now);
    while day.now < at("15:00") {
        day.now += STEP;
        day.look();
        assert_eq!(day.plan.freeze, FreezeChange::None, "at {}", day.now);
    }
}

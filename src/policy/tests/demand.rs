//! Other limits while somebody, or nobody, waits for a card.

use super::*;

/// Twenty minutes while somebody waits, three hours while nobody does, else one.
fn demand() -> Policy {
    let warn_after = |time| Overrides { warn_after: Some(time), ..Overrides::default() };
    Policy {
        demand: Demand { when_waiting: warn_after(mins(20)), when_free: warn_after(hours(3)) },
        ..policy()
    }
}

fn three() -> Day {
    let mut day = Day::of(&["alice", "bob", "carol"], demand());
    for (number, last) in ["08:04", "08:02", "08:03"].into_iter().enumerate() {
        let used = Some(at(last));
        day.sessions[number].kernel().last_activity = used;
    }
    day
}

#[test]
fn where_it_is_not_known_who_waits_neither_table_applies() {
    let mut day = Day::of(&["alice"], demand());
    day.run("10:30");
    assert_eq!(day.story()[0], ("warned", at("09:00")));
}

#[test]
fn while_nobody_waits_the_longer_limit_holds() {
    let mut day = Day::of(&["alice"], demand());
    day.waiting = Some(Queue::of(0));
    day.run("11:00");
    assert_eq!(day.story(), [("warned", at("11:00"))]);
}

#[test]
fn as_many_go_as_wait_and_the_longest_idle_first() {
    let mut day = three();
    day.waiting = Some(Queue::of(1));
    day.run("08:30");
    assert_eq!(day.of_user("bob"), [("warned", at("08:25"))]);
    let held = |user| day.decision(user).held_back;
    assert_eq!(held("carol"), Some(HeldBack::EnoughForDemand(1)));
    assert_eq!(held("alice"), Some(HeldBack::EnoughForDemand(1)));
    assert!(day.decision("bob").judgement.for_demand());
    day.waiting = Some(Queue::of(2));
    day.run("08:40");
    assert_eq!(day.of_user("carol"), [("warned", at("08:35"))]);
    assert_eq!(day.of_user("alice"), []);
}

#[test]
fn those_who_go_anyway_serve_those_who_wait() {
    let mut day = three();
    day.policy.rules = vec![Rule {
        name: "short".to_owned(),
        matches: Match { users: Some(vec![pattern("alice").unwrap()]), ..Match::default() },
        exempt: None,
        overrides: Overrides { warn_after: Some(mins(15)), ..Overrides::default() },
    }];
    day.waiting = Some(Queue::of(1));
    day.run("08:55");
    assert_eq!(day.of_user("alice"), [("warned", at("08:20"))]);
    assert_eq!(day.of_user("bob"), []);
}

#[test]
fn who_was_warned_for_demand_is_unmarked_when_nobody_waits_any_more() {
    let mut day = three();
    day.waiting = Some(Queue::of(1));
    day.run("08:40");
    day.waiting = Some(Queue::of(0));
    day.run("08:50");
    let expected = [("warned", at("08:25")), ("unmarked", at("08:45")), ("withdrawn", at("08:50"))];
    assert_eq!(day.of_user("bob"), expected);
    day.waiting = None;
    day.run("09:05");
    assert_eq!(
        day.of_user("bob").last(),
        Some(&("warned", at("09:05"))),
        "the usual limit is reached by now"
    );
}

#[test]
fn who_reaches_the_usual_limit_meanwhile_stays_warned() {
    let mut day = three();
    day.policy.demand.when_free = Overrides::default();
    day.waiting = Some(Queue::of(1));
    day.run("09:15");
    day.waiting = Some(Queue::of(0));
    day.run("09:25");
    let expected = [("warned", at("08:25")), ("reminded", at("09:10")), ("stopped", at("09:25"))];
    assert_eq!(day.of_user("bob"), expected);
}

#[test]
fn a_shorter_grace_shortens_no_deadline_that_was_promised() {
    let mut day = Day::of(&["alice"], demand());
    day.policy.demand.when_waiting.grace = Some(mins(10));
    day.run("09:00");
    day.waiting = Some(Queue::of(5));
    day.run("10:00");
    let expected = [("warned", at("09:00")), ("reminded", at("09:45")), ("stopped", at("10:00"))];
    assert_eq!(day.story(), expected);
}

#[test]
fn what_a_rule_sets_holds_whoever_waits() {
    let mut day = three();
    day.policy.rules = vec![Rule {
        name: "patience".to_owned(),
        matches: Match { users: Some(vec![pattern("bob").unwrap()]), ..Match::default() },
        exempt: None,
        overrides: Overrides { warn_after: Some(hours(2)), ..Overrides::default() },
    }];
    day.waiting = Some(Queue::of(9));
    day.run("09:20");
    assert_eq!(day.of_user("bob"), []);
    assert_eq!(day.of_user("alice")[0], ("warned", at("08:25")));
}

#[test]
fn not_more_are_stopped_than_wait_even_if_more_were_warned() {
    let mut day = three();
    day.policy.limits.warn_after = hours(2);
    day.waiting = Some(Queue::of(3));
    day.run("09:00");
    day.waiting = Some(Queue::of(1));
    // The stop has been carried out, and the one who waited has the card.
    day.run("09:25");
    assert_eq!(day.stopped(), 1);
    assert_eq!(day.of_user("bob").last(), Some(&("stopped", at("09:25"))));
    day.waiting = Some(Queue::of(0));
    day.run("10:00");
    assert_eq!(day.stopped(), 1);
}

#[test]
fn limits_that_change_with_the_demand_are_no_mass_flip() {
    let users: Vec<String> = (0..12).map(|number| format!("u{number}")).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    for (before, after) in [(None, Some(3)), (Some(0), Some(3)), (Some(0), None)] {
        let mut day = Day::of(&users, demand());
        // They turn idle one after the other.
        for (number, session) in day.sessions.iter_mut().enumerate() {
            let left = at("08:00") + mins(5 * i64::try_from(number).unwrap());
            session.kernel().last_activity = Some(left);
        }
        day.waiting = before.map(Queue::of);
        day.run("10:30");
        day.waiting = after.map(Queue::of);
        for _ in 0..24 {
            day.now += STEP;
            day.look();
            assert_eq!(day.plan.freeze, FreezeChange::None, "{before:?} to {after:?} at {}", day.now);
        }
    }
}

/// So many wait for what these hold.
fn line(count: u32, what: &str, served_by: &[&str]) -> QueueLine {
    let served_by = served_by.iter().map(|user| ServerId::new(*user, "")).collect();
    QueueLine { count, what: Some(what.to_owned()), since: None, served_by: Some(served_by) }
}

#[test]
fn only_those_go_whose_card_would_serve_who_waits() {
    let mut day = three();
    day.waiting = Some(Queue { lines: vec![line(9, "nvidia.com/mig-1g.10gb", &["carol"])] });
    day.run("09:30");
    assert_eq!(day.of_user("carol")[0], ("warned", at("08:25")));
    assert_eq!(
        (day.of_user("alice"), day.of_user("bob")),
        (vec![], vec![]),
        "nobody waits for theirs: three hours"
    );
    assert_eq!(day.plan.waiting_for(&ServerId::new("bob", "")), Some(0));
    day.waiting = Some(Queue { lines: vec![line(2, "nvidia.com/gpu", &[])] });
    day.run("09:50");
    assert_eq!(day.of_user("alice"), [], "it is not known whose would");
}

#[test]
fn each_line_takes_as_many_as_wait_in_it() {
    let mut day = three();
    let lines = vec![line(1, "a", &["alice", "bob"]), line(1, "b", &["carol"])];
    day.waiting = Some(Queue { lines });
    day.run("08:40");
    assert_eq!(day.of_user("bob"), [("warned", at("08:25"))]);
    assert_eq!(day.of_user("carol"), [("warned", at("08:25"))]);
    assert_eq!(day.of_user("alice"), []);
    assert_eq!(day.decision("alice").held_back, Some(HeldBack::EnoughForDemand(1)));
}

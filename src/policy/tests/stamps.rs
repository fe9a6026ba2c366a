//! Stamps that cannot be right: they never lead to an early stop, and never to a panic.

use super::*;

const FUTURE: &str = "9999-12-30T20:00:00Z";
const PAST: &str = "-009999-01-03T00:00:00Z";

#[test]
fn a_stamp_from_the_future_counts_as_just_now() {
    let stamps: [fn(&mut Session); 4] = [
        |session| session.server.last_activity = Some(at(FUTURE)),
        |session| session.jupyter().last_activity = Some(at(FUTURE)),
        |session| session.kernel().last_activity = Some(at(FUTURE)),
        |session| {
            session.jupyter().terminals =
                vec![Terminal { name: "1".to_owned(), last_activity: Some(at(FUTURE)) }]
        },
    ];
    for (case, stamp) in stamps.into_iter().enumerate() {
        let mut day = Day::new();
        stamp(day.alice());
        let decision = day.until("11:55");
        assert_eq!(decision.judgement.clocks.map(|clocks| clocks.present.max(clocks.used)), Some(day.now));
        assert_eq!(day.story(), [], "case {case}");
    }
}

#[test]
fn a_stamp_from_long_ago_is_older_than_the_start_and_says_nothing() {
    let mut day = Day::new();
    day.alice().server.last_activity = Some(at(PAST));
    day.alice().jupyter().last_activity = Some(at(PAST));
    day.alice().kernel().last_activity = Some(at(PAST));
    day.run("09:00");
    assert_eq!(day.story(), [("warned", at("09:00"))]);
}

#[test]
fn a_server_started_in_the_future_is_too_young_to_judge() {
    for start in [FUTURE, "2026-12-02T00:00:00Z"] {
        let mut day = Day::new();
        day.alice().server.started = Some(at(start));
        assert!(is_unknown(&day.verdict("20:00")));
        assert_eq!(day.story(), []);
    }
}

#[test]
fn a_server_started_long_ago_is_watched_from_its_first_sight() {
    let mut day = Day::new();
    day.alice().server.started = Some(at(PAST));
    day.policy.limits.max_age = Some(hours(2));
    day.run("09:10");
    assert_eq!(day.story(), [("warned", at("09:05"))], "its new start was seen at five past eight");
}

#[test]
fn the_ends_of_time_are_survived() {
    for end in [Timestamp::MAX, Timestamp::MIN] {
        let mut day = Day::new();
        day.policy.limits.remind_before = vec![SignedDuration::MAX];
        day.policy.limits.grace = SignedDuration::MAX;
        day.policy.warm_up = SignedDuration::MAX;
        day.now = end;
        day.look();
        day.policy.warm_up = SignedDuration::ZERO;
        day.now = at("09:30");
        day.look();
        day.run("12:00");
        assert_eq!(day.stopped(), 0);
    }
}

#[test]
fn a_warning_that_was_being_sent_at_the_end_of_time_overflows_nothing() {
    let mut day = Day::new();
    day.mail = false;
    day.run("09:00");
    day.ledger.warning_began(&ServerId::new("alice", ""), Timestamp::MAX);
    assert_eq!(day.until("09:05").held_back, Some(HeldBack::Interrupted(Timestamp::MAX)));
}

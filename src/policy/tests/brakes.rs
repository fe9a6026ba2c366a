//! How many stops a cycle may make, and when none may be made.

use super::*;

fn crowd(number: usize) -> Day {
    let users: Vec<String> = (0..number).map(|n| format!("u{n:02}")).collect();
    Day::of(&users.iter().map(String::as_str).collect::<Vec<_>>(), policy())
}

impl Day {
    /// The first `number` work, the others rest.
    fn works(&mut self, number: usize) {
        for (n, session) in self.sessions.iter_mut().enumerate() {
            session.works(n < number);
        }
    }

    fn frozen_since(&self) -> Option<Timestamp> {
        self.ledger.freeze.as_ref().map(|freeze| freeze.since)
    }
}

/// Ten of twelve rest from half past eight on: at half past nine they turn idle together.
fn frozen() -> Day {
    let mut day = crowd(12);
    day.works(12);
    day.run("08:30");
    day.works(2);
    day.run("09:30");
    assert_eq!(day.frozen_since(), Some(at("09:30")));
    day
}

#[test]
fn a_cycle_stops_a_tenth_and_never_fewer_than_two() {
    let share = |sessions| StopBudget::Share(0.1).of(sessions);
    assert_eq!([0, 1, 19, 20, 29, 30, 70, 100].map(share), [2, 2, 2, 2, 2, 3, 7, 10]);
    assert_eq!([0, 1, 2, 5].map(|count| StopBudget::Count(count).of(1000)), [2, 2, 2, 5]);
}

#[test]
fn the_longest_idle_are_stopped_first() {
    let mut day = crowd(9);
    for (n, user) in day.sessions.iter_mut().enumerate() {
        user.kernel().last_activity = Some(at("08:40") - mins(i64::try_from(n).unwrap()));
    }
    day.mail = false;
    day.run("10:00");
    day.mail = true;
    day.run("11:05");
    assert_eq!(day.stopped(), 2);
    assert!(day.events.iter().any(|(_, id, what)| *what == "stopped" && *id == ServerId::new("u08", "")));
    assert!(day.events.iter().any(|(_, id, what)| *what == "stopped" && *id == ServerId::new("u07", "")));
    assert_eq!(day.decision("u00").held_back, Some(HeldBack::Budget(2)));
    day.run("11:25");
    assert_eq!(day.stopped(), 9);
}

#[test]
fn servers_without_a_card_do_not_enlarge_the_budget() {
    let mut day = crowd(9);
    for n in 0..91 {
        let mut plain = session(&format!("plain{n}"));
        plain.gpus = Ok(Vec::new());
        day.sessions.push(plain);
    }
    day.run("10:00");
    assert_eq!(day.stopped(), 2);
}

#[test]
fn half_of_ten_sessions_turning_idle_at_once_freezes_all_stops() {
    let mut day = frozen();
    day.run("13:00");
    assert_eq!(day.stopped(), 0);
    assert_eq!(day.decision("u05").held_back, Some(HeldBack::Frozen(at("09:30"))));
    assert!(day.plan.freeze.is_frozen());
}

#[test]
fn fewer_than_half_or_fewer_than_ten_sessions_freeze_nothing() {
    let mut few = crowd(9);
    few.run("09:30");
    assert_eq!(few.frozen_since(), None);
    let mut less_than_half = crowd(11);
    less_than_half.works(6);
    less_than_half.run("09:30");
    assert_eq!(less_than_half.frozen_since(), None);
}

#[test]
fn a_freeze_ends_when_enough_of_those_who_flipped_are_back() {
    let mut day = frozen();
    day.works(6);
    day.run("09:35");
    assert!(day.plan.freeze.is_frozen(), "six of twelve are still idle");
    day.works(7);
    day.run("09:40");
    assert_eq!((day.plan.freeze.clone(), day.frozen_since()), (FreezeChange::Ends, None));
    day.run("10:30");
    assert_eq!(day.stopped(), 2, "and the brake of the single cycle holds on");
}

#[test]
fn a_freeze_outlives_a_hub_that_does_not_answer() {
    let mut day = frozen();
    day.run("10:40");
    day.hub = false;
    day.run("10:45");
    assert_eq!(day.frozen_since(), Some(at("09:30")));
    day.hub = true;
    for user in &mut day.sessions {
        user.card().covered = Duration::from_secs(600);
    }
    day.run("10:50");
    assert_eq!((day.frozen_since(), day.stopped()), (Some(at("09:30")), 0));
}

#[test]
fn a_freeze_holds_while_those_who_flipped_cannot_be_judged() {
    let mut day = frozen();
    day.run("10:40");
    for user in &mut day.sessions[5..] {
        user.jupyter = Err("timed out".into());
    }
    day.run("10:50");
    assert_eq!((day.frozen_since(), day.stopped()), (Some(at("09:30")), 0));
}

#[test]
fn a_freeze_does_not_end_because_few_sessions_are_left() {
    let mut day = frozen();
    day.sessions.drain(0..3);
    day.run("11:00");
    assert_eq!((day.frozen_since(), day.stopped()), (Some(at("09:30")), 0), "nine of nine are idle");
}

#[test]
fn a_freeze_ends_when_most_of_those_who_flipped_are_gone() {
    let mut day = frozen();
    day.sessions.drain(2..8);
    day.run("11:00");
    assert_eq!((day.frozen_since(), day.stopped()), (None, 4));
}

#[test]
fn who_turns_idle_during_a_freeze_does_not_replace_those_who_began_it() {
    let mut day = crowd(20);
    day.works(20);
    day.run("08:30");
    day.works(10);
    day.run("08:45");
    day.works(0);
    day.run("09:45");
    assert_eq!(day.frozen_since(), Some(at("09:30")));
    assert_eq!(day.ledger.freeze.as_ref().map(|freeze| freeze.flipped.len()), Some(20));
    day.works(10);
    day.run("11:00");
    assert_eq!(
        (day.frozen_since(), day.stopped()),
        (Some(at("09:30")), 0),
        "the first ten of twenty rest on"
    );
}

#[test]
fn a_blink_of_the_source_does_not_make_idle_sessions_turn_idle_again() {
    let mut day = crowd(12);
    for (n, user) in day.sessions.iter_mut().enumerate() {
        user.kernel().last_activity = Some(at("08:00") + mins(5 * i64::try_from(n).unwrap()));
    }
    day.policy.limits.grace = hours(3);
    day.run("10:00");
    assert_eq!(day.frozen_since(), None, "they turned idle one after the other");
    let before: Vec<_> = day.sessions.iter().map(|user| user.jupyter.clone()).collect();
    day.sessions.iter_mut().for_each(|user| user.jupyter = Err("the proxy restarts".into()));
    day.run("10:05");
    for (user, jupyter) in day.sessions.iter_mut().zip(before) {
        user.jupyter = jupyter;
    }
    day.run("10:10");
    assert_eq!(day.frozen_since(), None);
}

#[test]
fn sessions_that_worked_before_an_outage_and_rest_after_it_still_freeze() {
    let mut day = crowd(12);
    day.works(12);
    day.run("09:00");
    let before: Vec<_> = day.sessions.iter().map(|user| user.gpus.clone()).collect();
    day.sessions.iter_mut().for_each(|user| user.gpus = Err("down".into()));
    day.run("09:30");
    for (user, gpus) in day.sessions.iter_mut().zip(before) {
        user.gpus = gpus;
    }
    day.works(0);
    day.run("10:30");
    assert_eq!(day.frozen_since(), Some(at("10:30")));
}

#[test]
fn an_admin_lifts_a_freeze_and_the_same_sessions_do_not_bring_it_back() {
    let mut day = frozen();
    day.run("11:00");
    assert_eq!(day.stopped(), 0);
    day.ledger.lift_freeze("root", day.now);
    let lifted = Lifted { by: "root".to_owned(), at: at("11:00"), since: at("09:30"), flipped: 10 };
    assert_eq!(day.ledger.lifted, Some(lifted));
    day.run("11:05");
    assert_eq!((day.frozen_since(), day.stopped()), (None, 2), "the brake of the single cycle holds on");
    day.run("12:00");
    assert_eq!((day.frozen_since(), day.stopped()), (None, 10));
}

#[test]
fn after_a_freeze_was_lifted_another_wave_freezes_again() {
    let mut day = frozen();
    day.policy.limits.grace = hours(12);
    day.ledger.lift_freeze("root", day.now);
    day.works(12);
    day.run("10:00");
    day.works(2);
    day.run("11:00");
    assert_eq!(day.frozen_since(), Some(at("11:00")));
}

#[test]
fn a_freeze_that_was_lifted_while_a_plan_was_carried_out_does_not_come_back() {
    let mut day = frozen();
    day.run("11:00");
    let planned = day.plan.clone();
    assert!(matches!(planned.freeze, FreezeChange::Holds(_)));
    day.ledger.lift_freeze("root", day.now);
    day.ledger.settled(&planned);
    assert_eq!(day.frozen_since(), None);
    assert_eq!(day.ledger.lift_freeze("root", day.now), None, "there is none to lift any more");
}

/// The service looks for the first time: `number` servers that were left days ago, and three that work.
fn first_look_at_a_quiet_cluster(number: usize) -> Day {
    let mut day = crowd(number + 3);
    day.ledger = Ledger::default();
    for user in &mut day.sessions {
        let long_ago = Some(at("2026-11-27T08:00:00Z"));
        (user.server.started, user.server.last_activity) = (long_ago, long_ago);
        user.jupyter().last_activity = long_ago;
        user.kernel().last_activity = long_ago;
    }
    day.works(3);
    day.look();
    day
}

#[test]
fn servers_that_were_idle_when_first_seen_did_not_turn_idle_together_and_freeze_nothing() {
    let mut day = first_look_at_a_quiet_cluster(12);
    day.run("10:00");
    assert_eq!((day.frozen_since(), day.stopped()), (None, 2), "each was warned and had its grace");
    day.run("10:25");
    assert_eq!(day.stopped(), 12);
}

#[test]
fn servers_found_idle_freeze_while_no_card_was_ever_seen_at_work_and_thaw_when_one_is() {
    let mut day = first_look_at_a_quiet_cluster(12);
    day.ledger = Ledger::default();
    day.works(0);
    day.run("11:00");
    assert_eq!((day.frozen_since(), day.stopped()), (Some(at("09:05")), 0), "the source may be blind");
    day.works(1);
    day.run("11:05");
    assert_eq!((day.frozen_since(), day.stopped()), (None, 2));
}

#[test]
fn servers_found_with_an_open_tab_are_no_wave_either_when_their_limit_comes() {
    let mut day = first_look_at_a_quiet_cluster(12);
    day.sessions.iter_mut().for_each(|user| user.jupyter().connections = 1);
    day.run("13:00");
    assert_eq!(day.frozen_since(), None);
    let warned = day.events.iter().filter(|(when, _, what)| *what == "warned" && *when == at("12:00"));
    assert_eq!(warned.count(), 12);
}

#[test]
fn servers_that_started_under_our_eyes_and_never_worked_still_count() {
    let mut day = crowd(13);
    day.works(1);
    day.run("09:00");
    assert_eq!(day.frozen_since(), Some(at("09:00")));
}

#[test]
fn a_service_that_was_just_started_stops_nobody_yet() {
    let mut day = Day::new();
    day.policy.safety.min_uptime = mins(10);
    day.run("09:55");
    day.ledger.began = None;
    day.ledger.watches(day.now);
    day.run("10:00");
    assert_eq!(day.decision("alice").held_back, Some(HeldBack::JustStarted(at("10:05"))));
    day.ledger.watches(day.now);
    day.run("10:05");
    assert_eq!(day.story().last(), Some(&("stopped", at("10:05"))));
}

#[test]
fn a_clock_that_was_set_back_makes_the_service_wait_anew() {
    let mut ledger = Ledger::default();
    for instant in ["09:00", "10:00", "08:00", "12:00"] {
        ledger.watches(at(instant));
    }
    assert_eq!(ledger.began, Some(at("08:00")));
}

#[test]
fn nobody_is_stopped_on_readings_older_than_a_cycle() {
    let mut day = Day::new();
    day.run("09:55");
    day.alice().card().covered = Duration::from_secs(239);
    day.run("10:00");
    let newest = HeldBack::Stale(SignedDuration::from_secs(61));
    assert_eq!(day.decision("alice").held_back, Some(newest));
    day.alice().card().covered = Duration::from_secs(240);
    day.run("10:05");
    assert_eq!(day.story().last(), Some(&("stopped", at("10:05"))));
}

#[test]
fn a_stop_that_a_brake_holds_back_uses_up_nobody_elses() {
    let mut day = crowd(4);
    day.run("09:55");
    for user in &mut day.sessions[..2] {
        user.card().covered = Duration::from_secs(200);
    }
    day.run("10:00");
    assert_eq!(day.stopped(), 2);
    assert!(matches!(day.decision("u00").held_back, Some(HeldBack::Stale(_))));
}

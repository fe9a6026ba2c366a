//! From idle to stopped: one rung at a time, and every way back.

use super::*;

fn keep_until(end: &str) -> Keep {
    Keep { until: at(end), by: "alice".to_owned(), at: at("08:00"), reason: None, cost: SignedDuration::ZERO }
}

fn alice() -> ServerId {
    ServerId::new("alice", "")
}

#[test]
fn a_mail_outage_postpones_the_stop_and_never_skips_the_warning() {
    let mut day = Day::new();
    day.mail = false;
    day.run("11:30");
    assert_eq!(day.story(), []);
    day.mail = true;
    day.run("12:30");
    assert_eq!(day.story()[0], ("warned", at("11:35")));
    assert_eq!(day.stopped(), 0);
    day.run("12:35");
    assert_eq!(day.story().last(), Some(&("stopped", at("12:35"))));
}

#[test]
fn activity_unmarks_and_the_next_warning_has_its_full_grace() {
    let mut day = Day::new();
    day.run("09:50");
    day.alice().works(true);
    day.run("09:55");
    day.alice().works(false);
    day.run("11:55");
    let expected = [
        ("warned", at("09:00")),
        ("reminded", at("09:45")),
        ("unmarked", at("09:55")),
        ("withdrawn", at("10:00")),
        ("warned", at("10:55")),
        ("reminded", at("11:40")),
        ("stopped", at("11:55")),
    ];
    assert_eq!(day.story(), expected);
}

#[test]
fn a_stop_that_takes_its_time_is_no_reason_to_take_the_warning_back() {
    let mut day = Day::new();
    day.run("09:50");
    day.alice().server.pending = Some("stop".to_owned());
    // The Hub stamps a server that it stops.
    day.alice().server.last_activity = Some(at("09:52"));
    day.alice().jupyter().last_activity = Some(at("09:52"));
    day.alice().kernel().last_activity = Some(at("09:52"));
    day.run("10:30");
    assert_eq!(day.story(), [("warned", at("09:00")), ("reminded", at("09:45"))]);
    day.alice().server.pending = Some("check".to_owned());
    day.run("10:35");
    assert_eq!(day.story().last(), Some(&("unmarked", at("10:35"))));
}

#[test]
fn a_moving_use_clock_does_not_rescue_a_card_warned_for_being_unused() {
    let mut day = Day::new();
    day.alice().kernel().last_activity = Some(at("2026-12-05T00:00:00Z"));
    day.run("2026-12-02T09:00:00Z");
    assert_eq!(day.story().last(), Some(&("stopped", at("2026-12-02T09:00:00Z"))));
}

#[test]
fn somebody_who_only_connects_does_not_rescue_a_session_that_both_limits_reach() {
    let mut day = Day::new();
    day.policy.limits.grace = hours(6);
    day.run("12:00");
    day.alice().jupyter().connections = 1;
    day.run("15:00");
    assert_eq!(day.stopped(), 1);
}

#[test]
fn somebody_who_came_and_left_unseen_is_warned_again() {
    let mut day = Day::new();
    day.run("09:00");
    day.hub = false;
    day.run("11:10");
    day.hub = true;
    // The cards were watched throughout; a kernel was used at half past nine and rests since then.
    day.alice().card().covered = Duration::from_secs(10800);
    day.alice().kernel().last_activity = Some(at("09:30"));
    day.run("11:20");
    let expected = [("warned", at("09:00")), ("unmarked", at("11:15")), ("warned", at("11:20"))];
    assert_eq!(day.story(), expected);
}

#[test]
fn a_keep_takes_the_warning_back_and_protects_until_it_ends() {
    let mut day = Day::new();
    day.run("09:30");
    day.ledger.kept(&alice(), keep_until("12:00"));
    let until = at("12:00");
    let kept = ProtectedReason::Kept { until, by: "alice".to_owned() };
    assert_eq!(day.verdict("11:55"), Verdict::Protected(kept));
    day.run("13:00");
    let expected = [
        ("warned", at("09:00")),
        ("unmarked", at("09:35")),
        ("withdrawn", at("09:40")),
        ("warned", at("12:00")),
        ("reminded", at("12:45")),
        ("stopped", at("13:00")),
    ];
    assert_eq!(day.story(), expected);
}

#[test]
fn a_changed_start_is_a_new_session_without_a_warning() {
    let mut day = Day::new();
    day.run("09:50");
    day.alice().server.started = Some(at("09:52"));
    day.alice().kernel().last_activity = Some(at("09:52"));
    day.run("10:50");
    assert_eq!(day.stopped(), 0);
    assert_eq!(day.record().evidence.cards[&GpuId("GPU-1".to_owned())].clock, at("09:55"));
    day.run("10:55");
    assert_eq!(day.story().last(), Some(&("warned", at("10:55"))));
}

#[test]
fn a_keep_outlives_a_restart() {
    let mut day = Day::new();
    day.ledger.kept(&alice(), keep_until("12:00"));
    day.alice().server.started = Some(at("08:02"));
    day.run("11:55");
    assert_eq!(day.story(), []);
}

#[test]
fn a_warning_cut_short_is_not_sent_again_before_its_grace_is_over() {
    let mut day = Day::new();
    day.mail = false;
    day.run("09:00");
    day.ledger.warning_began(&alice(), at("09:00"));
    day.mail = true;
    assert_eq!(day.until("09:55").held_back, Some(HeldBack::Interrupted(at("10:00"))));
    day.run("10:00");
    assert_eq!(day.story(), [("warned", at("10:00"))]);
}

#[test]
fn a_warning_cut_short_stops_nobody() {
    let mut day = Day::new();
    day.mail = false;
    day.run("09:00");
    day.ledger.warning_began(&alice(), at("09:00"));
    day.run("16:00");
    assert_eq!(day.story(), []);
}

#[test]
fn each_reminder_is_sent_once_and_a_missed_one_is_not_made_up_for() {
    let mut day = Day::new();
    day.policy.limits.remind_before = vec![mins(10), mins(30), mins(20), hours(1), hours(5)];
    day.run("09:00");
    day.mail = false;
    day.run("09:35");
    day.mail = true;
    day.run("10:00");
    let expected = [
        ("warned", at("09:00")),
        ("reminded", at("09:40")),
        ("reminded", at("09:50")),
        ("stopped", at("10:00")),
    ];
    assert_eq!(day.story(), expected);
}

#[test]
fn a_warned_session_that_cannot_be_judged_at_its_deadline_is_left_alone_until_it_can() {
    let mut day = Day::new();
    day.run("09:55");
    let before = day.alice().jupyter.clone();
    day.alice().jupyter = Err("timed out".into());
    let decision = day.until("10:30");
    assert_eq!((decision.action, decision.held_back), (None, Some(HeldBack::Unknown)));
    day.alice().jupyter = before;
    day.run("10:35");
    assert_eq!(day.story().last(), Some(&("stopped", at("10:35"))));
}

#[test]
fn a_stopped_server_is_not_stopped_twice_while_the_hub_still_lists_it() {
    let mut day = Day::new();
    day.run("10:00");
    day.now += STEP;
    day.look();
    assert_eq!((day.stopped(), day.plan.decisions.len()), (1, 0));
}

#[test]
fn observe_plans_nothing_and_says_what_enforce_would_do() {
    let mut day = Day::new();
    day.policy.mode = Mode::Observe;
    let decision = day.until("09:00");
    let warn = Action::Warn { deadline: at("10:00"), grace: hours(1), stop_follows: true };
    let held_back = HeldBack::Mode(Mode::Observe, Box::new(warn));
    assert_eq!((decision.action, decision.held_back), (None, Some(held_back)));
    day.run("14:00");
    assert_eq!(day.story(), []);
}

#[test]
fn observe_takes_an_earlier_warning_back_but_does_not_act_on_it() {
    let mut day = Day::new();
    day.run("09:30");
    day.policy.mode = Mode::Observe;
    let stop = HeldBack::Mode(Mode::Observe, Box::new(Action::Stop));
    assert_eq!(day.until("10:00").held_back, Some(stop));
    day.alice().works(true);
    assert_eq!(day.until("10:05").action, Some(Action::Unmark));
}

#[test]
fn warn_writes_once_and_stops_nobody() {
    let mut day = Day::new();
    day.policy.mode = Mode::Warn;
    let stop = HeldBack::Mode(Mode::Warn, Box::new(Action::Stop));
    assert_eq!(day.until("14:00").held_back, Some(stop));
    assert_eq!(day.story(), [("warned", at("09:00"))]);
}

#[test]
fn a_mail_that_announced_no_stop_is_no_warning_of_one() {
    let mut day = Day::new();
    day.policy.mode = Mode::Warn;
    day.run("12:00");
    day.policy.mode = Mode::Enforce;
    day.run("13:05");
    let expected = [
        ("warned", at("09:00")),
        ("warned", at("12:05")),
        ("reminded", at("12:50")),
        ("stopped", at("13:05")),
    ];
    assert_eq!(day.story(), expected);
}

#[test]
fn a_longer_limit_takes_the_warning_back() {
    let mut day = Day::new();
    day.run("09:30");
    day.policy.limits.warn_after = hours(8);
    assert_eq!(day.until("09:35").action, Some(Action::Unmark));
}

#[test]
fn a_longer_grace_holds_at_once() {
    let mut day = Day::new();
    day.run("09:30");
    day.policy.limits.grace = hours(2);
    assert_eq!(day.until("10:55").held_back, Some(HeldBack::Warned(at("11:00"))));
    assert_eq!(day.until("11:00").action, Some(Action::Stop));
}

#[test]
fn neither_a_shorter_grace_nor_a_shorter_limit_nor_a_rule_shortens_what_was_promised() {
    let shorter = Overrides { grace: Some(mins(5)), warn_after: Some(mins(5)), ..Overrides::default() };
    let rule = Rule {
        name: "strict".to_owned(),
        matches: Match::default(),
        exempt: None,
        overrides: shorter.clone(),
    };
    let changes: [fn(&mut Day, Rule); 2] = [
        |day, rule| day.policy.limits = rule.overrides.over(&day.policy.limits),
        |day, rule| day.policy.rules = vec![rule],
    ];
    for change in changes {
        let mut day = Day::new();
        day.run("09:05");
        change(&mut day, rule.clone());
        assert_eq!(day.until("09:55").held_back, Some(HeldBack::Warned(at("10:00"))));
        assert_eq!(day.until("10:00").action, Some(Action::Stop));
    }
}

#[test]
fn hours_that_are_narrowed_move_a_promised_deadline_later_and_never_earlier() {
    let office = |from: i8, to: i8| StopHours {
        days: vec![jiff::civil::Weekday::Tuesday],
        from: jiff::civil::time(from, 0, 0, 0),
        to: jiff::civil::time(to, 0, 0, 0),
        zone: jiff::tz::TimeZone::UTC,
        holidays: std::collections::BTreeSet::new(),
    };
    let mut day = Day::new();
    day.run("09:30");
    day.policy.stop_hours = Some(office(11, 18));
    assert_eq!(day.until("10:00").held_back, Some(HeldBack::Warned(at("12:00"))));
    day.policy.stop_hours = Some(office(0, 23));
    assert_eq!(day.until("10:05").action, Some(Action::Stop));
}

#[test]
fn planning_twice_at_the_same_instant_gives_the_same_plan() {
    let mut day = Day::of(&["alice", "bob", "carol"], policy());
    for _ in 0..30 {
        day.now += STEP;
        let sessions = Ok(day.sessions.clone());
        let snapshot =
            Snapshot { at: day.now, sessions, complete: true, telemetry_down: None, waiting: None };
        let mut ledger = day.ledger.clone();
        ledger.observe(&snapshot, &day.policy);
        let once = plan(&snapshot, &ledger, &day.policy, day.now);
        ledger.observe(&snapshot, &day.policy);
        assert_eq!(plan(&snapshot, &ledger, &day.policy, day.now), once);
        day.look();
    }
    assert_eq!(day.stopped(), 3);
}

/// The events of alice's day that a mail stands behind.
fn told(day: &Day) -> Vec<(&'static str, Timestamp)> {
    day.story().into_iter().filter(|(what, _)| ["warned", "withdrawn"].contains(what)).collect()
}

#[test]
fn a_withdrawal_waits_for_the_mail_server_and_is_sent_once() {
    let mut day = Day::new();
    day.run("09:20");
    day.mail = false;
    day.alice().works(true);
    day.run("09:40");
    day.mail = true;
    day.run("12:00");
    assert_eq!(told(&day), [("warned", at("09:00")), ("withdrawn", at("09:45"))]);
}

#[test]
fn a_withdrawal_that_nobody_could_be_told_of_in_time_is_no_news() {
    let mut day = Day::new();
    day.run("09:20");
    day.mail = false;
    day.alice().works(true);
    day.run("11:00");
    day.mail = true;
    day.run("12:00");
    assert_eq!(told(&day), [("warned", at("09:00"))]);
}

#[test]
fn whoever_flaps_gets_one_withdrawal_for_each_warning() {
    let mut day = Day::new();
    day.policy.limits.warn_after = mins(20);
    for minute in 0..72 {
        day.alice().works(minute % 6 == 0);
        day.now += STEP;
        day.look();
    }
    let warned = day.story().iter().filter(|(what, _)| *what == "warned").count();
    let withdrawn = day.story().iter().filter(|(what, _)| *what == "withdrawn").count();
    assert!(warned >= 10 && (warned - withdrawn) <= 1, "{warned} warnings, {withdrawn} withdrawn");
}

#[test]
fn a_new_warning_makes_an_untold_withdrawal_obsolete() {
    let mut day = Day::new();
    day.policy.limits.warn_after = mins(10);
    day.run("08:30");
    day.mail = false;
    day.alice().works(true);
    day.run("08:35");
    day.alice().works(false);
    day.run("08:45");
    day.mail = true;
    day.run("09:20");
    assert_eq!(told(&day), [("warned", at("08:15")), ("warned", at("08:50"))]);
}

#[test]
fn who_was_only_asked_to_have_a_look_needs_no_withdrawal() {
    let mut day = Day::new();
    day.policy.mode = Mode::Warn;
    day.run("09:20");
    day.alice().works(true);
    day.run("10:00");
    assert_eq!(day.story(), [("warned", at("09:00")), ("unmarked", at("09:25"))]);
}

#[test]
fn whoever_did_what_the_warning_asked_for_is_warned_anew_about_the_next_limit() {
    let mut day = Day::new();
    day.policy.limits.grace = hours(6);
    day.policy.limits.card_unused_warn_after = Some(hours(3));
    day.run("12:00");
    // The mail said: run a cell, any cell. Nothing else is needed.
    day.alice().kernel().last_activity = Some(at("12:03"));
    day.run("20:00");
    let expected = [
        ("warned", at("09:00")),
        ("unmarked", at("12:05")),
        ("warned", at("12:10")),
        ("reminded", at("17:55")),
        ("stopped", at("18:10")),
    ];
    assert_eq!(day.story(), expected);
}

#[test]
fn an_old_server_is_warned_while_its_card_works_only_if_the_admin_says_so() {
    for (even_if_busy, expected) in [
        (false, vec![]),
        (true, vec![("warned", at("20:00")), ("reminded", at("20:45")), ("stopped", at("21:00"))]),
    ] {
        let mut day = Day::new();
        day.policy.limits.max_age = Some(hours(12));
        day.policy.limits.max_age_even_if_busy = even_if_busy;
        day.alice().works(true);
        day.run("20:00");
        let kind = if even_if_busy { Some(IdleKind::AtWork) } else { None };
        let verdict = day.decision("alice").judgement.verdict;
        assert_eq!(if let Verdict::Idle(idle) = verdict { Some(idle.kind) } else { None }, kind);
        day.run("23:00");
        assert_eq!(day.story(), expected);
    }
}

#[test]
fn an_old_server_is_warned_while_a_kernel_computes_if_the_admin_says_so() {
    let mut day = Day::new();
    day.policy.limits.max_age = Some(hours(12));
    day.policy.limits.max_age_even_if_busy = true;
    day.alice().kernel().state = KernelState::Busy;
    day.run("21:00");
    assert_eq!(day.stopped(), 1);
}

#[test]
fn an_old_server_that_cannot_be_read_is_left_alone_whatever_the_admin_says() {
    let mut day = Day::new();
    day.policy.limits.max_age = Some(hours(12));
    day.policy.limits.max_age_even_if_busy = true;
    day.alice().jupyter = Err("timed out".into());
    assert!(is_unknown(&day.verdict("23:00")));
    assert_eq!(day.story(), []);
}

#[test]
fn an_idle_warning_does_not_stand_for_the_age_that_is_reached_meanwhile() {
    let mut day = Day::new();
    day.policy.limits.max_age = Some(mins(90));
    day.policy.limits.max_age_even_if_busy = true;
    day.run("09:35");
    day.alice().works(true);
    day.run("11:00");
    let expected = [
        ("warned", at("09:00")),
        ("unmarked", at("09:40")),
        ("warned", at("09:45")),
        ("reminded", at("10:30")),
        ("stopped", at("10:45")),
    ];
    assert_eq!(day.story(), expected);
}

#[test]
fn many_old_servers_at_work_do_not_freeze_the_stops() {
    let users: Vec<String> = (0..12).map(|number| format!("u{number}")).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let mut day = Day::of(&users, policy());
    day.policy.limits.max_age = Some(hours(4));
    day.policy.limits.max_age_even_if_busy = true;
    day.sessions.iter_mut().for_each(|session| session.works(true));
    day.run("15:00");
    assert_eq!(day.stopped(), 12);
}

//! Kernels that are busy while card and CPU rest.

use super::*;

/// A cell has been running since eight; the admin wants to hear of it after three hours.
fn wedged() -> Day {
    let mut day = Day::new();
    day.policy.limits.busy_kernel_limit = Some(hours(3));
    day.alice().cpu = Some(0.0);
    day.alice().kernel().state = KernelState::Busy;
    day.alice().kernel().notebook = Some("wait.ipynb".to_owned());
    day
}

/// It was first seen busy at five past eight.
const REACHED: &str = "11:05";

#[test]
fn its_owner_is_told_once_and_it_lives() {
    let mut day = wedged();
    day.run("11:00");
    assert_eq!(day.story(), []);
    let waiting =
        Waiting { kernel: "k1".to_owned(), notebook: Some("wait.ipynb".to_owned()), since: at("08:05") };
    assert_eq!(day.verdict(REACHED), Verdict::Busy(BusyReason::Waiting(vec![waiting])));
    day.run("2026-12-04T08:00:00Z");
    assert_eq!(day.story(), [("noticed", at(REACHED))]);
}

#[test]
fn without_a_limit_a_busy_kernel_is_work_for_ever() {
    let mut day = wedged();
    day.policy.limits.busy_kernel_limit = None;
    assert_eq!(day.verdict("2026-12-04T08:00:00Z"), Verdict::Busy(BusyReason::Kernel));
    assert_eq!(day.story(), []);
}

#[test]
fn a_cell_that_prints_or_another_that_began_between_two_looks_is_not_stopped_for_an_old_wait() {
    let mut day = wedged();
    day.policy.limits.busy_kernel_action = BusyKernelAction::Stop;
    day.run("11:00");
    day.alice().kernel().last_activity = Some(at("10:58"));
    day.run("13:55");
    assert_eq!(day.story(), [("noticed", at(REACHED))], "busy at each look, and yet not the same cell");
    day.run("14:00");
    assert_eq!(day.story().last(), Some(&("warned", at("14:00"))));
}

#[test]
fn where_the_cpu_is_not_known_nothing_is_stopped_for_a_wait() {
    let mut day = wedged();
    day.policy.limits.busy_kernel_action = BusyKernelAction::Stop;
    day.alice().cpu = None;
    day.run("2026-12-02T08:00:00Z");
    assert_eq!(day.story(), []);
}

#[test]
fn where_the_rule_says_stop_it_is_warned_and_stopped_as_any_idle_one() {
    let mut day = wedged();
    day.policy.rules = vec![Rule {
        name: "wedged".to_owned(),
        matches: Match::default(),
        exempt: None,
        overrides: Overrides { busy_kernel_action: Some(BusyKernelAction::Stop), ..Overrides::default() },
    }];
    day.run(REACHED);
    assert_eq!(day.decision("alice").judgement.reached, Some(LimitKind::BusyKernel));
    day.run("13:00");
    let expected = [("warned", at(REACHED)), ("reminded", at("11:50")), ("stopped", at("12:05"))];
    assert_eq!(day.story(), expected);
}

/// What ends or interrupts the wait at ten, one moment long.
fn after(change: fn(&mut Session)) -> Day {
    let mut day = wedged();
    day.policy.limits.busy_kernel_action = BusyKernelAction::Stop;
    day.run("09:55");
    let before = day.alice().clone();
    change(day.alice());
    day.run("10:00");
    day.sessions[0] = before;
    day.run("14:00");
    day
}

#[test]
fn whatever_shows_work_or_hides_the_wait_starts_it_anew() {
    for (why, change, warned) in [
        ("the kernel rests", (|s| s.kernel().state = KernelState::Idle) as fn(&mut Session), "13:05"),
        ("another kernel", |s| s.kernel().id = "k2".to_owned(), "13:05"),
        ("CPU work", |s| s.cpu = Some(2.0), "13:00"),
        ("CPU not known", |s| s.cpu = None, "13:05"),
        ("kernels not readable", |s| s.jupyter = Err("refused".into()), "13:05"),
        ("the card works", |s| s.works(true), "13:00"),
        ("the card was not watched", |s| s.card().covered = Duration::ZERO, "13:00"),
        ("the cards are not known", |s| s.gpus = Err("down".into()), "13:00"),
    ] {
        let day = after(change);
        assert_eq!(day.story().first(), Some(&("warned", at(warned))), "{why}");
    }
}

#[test]
fn an_outage_of_the_hub_starts_the_wait_anew() {
    let mut day = wedged();
    day.run("10:00");
    day.hub = false;
    day.run("10:30");
    day.hub = true;
    day.run("14:00");
    assert_eq!(day.story(), [("noticed", at("13:35"))]);
}

#[test]
fn the_same_cell_is_not_told_of_again_after_a_gap_and_another_one_is() {
    let mut day = wedged();
    day.run(REACHED);
    day.hub = false;
    day.run("12:00");
    day.hub = true;
    day.run("18:00");
    assert_eq!(day.story(), [("noticed", at(REACHED))]);
    day.alice().kernel().state = KernelState::Idle;
    day.run("18:05");
    day.alice().kernel().state = KernelState::Busy;
    day.run("22:00");
    assert_eq!(day.story(), [("noticed", at(REACHED)), ("noticed", at("21:10"))]);
}

#[test]
fn while_the_cpu_is_not_known_nothing_waits() {
    let mut day = wedged();
    day.alice().cpu = None;
    assert_eq!(day.verdict("2026-12-02T08:00:00Z"), Verdict::Busy(BusyReason::Kernel));
    assert_eq!(day.story(), []);
}

#[test]
fn a_second_kernel_that_is_used_protects_from_the_stop_and_not_from_the_notice() {
    let mut day = wedged();
    day.policy.limits.busy_kernel_action = BusyKernelAction::Stop;
    let other = Kernel { id: "k2".to_owned(), state: KernelState::Idle, ..day.alice().kernel().clone() };
    day.alice().jupyter().kernels.push(other);
    day.run("09:00");
    while day.now < at("20:00") {
        day.now += STEP;
        day.sessions[0].jupyter().kernels[1].last_activity = Some(day.now);
        day.look();
    }
    assert_eq!(day.story(), [("noticed", at(REACHED))]);
}

#[test]
fn a_second_kernel_that_only_just_began_is_not_taken_for_wedged() {
    let mut day = wedged();
    day.policy.limits.busy_kernel_action = BusyKernelAction::Stop;
    day.run("10:00");
    let other = Kernel { id: "k2".to_owned(), ..day.alice().kernel().clone() };
    day.alice().jupyter().kernels.push(other);
    day.run("13:10");
    assert_eq!(day.story(), [("noticed", at(REACHED)), ("warned", at("13:05"))]);
}

#[test]
fn a_warning_about_it_is_taken_back_when_the_cell_ends() {
    let mut day = wedged();
    day.policy.limits.busy_kernel_action = BusyKernelAction::Stop;
    day.run("11:30");
    day.alice().kernel().state = KernelState::Idle;
    day.alice().kernel().last_activity = Some(at("11:31"));
    day.run("11:45");
    let expected = [("warned", at(REACHED)), ("unmarked", at("11:35")), ("withdrawn", at("11:40"))];
    assert_eq!(day.story(), expected);
}

#[test]
fn a_clock_set_back_or_forward_starts_the_wait_anew() {
    for (jump, told) in [(hours(2), "15:05"), (-hours(1), "12:05")] {
        let mut day = wedged();
        day.run("10:00");
        day.now += jump;
        day.look();
        let began = day.now;
        day.run("16:00");
        assert_eq!(day.story().first(), Some(&("noticed", began + hours(3))), "{told}");
    }
}

#[test]
fn observe_says_what_it_would_tell_and_warn_tells_it() {
    let mut day = wedged();
    day.policy.mode = Mode::Observe;
    let held_back = day.until(REACHED).held_back;
    assert!(
        matches!(held_back, Some(HeldBack::Mode(Mode::Observe, action)) if matches!(*action, Action::Notice(_)))
    );
    assert_eq!(day.story(), []);
    day.policy.mode = Mode::Warn;
    day.run("12:00");
    assert_eq!(day.story(), [("noticed", at("11:10"))]);
}

#[test]
fn without_mail_nobody_is_told() {
    let mut day = wedged();
    day.policy.can_warn = false;
    assert_eq!(day.until(REACHED).held_back, Some(HeldBack::NoMail));
}

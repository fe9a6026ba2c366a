//! Only the kernels that hold an idle card are shut down, and running ones are interrupted before.

use super::*;
use crate::domain::Hold;

fn held_by(kernel: Option<&str>) -> Hold {
    let gpu = GpuId("GPU-1".to_owned());
    Hold { gpu, memory_used: None, kernel: kernel.map(str::to_owned), notebook: None }
}

fn named(id: &str) -> KernelName {
    KernelName { id: id.to_owned(), notebook: None }
}

/// Alice's kernel `k1` holds the card; only kernels are to be shut down.
fn day() -> Day {
    let mut day = Day::new();
    day.policy.limits.manner.kernels_only = true;
    day.policy.limits.remind_before = Vec::new();
    day.alice().holds = vec![held_by(Some("k1")), held_by(Some("k1"))];
    let other = Kernel { id: "k2".to_owned(), ..day.alice().kernel().clone() };
    day.alice().jupyter().kernels.push(other);
    day
}

#[test]
fn the_kernels_that_hold_the_card_are_named_in_the_warning_and_meant_by_the_stop() {
    let mut day = day();
    assert_eq!(day.until("09:00").target, Some(Target::Kernels(vec![named("k1")])));
    assert_eq!(day.record().warning.as_ref().unwrap().kernels, Some(vec!["k1".to_owned()]));
    let stop = day.until("10:00");
    assert_eq!((stop.action, stop.target), (Some(Action::Stop), Some(Target::Kernels(vec![named("k1")]))));
}

#[test]
fn where_it_is_not_certain_who_holds_the_card_nobody_is_warned_and_never_the_server_stopped() {
    type Doubt = fn(&mut Session);
    let doubts: [(Doubt, KernelDoubt); 5] = [
        (|alice| alice.holds.clear(), KernelDoubt::NoHolder),
        (|alice| alice.holds.push(held_by(None)), KernelDoubt::NoKernel),
        (|alice| alice.holds.push(held_by(Some("k9"))), KernelDoubt::NotListed("k9".to_owned())),
        (|alice| alice.jupyter().kernels.remove(0).id.clear(), KernelDoubt::NotListed("k1".to_owned())),
        (|alice| alice.holds = vec![held_by(None)], KernelDoubt::NoKernel),
    ];
    for (doubt, expected) in doubts {
        let mut day = day();
        doubt(day.alice());
        let decision = day.until("12:00");
        assert_eq!((decision.held_back, decision.target), (Some(HeldBack::Kernels(expected)), None));
        assert_eq!(day.story(), []);
    }
}

#[test]
fn doubt_that_comes_after_the_warning_holds_the_stop_back() {
    let mut day = day();
    day.run("09:55");
    day.alice().holds.push(held_by(None));
    let decision = day.until("12:00");
    assert_eq!(decision.held_back, Some(HeldBack::Kernels(KernelDoubt::NoKernel)));
    assert_eq!(day.story(), [("warned", at("09:00"))]);
}

#[test]
fn where_kernels_may_not_be_asked_none_is_shut_down() {
    let mut day = day();
    day.policy.kernels = KernelSource::HubOnly;
    assert_eq!(day.until("12:00").held_back, Some(HeldBack::Kernels(KernelDoubt::NotAsked)));
    assert_eq!(day.story(), []);
}

#[test]
fn a_kernel_that_the_warning_did_not_name_is_warned_about_first() {
    let mut day = day();
    day.run("09:30");
    day.alice().holds.push(held_by(Some("k2")));
    day.run("10:35");
    assert_eq!(day.story(), [("warned", at("09:00")), ("warned", at("09:35")), ("stopped", at("10:35"))]);
}

#[test]
fn who_was_told_that_the_server_stays_is_warned_again_before_it_is_stopped_but_not_the_other_way() {
    for (kernels_first, expected) in [
        (true, [("warned", at("09:00")), ("warned", at("09:35")), ("stopped", at("10:35"))].as_slice()),
        (false, [("warned", at("09:00")), ("stopped", at("10:00"))].as_slice()),
    ] {
        let mut day = day();
        day.policy.limits.manner.kernels_only = kernels_first;
        day.run("09:30");
        day.policy.limits.manner.kernels_only = !kernels_first;
        day.run("10:35");
        assert_eq!(day.story(), expected);
    }
}

#[test]
fn a_busy_kernel_is_shut_down_only_where_the_admin_said_so() {
    let mut wedged = day();
    wedged.policy.limits.busy_kernel_limit = Some(hours(3));
    wedged.policy.limits.busy_kernel_action = BusyKernelAction::Stop;
    wedged.alice().cpu = Some(0.0);
    wedged.alice().kernel().state = KernelState::Busy;
    assert_eq!(wedged.until("11:05").target, Some(Target::Kernels(vec![named("k1")])));

    let mut session = day().alice().clone();
    session.kernel().state = KernelState::Busy;
    let manner = Manner { kernels_only: true, ..Manner::default() };
    let unused =
        Verdict::Idle(Idle { since: at("08:00"), kind: IdleKind::Held, limit: LimitKind::CardUnused });
    let doubt = super::super::target::target(&session, manner, &unused, &policy());
    assert_eq!(doubt, Err(KernelDoubt::Busy(named("k1"))));
}

#[test]
fn only_a_stop_that_may_hit_work_gets_an_interrupt() {
    let manner = Manner { interrupt: true, save_wait: mins(1), ..Manner::default() };
    for (limit, expected) in [
        (LimitKind::Nobody, None),
        (LimitKind::Connected, None),
        (LimitKind::CardUnused, None),
        (LimitKind::BusyKernel, Some(mins(1))),
        (LimitKind::MaxAge, Some(mins(1))),
    ] {
        let idle = Verdict::Idle(Idle { since: at("08:00"), kind: IdleKind::Held, limit });
        let session = session("alice");
        assert_eq!(super::super::target::save_wait(&session, manner, &idle), expected, "{limit:?}");
    }
}

#[test]
fn what_an_interrupt_brings_about_is_nobodys_use_and_everything_else_is() {
    let mut before = day().alice().clone();
    before.kernel().state = KernelState::Busy;
    before.works(true);
    let mut after = before.clone();
    after.kernel().state = KernelState::Idle;
    after.kernel().last_activity = Some(at("10:01"));
    after.jupyter().last_activity = Some(at("10:01"));
    after.server.last_activity = Some(at("10:01"));
    assert_eq!(without_interrupt(after.clone(), &before, &[named("k1")]), before);

    after.jupyter().kernels[1].state = KernelState::Busy;
    after.jupyter().connections = 1;
    let seen = without_interrupt(after.clone(), &before, &[named("k1")]);
    let kernels = &seen.jupyter.as_ref().unwrap().kernels;
    assert_eq!(kernels[1].state, KernelState::Busy, "somebody works in the other kernel");
    assert_eq!(seen.jupyter.as_ref().unwrap().connections, 1);

    after.jupyter = Err("refused".into());
    assert!(without_interrupt(after, &before, &[named("k1")]).jupyter.is_err());
}

#[test]
fn after_its_kernels_were_shut_down_a_session_begins_anew() {
    let mut day = day();
    day.run("09:55");
    let id = ServerId::new("alice", "");
    day.ledger.kernels_stopped(&id);
    assert_eq!((day.record().warning.clone(), day.record().stopped), (None, None));
    day.alice().gpus = Ok(Vec::new());
    day.run("12:00");
    assert_eq!(day.story(), [("warned", at("09:00"))], "no mail says that a warning was taken back");
}

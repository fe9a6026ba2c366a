//! The limits, and what is exempt from them.

use super::*;

fn idle_by(verdict: &Verdict) -> Option<(LimitKind, Timestamp)> {
    match verdict {
        Verdict::Idle(idle) => Some((idle.limit, idle.since)),
        Verdict::Busy(_) | Verdict::Unknown(_) | Verdict::Protected(_) => None,
    }
}

#[test]
fn nobody_and_nothing_for_warn_after_is_idle() {
    let mut day = Day::new();
    assert_eq!(idle_by(&day.verdict("08:55")), None);
    assert_eq!(idle_by(&day.verdict("09:00")), Some((LimitKind::Nobody, at("08:00"))));
}

#[test]
fn a_connected_client_postpones_to_connected_warn_after() {
    let mut day = Day::new();
    day.alice().jupyter().connections = 1;
    assert_eq!(day.verdict("11:55"), Verdict::Busy(BusyReason::Present(at("11:55"))));
    assert_eq!(idle_by(&day.verdict("12:00")), Some((LimitKind::Connected, at("08:00"))));
}

#[test]
fn each_sign_of_presence_is_one() {
    let signs: [fn(&mut Session); 4] = [
        |session| session.jupyter().connections = 1,
        |session| session.kernel().connections = 1,
        |session| session.jupyter().last_activity = Some(at("12:30")),
        |session| session.server.last_activity = Some(at("12:30")),
    ];
    for (case, sign) in signs.into_iter().enumerate() {
        let mut day = Day::new();
        sign(day.alice());
        assert_eq!(idle_by(&day.verdict("11:55")), None, "case {case}");
        assert_eq!(idle_by(&day.verdict("12:00")).map(|(limit, _)| limit), Some(LimitKind::Connected));
    }
}

#[test]
fn a_card_unused_for_a_day_is_idle_whatever_else_moves() {
    let mut day = Day::new();
    day.alice().kernel().last_activity = Some(at("2026-12-03T00:00:00Z"));
    assert_eq!(idle_by(&day.verdict("2026-12-02T07:55:00Z")), None);
    let verdict = day.verdict("2026-12-02T08:00:00Z");
    assert_eq!(idle_by(&verdict), Some((LimitKind::CardUnused, at("08:00"))));
}

#[test]
fn a_busy_kernel_on_a_resting_card_is_busy_for_days() {
    let mut day = Day::new();
    day.alice().kernel().state = KernelState::Busy;
    assert_eq!(day.verdict("2026-12-04T08:00:00Z"), Verdict::Busy(BusyReason::Kernel));
    day.alice().kernel().state = KernelState::Idle;
    day.alice().kernel().last_activity = Some(at("08:00"));
    let decision = day.until("2026-12-04T08:05:00Z");
    assert_eq!(decision.judgement.clocks.unwrap().used, at("2026-12-04T08:00:00Z"), "it starts at the end");
}

#[test]
fn work_on_the_cpu_is_use() {
    let mut day = Day::new();
    day.alice().cpu = Some(0.1);
    assert_eq!(day.verdict("14:00"), Verdict::Busy(BusyReason::Cpu(0.1)));
    day.alice().cpu = Some(0.09);
    assert_eq!(idle_by(&day.verdict("15:00")), Some((LimitKind::Nobody, at("14:00"))));
}

#[test]
fn a_terminal_is_use() {
    let mut day = Day::new();
    day.alice().jupyter().terminals =
        vec![Terminal { name: "1".to_owned(), last_activity: Some(at("08:40")) }];
    assert_eq!(
        day.verdict("09:35"),
        Verdict::Busy(BusyReason::Used(at("08:40"), Some(UseSign::Terminal("1".to_owned()))))
    );
    assert_eq!(idle_by(&day.verdict("09:40")), Some((LimitKind::Nobody, at("08:40"))));
}

#[test]
fn an_old_server_is_idle_by_its_age_only_while_its_card_rests() {
    let mut day = Day::new();
    day.policy.limits.max_age = Some(hours(6));
    day.alice().kernel().last_activity = Some(at("23:00"));
    day.alice().works(true);
    assert_eq!(idle_by(&day.verdict("15:00")), None);
    day.alice().works(false);
    assert_eq!(idle_by(&day.verdict("15:55")), None);
    assert_eq!(idle_by(&day.verdict("16:00")), Some((LimitKind::MaxAge, at("08:00"))));
}

#[test]
fn a_busy_kernel_is_exempt_from_max_age() {
    let mut day = Day::new();
    day.policy.limits.max_age = Some(hours(6));
    day.alice().kernel().state = KernelState::Busy;
    assert_eq!(day.verdict("20:00"), Verdict::Busy(BusyReason::Kernel));
}

#[test]
fn limits_of_never_are_never_reached() {
    let mut day = Day::new();
    day.policy.limits.connected_warn_after = None;
    day.policy.limits.card_unused_warn_after = None;
    day.alice().jupyter().connections = 1;
    assert_eq!(idle_by(&day.verdict("2026-12-04T08:00:00Z")), None);
}

#[test]
fn kernels_that_cannot_be_asked_are_unknown() {
    let mut day = Day::new();
    day.alice().jupyter = Err("connection refused".into());
    let reason = UnknownReason::Kernels("connection refused".into());
    assert_eq!(day.verdict("14:00"), Verdict::Unknown(reason));
}

#[test]
fn a_kernel_that_tells_nothing_usable_is_unknown() {
    let states: [fn(&mut Session); 3] = [
        |session| session.kernel().state = KernelState::Other("dead".to_owned()),
        |session| session.kernel().last_activity = None,
        |session| session.jupyter().terminals = vec![Terminal { name: "1".to_owned(), last_activity: None }],
    ];
    for kernels in [KernelSource::Probed, KernelSource::HubOnly] {
        for (case, spoil) in states.into_iter().enumerate() {
            let mut day = Day::new();
            day.policy.kernels = kernels;
            spoil(day.alice());
            assert!(is_unknown(&day.verdict("14:00")), "case {case}");
        }
    }
}

#[test]
fn a_kernel_that_was_started_and_never_talked_to_rests() {
    let mut day = Day::new();
    day.alice().kernel().state = KernelState::Starting;
    assert_eq!(idle_by(&day.verdict("09:00")), Some((LimitKind::Nobody, at("08:00"))));
}

#[test]
fn where_kernels_may_not_be_asked_the_hubs_stamp_counts_as_use() {
    let mut day = Day::new();
    day.policy.kernels = KernelSource::HubOnly;
    day.alice().jupyter = Err("not asked".into());
    day.alice().server.last_activity = Some(at("08:40"));
    assert_eq!(day.verdict("09:35"), Verdict::Busy(BusyReason::Used(at("08:40"), Some(UseSign::Hub))));
    assert_eq!(idle_by(&day.verdict("09:40")), Some((LimitKind::Nobody, at("08:40"))));
}

#[test]
fn where_kernels_are_asked_the_hubs_stamp_is_presence_only() {
    let mut day = Day::new();
    day.alice().server.last_activity = Some(at("23:00"));
    assert_eq!(idle_by(&day.verdict("12:00")), Some((LimitKind::Connected, at("08:00"))));
}

#[test]
fn an_incomplete_hub_record_is_unknown() {
    type Hole = (fn(&mut Server), UnknownReason);
    let holes: [Hole; 4] = [
        (|server| server.pending = Some("stop".to_owned()), UnknownReason::Pending("stop".to_owned())),
        (|server| server.ready = false, UnknownReason::HubRecord("ready")),
        (|server| server.last_activity = None, UnknownReason::HubRecord("last_activity")),
        (|server| server.started = None, UnknownReason::HubRecord("started")),
    ];
    for (spoil, reason) in holes {
        let mut day = Day::new();
        spoil(&mut day.alice().server);
        assert_eq!(day.verdict("14:00"), Verdict::Unknown(reason));
        assert_eq!(day.story(), []);
    }
}

#[test]
fn a_session_younger_than_warm_up_is_never_idle() {
    let mut day = Day::new();
    day.policy.limits.warn_after = mins(5);
    assert_eq!(day.verdict("08:10"), Verdict::Unknown(UnknownReason::WarmUp(at("08:15"))));
    assert!(is_idle(&day.verdict("08:15")));
}

#[test]
fn kinds_of_idle_are_told_apart() {
    let kind = |day: &mut Day, end: &str| match day.verdict(end) {
        Verdict::Idle(idle) => idle.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(&mut Day::new(), "09:00"), IdleKind::NeverUsed);
    let mut day = Day::new();
    day.alice().works(true);
    day.run("08:05");
    day.alice().works(false);
    assert_eq!(kind(&mut day, "09:05"), IdleKind::Held);
    day.alice().card().processes = Some(0);
    assert_eq!(kind(&mut day, "09:10"), IdleKind::Reserved);
}

#[test]
fn a_session_without_cards_is_none_of_our_business() {
    let mut day = Day::new();
    day.alice().gpus = Ok(Vec::new());
    assert_eq!(day.verdict("2026-12-04T08:00:00Z"), Verdict::Protected(ProtectedReason::NoCard));
}

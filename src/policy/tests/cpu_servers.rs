//! Servers without a card: none of our business, unless somebody asks.

use super::*;
use crate::domain::Afterwards;

fn asked_for(cpu: CpuServers) -> Policy {
    Policy { cpu_servers: Some(cpu), can_warn: false, ..policy() }
}

fn cpu() -> CpuServers {
    CpuServers {
        idle_after: hours(1),
        max_age: None,
        admins: true,
        default_servers: true,
        named_servers: true,
        remove_named: false,
    }
}

fn without_card(policy: Policy) -> Day {
    let mut day = Day::of(&["alice"], policy);
    day.alice().gpus = Ok(Vec::new());
    day.alice().jupyter = Err("not asked".into());
    day
}

#[test]
fn a_server_without_a_card_is_left_alone_where_nobody_asks() {
    let mut day = without_card(policy());
    assert_eq!(day.verdict("20:00"), Verdict::Protected(ProtectedReason::NoCard));
}

#[test]
fn it_is_stopped_after_the_idle_limit_where_the_admin_asks_for_that_and_has_no_mail() {
    let mut day = without_card(asked_for(cpu()));
    assert_eq!(day.until("08:55").action, None);
    assert_eq!(day.until("09:00").action, Some(Action::Stop));
}

#[test]
fn where_there_is_mail_it_is_warned_first() {
    let mut day = without_card(Policy { can_warn: true, ..asked_for(cpu()) });
    assert!(matches!(day.until("09:00").action, Some(Action::Warn { .. })));
    assert_eq!(day.until("09:55").action, None);
    assert_eq!(day.until("10:00").action, Some(Action::Stop));
}

#[test]
fn a_card_is_never_taken_back_where_nobody_can_be_warned() {
    let mut day = Day::of(&["alice"], asked_for(cpu()));
    assert_eq!(day.until("20:00").held_back, Some(HeldBack::NoMail));
}

#[test]
fn cpu_work_and_a_pending_hub_protect_it() {
    let mut day = without_card(asked_for(cpu()));
    day.alice().cpu = Some(0.7);
    assert_eq!(day.verdict("10:00"), Verdict::Busy(BusyReason::Cpu(0.7)));
    day.alice().server.pending = Some("stop".to_owned());
    assert_eq!(day.until("12:00").action, None);
}

#[test]
fn a_server_that_never_reported_counts_from_its_start() {
    let mut day = without_card(asked_for(cpu()));
    day.alice().server.last_activity = None;
    assert_eq!(day.until("08:55").action, None);
    assert_eq!(day.until("09:00").action, Some(Action::Stop));
}

/// jupyterhub-idle-culler 2.0 stops a default server by age although default servers are excluded.
#[test]
fn the_switches_hold_for_the_age_limit_too() {
    let excluded = CpuServers { default_servers: false, max_age: Some(hours(2)), ..cpu() };
    let mut day = without_card(asked_for(excluded));
    assert_eq!(day.until("20:00").action, None);
    let aged = CpuServers { max_age: Some(hours(2)), ..cpu() };
    let mut day = without_card(asked_for(aged));
    day.alice().server.last_activity = Some(at("23:00"));
    assert_eq!(day.until("09:55").action, None);
    assert_eq!(day.until("10:00").action, Some(Action::Stop));
}

#[test]
fn admins_are_spared_where_that_was_asked_for() {
    let mut day = without_card(asked_for(CpuServers { admins: false, ..cpu() }));
    day.alice().server.admin = true;
    assert_eq!(day.until("20:00").action, None);
}

#[test]
fn only_named_servers_without_a_card_are_removed_and_only_on_demand() {
    let policy = asked_for(CpuServers { remove_named: true, ..cpu() });
    let mut day = without_card(policy.clone());
    let mut decision = day.until("09:00");
    assert_eq!(policy.afterwards(&decision), Afterwards::Keep);
    decision.server = ServerId::new("alice", "x");
    assert_eq!(policy.afterwards(&decision), Afterwards::Remove);
    decision.may_hold_cards = true;
    assert_eq!(policy.afterwards(&decision), Afterwards::Keep);
}

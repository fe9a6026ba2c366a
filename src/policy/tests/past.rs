//! A source that keeps a history: the clocks stand as if the service had watched.

use super::*;

/// What a source says that watched without a hole: rest since then, after work.
fn rest_after_work(since: &str) -> Past {
    let since = at(since);
    Past { since, after_gap: false, last_active: Some(since), unwatched: Duration::ZERO, lag: Duration::ZERO }
}

/// The service begins at noon, when alice's server has run for four hours.
fn begun_at_noon(past: Past) -> Day {
    let mut day = Day::new();
    day.ledger = Ledger::default();
    day.now = at("12:00");
    day.alice().card().past = Some(past);
    day.look();
    day
}

#[test]
fn a_card_that_nobody_watched_is_judged_by_what_its_source_remembers() {
    let mut day = begun_at_noon(rest_after_work("10:30"));
    let decision = day.until("12:00");
    assert!(is_idle(&decision.judgement.verdict), "{decision:?}");
    let clocks = decision.judgement.clocks.unwrap();
    assert_eq!((clocks.card, clocks.card_active), (Some(at("10:30")), Some(at("10:30"))));
    assert_eq!(day.story(), [("warned", at("12:00"))]);
}

#[test]
fn what_a_card_did_before_the_session_began_is_not_the_sessions() {
    let mut day = begun_at_noon(rest_after_work("03:00"));
    let clocks = day.until("12:00").judgement.clocks.unwrap();
    assert_eq!((clocks.card, clocks.card_active), (Some(at("08:00")), None));
}

#[test]
fn work_that_the_service_saw_itself_stands_whatever_the_source_remembers() {
    let mut day = Day::new();
    day.alice().card().past = Some(rest_after_work("07:00"));
    day.run("08:30");
    day.alice().works(true);
    day.run("08:35");
    day.alice().works(false);
    assert_eq!(day.until("09:20").judgement.clocks.unwrap().card, Some(at("08:35")));
}

#[test]
fn a_time_when_the_source_could_not_be_asked_is_made_good_by_its_memory() {
    let mut day = Day::new();
    day.alice().card().past = Some(rest_after_work("07:00"));
    day.run("08:30");
    let gpus = std::mem::replace(&mut day.alice().gpus, Err("no answer".into()));
    assert!(!is_idle(&day.verdict("09:30")));
    day.alice().gpus = gpus;
    assert!(is_idle(&day.verdict("09:35")), "it has rested since eight, seen or not");
}

#[test]
fn a_time_that_the_source_missed_too_stays_a_gap() {
    let mut day = Day::new();
    let after_the_gap = Past {
        since: at("11:30"),
        after_gap: true,
        last_active: None,
        unwatched: Duration::ZERO,
        lag: Duration::ZERO,
    };
    day.now = at("12:00");
    day.alice().card().past = Some(after_the_gap);
    assert_eq!(day.verdict("12:05"), Verdict::Unknown(UnknownReason::Gap(at("11:30"))));
    assert!(is_idle(&day.verdict("12:30")));
}

#[test]
fn too_many_holes_in_what_the_source_remembers_are_no_proof_of_rest() {
    let holes = Past { unwatched: Duration::from_secs(600), ..rest_after_work("10:00") };
    let mut day = begun_at_noon(holes);
    assert!(matches!(day.verdict("12:00"), Verdict::Unknown(UnknownReason::Coverage(_))));
}

#[test]
fn work_in_the_future_is_a_wrong_clock_and_counts_as_now() {
    let mut day = begun_at_noon(rest_after_work("15:00"));
    assert_eq!(day.until("12:05").judgement.clocks.unwrap().card, Some(at("12:05")));
}

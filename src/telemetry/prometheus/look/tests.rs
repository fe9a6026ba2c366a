//! Whose a card is, and when it is certain that a session has none.

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use super::super::client;
use super::*;

const START: i64 = 1_800_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(START + seconds).unwrap()
}

fn pod(name: &str) -> Workload {
    Workload::Pod { namespace: "hub".to_owned(), name: name.to_owned() }
}

fn tenant(name: &str, started: i64) -> Tenant {
    Tenant { workload: pod(name), started: Some(at(started)) }
}

/// A readable card on `host` with its holders and when they were last named.
fn card(host: &str, newest: i64, holders: &[(&str, i64)]) -> Memory {
    let millis = |seconds: i64| (START + seconds) * 1000;
    let mut memory = Memory::new(millis(0), false);
    (memory.newest, memory.covered_until, memory.fault) = (millis(newest), millis(newest), None);
    memory.host = Some(host.to_owned());
    memory.holders = holders.iter().map(|(name, said)| (pod(name), millis(*said))).collect();
    memory
}

fn look(cards: Vec<Memory>, now: i64) -> Look {
    let device = |number: usize| Device { uuid: format!("GPU-{number}"), instance: None };
    let devices = cards.into_iter().enumerate().map(|(number, memory)| (device(number), memory)).collect();
    let state = State { devices, ..State::default() };
    Look::new(&state, None, at(now), &client::tests::settings("http://p"))
}

#[test]
fn a_session_has_the_cards_that_name_its_pod() {
    let look = look(vec![card("n1", 1000, &[("alice", 1000)]), card("n1", 1000, &[("bob", 1000)])], 1010);
    let mine = look.of(&tenant("alice", 100), at(1010)).unwrap();
    assert_eq!(mine.iter().map(|sample| sample.id.0.as_str()).collect::<Vec<_>>(), ["GPU-0"]);
    assert_eq!(mine[0].past.unwrap().since, at(0));
}

/// dcgm-exporter #342, #428: labels go missing for a while.
#[test]
fn a_label_that_goes_missing_leaves_the_card_with_whom_it_named_last() {
    let look = look(vec![card("n1", 1000, &[("alice", 500)])], 1010);
    assert_eq!(look.of(&tenant("alice", 100), at(1010)).unwrap().len(), 1);
}

#[test]
fn a_card_that_names_somebody_else_now_is_no_longer_the_formers() {
    let look = look(vec![card("n1", 1000, &[("alice", 500), ("bob", 1000)])], 1010);
    assert_eq!(look.of(&tenant("alice", 100), at(1010)), Ok(vec![]));
}

#[test]
fn pods_that_share_a_card_all_have_it() {
    let look = look(vec![card("n1", 1000, &[("alice", 990), ("bob", 1000)])], 1010);
    for who in ["alice", "bob"] {
        assert_eq!(look.of(&tenant(who, 100), at(1010)).unwrap().len(), 1, "{who}");
    }
}

#[test]
fn a_label_from_before_the_session_began_is_that_of_another_run() {
    let look = look(vec![card("n1", 1000, &[("alice", 90)]), card("n1", 1000, &[("bob", 1000)])], 1010);
    assert_eq!(look.of(&tenant("alice", 100), at(1010)), Ok(vec![]));
}

#[test]
fn a_young_session_whose_label_may_still_come_is_unknown() {
    let look = look(vec![card("n1", 1000, &[("bob", 1000)])], 1010);
    assert!(look.of(&tenant("alice", 500), at(1010)).unwrap_err().contains("yet"));
    assert_eq!(look.of(&tenant("alice", 400), at(1010)), Ok(vec![]), "ten minutes are over");
}

#[test]
fn where_no_card_names_anybody_it_means_nothing_not_to_be_named() {
    for cards in [vec![card("n1", 1000, &[])], vec![card("n1", 1000, &[("bob", 100)])], vec![]] {
        assert!(look(cards, 1010).of(&tenant("alice", 0), at(1010)).is_err());
    }
}

#[test]
fn a_session_that_may_be_on_a_silent_machine_is_unknown() {
    let cards = || vec![card("n1", 5000, &[("bob", 5000)]), card("n2", 4000, &[])];
    let look = look(cards(), 5010);
    let young = look.of(&tenant("alice", 3900), at(5010));
    assert!(young.unwrap_err().contains("n2"), "it began just before the machine fell silent");
    assert_eq!(
        look.of(&tenant("alice", 100), at(5010)),
        Ok(vec![]),
        "that machine would have named it long ago"
    );
    assert_eq!(look.troubles, ["the exporter of n2 gives no samples any more"]);
}

#[test]
fn a_card_without_samples_is_unreadable_and_has_no_past() {
    let look = look(vec![card("n1", 1000, &[("alice", 1000)])], 1100);
    let sample = look.of(&tenant("alice", 100), at(1100)).unwrap().remove(0);
    assert_eq!((sample.sm, sample.past), (None, None));
    assert!(sample.unreadable.unwrap().contains("no sample of it for 100 s"));
    assert_eq!(sample.largest_gap, Duration::from_secs(100));
}

#[test]
fn what_is_not_known_yet_of_the_newest_seconds_counts_as_unwatched() {
    let look = look(vec![card("n1", 1000, &[("alice", 1000)])], 1020);
    let sample = look.of(&tenant("alice", 100), at(1020)).unwrap().remove(0);
    assert_eq!(sample.past.unwrap().unwatched, Duration::from_secs(20));
}

#[test]
fn a_label_that_stays_on_after_its_pod_is_gone_is_noticed_and_one_that_is_only_late_is_not() {
    let alice = tenant("alice", 100).workload;
    // The settings of the tests let no sample be missing for longer than this.
    let patience = rules(&client::tests::settings("http://p")).patience() / 1000;
    let gone = 1000;
    let still = |said: i64, now: i64| {
        look(vec![card("n1", now, &[("alice", said)])], now).still_naming(&alice, at(gone), at(now))
    };
    assert_eq!(still(gone, gone + patience), None, "it is too early to say");
    assert_eq!(still(gone, gone + 2 * patience + 1), Some(Vec::new()));
    let later = gone + patience + 1;
    assert_eq!(still(later, later), Some(vec![GpuId("GPU-0".to_owned())]));
}

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn sample(sm: Option<f64>) -> GpuSample {
    GpuSample {
        model: "A100".to_owned(),
        sm: sm.and_then(Ratio::reading),
        dram: sm.and_then(Ratio::reading),
        ..GpuSample::unread("GPU-1")
    }
}

fn ring(readings: impl IntoIterator<Item = (i64, Option<f64>)>) -> Ring {
    let mut ring = Ring::new(at(0));
    for (seconds, sm) in readings {
        ring.add(&sample(sm), at(seconds));
    }
    ring
}

#[test]
fn one_busy_second_survives_a_day_of_thinning() {
    let ring = ring((0..5760).map(|n| (n * 15, Some(if n == 17 { 0.83 } else { 0.0 }))));
    let past = ring.since(at(0));
    assert!(past.len() <= SLOTS, "{}", past.len());
    let peaks: Vec<_> = past.iter().filter(|stretch| stretch.sm > Some(0.0)).collect();
    assert_eq!(peaks.len(), 1);
    assert_eq!(peaks[0].sm, Some(0.83));
    assert!(peaks[0].from <= at(17 * 15) && at(17 * 15) < peaks[0].to);
    assert!(past.iter().all(|stretch| !stretch.holes));
}

#[test]
fn what_could_not_be_read_is_no_zero() {
    let past = ring([(0, Some(0.0)), (15, None), (30, Some(0.0))]).since(at(0));
    let seen: Vec<_> = past.iter().map(|stretch| (stretch.sm, stretch.holes)).collect();
    assert_eq!(seen, [(Some(0.0), false), (None, true), (Some(0.0), false)]);
}

#[test]
fn time_without_any_look_is_a_hole_also_after_thinning() {
    let before = (0..20).map(|n| (n * 15, Some(0.5)));
    let after = (400..420).map(|n| (n * 15, Some(0.0)));
    let past = ring(before.chain(after)).since(at(0));
    let middle = past.iter().filter(|s| s.from > at(20 * 15) && s.to < at(400 * 15));
    assert!(middle.clone().count() > 50);
    assert!(middle.clone().all(|stretch| stretch.sm.is_none() && stretch.holes));
}

#[test]
fn what_is_older_than_a_day_is_gone() {
    let day = 24 * 3600;
    let past = ring([(0, Some(1.0)), (day, Some(0.0)), (day + 60, Some(0.0))]).since(at(0));
    assert!(past.iter().all(|stretch| stretch.sm != Some(1.0)));
    let past = ring([(0, Some(1.0)), (40 * day, Some(0.0))]).since(at(0));
    assert_eq!(past.len(), 1);
}

#[test]
fn the_least_activity_is_not_nothing() {
    let past = ring([(0, Some(0.0001))]).since(at(0));
    assert_eq!(past[0].sm, Some(0.001));
}

fn history() -> History {
    let readings = (0..400).map(|n| (n * 15, if n % 7 == 0 { None } else { Some(0.25) }));
    let past = Past { started: Some(at(-60)), cards: [(GpuId("GPU-1".to_owned()), ring(readings))].into() };
    History([(ServerId::new("alice", "x"), past)].into())
}

#[test]
fn a_saved_past_is_the_same_again() {
    let (id, card) = (ServerId::new("alice", "x"), GpuId("GPU-1".to_owned()));
    let history = history();
    let again = History::from_bytes(&history.to_bytes(), at(400 * 15)).unwrap();
    assert_eq!(again.of(&id, &card), history.of(&id, &card));
    assert_eq!(again.0[&id].started, Some(at(-60)));
    let past = again.of(&id, &card).unwrap().since(at(0));
    assert!(past.iter().any(|stretch| stretch.sm == Some(0.25) && stretch.holes));
}

#[test]
fn of_a_saved_past_only_what_can_be_true_is_shown() {
    let sound = String::from_utf8(history().to_bytes()).unwrap();
    let now = at(400 * 15);
    for (from, to) in [("\"charts\":1", "\"charts\":2"), ("[", "{"), ("\"width\"", "\"wide\"")] {
        assert!(History::from_bytes(sound.replacen(from, to, 1).as_bytes(), now).is_none(), "{to}");
    }
    let card = GpuId("GPU-1".to_owned());
    let width = history().of(&ServerId::new("alice", "x"), &card).unwrap().width;
    for (from, to) in [
        (format!("\"width\":{width}"), "\"width\":0".to_owned()),
        (format!("\"width\":{width}"), format!("\"width\":{}", i64::MAX)),
        ("\"slots\":[".to_owned(), "\"slots\":[4294967295,".to_owned()),
    ] {
        let odd = History::from_bytes(sound.replace(&from, &to).as_bytes(), now).unwrap();
        assert!(odd.of(&ServerId::new("alice", "x"), &card).is_none(), "{to}");
    }
    let ahead = History::from_bytes(sound.as_bytes(), at(-3600)).unwrap();
    assert!(ahead.of(&ServerId::new("alice", "x"), &card).is_none(), "the clock was set back meanwhile");
}

//! What moves a clock, and what proves nothing.

use super::*;

#[test]
fn one_busy_second_moves_the_clock_since_peaks_count_and_not_means() {
    let mut day = Day::new();
    day.run("08:25");
    day.alice().card().sm = Ratio::reading(0.01);
    day.run("08:30");
    day.alice().works(false);
    assert_eq!(day.until("08:55").judgement.clocks.unwrap().card, Some(at("08:30")));
    assert!(!is_idle(&day.verdict("09:25")));
    assert!(is_idle(&day.verdict("09:30")));
}

#[test]
fn just_below_the_threshold_a_card_rests() {
    let mut day = Day::new();
    day.alice().card().sm = Ratio::reading(0.0099);
    day.alice().card().dram = Ratio::reading(0.0099);
    assert!(is_idle(&day.verdict("09:00")));
}

#[test]
fn memory_bandwidth_alone_is_activity() {
    let mut day = Day::new();
    day.alice().card().dram = Ratio::reading(0.01);
    assert_eq!(day.verdict("12:00"), Verdict::Busy(BusyReason::Card(at("12:00"))));
}

#[test]
fn any_engine_that_is_offered_counts_as_activity() {
    for engine in [Engine::Tensor, Engine::Copy, Engine::Encode, Engine::Decode] {
        let mut day = Day::new();
        day.alice().card().engines.insert(engine, Ratio::reading(0.001));
        assert_eq!(day.verdict("12:00"), Verdict::Busy(BusyReason::Card(at("12:00"))), "{engine}");
    }
}

#[test]
fn one_active_card_of_eight_keeps_all_eight() {
    let mut day = Day::new();
    let mut cards: Vec<_> = (0..8).map(|n| card(&format!("GPU-{n}"))).collect();
    cards[5].sm = Ratio::reading(0.02);
    day.alice().gpus = Ok(cards);
    day.run("20:00");
    assert_eq!(day.story(), []);
}

#[test]
fn a_session_of_two_cards_is_idle_only_an_hour_after_the_later_one() {
    let mut day = Day::new();
    day.alice().gpus = Ok(vec![card("GPU-1"), card("GPU-2")]);
    day.run("08:15");
    day.alice().gpus.as_mut().unwrap()[1].sm = Ratio::reading(0.9);
    day.run("08:20");
    day.alice().gpus.as_mut().unwrap()[1].sm = Ratio::reading(0.0);
    day.run("09:20");
    assert_eq!(day.story(), [("warned", at("09:20"))]);
}

#[test]
fn a_card_that_was_given_back_still_counts_for_when_it_last_worked() {
    let mut day = Day::new();
    day.alice().gpus = Ok(vec![card("GPU-1"), card("GPU-2")]);
    day.run("08:05");
    day.alice().gpus.as_mut().unwrap()[1].sm = Ratio::reading(0.9);
    day.run("10:00");
    day.alice().gpus = Ok(vec![card("GPU-1")]);
    assert_eq!(day.verdict("10:05"), Verdict::Busy(BusyReason::Card(at("10:00"))));
    day.run("11:00");
    assert_eq!(day.story(), [("warned", at("11:00"))]);
}

#[test]
fn a_card_that_could_not_be_read_and_was_given_back_may_have_worked_until_then() {
    let mut day = Day::new();
    day.alice().gpus = Ok(vec![card("GPU-1"), card("GPU-2")]);
    day.alice().gpus.as_mut().unwrap()[1].sm = None;
    day.run("10:00");
    day.alice().gpus = Ok(vec![card("GPU-1")]);
    assert_eq!(day.verdict("10:05"), Verdict::Unknown(UnknownReason::Gap(at("10:00"))));
    day.run("11:00");
    assert_eq!(day.story(), [("warned", at("11:00"))]);
}

#[test]
fn a_card_seen_for_the_first_time_starts_its_clock_then() {
    let mut day = Day::new();
    day.run("08:50");
    day.alice().gpus.as_mut().unwrap().push(card("GPU-2"));
    assert_eq!(day.verdict("09:00"), Verdict::Unknown(UnknownReason::WatchedSince(at("08:55"))));
    day.run("09:55");
    assert_eq!(day.story(), [("warned", at("09:55"))]);
}

#[test]
fn missing_readings_are_never_idle() {
    let unreadable: [fn(&mut GpuSample); 5] = [
        |card| card.sm = None,
        |card| card.dram = None,
        |card| card.sm = Ratio::reading(f64::NAN),
        |card| card.dram = Ratio::reading(2_147_483_632.0),
        |card| _ = card.engines.insert(Engine::Copy, None),
    ];
    for (case, spoil) in unreadable.into_iter().enumerate() {
        let mut day = Day::new();
        spoil(day.alice().card());
        assert!(is_unknown(&day.verdict("14:00")), "case {case}");
        assert_eq!(day.story(), [], "case {case}");
    }
}

#[test]
fn one_unreadable_card_of_two_is_unknown_even_after_a_long_rest() {
    let mut day = Day::new();
    day.alice().gpus = Ok(vec![card("GPU-1"), card("GPU-2")]);
    day.run("08:55");
    day.alice().gpus.as_mut().unwrap()[1].sm = None;
    assert!(is_unknown(&day.verdict("09:05")));
    assert_eq!(day.story(), []);
}

#[test]
fn a_card_that_cannot_be_read_just_now_is_unknown_before_the_gap_counts() {
    let mut day = Day::new();
    (day.policy.max_gap, day.policy.min_coverage) = (mins(10), 0.5);
    day.run("08:55");
    day.alice().card().sm = None;
    day.alice().card().unreadable = Some("fell off the bus".to_owned());
    let reason = UnknownReason::Card(GpuId("GPU-1".to_owned()), "fell off the bus".to_owned());
    assert_eq!(day.verdict("09:00"), Verdict::Unknown(reason));
}

#[test]
fn activity_is_believed_although_another_reading_is_missing() {
    let mut day = Day::new();
    day.alice().card().sm = None;
    day.alice().card().dram = Ratio::reading(0.4);
    assert_eq!(day.verdict("12:00"), Verdict::Busy(BusyReason::Card(at("12:00"))));
}

#[test]
fn a_gap_longer_than_max_gap_moves_the_clock_to_its_end() {
    let mut day = Day::new();
    day.run("08:20");
    day.alice().card().covered = Duration::from_secs(119);
    day.run("08:25");
    let clock = at("08:25") - SignedDuration::from_secs(119);
    assert_eq!(day.until("08:25").judgement.clocks.unwrap().card, Some(clock));
}

#[test]
fn a_gap_no_longer_than_max_gap_moves_nothing_and_counts_against_coverage() {
    let mut day = Day::new();
    day.run("08:20");
    day.alice().card().covered = Duration::from_secs(120);
    day.run("08:25");
    day.alice().card().covered = Duration::from_secs(300);
    let decision = day.until("08:30");
    assert_eq!(decision.judgement.clocks.unwrap().card, Some(at("08:00")));
    let coverage = day.record().evidence.coverage(day.now);
    assert!((coverage - 0.9).abs() < 1e-9, "{coverage}");
    assert_eq!(day.verdict("08:55"), Verdict::Busy(BusyReason::Used(at("08:00"), None)));
    assert!(is_idle(&day.verdict("09:00")), "57 of 60 minutes are enough");
}

#[test]
fn too_little_coverage_is_unknown_however_quiet_it_looks() {
    let mut day = Day::new();
    day.alice().card().covered = Duration::from_secs(280);
    let Verdict::Unknown(UnknownReason::Coverage(share)) = day.verdict("13:00") else {
        panic!("{:?}", day.verdict("13:00"));
    };
    assert!((share - 280.0 / 300.0).abs() < 1e-9, "{share}");
    assert_eq!(day.story(), []);
}

#[test]
fn a_long_gap_inside_what_is_called_covered_moves_the_clock_too() {
    let mut day = Day::new();
    day.alice().card().largest_gap = Duration::from_secs(181);
    assert_eq!(day.verdict("13:00"), Verdict::Unknown(UnknownReason::Gap(at("13:00"))));
}

#[test]
fn nothing_watched_is_no_rest_although_the_reading_says_zero() {
    let mut day = Day::new();
    day.alice().card().covered = Duration::ZERO;
    assert!(is_unknown(&day.verdict("13:00")));
}

#[test]
fn an_hour_without_the_hub_is_a_gap() {
    let mut day = Day::new();
    day.run("08:30");
    day.hub = false;
    day.run("09:30");
    day.hub = true;
    assert!(is_unknown(&day.verdict("10:25")));
    day.run("10:30");
    assert_eq!(day.story(), [("warned", at("10:30"))]);
}

#[test]
fn cards_that_are_not_known_are_unknown_and_take_the_clock_along() {
    let mut day = Day::new();
    day.run("09:30");
    day.alice().gpus = Err("the node does not answer".into());
    let reason = UnknownReason::Cards("the node does not answer".into());
    assert_eq!(day.verdict("10:30"), Verdict::Unknown(reason));
    assert_eq!(day.story(), [("warned", at("09:00")), ("unmarked", at("09:35")), ("withdrawn", at("09:40"))]);
}

#[test]
fn activity_under_a_record_without_a_start_still_counts() {
    let mut day = Day::new();
    day.policy.max_gap = mins(10);
    day.run("08:25");
    day.alice().server.started = None;
    day.alice().works(true);
    assert_eq!(day.verdict("08:30"), Verdict::Unknown(UnknownReason::HubRecord("started")));
    day.alice().server.started = Some(at("08:00"));
    day.alice().works(false);
    assert_eq!(day.until("08:35").judgement.clocks.unwrap().card, Some(at("08:30")));
}

#[test]
fn a_clock_set_forward_is_a_gap_and_stops_nobody() {
    let mut day = Day::new();
    day.run("09:30");
    day.now += hours(2);
    day.look();
    assert_eq!(day.story(), [("warned", at("09:00")), ("unmarked", at("11:30"))]);
}

#[test]
fn a_clock_set_back_begins_the_watch_anew() {
    let mut day = Day::new();
    day.run("09:30");
    day.now -= hours(2);
    day.alice().card().sm = None;
    day.run("08:55");
    day.alice().card().sm = Ratio::reading(0.0);
    day.run("09:45");
    let taken_back = [("warned", at("09:00")), ("unmarked", at("07:35")), ("withdrawn", at("07:40"))];
    assert_eq!(day.story(), taken_back, "nobody knows what the card did in between");
    day.run("09:55");
    assert_eq!(day.story().last(), Some(&("warned", at("09:55"))));
}

#[test]
fn a_clock_set_back_a_little_changes_nothing() {
    let mut day = Day::new();
    day.run("09:30");
    day.now -= mins(2);
    day.look();
    day.now += mins(2);
    day.run("09:55");
    assert_eq!(day.story(), [("warned", at("09:00")), ("reminded", at("09:45"))]);
}

#[test]
fn a_clock_that_ran_decades_ahead_holds_no_card_for_decades() {
    let mut day = Day::new();
    day.now = at("2099-01-01T00:00:00Z");
    day.look();
    day.now = at("08:00");
    day.look();
    day.run("09:00");
    assert_eq!(day.story(), [("warned", at("09:00"))]);
}

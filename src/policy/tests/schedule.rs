//! Deadlines inside the hours in which servers may be stopped.

use jiff::civil::{Weekday, date, time};
use jiff::tz::TimeZone;

use super::super::schedule::{deadline, next_opening};
use super::*;

/// Monday to Friday, eight to six, in Berlin; Christmas is free.
fn office() -> StopHours {
    use Weekday::{Friday, Monday, Thursday, Tuesday, Wednesday};
    StopHours {
        days: vec![Monday, Tuesday, Wednesday, Thursday, Friday],
        from: time(8, 0, 0, 0),
        to: time(18, 0, 0, 0),
        zone: TimeZone::get("Europe/Berlin").unwrap(),
        holidays: [date(2026, 12, 25)].into(),
    }
}

fn nights() -> StopHours {
    use Weekday::{Friday, Monday, Saturday, Sunday, Thursday, Tuesday, Wednesday};
    StopHours {
        days: vec![Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday],
        from: time(1, 0, 0, 0),
        to: time(4, 0, 0, 0),
        ..office()
    }
}

fn promised(accepted: &str, grace: SignedDuration, hours: &StopHours) -> Timestamp {
    deadline(at(accepted), grace, Some(hours))
}

#[test]
fn without_hours_the_deadline_is_the_grace_after_the_acceptance() {
    assert_eq!(deadline(at("23:30"), hours(1), None), at("2026-12-02T00:30:00Z"));
    assert_eq!(deadline(Timestamp::MAX, hours(1), None), Timestamp::MAX);
}

#[test]
fn within_the_hours_the_grace_runs_as_usual() {
    assert_eq!(promised("2026-12-01T08:00:00+01:00", hours(1), &office()), at("2026-12-01T09:00:00+01:00"));
}

#[test]
fn who_is_warned_on_friday_evening_still_has_a_server_on_monday_morning() {
    let monday = at("2026-12-07T09:00:00+01:00");
    assert_eq!(promised("2026-12-04T19:30:00+01:00", hours(1), &office()), monday);
    assert_eq!(promised("2026-12-05T12:00:00+01:00", hours(1), &office()), monday);
}

#[test]
fn what_is_left_of_the_grace_at_closing_time_is_due_after_the_next_opening() {
    let deadline = promised("2026-12-04T17:30:00+01:00", hours(1), &office());
    assert_eq!(deadline, at("2026-12-07T08:30:00+01:00"));
}

#[test]
fn the_closing_minute_is_outside_and_the_one_before_it_inside() {
    let inside = promised("2026-12-01T16:59:00+01:00", hours(1), &office());
    assert_eq!(inside, at("2026-12-01T17:59:00+01:00"));
    let outside = promised("2026-12-01T17:00:00+01:00", hours(1), &office());
    assert_eq!(outside, at("2026-12-02T08:00:00+01:00"));
    assert_eq!(next_opening(at("2026-12-01T18:00:00+01:00"), Some(&office())), Some(outside));
}

#[test]
fn a_holiday_is_no_working_day() {
    // The 25th is a Friday.
    let deadline = promised("2026-12-24T17:30:00+01:00", hours(1), &office());
    assert_eq!(deadline, at("2026-12-28T08:30:00+01:00"));
}

#[test]
fn office_hours_follow_the_clock_on_the_wall_over_both_switches() {
    let spring = promised("2026-03-27T17:30:00+01:00", hours(1), &office());
    assert_eq!(spring, at("2026-03-30T08:30:00+02:00"));
    let autumn = promised("2026-10-23T17:30:00+02:00", hours(1), &office());
    assert_eq!(autumn, at("2026-10-26T08:30:00+01:00"));
}

#[test]
fn the_night_that_is_an_hour_shorter_has_an_hour_less() {
    let deadline = promised("2026-03-29T01:30:00+01:00", hours(2), &nights());
    assert_eq!(deadline, at("2026-03-30T01:30:00+02:00"), "an hour and a half was open that night");
}

#[test]
fn the_night_that_is_an_hour_longer_has_an_hour_more() {
    let deadline = promised("2026-10-25T01:30:00+02:00", hours(3), &nights());
    assert_eq!(deadline, at("2026-10-25T03:30:00+01:00"));
}

#[test]
fn hours_that_begin_in_the_skipped_hour_begin_after_it() {
    let skipped = StopHours { from: time(2, 30, 0, 0), ..nights() };
    let deadline = promised("2026-03-29T00:00:00+01:00", SignedDuration::ZERO, &skipped);
    assert_eq!(deadline, at("2026-03-29T03:30:00+02:00"));
}

#[test]
fn a_calendar_without_any_opening_never_stops_anything() {
    let never = StopHours { days: Vec::new(), ..office() };
    assert_eq!(promised("2026-12-01T08:00:00Z", hours(1), &never), Timestamp::MAX);
    assert_eq!(next_opening(at("08:00"), Some(&never)), Some(Timestamp::MAX));
}

#[test]
fn hours_at_the_ends_of_time_are_survived() {
    for end in [Timestamp::MIN, Timestamp::MAX] {
        assert!(deadline(end, hours(1), Some(&office())) >= end);
        assert!(next_opening(end, Some(&office())) >= Some(end));
    }
}

#[test]
fn a_deadline_missed_in_the_hours_waits_for_the_next_opening() {
    let mut day = Day::of(&["alice"], Policy { stop_hours: Some(office()), ..policy() });
    day.run("15:00");
    assert_eq!(day.stopped(), 1, "warned at ten in Berlin, stopped at eleven");
    let mut day = Day::of(&["alice"], Policy { stop_hours: Some(office()), ..policy() });
    day.run("09:50");
    day.alice().jupyter = Err("timed out".into());
    day.run("17:30");
    day.alice().jupyter = session("alice").jupyter;
    let opening = at("2026-12-02T08:00:00+01:00");
    assert_eq!(day.until("17:35").held_back, Some(HeldBack::Hours(opening)));
    day.run("2026-12-02T07:00:00Z");
    assert_eq!(day.story().last(), Some(&("stopped", opening)));
}

/// Every night from ten to six, in New York.
fn over_midnight() -> StopHours {
    let zone = TimeZone::get("America/New_York").unwrap();
    StopHours { from: time(22, 0, 0, 0), to: time(6, 0, 0, 0), zone, ..nights() }
}

#[test]
fn hours_over_midnight_belong_to_the_day_on_which_they_begin() {
    let hours_of = |days: Vec<Weekday>| StopHours { days, ..over_midnight() };
    let friday = hours_of(vec![Weekday::Friday]);
    let inside = promised("2026-12-05T02:00:00-05:00", hours(1), &friday);
    assert_eq!(inside, at("2026-12-05T03:00:00-05:00"), "Saturday at two is still Friday's night");
    let outside = promised("2026-12-04T02:00:00-05:00", hours(1), &friday);
    assert_eq!(outside, at("2026-12-04T23:00:00-05:00"), "Friday at two is Thursday's night");
    assert_eq!(
        next_opening(at("2026-12-05T06:00:00-05:00"), Some(&friday)),
        Some(at("2026-12-11T22:00:00-05:00"))
    );
}

#[test]
fn a_grace_runs_on_over_midnight() {
    let deadline = promised("2026-12-01T23:30:00-05:00", hours(1), &over_midnight());
    assert_eq!(deadline, at("2026-12-02T00:30:00-05:00"));
    let deadline = promised("2026-12-02T05:30:00-05:00", hours(1), &over_midnight());
    assert_eq!(deadline, at("2026-12-02T22:30:00-05:00"));
}

#[test]
fn a_holiday_ends_the_night_before_it_and_has_none_of_its_own() {
    let christmas = over_midnight();
    let eve = promised("2026-12-24T23:30:00-05:00", hours(1), &christmas);
    assert_eq!(eve, at("2026-12-26T22:30:00-05:00"));
}

#[test]
fn nights_over_both_switches_in_new_york_have_an_hour_less_and_an_hour_more() {
    let spring = promised("2026-03-07T22:00:00-05:00", hours(7), &over_midnight());
    assert_eq!(spring, at("2026-03-08T22:00:00-04:00"), "that night has seven hours, and its end is outside");
    let autumn = promised("2026-10-31T22:00:00-04:00", hours(8), &over_midnight());
    assert_eq!(autumn, at("2026-11-01T05:00:00-05:00"), "that night has nine");
}

#[test]
fn whole_days_leave_no_hole_at_midnight() {
    let always = StopHours { from: time(0, 0, 0, 0), to: time(0, 0, 0, 0), ..nights() };
    let deadline = promised("2026-12-01T23:30:00+01:00", hours(1), &always);
    assert_eq!(deadline, at("2026-12-02T00:30:00+01:00"));
    let last = at("2026-12-01T23:59:59.5+01:00");
    assert_eq!(next_opening(last, Some(&always)), Some(last));
}

#[test]
fn whoever_is_warned_late_on_friday_is_stopped_on_monday_with_the_whole_grace_of_open_hours() {
    // Friday, the fourth of December: idle since half past four, warned half an hour before closing time.
    let mut day = Day::of(&["alice"], Policy { stop_hours: Some(office()), ..policy() });
    day.alice().works(true);
    day.run("2026-12-04T15:30:00Z");
    day.alice().works(false);
    day.run("2026-12-07T08:00:00Z");
    let expected = [
        ("warned", at("2026-12-04T17:30:00+01:00")),
        ("reminded", at("2026-12-07T08:15:00+01:00")),
        ("stopped", at("2026-12-07T08:30:00+01:00")),
    ];
    assert_eq!(day.story()[day.story().len() - 3..], expected);
}

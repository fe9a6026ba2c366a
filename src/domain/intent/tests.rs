#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use super::*;
use crate::domain::ServerId;

fn server(labels: &[(&str, &str)]) -> Server {
    Server {
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..Server::named(ServerId::new("alice", ""))
    }
}

fn intent(labels: &[(&str, &str)]) -> Intent {
    Intent::of(&server(labels), &IntentKeys::default(), &TimeZone::UTC)
}

#[test]
fn a_duration_is_read_as_people_and_tools_write_it() {
    for (text, minutes) in [
        ("8h", 480),
        ("2h 30m", 150),
        ("2h30m", 150),
        ("3 days", 4320),
        ("3d", 4320),
        ("1w", 10_080),
        (" 90m ", 90),
        ("1.5h", 90),
        ("08:30:00", 510),
        ("PT8H", 480),
        ("P3D", 4320),
        ("0s", 0),
    ] {
        let read = intent(&[("expected-duration", text)]);
        assert_eq!(
            (read.duration, read.unreadable.len()),
            (Some(SignedDuration::from_mins(minutes)), 0),
            "{text}"
        );
    }
}

#[test]
fn what_cannot_be_read_is_told_and_declares_nothing() {
    for text in ["3 bananas", "8", "", "-3h", "forever", "NaN", "1e999 h", "8h\u{0}", &"9".repeat(100_000)] {
        let read = intent(&[("expected-duration", text)]);
        assert_eq!(read.duration, None, "{text}");
        assert_eq!(read.unreadable[0].key, "expected-duration");
        assert!(read.unreadable[0].text.chars().count() <= LONGEST_LABEL);
    }
    for text in ["soon", "2026-13-01", "18:00", "4.12.2026", "99999999999999"] {
        let read = intent(&[("expected-until", text)]);
        assert_eq!((read.until, read.unreadable.len()), (None, 1), "{text}");
    }
    let words = intent(&[("expected-duration", "3 bananas")]).unreadable[0].to_string();
    assert_eq!(words, "expected-duration `3 bananas`");
}

#[test]
fn an_end_is_an_instant_or_the_whole_of_a_day_in_the_zone() {
    let berlin = TimeZone::get("Europe/Berlin").unwrap();
    for (text, at) in [
        ("2026-12-04T18:00:00Z", "2026-12-04T18:00:00Z"),
        ("2026-12-04T18:00:00+02:00", "2026-12-04T16:00:00Z"),
        ("2026-12-04T18:00", "2026-12-04T17:00:00Z"),
        ("2026-12-04 18:00", "2026-12-04T17:00:00Z"),
        ("2026-12-04", "2026-12-04T23:00:00Z"),
    ] {
        let read = Intent::of(&server(&[("expected_until", text)]), &IntentKeys::default(), &berlin);
        assert_eq!(read.until, Some(at.parse().unwrap()), "{text}");
    }
}

#[test]
fn keys_are_found_with_the_prefix_and_with_either_dash() {
    for key in [
        "expected-duration",
        "expected_duration",
        "gpu-culler.io/expected-duration",
        "gpu-culler.io/expected_duration",
    ] {
        for key in [key.to_owned(), format!("user_options.{key}")] {
            assert_eq!(intent(&[(&key, "1h")]).duration, Some(SignedDuration::from_hours(1)), "{key}");
        }
    }
    for key in
        ["expected-durations", "Expected-Duration", "example.com/expected-duration", "expectedduration"]
    {
        assert!(intent(&[(key, "1h")]).is_empty(), "{key}");
    }
}

#[test]
fn what_the_platform_set_wins_over_what_the_user_chose() {
    let read =
        intent(&[("team", "vision"), ("user_options.team", "nobody"), ("user_options.project", "cats")]);
    assert_eq!((read.team.as_deref(), read.project.as_deref()), (Some("vision"), Some("cats")));
    let read = intent(&[("gpu-culler.io/team", "vision"), ("team", "k8s"), ("user_options.team", "nobody")]);
    assert_eq!(read.team.as_deref(), Some("vision"));
    let read =
        intent(&[("gpu-culler.io/expected_duration", "1h"), ("user_options.expected-duration", "90h")]);
    assert_eq!(read.duration, Some(SignedDuration::from_hours(1)));
    let read =
        intent(&[("expected-duration", "??"), ("user_options.expected-duration", "2h"), ("team", " ")]);
    assert_eq!((read.duration, read.unreadable.len()), (Some(SignedDuration::from_hours(2)), 0));
    assert_eq!(read.team, None);
}

#[test]
fn other_keys_can_be_named() {
    let keys = IntentKeys { team: "example.com/cost-centre".to_owned(), ..IntentKeys::default() };
    let labels = [("example.com/cost_centre", "4711"), ("team", "vision")];
    assert_eq!(Intent::of(&server(&labels), &keys, &TimeZone::UTC).team.as_deref(), Some("4711"));
    assert!(
        keys.contain("expected_until") && keys.contain("example.com/cost-centre") && !keys.contain("token")
    );
}

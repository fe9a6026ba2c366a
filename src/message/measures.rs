//! Durations, sizes and instants as people say them.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};

use crate::domain::Power;

/// The two largest units: `1 hour 5 minutes`, `3 days`, `40 seconds`.
pub fn duration_in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [
        ("day", seconds / 86_400),
        ("hour", seconds / 3600 % 24),
        ("minute", seconds / 60 % 60),
        ("second", seconds % 60),
    ];
    let first = units.iter().position(|(_, n)| *n > 0).unwrap_or(3);
    let words: Vec<_> = units[first..]
        .iter()
        .take(2)
        .enumerate()
        .filter(|(i, (_, n))| *i == 0 || *n > 0)
        .map(|(_, (unit, n))| format!("{n} {unit}{}", if *n == 1 { "" } else { "s" }))
        .collect();
    words.join(" ")
}

/// A size in the unit that fits: `38.2 GiB`.
#[allow(clippy::cast_precision_loss, reason = "one decimal is shown; a u64 loses nothing that could be seen")]
pub fn bytes_in_words(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    for unit in ["KiB", "MiB", "GiB", "TiB"] {
        // 1023.95 would be written 1024.0: the next unit reads better.
        if value < 1023.95 {
            return format!("{value:.1} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} PiB")
}

/// `71 W of 400 W, at most 90 W`
pub fn power(power: &Power) -> String {
    let limit = power.limit.map(|limit| format!(" of {limit:.0} W")).unwrap_or_default();
    format!("{:.0} W{limit}, at most {:.0} W", power.mean, power.peak)
}

/// An instant with its offset: `Tue 1 Dec 2026 09:10 (UTC+01:00)`.
///
/// Seconds are cut, never rounded up, so a deadline is never written later than it is kept.
pub fn instant_in_words(instant: Timestamp, zone: &TimeZone) -> String {
    format!("{} ({})", date(instant, zone), offset(instant, zone))
}

/// As [`instant_in_words`], with the zone's name: `… (UTC+01:00, Europe/Berlin)`.
pub(super) fn deadline_in_words(instant: Timestamp, zone: &TimeZone) -> String {
    match zone.iana_name().filter(|name| *name != "UTC") {
        Some(name) => format!("{} ({}, {name})", date(instant, zone), offset(instant, zone)),
        None => instant_in_words(instant, zone),
    }
}

/// Short enough for a subject: `Tue 1 Dec 09:10 UTC+01:00`.
pub(super) fn instant_in_subject(instant: Timestamp, zone: &TimeZone) -> String {
    let local = instant.to_zoned_datetime(zone.clone());
    format!("{} {}", local.strftime("%a %-d %b %H:%M"), offset(instant, zone))
}

/// `1 hour 5 minutes ago, Tue 1 Dec 2026 09:10 (UTC+01:00)`.
pub(super) fn moment(instant: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let ago = age(instant, now);
    let when = instant_in_words(instant, zone);
    if ago < Duration::from_secs(60) {
        format!("just now, {when}")
    } else {
        format!("{} ago, {when}", duration_in_words(ago))
    }
}

/// Time passed since `instant`; none when two machines' clocks disagree and it lies ahead.
pub(super) fn age(instant: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(instant).try_into().unwrap_or_default()
}

fn date(instant: Timestamp, zone: &TimeZone) -> String {
    let local = instant.to_zoned_datetime(zone.clone());
    local.strftime("%a %-d %b %Y %H:%M").to_string()
}

fn offset(instant: Timestamp, zone: &TimeZone) -> String {
    let local = instant.to_zoned_datetime(zone.clone());
    if local.offset().is_zero() { "UTC".to_owned() } else { format!("UTC{}", local.strftime("%:z")) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]
    use super::*;

    #[test]
    fn durations_show_their_two_largest_units() {
        for (seconds, words) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (59, "59 seconds"),
            (60, "1 minute"),
            (65, "1 minute 5 seconds"),
            (3600, "1 hour"),
            (3630, "1 hour"), // the second largest unit is minutes, and there are none
            (3900, "1 hour 5 minutes"),
            (7199, "1 hour 59 minutes"),
            (86_400, "1 day"),
            (90_000, "1 day 1 hour"),
            (86_400 * 12 + 3600 * 5 + 59, "12 days 5 hours"),
        ] {
            assert_eq!(duration_in_words(Duration::from_secs(seconds)), words);
        }
    }

    #[test]
    fn sizes_show_one_decimal_in_the_unit_that_fits() {
        for (bytes, words) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_048_575, "1.0 MiB"),
            (41_000_000_000, "38.2 GiB"),
            (80 << 30, "80.0 GiB"),
            (1 << 40, "1.0 TiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(bytes_in_words(bytes), words);
        }
    }

    #[test]
    fn instants_carry_the_offset_that_holds_at_that_instant() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        for (zone, instant, words) in [
            (&TimeZone::UTC, "2026-12-01T09:10:59Z", "Tue 1 Dec 2026 09:10 (UTC)"),
            (&berlin, "2026-12-01T09:10:00Z", "Tue 1 Dec 2026 10:10 (UTC+01:00)"),
            (&berlin, "2026-07-01T22:30:00Z", "Thu 2 Jul 2026 00:30 (UTC+02:00)"),
        ] {
            assert_eq!(instant_in_words(instant.parse().unwrap(), zone), words);
        }
        let instant = "2026-12-01T09:10:00Z".parse().unwrap();
        assert_eq!(deadline_in_words(instant, &berlin), "Tue 1 Dec 2026 10:10 (UTC+01:00, Europe/Berlin)");
        assert_eq!(deadline_in_words(instant, &TimeZone::UTC), "Tue 1 Dec 2026 09:10 (UTC)");
    }

    #[test]
    fn a_moment_ahead_of_our_clock_is_just_now() {
        let now = "2026-12-01T09:10:00Z".parse().unwrap();
        let ahead = "2026-12-01T09:10:40Z".parse().unwrap();
        assert_eq!(moment(ahead, now, &TimeZone::UTC), "just now, Tue 1 Dec 2026 09:10 (UTC)");
    }
}

//! What the `Date` of an answer tells about the clock of whoever sent it.

use std::time::Instant;

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use reqwest::header::HeaderValue;

/// `Date` knows whole seconds, and clocks that are kept agree within less than this.
const NOTICEABLE: SignedDuration = SignedDuration::from_secs(5);

/// When an answer was made by its sender's clock, and between which instants of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated {
    date: Timestamp,
    asked: Instant,
    heard: Instant,
}

impl Dated {
    pub(super) fn read(header: Option<&HeaderValue>, asked: Instant) -> Option<Self> {
        let date = DateTimeParser::new().parse_timestamp(header?.as_bytes()).ok()?;
        Some(Self { date, asked, heard: Instant::now() })
    }

    /// How far the sender's clock runs behind ours, which was at `at` when the instant was `as_of`; zero where
    /// it does not, or not noticeably. A clock ahead of ours makes stamps look younger and so only delays.
    pub fn behind(&self, at: Timestamp, as_of: Instant) -> SignedDuration {
        let ours = |instant: Instant| match instant.checked_duration_since(as_of) {
            Some(after) => at.checked_add(after).unwrap_or(at),
            None => at.checked_sub(as_of.duration_since(instant)).unwrap_or(at),
        };
        // The answer was made after we asked: a date from before that is proof, however slow the way was.
        if ours(self.asked).duration_since(self.date) <= NOTICEABLE {
            return SignedDuration::ZERO;
        }
        ours(self.heard).duration_since(self.date)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use std::time::Duration;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// How far behind a sender is who dates an answer so, asked at nine and heard `seconds` later.
    fn behind(date: &str, seconds: u64) -> Option<i64> {
        let header = HeaderValue::from_str(date).unwrap();
        let asked = Instant::now();
        let dated = Dated::read(Some(&header), asked)?;
        let dated = Dated { heard: asked + Duration::from_secs(seconds), ..dated };
        Some(dated.behind(at("2026-12-01T09:00:00Z"), asked).as_secs())
    }

    #[test]
    fn a_clock_that_runs_behind_is_told_by_how_much() {
        assert_eq!(behind("Tue, 01 Dec 2026 07:00:00 GMT", 0), Some(7200));
        assert_eq!(behind("Tue, 01 Dec 2026 08:59:50 GMT", 3), Some(13));
    }

    #[test]
    fn a_clock_that_is_right_or_ahead_is_not_behind() {
        for date in ["08:59:57", "09:00:00", "09:00:30", "11:00:00"] {
            assert_eq!(behind(&format!("Tue, 01 Dec 2026 {date} GMT"), 20), Some(0), "{date}");
        }
    }

    #[test]
    fn an_instant_before_the_one_that_is_known_is_told_too() {
        let asked = Instant::now();
        let dated = Dated { date: at("2026-12-01T08:00:00Z"), asked, heard: asked };
        let later = asked + Duration::from_secs(60);
        assert_eq!(dated.behind(at("2026-12-01T09:01:00Z"), later), SignedDuration::from_hours(1));
    }

    #[test]
    fn no_date_or_nonsense_tells_nothing() {
        assert_eq!(Dated::read(None, Instant::now()), None);
        for text in ["", "soon", "2026-12-01", "Tue, 41 Dec 2026 07:00:00 GMT"] {
            assert_eq!(behind(text, 0), None, "{text}");
        }
    }

    #[test]
    fn dates_from_the_ends_of_time_overflow_nothing() {
        for date in ["Sat, 01 Jan 0001 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"] {
            let _ = behind(date, 1);
        }
    }
}

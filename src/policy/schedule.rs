//! When a deadline may fall.

use std::collections::BTreeSet;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};

/// The hours in which servers may be stopped.
#[derive(Clone, Debug)]
pub struct StopHours {
    /// On which days.
    pub days: Days,
    /// From this time of day …
    pub from: Time,
    /// … until before this one; of the next day where it is not later than `from`.
    pub to: Time,
    /// Where.
    pub zone: TimeZone,
    /// Days on which nothing is stopped.
    pub holidays: BTreeSet<Date>,
}

/// A set of weekdays.
pub type Days = Vec<Weekday>;

/// How far ahead an opening is looked for. A calendar with none in a year never stops anything.
const HORIZON_DAYS: i64 = 370;

/// `at` plus `by`, at most the last instant there is.
pub(super) fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// `at` less `by`, at least the first instant there is.
pub(super) fn earlier(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_sub(by).unwrap_or(Timestamp::MIN)
}

/// The instant at which at least `grace` of open hours have passed since `accepted`, itself inside
/// the hours: whoever is warned on Friday evening still has a server on Monday morning.
pub fn deadline(accepted: Timestamp, grace: SignedDuration, hours: Option<&StopHours>) -> Timestamp {
    let Some(hours) = hours else {
        return later(accepted, grace);
    };
    let mut left = grace;
    for (opens, closes) in hours.openings(accepted) {
        let begin = opens.max(accepted);
        let open = closes.duration_since(begin);
        if left < open {
            return later(begin, left);
        }
        left -= open;
    }
    Timestamp::MAX
}

/// `now` if it is inside the hours, else when they open next.
pub fn next_opening(now: Timestamp, hours: Option<&StopHours>) -> Option<Timestamp> {
    let Some(hours) = hours else {
        return Some(now);
    };
    let opening = hours.openings(now).next().map(|(opens, _)| opens.max(now));
    Some(opening.unwrap_or(Timestamp::MAX))
}

impl StopHours {
    /// The openings that end after `from`, in order, as instants: daylight saving is the zone's.
    fn openings(&self, from: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let first = from.to_zoned_datetime(self.zone.clone()).date();
        // The hours of the day before may reach into this one.
        (-1..HORIZON_DAYS)
            .filter_map(move |day| first.checked_add(day.days()).ok())
            .filter(|date| self.days.contains(&date.weekday()) && !self.holidays.contains(date))
            .filter_map(|date| self.opening(date))
            .filter(move |(opens, closes)| *closes > from && closes > opens)
    }

    /// The hours that begin on this day. Over midnight they belong to it, but end where a holiday begins.
    fn opening(&self, date: Date) -> Option<(Timestamp, Timestamp)> {
        let (mut end, mut to) = (date, self.to);
        if self.to <= self.from {
            end = date.tomorrow().ok()?;
            to = if self.holidays.contains(&end) { Time::midnight() } else { self.to };
        }
        Some((self.instant(date, self.from)?, self.instant(end, to)?))
    }

    fn instant(&self, date: Date, time: Time) -> Option<Timestamp> {
        Some(date.to_datetime(time).to_zoned_datetime(self.zone.clone()).ok()?.timestamp())
    }
}

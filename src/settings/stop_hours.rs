//! The hours in which servers may be stopped, as they are written.

use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;

use super::{SettingsError, raw};
use crate::policy::StopHours;

/// The end of a day, which is the beginning of the next.
const MIDNIGHT: &str = "24:00";

/// What a config file says of stop hours.
pub fn stop_hours(raw: &raw::StopHours) -> Result<StopHours, SettingsError> {
    let zone = raw.time_zone.as_deref().unwrap_or("UTC");
    let hours = StopHours {
        days: days(raw.days.as_deref().unwrap_or("Mon-Sun"))?,
        from: time("stop_hours.from", raw.from.as_deref().unwrap_or("00:00"))?,
        to: time("stop_hours.to", raw.to.as_deref().unwrap_or(MIDNIGHT))?,
        zone: TimeZone::get(zone).map_err(|_| {
            SettingsError::key(
                "stop_hours.time_zone",
                format!("\"{zone}\" is no time zone like \"Europe/Berlin\""),
            )
        })?,
        holidays: raw
            .holidays
            .iter()
            .map(|day| {
                day.parse().map_err(|_| {
                    SettingsError::key(
                        "stop_hours.holidays",
                        format!("\"{day}\" is no date like \"2026-12-25\""),
                    )
                })
            })
            .collect::<Result<_, _>>()?,
    };
    if hours.from == hours.to && raw.to.as_deref().unwrap_or(MIDNIGHT) != MIDNIGHT {
        return Err(SettingsError::key(
            "stop_hours.from",
            "must differ from `to`; for whole days leave both out",
        ));
    }
    Ok(hours)
}

fn time(key: &str, text: &str) -> Result<Time, SettingsError> {
    if text == MIDNIGHT {
        return Ok(Time::midnight());
    }
    let time = Time::strptime("%H:%M", text).or_else(|_| Time::strptime("%H:%M:%S", text));
    time.map_err(|_| SettingsError::key(key, format!("\"{text}\" is no time of day like \"08:00\"")))
}

const WEEK: [(&str, Weekday); 7] = [
    ("mon", Weekday::Monday),
    ("tue", Weekday::Tuesday),
    ("wed", Weekday::Wednesday),
    ("thu", Weekday::Thursday),
    ("fri", Weekday::Friday),
    ("sat", Weekday::Saturday),
    ("sun", Weekday::Sunday),
];

/// `Mon-Fri`, `Sat,Sun`, `Fri-Mon`.
fn days(text: &str) -> Result<Vec<Weekday>, SettingsError> {
    let bad = || {
        SettingsError::key("stop_hours.days", format!("\"{text}\" is not like \"Mon-Fri\" or \"Mon,Wed\""))
    };
    let index = |name: &str| {
        let name = name.trim().to_ascii_lowercase();
        WEEK.iter().position(|(short, _)| *short == name).ok_or_else(bad)
    };
    let mut days = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (index(first)?, index(last)?);
        let length = (last + WEEK.len() - first) % WEEK.len();
        days.extend((0..=length).map(|step| WEEK[(first + step) % WEEK.len()].1));
    }
    Ok(days)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_as_people_write_them() {
        use Weekday::{Friday, Monday, Saturday, Sunday, Wednesday};
        assert_eq!(days("Mon,Wed"), Ok(vec![Monday, Wednesday]));
        assert_eq!(days("Fri-Mon"), Ok(vec![Friday, Saturday, Sunday, Monday]));
        assert_eq!(days("Mon-Sun").map(|d| d.len()), Ok(7));
        assert!(days("Monday to Friday").is_err());
    }
}

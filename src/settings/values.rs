//! The kinds of values a config file holds, each refusing what it cannot mean with the remedy.

use std::fmt;

use globset::GlobMatcher;
use jiff::SignedDuration;
use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::policy::StopBudget;

/// A length of time with its unit: `90s`, `2h 30m`. At least one second, at most a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub SignedDuration);

/// A length of time, or `"never"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub Option<SignedDuration>);

/// The most that a declared time protects: a length of time, `"0"` for none of it, or `"never"` for no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap(pub Option<SignedDuration>);

/// The time a warning promises: as a [`Length`], but no longer than 30 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace(pub SignedDuration);

/// A share, written as a ratio (`0.5`) or in percent (`"50%"`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

/// Stops per cycle: a number, or a share of the sessions in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stops(pub StopBudget);

/// A pattern such as `svc-*`.
#[derive(Clone, Debug)]
pub struct Pattern(pub GlobMatcher);

const LONGEST: SignedDuration = SignedDuration::from_hours(366 * 24);
const LONGEST_GRACE: SignedDuration = SignedDuration::from_hours(30 * 24);
const SHORTEST: SignedDuration = SignedDuration::from_secs(1);

/// Reads a length of time as people write it.
pub fn length(text: &str) -> Result<SignedDuration, String> {
    let bare = text.trim().chars().all(|c| c.is_ascii_digit() || c == '.') && !text.trim().is_empty();
    if bare {
        return Err(needs_unit(text));
    }
    let parsed = humantime::parse_duration(text).map_err(|_| {
        format!("\"{text}\" is no length of time: write it like \"90s\", \"15m\" or \"2h 30m\"")
    })?;
    let length = SignedDuration::try_from(parsed).unwrap_or(SignedDuration::MAX);
    if length < SHORTEST {
        return Err(format!("\"{text}\" is too short: at least \"1s\""));
    }
    if length > LONGEST {
        return Err(format!("\"{text}\" is too long: at most a year (\"366d\")"));
    }
    Ok(length)
}

/// A length of time as it would stand in the file.
pub fn in_words(length: SignedDuration) -> String {
    humantime::format_duration(length.unsigned_abs()).to_string()
}

fn needs_unit(text: &str) -> String {
    format!("{text} has no unit: write \"{0}s\", \"{0}m\" or \"{0}h\"", text.trim())
}

/// One visitor for everything that is written as text or, wrongly, as a bare number.
struct Text<T>(&'static str, fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.1)(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        (self.1)(&number.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        (self.1)(&number.to_string()).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text("a length of time like \"90s\"", length)).map(Self)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: &str| if text == "never" { Ok(None) } else { length(text).map(Some) };
        deserializer.deserialize_any(Text("a length of time like \"4h\", or \"never\"", read)).map(Self)
    }
}

impl<'de> Deserialize<'de> for Cap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: &str| match text {
            "never" => Ok(None),
            "0" | "0s" => Ok(Some(SignedDuration::ZERO)),
            text => length(text).map(Some),
        };
        deserializer
            .deserialize_any(Text("a length of time like \"72h\", \"0\" or \"never\"", read))
            .map(Self)
    }
}

impl<'de> Deserialize<'de> for Grace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: &str| match length(text)? {
            grace if grace > LONGEST_GRACE => Err(format!(
                "a grace of \"{text}\" makes no sense: a warning nobody answers would hold the card for longer than 30 days"
            )),
            grace => Ok(grace),
        };
        deserializer.deserialize_any(Text("a length of time like \"1h\"", read)).map(Self)
    }
}

/// Reads a share; a number over one is taken for a forgotten percent sign and refused.
fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&(value / scale)) => Ok(value / scale),
        _ => Err(format!("{text} is no share: write a ratio from 0 to 1 (0.01) or percent (\"1%\")")),
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text("a ratio from 0 to 1 or a percentage", share)).map(Self)
    }
}

impl<'de> Deserialize<'de> for Stops {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |text: &str| {
            if text.trim().ends_with('%') {
                return share(text).map(StopBudget::Share);
            }
            let count = text.parse::<usize>();
            count.map(StopBudget::Count).map_err(|_| {
                format!("{text} is no number of stops: write a whole number (5) or a share of the sessions (\"10%\")")
            })
        };
        deserializer.deserialize_any(Text("a whole number or a percentage", read)).map(Self)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text("a pattern like \"svc-*\"", crate::policy::pattern)).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        for (text, seconds) in [("90s", 90), ("2h 30m", 9000), ("1d", 86_400), ("15m", 900)] {
            assert_eq!(length(text), Ok(SignedDuration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn a_length_that_makes_no_sense_says_what_to_write() {
        for (text, remedy) in [
            ("10", "10 has no unit: write \"10s\", \"10m\" or \"10h\""),
            ("1.5", "has no unit"),
            ("soon", "write it like"),
            ("-5m", "write it like"),
            ("0s", "too short"),
            ("9y", "too long"),
        ] {
            let error = length(text).expect_err(text);
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }

    #[test]
    fn shares_are_ratios_or_percentages() {
        assert_eq!(share("0.01"), Ok(0.01));
        assert_eq!(share("50%"), Ok(0.5));
        for bad in ["1.5", "-0.1", "150%", "nan", "inf", "half"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}

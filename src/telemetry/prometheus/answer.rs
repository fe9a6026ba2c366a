//! What the API answers, read strictly: whatever is not a whole, plain answer is an error and never a number.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::error::{PromError, words};

/// The labels of a series.
pub type Labels = BTreeMap<String, String>;

/// One series: its labels and its samples as (milliseconds since 1970, value).
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its labels, `__name__` among them.
    pub labels: Labels,
    /// Its samples, as the server orders them.
    pub samples: Vec<(i64, f64)>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    status: String,
    #[serde(borrow)]
    data: Option<Data<'a>>,
    #[serde(rename = "errorType")]
    error_type: Option<String>,
    error: Option<String>,
    warnings: Option<Vec<String>>,
    #[serde(rename = "isPartial")]
    is_partial: Option<bool>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(rename = "resultType")]
    kind: String,
    #[serde(borrow)]
    result: &'a RawValue,
}

#[derive(Deserialize)]
struct RawSeries {
    metric: Labels,
    #[serde(default)]
    values: Vec<RawSample>,
    value: Option<RawSample>,
    histogram: Option<serde::de::IgnoredAny>,
    histograms: Option<serde::de::IgnoredAny>,
}

/// `[1609459200.123, "0.5"]`.
struct RawSample(i64, f64);

impl<'de> Deserialize<'de> for RawSample {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (seconds, text): (f64, &str) = Deserialize::deserialize(from)?;
        let value = text.parse().map_err(|_| serde::de::Error::custom("a value is no number"))?;
        let millis = (seconds * 1000.0).round();
        if !(-1e15..=1e15).contains(&millis) {
            return Err(serde::de::Error::custom("a time is no time"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "bounded just above")]
        Ok(Self(millis as i64, value))
    }
}

/// What a query may answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Raw samples of a range selector.
    Ranges,
    /// One value a series.
    Values,
}

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Self::Ranges => "the samples of series (a range selector)",
            Self::Values => "one number for each series (an instant vector)",
        }
    }
}

/// Why it is no answer, before it is known what was asked.
enum Flaw {
    TooMany,
    Garbled(String),
}

/// Reads an answer's body. `query` is for the words only.
pub(super) fn read(
    body: &[u8],
    query: &str,
    wanted: Wanted,
    max_series: usize,
) -> Result<Vec<Series>, PromError> {
    let query = || query.to_owned();
    let garbled = |what: String| PromError::WrongKind {
        query: query(),
        kind: format!("an answer that cannot be read ({})", words(&what)),
        wanted: wanted.name(),
    };
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|e| garbled(e.to_string()))?;
    if envelope.status != "success" {
        let kind = words(envelope.error_type.as_deref().unwrap_or("no errorType"));
        let said = words(envelope.error.as_deref().unwrap_or("no message"));
        return Err(PromError::Refused { query: query(), kind, words: said });
    }
    let warnings = envelope.warnings.unwrap_or_default();
    if envelope.is_partial == Some(true) || !warnings.is_empty() {
        let said = if warnings.is_empty() { "partial response".to_owned() } else { warnings.join("; ") };
        return Err(PromError::Partial { query: query(), words: words(&said) });
    }
    let data = envelope.data.ok_or_else(|| garbled("no data".to_owned()))?;
    let fits =
        matches!((wanted, data.kind.as_str()), (Wanted::Ranges, "matrix") | (Wanted::Values, "vector"));
    if !fits {
        let kind = format!("a {}", words(&data.kind));
        return Err(PromError::WrongKind { query: query(), kind, wanted: wanted.name() });
    }
    let all = bounded(data.result.get(), max_series).map_err(|flaw| match flaw {
        Flaw::TooMany => PromError::TooLarge { query: query(), limit: format!("{max_series} series") },
        Flaw::Garbled(what) => garbled(what),
    })?;
    all.into_iter().map(|raw| series(raw, &query, wanted)).collect()
}

fn series(raw: RawSeries, query: &dyn Fn() -> String, wanted: Wanted) -> Result<Series, PromError> {
    if raw.histogram.is_some() || raw.histograms.is_some() {
        let name = raw.metric.get("__name__").map_or("a series", String::as_str);
        let kind = format!("histograms ({name})");
        return Err(PromError::WrongKind { query: query(), kind, wanted: wanted.name() });
    }
    let samples = raw.values.into_iter().chain(raw.value).map(|RawSample(at, value)| (at, value)).collect();
    Ok(Series { labels: raw.metric, samples })
}

/// At most `limit` series; nothing beyond them is even read.
fn bounded(json: &str, limit: usize) -> Result<Vec<RawSeries>, Flaw> {
    struct Bounded(usize);
    impl<'de> Visitor<'de> for Bounded {
        type Value = Option<Vec<RawSeries>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of series")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(next) = list.next_element()? {
                if all.len() == self.0 {
                    while list.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                    return Ok(None);
                }
                all.push(next);
            }
            Ok(Some(all))
        }
    }
    let read = serde_json::Deserializer::from_str(json).deserialize_seq(Bounded(limit));
    read.map_err(|e| Flaw::Garbled(e.to_string()))?.ok_or(Flaw::TooMany)
}

#[cfg(test)]
mod tests;

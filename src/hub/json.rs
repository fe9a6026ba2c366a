//! Reading JSON field by field, so that every complaint names its field.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Any JSON text. The complaint never quotes it: it may be anybody's page.
pub(super) fn parse(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|e| format!("not JSON ({e})"))
}

/// The value as an object.
pub(super) fn object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(format!("{}, not an object", kind(&other))),
    }
}

/// A field that may be absent or null, but may not have a wrong type.
pub(super) fn optional<T: DeserializeOwned>(
    map: &mut Map<String, Value>,
    key: &str,
) -> Result<Option<T>, String> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let found = kind(&value);
            serde_json::from_value(value)
                .map(Some)
                .map_err(|_| format!("`{key}` is {found} that does not fit"))
        }
    }
}

/// A field that must be there.
pub(super) fn required<T: DeserializeOwned>(map: &mut Map<String, Value>, key: &str) -> Result<T, String> {
    optional(map, key)?.ok_or_else(|| format!("`{key}` is missing"))
}

/// An instant as the Hub and Jupyter servers write it.
pub(super) struct Stamp(pub(super) Timestamp);

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        instant(&text).map(Self).ok_or_else(|| serde::de::Error::custom("no instant"))
    }
}

/// A stamp under `key`, where there is one.
pub(super) fn stamp(map: &mut Map<String, Value>, key: &str) -> Result<Option<Timestamp>, String> {
    Ok(optional::<Stamp>(map, key)?.map(|Stamp(at)| at))
}

/// Old Hubs leave the zone out and mean UTC.
fn instant(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        Offset::UTC.to_timestamp(civil).ok()
    })
}

/// What kind of value this is, in words. The value itself may be private.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::instant;

    #[test]
    fn instants_are_read_in_each_spelling_that_hubs_have_used() {
        let expected = "2026-12-01T09:00:00.123456Z".parse().ok();
        for text in [
            "2026-12-01T09:00:00.123456Z",
            "2026-12-01T09:00:00.123456+00:00",
            "2026-12-01T10:00:00.123456+01:00",
            "2026-12-01T09:00:00.123456",
        ] {
            assert_eq!(instant(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for text in ["", "soon", "2026-13-01T09:00:00Z", "2026-12-01T09:00:00+99:00", "1764579600"] {
            assert_eq!(instant(text), None, "{text}");
        }
    }
}

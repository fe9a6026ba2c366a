//! Reading JSON field by field, so that every complaint names its field.
//!
//! Only what is asked for is taken out of the text; a list of thousands of servers becomes no tree.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Any JSON text. The complaint never quotes it: it may be anybody's page.
pub(super) fn parse(body: &[u8]) -> Result<&RawValue, String> {
    serde_json::from_slice(body).map_err(|e| format!("not JSON ({e})"))
}

/// The value as an object.
pub(super) fn object(value: &RawValue) -> Result<Fields<'_>, String> {
    serde_json::from_str(value.get()).map_err(|_| format!("{}, not an object", kind(value)))
}

/// The value as a list.
pub(super) fn list(value: &RawValue) -> Result<Vec<&RawValue>, String> {
    serde_json::from_str(value.get()).map_err(|_| format!("{}, not a list", kind(value)))
}

/// The value where it is a text.
pub(super) fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// The fields of an object, each as it is written.
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// A field that is there and not null.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        let (_, value) = self.0.iter().rfind(|(name, _)| name == key)?;
        (value.get() != "null").then_some(*value)
    }

    /// Whether the field is there, even as null.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    /// A field that may be absent or null, but may not have a wrong type.
    pub(super) fn optional<T: Deserialize<'a>>(&self, key: &str) -> Result<Option<T>, String> {
        let read = |value: &'a RawValue| {
            serde_json::from_str(value.get())
                .map_err(|_| format!("`{key}` is {} that does not fit", kind(value)))
        };
        self.get(key).map(read).transpose()
    }

    /// A field that must be there.
    pub(super) fn required<T: Deserialize<'a>>(&self, key: &str) -> Result<T, String> {
        self.optional(key)?.ok_or_else(|| format!("`{key}` is missing"))
    }

    /// A stamp under `key`, where there is one.
    pub(super) fn stamp(&self, key: &str) -> Result<Option<Timestamp>, String> {
        Ok(self.optional::<Stamp>(key)?.map(|Stamp(at)| at))
    }

    /// Every field by its name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder).map(Self)
    }
}

struct InOrder;

/// A name is copied only where it is written with escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Visitor<'de> for InOrder {
    type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(16);
        while let Some((Name(name), value)) = map.next_entry()? {
            fields.push((name, value));
        }
        Ok(fields)
    }
}

/// An instant as the Hub and Jupyter servers write it.
struct Stamp(Timestamp);

impl<'de> Deserialize<'de> for Stamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Name(text) = Name::deserialize(deserializer)?;
        instant(&text).map(Self).ok_or_else(|| serde::de::Error::custom("no instant"))
    }
}

/// Old Hubs leave the zone out and mean UTC.
fn instant(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        Offset::UTC.to_timestamp(civil).ok()
    })
}

/// What kind of value this is, in words. The value itself may be private.
fn kind(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') => "a text",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        _ => "a number",
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

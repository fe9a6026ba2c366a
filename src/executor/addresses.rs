//! Where an owner's mail address comes from, in the order the admin gave.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::domain::{Server, UserName};

/// One source of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressSource {
    /// A field of the Hub's user model (`user_info.email`, `auth_state.email`).
    Hub(String),
    /// A TOML file of `user = "address"`.
    Map(PathBuf),
    /// A pattern with `{user}` in it.
    Template(String),
}

impl FromStr for AddressSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(path) = text.strip_prefix("map:") {
            return Ok(Self::Map(PathBuf::from(path)));
        }
        if text.starts_with("user_info.") || text.starts_with("auth_state.") {
            return Ok(Self::Hub(text.to_owned()));
        }
        if text.contains("{user}") && text.contains('@') {
            return Ok(Self::Template(text.to_owned()));
        }
        Err(format!(
            "\"{text}\" is no source of addresses: use \"user_info.email\", \"auth_state.email\", \"map:/a/file.toml\" or \"{{user}}@example.org\""
        ))
    }
}

/// All sources.
#[derive(Clone, Debug, Default)]
pub struct AddressBook {
    sources: Vec<AddressSource>,
}

impl AddressBook {
    /// The sources, first one first.
    pub fn new(sources: Vec<AddressSource>) -> Self {
        Self { sources }
    }

    /// Whether some address has to be asked for user by user.
    pub fn needs_auth_state(&self) -> bool {
        self.sources
            .iter()
            .any(|source| matches!(source, AddressSource::Hub(f) if f.starts_with("auth_state.")))
    }

    /// The sources as the config spells them.
    pub fn tried(&self) -> Vec<String> {
        let spelled = |source: &AddressSource| match source {
            AddressSource::Hub(text) | AddressSource::Template(text) => text.clone(),
            AddressSource::Map(path) => format!("map:{}", path.display()),
        };
        self.sources.iter().map(spelled).collect()
    }

    /// The address of somebody who need not have a server: one that is written out, or by the first source
    /// that knows people without the Hub.
    pub fn of_name(&self, name: &str) -> Option<String> {
        if name.contains('@') {
            return Some(name.to_owned());
        }
        let user = UserName(name.into());
        self.sources.iter().find_map(|source| match source {
            AddressSource::Hub(_) => None,
            AddressSource::Map(path) => mapped(path, &user),
            AddressSource::Template(text) => filled(text, &user),
        })
    }

    /// The owner's address by the first source that has one. A map file that cannot be read has none.
    pub fn find(&self, server: &Server) -> Option<String> {
        self.sources.iter().find_map(|source| match source {
            AddressSource::Hub(field) => {
                server.contacts.iter().find(|(source, _)| source == field).map(|(_, address)| address.clone())
            }
            AddressSource::Map(path) => mapped(path, &server.id.user),
            AddressSource::Template(text) => filled(text, &server.id.user),
        })
    }
}

/// What the Hub answered about users whose address it tells only user by user, so that nobody is asked
/// for at every cycle.
#[derive(Debug, Default)]
pub struct Asked(Mutex<BTreeMap<UserName, (Timestamp, Option<String>)>>);

impl Asked {
    /// How long an answer counts.
    const VALID: SignedDuration = SignedDuration::from_mins(10);

    /// The answer about `user`, if there was one not long ago: an address, or that there is none.
    pub fn recall(&self, user: &UserName, now: Timestamp) -> Option<Option<String>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, address) = known.get(user)?;
        (now.duration_since(*at).abs() < Self::VALID).then(|| address.clone())
    }

    /// Keeps an answer, and forgets those that no longer count.
    pub fn remember(&self, user: &UserName, address: Option<String>, now: Timestamp) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (at, _)| now.duration_since(*at).abs() < Self::VALID);
        known.insert(user.clone(), (now, address));
    }
}

/// The owner's time zone, where the Hub tells it by OpenID Connect's name for it.
pub fn zone_of(owner: &Server) -> Option<TimeZone> {
    let (_, name) = owner.contacts.iter().find(|(source, _)| source == "user_info.zoneinfo")?;
    TimeZone::get(name).ok()
}

fn mapped(path: &PathBuf, user: &UserName) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let map: BTreeMap<String, String> = toml::from_str(&text).ok()?;
    map.get(&*user.0).cloned()
}

/// A name that cannot stand before the `@` gives no address; where it holds one already, it is one.
fn filled(template: &str, user: &UserName) -> Option<String> {
    let allowed = |c: char| c.is_alphanumeric() || "._-+".contains(c);
    (!user.0.is_empty() && user.0.chars().all(allowed)).then(|| template.replace("{user}", &user.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    #[test]
    fn sources_are_told_apart() {
        let map = AddressSource::Map("/etc/addresses.toml".into());
        assert_eq!("map:/etc/addresses.toml".parse(), Ok(map));
        assert_eq!("user_info.email".parse(), Ok(AddressSource::Hub("user_info.email".to_owned())));
        assert!("alice@example.org".parse::<AddressSource>().is_err());
    }

    #[test]
    fn a_user_is_asked_for_once_in_ten_minutes_with_or_without_an_address() {
        let (asked, at) = (Asked::default(), |s| Timestamp::from_second(s).unwrap());
        let nora = UserName("nora".into());
        assert_eq!(asked.recall(&nora, at(0)), None);
        asked.remember(&nora, None, at(0));
        assert_eq!(asked.recall(&nora, at(599)), Some(None));
        asked.remember(&nora, Some("nora@example.org".to_owned()), at(600));
        assert_eq!(asked.recall(&nora, at(601)), Some(Some("nora@example.org".to_owned())));
        assert_eq!(asked.recall(&nora, at(1_200)), None);
    }

    #[test]
    fn somebody_without_a_server_is_found_by_name() {
        let sources = ["user_info.email", "{user}@example.org"].map(|text| text.parse().unwrap());
        let book = AddressBook::new(sources.to_vec());
        assert_eq!(book.of_name("mlops").unwrap(), "mlops@example.org");
        assert_eq!(book.of_name("team@example.com").unwrap(), "team@example.com");
        assert_eq!(book.of_name("the ML team"), None);
    }

    #[test]
    fn a_name_that_cannot_stand_in_an_address_has_none() {
        let template = "{user}@example.org";
        assert_eq!(filled(template, &UserName("ada.l".into())).unwrap(), "ada.l@example.org");
        for name in ["", "a b", "a@b", "a\r\nBcc: x", "<a>", "a,b"] {
            assert_eq!(filled(template, &UserName(name.into())), None, "{name}");
        }
    }
}

//! `[intent]`: where people say what a session is for, and how much of it counts.

use jiff::tz::TimeZone;

use super::{SettingsError, raw};
use crate::domain::IntentKeys;
use crate::policy::Intents;

/// The section, checked. Days and hours without a zone are those of the stop hours, as with exemptions.
pub fn intents(raw: &raw::Intent, zone: &TimeZone) -> Result<Intents, SettingsError> {
    let default = Intents::default();
    let cap = raw.expected_duration_cap.map_or(default.cap, |cap| cap.0);
    Ok(Intents { keys: keys(raw)?, cap, zone: zone.clone() })
}

/// Which of the users' own options are read at the Hub; none where they are not to count.
pub fn chosen(raw: &raw::Intent) -> Result<Option<IntentKeys>, SettingsError> {
    let keys = keys(raw)?;
    Ok(raw.user_options.unwrap_or(true).then_some(keys))
}

fn keys(raw: &raw::Intent) -> Result<IntentKeys, SettingsError> {
    let IntentKeys { owner, team, project, expected_duration, expected_until } = IntentKeys::default();
    Ok(IntentKeys {
        owner: key("owner", raw.owner.as_ref(), owner)?,
        team: key("team", raw.team.as_ref(), team)?,
        project: key("project", raw.project.as_ref(), project)?,
        expected_duration: key("expected_duration", raw.expected_duration.as_ref(), expected_duration)?,
        expected_until: key("expected_until", raw.expected_until.as_ref(), expected_until)?,
    })
}

fn key(name: &str, given: Option<&String>, default: String) -> Result<String, SettingsError> {
    match given.map(|given| given.trim()) {
        None => Ok(default),
        Some("") => Err(SettingsError::key(
            &format!("intent.{name}"),
            "is empty: write the name of a label, an annotation or an option, like \"example.org/team\"",
        )),
        Some(key) => Ok(key.to_owned()),
    }
}

//! The `[mail]` section.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::{Environment, SettingsError, raw, secret_file, std};
use crate::executor::{AddressBook, AddressSource, LetterLimits};
use crate::message::Wording;
use crate::notify::{MailServer, MailSettings, Mailbox};
use crate::policy::Mode;

/// Who writes, to whom and how.
#[derive(Clone, Debug)]
pub struct PostSettings {
    /// How mail leaves.
    pub mail: MailSettings,
    /// In which words.
    pub wording: Wording,
    /// Where owners' addresses come from.
    pub addresses: AddressBook,
    /// The admins' addresses.
    pub admins: Vec<String>,
    /// How many letters may go out within a day.
    pub limits: LetterLimits,
    /// The zone in which instants are written.
    pub zone: TimeZone,
}

/// Reads the section; in the mode `observe`, too, so that a mistake shows before it matters.
pub fn post(raw: &raw::Mail, mode: Mode, environment: &Environment) -> Result<PostSettings, SettingsError> {
    let needed = |value: &Option<String>, key: &str, example: &str| {
        value
            .clone()
            .ok_or_else(|| SettingsError::key(key, format!("is missing: write it like \"{example}\"")))
    };
    let from = needed(&raw.from, "mail.from", "GPU culler <gpu-culler@example.org>")?;
    let server = needed(&raw.server, "mail.server", "smtp://mail.example.org:587")?;
    let sources = raw.address.iter().map(|text| text.parse::<AddressSource>());
    let sources =
        sources.collect::<Result<Vec<_>, _>>().map_err(|e| SettingsError::key("mail.address", e))?;
    if sources.is_empty() && mode > Mode::Observe {
        let what = "is missing: where do owners' addresses come from? For example [\"user_info.email\"]";
        return Err(SettingsError::key("mail.address", what));
    }
    let password = match &raw.password_file {
        Some(path) => Some(secret_file("mail.password_file", path)?),
        None => environment.secret("GPU_CULLER_MAIL_PASSWORD"),
    };
    Ok(PostSettings {
        mail: MailSettings {
            from: from.parse::<Mailbox>().map_err(|_| {
                SettingsError::key("mail.from", "is no sender like \"GPU culler <gpu-culler@example.org>\"")
            })?,
            server: server.parse::<MailServer>().map_err(|e| SettingsError::key("mail.server", e))?,
            username: raw.username.clone(),
            password: raw.username.as_ref().and(password),
            ca_file: raw.ca_file.clone(),
            timeout: raw.timeout.map_or(Duration::from_secs(20), |time| std(time.0)),
        },
        wording: raw.templates.as_deref().map_or_else(|| Ok(Wording::default()), wording)?,
        addresses: AddressBook::new(sources),
        admins: admins(&raw.admins)?,
        limits: LetterLimits {
            per_owner: at_least_one("mail.max_per_owner", raw.max_per_owner, 20)?,
            in_all: at_least_one("mail.max_in_all", raw.max_in_all, 2_000)?,
        },
        zone: zone(raw.time_zone.as_deref().unwrap_or("UTC"))?,
    })
}

/// The admin's templates: every file of the directory, hidden ones aside.
pub fn wording(directory: &Path) -> Result<Wording, SettingsError> {
    let key = "mail.templates";
    let unread = |path: &Path, error: std::io::Error| {
        SettingsError::key(
            key,
            format!("{} cannot be read ({error}); check the path and its rights", path.display()),
        )
    };
    let mut replaced = BTreeMap::new();
    for entry in std::fs::read_dir(directory).map_err(|error| unread(directory, error))? {
        let entry = entry.map_err(|error| unread(directory, error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            let source =
                std::fs::read_to_string(entry.path()).map_err(|error| unread(&entry.path(), error))?;
            replaced.insert(name, source);
        }
    }
    Wording::new(replaced).map_err(|error| SettingsError::key(key, error))
}

fn at_least_one(key: &str, written: Option<usize>, usual: usize) -> Result<usize, SettingsError> {
    match written {
        Some(0) => Err(SettingsError::key(key, "must be at least 1: nobody is stopped unwarned")),
        written => Ok(written.unwrap_or(usual)),
    }
}

fn admins(raw: &[String]) -> Result<Vec<String>, SettingsError> {
    match raw.iter().position(|admin| admin.parse::<Mailbox>().is_err()) {
        None => Ok(raw.to_vec()),
        Some(index) => {
            Err(SettingsError::key("mail.admins", format!("entry {} is no mail address", index + 1)))
        }
    }
}

fn zone(name: &str) -> Result<TimeZone, SettingsError> {
    TimeZone::get(name).map_err(|_| {
        SettingsError::key("mail.time_zone", format!("\"{name}\" is no time zone like \"Europe/Berlin\""))
    })
}

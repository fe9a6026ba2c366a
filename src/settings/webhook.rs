//! The `[webhook]` section.

use std::time::Duration;

use super::{SettingsError, raw, secret_file, std};
use crate::notify::{Webhook, WebhookSettings};

/// What can be announced, in the words of the trace format.
const KNOWN: [&str; 13] = [
    "idle",
    "warned",
    "reminded",
    "unmarked",
    "kept",
    "stopping",
    "stopped",
    "orphaned",
    "held-back",
    "frozen",
    "lifted",
    "withdrawn",
    "noticed",
];
/// What is, where nothing is said: what somebody may ask the admins about.
const USUAL: [&str; 5] = ["warned", "stopped", "orphaned", "frozen", "lifted"];

/// What is announced, and where.
#[derive(Clone, Debug)]
pub struct Announcements {
    /// The endpoint.
    pub webhook: WebhookSettings,
    events: Vec<String>,
}

impl Announcements {
    /// Whether this kind of event is announced.
    pub fn include(&self, event: &str) -> bool {
        self.events.iter().any(|wanted| wanted == event)
    }
}

/// Reads the section.
pub fn announcements(raw: &raw::Webhook) -> Result<Announcements, SettingsError> {
    let events = raw.events.clone().unwrap_or_else(|| USUAL.map(str::to_owned).to_vec());
    if let Some(unknown) = events.iter().find(|event| !KNOWN.contains(&event.as_str())) {
        let what = format!("\"{unknown}\" is no event: use {}", KNOWN.join(", "));
        return Err(SettingsError::key("webhook.events", what));
    }
    let webhook = WebhookSettings {
        url: secret_file("webhook.url_file", &raw.url_file)?,
        ca_file: raw.ca_file.clone(),
        timeout: raw.timeout.map_or(Duration::from_secs(10), |time| std(time.0)),
    };
    Webhook::new(&webhook).map_err(|error| SettingsError::key("webhook.url_file", error))?;
    Ok(Announcements { webhook, events })
}

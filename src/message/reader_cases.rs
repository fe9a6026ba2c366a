//! Whom mails and pages are for, of every kind that might read badly.

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use jiff::tz::TimeZone;

/// Whom a mail or page is for.
pub struct Case {
    /// What the snapshot is called.
    pub name: &'static str,
    /// The owner.
    pub user: String,
    /// Their servers.
    pub servers: &'static [&'static str],
    /// Whether the notebook is known.
    pub notebook: bool,
    /// The owner's own; else the configured one is taken, which is UTC by default.
    pub zone: Option<&'static str>,
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let usual = || Case {
        name: "one_server",
        user: "alice".to_owned(),
        servers: &[""],
        notebook: true,
        zone: Some("Europe/Berlin"),
    };
    vec![
        usual(),
        Case { name: "several_servers", servers: &["", "training", "vscode"], ..usual() },
        Case { name: "a_named_server", servers: &["training"], ..usual() },
        Case { name: "no_notebook", notebook: false, ..usual() },
        Case { name: "no_time_zone", zone: None, ..usual() },
        Case {
            name: "a_very_long_name",
            user: "anna-maria-".repeat(24),
            servers: &["", "training"],
            ..usual()
        },
        Case {
            name: "a_right_to_left_name",
            user: "שרה \u{202e}כהן".to_owned(),
            servers: &["", "עבודה"],
            ..usual()
        },
    ]
}

impl Case {
    /// Their zone.
    pub fn zone(&self) -> TimeZone {
        self.zone.map_or(TimeZone::UTC, |name| TimeZone::get(name).unwrap())
    }
}

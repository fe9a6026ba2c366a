//! The mail about an exemption that ends soon.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde::Serialize;

use super::view::page;
use super::{foreign, measures, reasons};
use crate::domain::ServerId;

/// An exemption that ends soon.
#[derive(Clone, Debug)]
pub struct EndingNotice {
    /// The rule's name.
    pub rule: String,
    /// Who answers for it, as the config says.
    pub owner: String,
    /// Whether an address of the owner is known.
    pub owner_known: bool,
    /// Why it was given.
    pub reason: String,
    /// The servers that it protects now.
    pub servers: Vec<ServerId>,
    /// How long cards were seen at rest under it, all together …
    pub idle: SignedDuration,
    /// … since then, where it was counted.
    pub counted_since: Option<Timestamp>,
    /// When it ends.
    pub end: Timestamp,
    /// The zone in which instants are written.
    pub zone: TimeZone,
    /// Absolute address of the service's page.
    pub page: Option<String>,
    /// When the mail is written.
    pub now: Timestamp,
}

/// The same for the templates, in words.
#[derive(Serialize)]
pub(super) struct EndingView {
    subject_name: String,
    rule: String,
    owner: String,
    owner_known: bool,
    reason: String,
    servers: Vec<String>,
    cost: Option<String>,
    end: String,
    left: String,
    page: Option<String>,
}

impl EndingView {
    pub(super) fn of(notice: &EndingNotice) -> Self {
        let left = notice.end.duration_since(notice.now);
        let cost = |since| {
            let since = measures::instant_in_words(since, &notice.zone);
            format!("{} GPU-hours at rest since {since}", reasons::gpu_hours(notice.idle))
        };
        Self {
            subject_name: foreign::subject_name(&notice.rule),
            rule: foreign::name(&notice.rule),
            owner: foreign::name(&notice.owner),
            owner_known: notice.owner_known,
            reason: foreign::name(&notice.reason),
            servers: notice.servers.iter().map(foreign::server).collect(),
            cost: notice.counted_since.map(cost),
            end: measures::instant_in_words(notice.end, &notice.zone),
            left: measures::duration_in_words(left.try_into().unwrap_or_default()),
            page: page(notice.page.as_deref()),
        }
    }
}

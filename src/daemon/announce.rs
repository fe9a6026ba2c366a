//! Tells a chat what a cycle did.

use crate::executor::Happening;
use crate::message::{Event, announcement};
use crate::notify::{Announcer, Webhook};
use crate::settings::Announcements;

/// Posts, in the background, the kinds of events that the settings name.
pub struct Announce {
    wanted: Announcements,
    announcer: Announcer,
}

impl Announce {
    /// Begins to post.
    pub fn new(wanted: Announcements) -> Result<Self, String> {
        let webhook = Webhook::new(&wanted.webhook).map_err(|error| error.to_string())?;
        Ok(Self { wanted, announcer: Announcer::start(webhook) })
    }

    /// Announces what happened in one cycle.
    pub fn what(&self, happened: &[Happening]) {
        let events: Vec<Event<'_>> = happened
            .iter()
            .filter(|happening| self.wanted.include(happening.event))
            .map(|happening| Event {
                at: happening.at,
                server: happening.server.as_ref(),
                event: happening.event,
                reason: &happening.reason,
            })
            .collect();
        if let Some(body) = announcement(&events) {
            self.announcer.announce(body);
        }
    }
}

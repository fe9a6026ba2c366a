//! Who waits for a card: asked once, as each cycle does.

use super::{Finding, fine, wrong};
use crate::daemon;
use crate::domain::Queue;
use crate::message::reasons;
use crate::settings::Settings;

/// What the expression gives; nothing where nobody is asked.
pub async fn demand(settings: &Settings) -> Option<Finding> {
    let promql = &settings.demand.as_ref()?.promql;
    let query = match daemon::demand(settings) {
        Err(error) => return Some(wrong("demand", error)),
        Ok(query) => query?,
    };
    Some(match query.waiting(daemon::now()).await {
        Err(why) => wrong("demand", format!("{why}; until then it is not known who waits")),
        Ok(count) => fine("demand", format!("{}: `{promql}`", reasons::queue(&Queue::of(count)))),
    })
}

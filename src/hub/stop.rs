//! The writing side: stops servers and can do nothing else.

use serde_json::json as body;

use super::client::{Call, Client};
use super::{HubError, HubSettings};
use crate::domain::{Afterwards, ServerId};

/// Stops servers. Nobody else in this module can send a DELETE.
#[derive(Debug)]
pub struct Stopper {
    client: Client,
}

/// What the Hub said to a stop. Neither answer proves that the processes are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAnswer {
    /// 204: the Hub has forgotten the server, even if the spawner failed to stop it.
    Gone,
    /// 202: still stopping.
    Slow,
}

impl Stopper {
    /// Stops under way at once. The Hub only waits for the spawner meanwhile, up to ten seconds each,
    /// so that more of them are no load, and slow ones do not hold up the others.
    pub const AT_ONCE: usize = 40;

    /// A client that can stop; nothing is sent yet.
    pub fn new(settings: HubSettings) -> Result<Self, HubError> {
        let settings = HubSettings { concurrency: Self::AT_ONCE, ..settings };
        Ok(Self { client: Client::new(&settings)? })
    }

    /// Stops a server, once. After an error nobody knows whether the stop happened: look again.
    pub async fn stop(&self, id: &ServerId, afterwards: Afterwards) -> Result<StopAnswer, HubError> {
        let (user, name) = (&*id.user.0, &*id.name.0);
        if user.is_empty() {
            return Err(HubError::BadName(id.to_string()));
        }
        let route = match name {
            "" => self.client.route(&["users", user, "server"]),
            _ => self.client.route(&["users", user, "servers", name]),
        }?;
        let body = match afterwards {
            Afterwards::Keep => None,
            Afterwards::Remove => Some(body!({ "remove": true })),
        };
        let call = Call::delete(route, body, "delete:servers");
        match self.client.once(&call).await?.status {
            204 => Ok(StopAnswer::Gone),
            202 => Ok(StopAnswer::Slow),
            other => Err(call.unparsable(format!("{other} instead of 202 or 204"))),
        }
    }
}

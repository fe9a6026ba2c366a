//! Tokens for single-user servers, each good for one server and nothing else.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use serde_json::json as body;

use super::client::{Call, Client};
use super::{HubError, HubSettings, json};
use crate::domain::ServerId;

const VALID: Duration = Duration::from_secs(24 * 3600);
/// Well before it ends, so that a token never ends between two requests.
const RENEW_AFTER: Duration = Duration::from_secs(20 * 3600);
/// A refused token younger than this is kept: a server that refuses every token, which its user can
/// bring about, must not make us fill the Hub's table of tokens.
const YOUNG: Duration = Duration::from_secs(600);
/// Far more servers than one machine's cards can serve.
const CAPACITY: usize = 4096;

/// Makes a token per server, and can send nothing else.
///
/// What the user's server gets to see must be of no use elsewhere. Such a token reads its owner's name and
/// groups and opens that one server; at another server, another server of the same user, or the rest
/// of the API it is a 403.
///
/// Measured with JupyterHub 6.1.1 and 5.4.6:
/// - The scope `tokens` is enough; the service itself needs no `access:servers`. The owner must hold what the
///   token gets, which the role `user` has by default (`self`); otherwise the Hub answers 400. Limited
///   to some people (`tokens!group=…`) it works on 6 for these people; on 5 it is a 403 for all.
/// - `tokens` lets its holder make tokens with *every* right of a user, an admin's too. The service's own
///   token, then as good as an admin's, is sent to the Hub only.
/// - Making a token moves no `last_activity`. Asking with it moves the server's no more than asking with
///   any other token does. The *user's* is moved by each check of the token at the Hub, which the server
///   makes once in five minutes, unless the token's note begins with `Server at `, as the Hub's own
///   tokens for servers do; hence the note.
/// - The scope holds names as they are: spaces, quotes, `@`, `=`, `!`, commas and any script come back
///   unchanged and open the right server. A slash in a user's name, which the Hub does not allow either,
///   would name another user's server and is refused here.
pub struct TokenMinter {
    client: Client,
    purpose: &'static str,
    minted: Mutex<HashMap<ServerId, Minted>>,
}

struct Minted {
    token: SecretString,
    at: Instant,
}

impl fmt::Debug for TokenMinter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenMinter").finish_non_exhaustive()
    }
}

impl TokenMinter {
    /// A client that can make tokens; nothing is sent yet.
    pub fn new(settings: &HubSettings) -> Result<Self, HubError> {
        Self::for_purpose(settings, "reads kernels and terminals")
    }

    /// The same for tokens that end or interrupt kernels: their owner sees what they are for.
    pub fn for_stops(settings: &HubSettings) -> Result<Self, HubError> {
        Self::for_purpose(settings, "shuts idle kernels down")
    }

    fn for_purpose(settings: &HubSettings, purpose: &'static str) -> Result<Self, HubError> {
        Ok(Self { client: Client::new(settings)?, purpose, minted: Mutex::default() })
    }

    /// The token for a server, a new one where the last is gone or soon ends.
    pub(super) async fn token(&self, id: &ServerId, now: Instant) -> Result<SecretString, HubError> {
        if let Some(minted) = self.minted().get(id).filter(|minted| minted.age(now) < RENEW_AFTER) {
            return Ok(minted.token.clone());
        }
        let token = self.mint(id).await?;
        let mut all = self.minted();
        all.retain(|_, minted| minted.age(now) < RENEW_AFTER);
        if all.len() >= CAPACITY {
            all.clear(); // costs each server a new token
        }
        all.insert(id.clone(), Minted { token: token.clone(), at: now });
        Ok(token)
    }

    /// The server did not take its token: its user may have revoked it.
    pub(super) fn refused(&self, id: &ServerId, now: Instant) {
        self.minted().retain(|other, minted| other != id || minted.age(now) < YOUNG);
    }

    async fn mint(&self, id: &ServerId) -> Result<SecretString, HubError> {
        let user = &*id.user.0;
        if user.is_empty() || user.contains('/') || id.name.0.contains('/') {
            return Err(HubError::NoScope(id.to_string()));
        }
        let body = body!({
            "note": format!("Server at {id}: gpu-culler {}", self.purpose),
            "expires_in": VALID.as_secs(),
            "scopes": [format!("access:servers!server={id}")],
        });
        let call = Call::post(self.client.route(&["users", user, "tokens"])?, body, "tokens");
        let answer = self.client.once(&call).await?;
        let token = json::parse(&answer.body)
            .and_then(json::object)
            .and_then(|model| model.required::<String>("token"));
        token.map(SecretString::from).map_err(|why| call.unparsable(why))
    }

    fn minted(&self) -> MutexGuard<'_, HashMap<ServerId, Minted>> {
        self.minted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Minted {
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.at)
    }
}

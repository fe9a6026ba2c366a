//! JupyterHub's REST API and the single-user servers behind it. Wire formats become domain values
//! here and go no further.
//!
//! [`Hub`] only reads, [`Prober`] only reads, [`Login`] knows visitors, [`TokenMinter`] is the one type that can make tokens and
//! [`Stopper`] the one that can stop anything.

mod accounts;
mod client;
mod clock;
mod error;
mod http;
mod json;
mod jupyter;
mod kernels;
mod listing;
mod login;
mod minter;
mod probe;
mod remembered;
mod route;
mod scopes;
mod spawner;
mod stop;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use url::Url;

use crate::domain::{Account, IntentKeys, Server, ServerId, UserName};
use client::{Call, Client};

pub use accounts::{Accounts, UserRemover};
pub use clock::Dated;
pub use error::{HubError, ProbeError};
pub use kernels::KernelStopper;
pub use listing::{Hidden, Listing};
pub use login::{Begun, Holder, Login, LoginSettings, unguessable};
pub use minter::TokenMinter;
pub use probe::{Look, ProbeSettings, ProbeToken, Prober};
pub use scopes::{Duties, ProbeGrant, ScopeNeed, limited, missing, needed};
pub use stop::{StopAnswer, Stopper};
pub use wire::Skipped;

/// How to reach the Hub.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// The API's address, as in `JUPYTERHUB_API_URL` (`http://127.0.0.1:8081/hub/api`).
    pub api_url: Url,
    /// The service's token.
    pub token: SecretString,
    /// Users asked for per page; as many as a Hub gives where absent.
    pub page_size: Option<u32>,
    /// Requests in flight at once, at most.
    pub concurrency: usize,
    /// Limit for one request. A stop is answered only after up to ten seconds: keep this above.
    pub request_timeout: Duration,
    /// Certificates, where the Hub speaks TLS of its own.
    pub tls: TlsFiles,
    /// Which options of the users' own are read besides the profile; others may hold secrets.
    pub chosen: Option<IntentKeys>,
}

/// Certificates for a Hub with `internal_ssl` or a private authority.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// The authorities to trust, and then only these (`JUPYTERHUB_SSL_CLIENT_CA`).
    pub ca_file: Option<PathBuf>,
    /// What to present.
    pub identity: Option<IdentityFiles>,
}

/// A client certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct IdentityFiles {
    /// `JUPYTERHUB_SSL_KEYFILE`.
    pub key_file: PathBuf,
    /// `JUPYTERHUB_SSL_CERTFILE`.
    pub cert_file: PathBuf,
}

/// What the Hub says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubInfo {
    /// Its version.
    pub version: String,
}

/// Whom the token belongs to and what it may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The service's or user's name.
    pub name: String,
    /// Its scopes, as the Hub expanded them.
    pub scopes: BTreeSet<String>,
}

/// The reading side of the Hub.
#[derive(Debug)]
pub struct Hub {
    client: Client,
    page_size: Option<u32>,
    chosen: Option<IntentKeys>,
}

impl Hub {
    /// A client for the Hub; nothing is sent yet.
    pub fn new(settings: HubSettings) -> Result<Self, HubError> {
        Ok(Self { client: Client::new(&settings)?, page_size: settings.page_size, chosen: settings.chosen })
    }

    /// The Hub's version; needs no scope, so it tells "unreachable" from "not allowed".
    pub async fn info(&self) -> Result<HubInfo, HubError> {
        let call = Call::get(self.client.route(&[""])?, "");
        let version = self.read(&call, |model| model.required("version")).await?;
        Ok(HubInfo { version })
    }

    /// Whose the token is and what it may do.
    pub async fn identity(&self) -> Result<Identity, HubError> {
        let call = Call::get(self.client.route(&["user"])?, "");
        let read = |model: json::Fields<'_>| {
            Ok(Identity { name: model.required("name")?, scopes: model.required("scopes")? })
        };
        self.read(&call, read).await
    }

    /// All servers that run, start or stop. Fails only where not even the first page came.
    pub async fn servers(&self) -> Result<Listing, HubError> {
        listing::read(&self.client, self.page_size, self.chosen.as_ref()).await
    }

    /// One server as it is now; `None` where the Hub knows none such, or a stopped one.
    ///
    /// A token whose scopes are limited to other people also gets `None`, for the Hub answers 404.
    pub async fn server(&self, id: &ServerId) -> Result<Option<Server>, HubError> {
        let call = Call::get(self.client.route(&["users", &id.user.0])?, "list:users and read:servers");
        let answer = match self.client.get(&call).await {
            Ok(answer) => answer,
            Err(HubError::Status { status: 404, said: Some(_), .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let model = json::parse(&answer).map_err(|why| call.unparsable(why))?;
        wire::one_server(model, &id.name, self.chosen.as_ref()).map_err(|why| call.unparsable(why))
    }

    /// When the last answer was made, by the Hub's clock and by ours.
    pub fn dated(&self) -> Option<Dated> {
        self.client.dated()
    }

    /// The users without a running server; only those that are `wanted` are kept.
    pub async fn inactive_users(&self, wanted: impl Fn(&Account) -> bool) -> Result<Accounts, HubError> {
        accounts::inactive(&self.client, self.page_size, wanted).await
    }

    /// One user as they are now; `None` where the Hub knows none such.
    pub async fn account(&self, name: &UserName) -> Result<Option<Account>, HubError> {
        accounts::one(&self.client, name).await
    }

    async fn read<T>(
        &self,
        call: &Call,
        read: impl FnOnce(json::Fields<'_>) -> Result<T, String>,
    ) -> Result<T, HubError> {
        let answer = self.client.get(call).await?;
        json::parse(&answer).and_then(json::object).and_then(read).map_err(|why| call.unparsable(why))
    }
}

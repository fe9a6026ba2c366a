//! Asks a single-user server what runs in it, leaving as little trace as can be.
//!
//! `no_track_activity` keeps the server's own clock still; the ETag keeps the proxy's still, which
//! stamps a route for each answer below 300 but not for a 304.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue, IF_NONE_MATCH};
use secrecy::SecretString;
use serde_json::value::RawValue;
use url::{Host, Url};

use super::clock::Dated;
use super::error::ProbeError;
use super::http;
use super::remembered::{Kept, Remembered};
use super::{HubError, HubSettings, TlsFiles, TokenMinter, json, jupyter};
use crate::domain::{Jupyter, ServerId, Terminal};

/// A server with hundreds of kernels stays far below.
const BODY_LIMIT: usize = 4 << 20;

/// What is shown to the user's server, which the user controls and can read it from.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one in a run")]
pub enum ProbeToken {
    /// A token per server, good for that server and nothing else.
    PerServer(TokenMinter),
    /// The service's own, good for everybody's server and for whatever else the service may do. It
    /// leaves this host only for the public address.
    Own(SecretString),
}

impl ProbeToken {
    /// The header that lets us in.
    pub(super) async fn pass(
        &self,
        id: &ServerId,
        base: &Url,
        public: Option<&Url>,
    ) -> Result<HeaderValue, ProbeError> {
        let token = match self {
            Self::PerServer(minter) => {
                &minter.token(id, Instant::now()).await.map_err(ProbeError::NoToken)?
            }
            Self::Own(token) if may_see_own_token(base, public) => token,
            Self::Own(_) => return Err(ProbeError::Foreign(base.origin().ascii_serialization())),
        };
        http::authorization(token).map_err(|why| ProbeError::NoToken(HubError::Setup(why)))
    }

    /// A token that was not taken is replaced.
    pub(super) fn judged(&self, id: &ServerId, error: &ProbeError) {
        if let (Self::PerServer(minter), ProbeError::Forbidden { .. }) = (self, error) {
            minter.refused(id, Instant::now());
        }
    }
}

/// How to ask single-user servers.
#[derive(Clone, Debug)]
pub struct ProbeSettings {
    /// The Hub's public address, where it is known.
    pub public_url: Option<Url>,
    /// Limit for one request.
    pub request_timeout: Duration,
    /// Limit for one server.
    pub total_timeout: Duration,
}

impl From<&HubSettings> for ProbeSettings {
    fn from(hub: &HubSettings) -> Self {
        Self {
            public_url: None,
            request_timeout: Duration::from_secs(5).min(hub.request_timeout),
            total_timeout: Duration::from_secs(10).min(hub.request_timeout * 2),
        }
    }
}

/// A look at one server.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// What was seen.
    pub jupyter: Jupyter,
    /// Whether a whole answer came. Through the proxy this moves the Hub's stamp, so a
    /// `last_activity` of this moment is ours and nobody's presence.
    pub left_trace: bool,
    /// When it answered, by its clock and by ours.
    pub dated: Option<Dated>,
}

/// Reads single-user servers.
pub struct Prober {
    http: reqwest::Client,
    token: ProbeToken,
    settings: ProbeSettings,
    remembered: Remembered,
}

impl fmt::Debug for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prober").finish_non_exhaustive()
    }
}

impl Prober {
    /// A client for single-user servers; nothing is sent yet. It trusts what this host trusts, and not
    /// the Hub's own authorities: those sign for every user's server.
    pub fn new(token: ProbeToken, settings: ProbeSettings) -> Result<Self, HubError> {
        let http = http::client(&TlsFiles::default(), settings.request_timeout).map_err(HubError::Setup)?;
        Ok(Self { http, token, settings, remembered: Remembered::default() })
    }

    /// What runs in the server `id`, which is at `base` (`http://127.0.0.1:36963/user/alice/`).
    pub async fn jupyter(&self, id: &ServerId, base: &Url) -> Result<Jupyter, ProbeError> {
        self.look(id, base).await.map(|look| look.jupyter)
    }

    /// The same, and whether looking left a trace.
    pub async fn look(&self, id: &ServerId, base: &Url) -> Result<Look, ProbeError> {
        let after = self.settings.total_timeout;
        let whole = async {
            check(base)?;
            let pass = self.token.pass(id, base, self.settings.public_url.as_ref()).await?;
            self.ask_all(&At { base, pass }).await
        };
        let result = tokio::time::timeout(after, whole).await.unwrap_or_else(|_| {
            let what = format!("GET {}api/", base.path());
            Err(ProbeError::TimedOut { what, after })
        });
        if let Err(error) = &result {
            self.token.judged(id, error);
        }
        result
    }

    async fn ask_all(&self, at: &At<'_>) -> Result<Look, ProbeError> {
        // Kernels first and alone: a server that does not let us in is not asked four times.
        let kernels = self.ask(at, "api/kernels", jupyter::kernels).await?;
        let (status, terminals, sessions) = futures::join!(
            self.ask(at, "api/status", jupyter::status),
            self.terminals(at),
            self.notebooks(at, kernels.value.is_empty()),
        );
        let (status, terminals) = (status?, terminals?);
        let left_trace = kernels.fresh || status.fresh || terminals.fresh || sessions.fresh;
        let mut jupyter = status.value;
        jupyter.kernels = kernels.value;
        jupyter.terminals = terminals.value;
        for kernel in &mut jupyter.kernels {
            let of_kernel = sessions.value.iter().find(|(id, _)| *id == kernel.id);
            kernel.notebook = of_kernel.map(|(_, path)| path.clone());
        }
        Ok(Look { jupyter, left_trace, dated: kernels.dated })
    }

    /// A server whose terminals are switched off answers 404 and has none.
    async fn terminals(&self, at: &At<'_>) -> Result<Told<Vec<Terminal>>, ProbeError> {
        match self.ask(at, "api/terminals", jupyter::terminals).await {
            Err(ProbeError::Status { status: 404, .. }) => Ok(Told::default()),
            result => result,
        }
    }

    /// The notebooks' names only serve people; without them the rest still counts.
    async fn notebooks(&self, at: &At<'_>, no_kernels: bool) -> Told<Vec<(String, String)>> {
        if no_kernels {
            return Told::default();
        }
        self.ask(at, "api/sessions", jupyter::sessions).await.unwrap_or_default()
    }

    async fn ask<T>(
        &self,
        at: &At<'_>,
        endpoint: &str,
        read: fn(&RawValue) -> Result<T, String>,
    ) -> Result<Told<T>, ProbeError> {
        let url = address(at.base, endpoint);
        let what = format!("GET {}", url.path());
        let Fetched { body, fresh, dated } = self.fetch(url, &at.pass, &what).await?;
        match json::parse(&body).and_then(read) {
            Ok(value) => Ok(Told { value, fresh, dated }),
            Err(why) => Err(ProbeError::Unparsable { what, why }),
        }
    }

    async fn fetch(&self, url: Url, pass: &HeaderValue, what: &str) -> Result<Fetched, ProbeError> {
        let address = url.to_string();
        let kept = self.remembered.get(&address);
        let mut request =
            self.http.get(url).header(ACCEPT, "application/json").header(AUTHORIZATION, pass.clone());
        if let Some(kept) = &kept {
            request = request.header(IF_NONE_MATCH, kept.etag.clone());
        }
        let answer = http::exchange(request, BODY_LIMIT)
            .await
            .map_err(|failure| ProbeError::failed(what.to_owned(), failure, self.settings.request_timeout))?;
        let dated = answer.dated;
        match (answer.status, kept) {
            (304, Some(kept)) => Ok(Fetched { body: kept.body, fresh: false, dated }),
            (200, _) => {
                let body: Arc<[u8]> = answer.body.into();
                match answer.etag {
                    Some(etag) => self.remembered.keep(&address, Kept { etag, body: body.clone() }),
                    None => self.remembered.forget(&address),
                }
                Ok(Fetched { body, fresh: true, dated })
            }
            (status, _) => Err(ProbeError::refused(what.to_owned(), status)),
        }
    }
}

/// A server to ask, and what lets us in.
struct At<'a> {
    base: &'a Url,
    pass: HeaderValue,
}

/// An endpoint's answer, whether it was sent whole, and when.
#[derive(Default)]
struct Told<T> {
    value: T,
    fresh: bool,
    dated: Option<Dated>,
}

/// The same as bytes.
struct Fetched {
    body: Arc<[u8]>,
    fresh: bool,
    dated: Option<Dated>,
}

fn check(base: &Url) -> Result<(), ProbeError> {
    let web = matches!(base.scheme(), "http" | "https") && base.has_host();
    if web { Ok(()) } else { Err(ProbeError::BadAddress(base.path().to_owned())) }
}

fn address(base: &Url, endpoint: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{endpoint}", base.path().trim_end_matches('/')));
    url.set_fragment(None);
    url.set_query(Some("no_track_activity=1"));
    url
}

/// This host, by its address and not by a name that somebody could resolve elsewhere, or the public address.
fn may_see_own_token(base: &Url, public: Option<&Url>) -> bool {
    let here = match base.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        _ => false,
    };
    here || public.is_some_and(|public| public.origin() == base.origin())
}

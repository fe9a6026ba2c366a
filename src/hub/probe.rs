//! Asks a single-user server what runs in it, leaving as little trace as can be.
//!
//! `no_track_activity` keeps the server's own clock still; the ETag keeps the proxy's still, which
//! stamps a route for each answer below 300 but not for a 304.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, IF_NONE_MATCH};
use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use super::error::ProbeError;
use super::http;
use super::remembered::{Kept, Remembered};
use super::{HubError, HubSettings, TlsFiles, json, jupyter};
use crate::domain::{Jupyter, Terminal};

/// A server with hundreds of kernels stays far below.
const BODY_LIMIT: usize = 4 << 20;

/// How to ask single-user servers.
#[derive(Clone, Debug)]
pub struct ProbeSettings {
    /// Sent to the user's server, which the user controls: it should be good for nothing else.
    pub token: SecretString,
    /// Certificates, where servers speak TLS (`internal_ssl`).
    pub tls: TlsFiles,
    /// Limit for one request.
    pub request_timeout: Duration,
    /// Limit for one server.
    pub total_timeout: Duration,
}

impl From<&HubSettings> for ProbeSettings {
    fn from(hub: &HubSettings) -> Self {
        Self {
            token: hub.token.clone(),
            tls: hub.tls.clone(),
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
}

/// Reads single-user servers.
pub struct Prober {
    http: reqwest::Client,
    request_timeout: Duration,
    total_timeout: Duration,
    remembered: Remembered,
}

impl fmt::Debug for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prober").finish_non_exhaustive()
    }
}

impl Prober {
    /// A client for single-user servers; nothing is sent yet.
    pub fn new(settings: ProbeSettings) -> Result<Self, HubError> {
        let http = http::client(&settings.token, &settings.tls, settings.request_timeout)
            .map_err(HubError::Setup)?;
        Ok(Self {
            http,
            request_timeout: settings.request_timeout,
            total_timeout: settings.total_timeout,
            remembered: Remembered::default(),
        })
    }

    /// What runs in the server at `base` (`http://127.0.0.1:36963/user/alice/`).
    pub async fn jupyter(&self, base: &Url) -> Result<Jupyter, ProbeError> {
        self.look(base).await.map(|look| look.jupyter)
    }

    /// The same, and whether looking left a trace.
    pub async fn look(&self, base: &Url) -> Result<Look, ProbeError> {
        let whole = self.ask_all(base);
        match tokio::time::timeout(self.total_timeout, whole).await {
            Ok(result) => result,
            Err(_) => Err(ProbeError::TimedOut {
                what: format!("GET {}api/", base.path()),
                after: self.total_timeout,
            }),
        }
    }

    async fn ask_all(&self, base: &Url) -> Result<Look, ProbeError> {
        // Kernels first and alone: a server that does not let us in is not asked four times.
        let kernels = self.ask(base, "api/kernels", jupyter::kernels).await?;
        let (status, terminals, sessions) = futures::join!(
            self.ask(base, "api/status", jupyter::status),
            self.terminals(base),
            self.notebooks(base, kernels.value.is_empty()),
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
        Ok(Look { jupyter, left_trace })
    }

    /// A server whose terminals are switched off answers 404 and has none.
    async fn terminals(&self, base: &Url) -> Result<Told<Vec<Terminal>>, ProbeError> {
        match self.ask(base, "api/terminals", jupyter::terminals).await {
            Err(ProbeError::Status { status: 404, .. }) => Ok(Told::default()),
            result => result,
        }
    }

    /// The notebooks' names only serve people; without them the rest still counts.
    async fn notebooks(&self, base: &Url, no_kernels: bool) -> Told<Vec<(String, String)>> {
        if no_kernels {
            return Told::default();
        }
        self.ask(base, "api/sessions", jupyter::sessions).await.unwrap_or_default()
    }

    async fn ask<T>(
        &self,
        base: &Url,
        endpoint: &str,
        read: fn(Value) -> Result<T, String>,
    ) -> Result<Told<T>, ProbeError> {
        let url = address(base, endpoint)?;
        let what = format!("GET {}", url.path());
        let (body, fresh) = self.fetch(url, &what).await?;
        match json::parse(&body).and_then(read) {
            Ok(value) => Ok(Told { value, fresh }),
            Err(why) => Err(ProbeError::Unparsable { what, why }),
        }
    }

    /// The body, and whether it is a new one.
    async fn fetch(&self, url: Url, what: &str) -> Result<(Arc<[u8]>, bool), ProbeError> {
        let address = url.to_string();
        let kept = self.remembered.get(&address);
        let mut request = self.http.get(url).header(ACCEPT, "application/json");
        if let Some(kept) = &kept {
            request = request.header(IF_NONE_MATCH, kept.etag.clone());
        }
        let answer = http::exchange(request, BODY_LIMIT)
            .await
            .map_err(|failure| ProbeError::failed(what.to_owned(), failure, self.request_timeout))?;
        match (answer.status, kept) {
            (304, Some(kept)) => Ok((kept.body, false)),
            (200, _) => {
                let body: Arc<[u8]> = answer.body.into();
                match answer.etag {
                    Some(etag) => self.remembered.keep(&address, Kept { etag, body: body.clone() }),
                    None => self.remembered.forget(&address),
                }
                Ok((body, true))
            }
            (status, _) => Err(ProbeError::refused(what.to_owned(), status)),
        }
    }
}

/// An endpoint's answer, and whether it was sent whole.
#[derive(Default)]
struct Told<T> {
    value: T,
    fresh: bool,
}

fn address(base: &Url, endpoint: &str) -> Result<Url, ProbeError> {
    let bad = || ProbeError::BadAddress(base.path().to_owned());
    if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
        return Err(bad());
    }
    let mut url = base.clone();
    url.set_path(&format!("{}/{endpoint}", base.path().trim_end_matches('/')));
    url.set_fragment(None);
    url.set_query(Some("no_track_activity=1"));
    Ok(url)
}

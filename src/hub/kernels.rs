//! The writing side of single-user servers: shuts kernels down, or interrupts them, and can do nothing else.

use std::fmt;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{Method, StatusCode};
use url::Url;

use super::error::ProbeError;
use super::probe::ProbeToken;
use super::{HubError, ProbeSettings, TlsFiles, http, route};
use crate::domain::ServerId;

/// A server lets a kernel end by itself for five seconds before it kills it, and answers then.
const PATIENCE: Duration = Duration::from_secs(15);
const BODY_LIMIT: usize = 1 << 20;

/// Ends or interrupts kernels. `no_track_activity` keeps the server's own clock still: it is nobody's use.
pub struct KernelStopper {
    http: reqwest::Client,
    token: ProbeToken,
    public_url: Option<Url>,
}

impl fmt::Debug for KernelStopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelStopper").finish_non_exhaustive()
    }
}

impl KernelStopper {
    /// A client for single-user servers; nothing is sent yet.
    pub fn new(token: ProbeToken, settings: ProbeSettings) -> Result<Self, HubError> {
        let http = http::client(&TlsFiles::default(), PATIENCE).map_err(HubError::Setup)?;
        Ok(Self { http, token, public_url: settings.public_url })
    }

    /// Shuts one kernel of the server `id`, which is at `base`, down. One that is not there any more is fine.
    pub async fn shut_down(&self, id: &ServerId, base: &Url, kernel: &str) -> Result<(), ProbeError> {
        let gone = [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND];
        self.send(Method::DELETE, id, base, &["api", "kernels", kernel], &gone).await
    }

    /// Interrupts what a kernel runs, as the stop button does.
    pub async fn interrupt(&self, id: &ServerId, base: &Url, kernel: &str) -> Result<(), ProbeError> {
        let path = ["api", "kernels", kernel, "interrupt"];
        self.send(Method::POST, id, base, &path, &[StatusCode::NO_CONTENT]).await
    }

    async fn send(
        &self,
        method: Method,
        id: &ServerId,
        base: &Url,
        path: &[&str],
        fine: &[StatusCode],
    ) -> Result<(), ProbeError> {
        let mut url = route::below(base, path).map_err(ProbeError::BadAddress)?;
        url.set_query(Some("no_track_activity=1"));
        let what = format!("{method} {}", url.path());
        let pass: HeaderValue = self.token.pass(id, base, self.public_url.as_ref()).await?;
        let request = self.http.request(method, url).header(reqwest::header::AUTHORIZATION, pass);
        let answer = http::exchange(request, BODY_LIMIT)
            .await
            .map_err(|failure| ProbeError::failed(what.clone(), failure, PATIENCE))?;
        if fine.iter().any(|status| status.as_u16() == answer.status) {
            return Ok(());
        }
        let error = ProbeError::refused(what, answer.status);
        self.token.judged(id, &error);
        Err(error)
    }
}

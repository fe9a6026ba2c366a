//! Requests to the Hub: bounded in number and time, repeated only where that is safe.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use backon::{ExponentialBuilder, Retryable};
use reqwest::Method;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::Semaphore;
use url::Url;

use super::clock::Dated;
use super::error::{HubError, remedy};
use super::http::{self, Answer};
use super::{HubSettings, json, route};

/// A page of 200 users with a server each has about a quarter of a megabyte.
const BODY_LIMIT: usize = 64 << 20;
/// A Hub that has just come back may answer 403 until it has loaded its roles.
const UNSETTLED: Duration = Duration::from_secs(120);
const PAGES: &str = "application/jupyterhub-pagination+json";

/// One request, as errors name it.
pub(super) struct Call {
    method: Method,
    url: Url,
    body: Option<Value>,
    scopes: &'static str,
}

impl Call {
    /// A reading request that needs `scopes`.
    pub(super) fn get(url: Url, scopes: &'static str) -> Self {
        Self { method: Method::GET, url, body: None, scopes }
    }

    /// A stop, which needs `scopes`.
    pub(super) fn delete(url: Url, body: Option<Value>, scopes: &'static str) -> Self {
        Self { method: Method::DELETE, url, body, scopes }
    }

    /// A request to make something, which needs `scopes`.
    pub(super) fn post(url: Url, body: Value, scopes: &'static str) -> Self {
        Self { method: Method::POST, url, body: Some(body), scopes }
    }

    /// The same request with query arguments.
    pub(super) fn with_query(mut self, pairs: &[(&str, &str)]) -> Self {
        self.url.query_pairs_mut().extend_pairs(pairs);
        self
    }

    /// The complaint that the answer was not understood.
    pub(super) fn unparsable(&self, why: String) -> HubError {
        HubError::Unparsable { what: self.to_string(), why }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.url.path())?;
        match self.url.query() {
            Some(query) => write!(f, "?{query}"),
            None => Ok(()),
        }
    }
}

/// The Hub's own words for an error, possibly none: `{"status": 403, "message": null}`.
fn said(answer: &Answer) -> Option<String> {
    const LONGEST: usize = 200;
    let model = json::parse(&answer.body).and_then(json::object).ok()?;
    let same_status = model.required::<u64>("status").ok()? == u64::from(answer.status);
    if !model.has("message") {
        return None;
    }
    let message = model.get("message").and_then(json::text).unwrap_or_default();
    let printable = message.chars().filter(|c| !c.is_control());
    same_status.then(|| printable.take(LONGEST).collect())
}

/// The connection to one Hub.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    base: Url,
    token: SecretString,
    authorization: HeaderValue,
    permits: Semaphore,
    timeout: Duration,
    last_trouble: Mutex<Instant>,
    dated: Mutex<Option<Dated>>,
}

impl Client {
    pub(super) fn new(settings: &HubSettings) -> Result<Self, HubError> {
        let http = http::client(&settings.tls, settings.request_timeout).map_err(HubError::Setup)?;
        let authorization = http::authorization(&settings.token).map_err(HubError::Setup)?;
        Ok(Self {
            http,
            authorization,
            base: settings.api_url.clone(),
            token: settings.token.clone(),
            permits: Semaphore::new(settings.concurrency.clamp(1, Semaphore::MAX_PERMITS)),
            timeout: settings.request_timeout,
            last_trouble: Mutex::new(Instant::now()),
            dated: Mutex::default(),
        })
    }

    /// An address below the API's.
    pub(super) fn route(&self, segments: &[&str]) -> Result<Url, HubError> {
        route::below(&self.base, segments).map_err(HubError::BadName)
    }

    /// Reads, and asks again a few times where the Hub seems to be out for a moment.
    pub(super) async fn get(&self, call: &Call) -> Result<Vec<u8>, HubError> {
        let mut second_chance = true;
        let answer = (|| self.once(call))
            .retry(backoff())
            .when(|error| {
                error.is_transient()
                    || error.is_forbidden() && self.is_unsettled() && std::mem::take(&mut second_chance)
            })
            .await?;
        Ok(answer.body)
    }

    /// Sends once and never again.
    pub(super) async fn once(&self, call: &Call) -> Result<Answer, HubError> {
        let _permit = self.permits.acquire().await.ok(); // never closed
        let mut request = self.http.request(call.method.clone(), call.url.clone());
        request = request.header(ACCEPT, PAGES).header(AUTHORIZATION, self.authorization.clone());
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let result = http::exchange(request, BODY_LIMIT)
            .await
            .map_err(|failure| HubError::failed(call.to_string(), failure, self.timeout))
            .and_then(|answer| {
                *self.dated.lock().unwrap_or_else(PoisonError::into_inner) = answer.dated;
                self.judge(call, answer)
            });
        if result.as_ref().is_err_and(HubError::is_transient) {
            *self.last_trouble.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        result
    }

    /// When the last answer was made, by the Hub's clock and by ours.
    pub(super) fn dated(&self) -> Option<Dated> {
        *self.dated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, call: &Call, answer: Answer) -> Result<Answer, HubError> {
        let (what, status) = (call.to_string(), answer.status);
        match status {
            200..=299 => Ok(answer),
            300..=399 => Err(HubError::Redirected { what, status }),
            _ => {
                // What is sent may come back in an error, so the token is taken out again.
                let said = said(&answer).map(|s| s.replace(self.token.expose_secret(), "…"));
                let remedy = remedy(status, said.as_deref(), call.scopes);
                Err(HubError::Status { what, status, said, remedy })
            }
        }
    }

    fn is_unsettled(&self) -> bool {
        let last = self.last_trouble.lock().unwrap_or_else(PoisonError::into_inner);
        last.elapsed() < UNSETTLED
    }
}

fn backoff() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(2))
        .with_max_times(2)
        .with_jitter()
        // Without a seed of its own each copy of the service would wait equally long.
        .with_jitter_seed(RandomState::new().hash_one(()))
}

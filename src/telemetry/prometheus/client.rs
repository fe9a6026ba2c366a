//! Asks a server of Prometheus' kind. Only reads; what cannot be trusted is an error.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use jiff::Timestamp;
use reqwest::header::{AUTHORIZATION, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Certificate, Identity, NoProxy, RequestBuilder, Response, StatusCode, redirect, retry};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::answer::{self, Series, Wanted};
use super::error::{PromError, words};
use super::settings::{Login, Method, PrometheusSettings, Proxy};

/// The largest answer that is read.
const MAX_BODY: usize = 128 << 20;

/// Redirects within the same origin that are followed.
const MAX_HOPS: usize = 5;

/// One server.
pub struct Client {
    settings: PrometheusSettings,
    headers: HeaderMap,
    /// The connections, and the state of the certificate files they were made with.
    http: Mutex<Option<(Stamps, reqwest::Client)>>,
    max_body: usize,
}

type Stamps = Vec<Option<SystemTime>>;

/// What a query brought.
#[derive(Debug)]
pub struct Answer {
    /// The series.
    pub series: Vec<Series>,
    /// The server's clock, where it tells.
    pub date: Option<Timestamp>,
    /// How large the answer was.
    pub bytes: usize,
}

impl Client {
    /// Checks what can be checked without asking anybody.
    pub fn new(settings: PrometheusSettings) -> Result<Self, PromError> {
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let bad = || {
                file_error(Path::new(name), "is no header that can be sent (telemetry.prometheus.headers)")
            };
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let client = Self { settings, headers, http: Mutex::new(None), max_body: MAX_BODY };
        client.http()?;
        Ok(client)
    }

    /// The same, for answers of no more than so many bytes.
    pub fn reading_at_most(self, max_body: usize) -> Self {
        Self { max_body, ..self }
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &PrometheusSettings {
        &self.settings
    }

    /// The raw samples that a range selector (`metric[5m]`) selects at `at`.
    pub async fn ranges(&self, query: &str, at: Timestamp) -> Result<Answer, PromError> {
        self.query(query, at, Wanted::Ranges).await
    }

    /// The value of each series of any expression at `at`.
    pub async fn values(&self, query: &str, at: Timestamp) -> Result<Answer, PromError> {
        self.query(query, at, Wanted::Values).await
    }

    async fn query(&self, query: &str, at: Timestamp, wanted: Wanted) -> Result<Answer, PromError> {
        let asked = tokio::time::timeout(self.settings.timeout, self.ask(query, at));
        let (status, date, body) = asked.await.map_err(|_| PromError::TimedOut {
            query: query.to_owned(),
            seconds: self.settings.timeout.as_secs(),
        })??;
        let is_json = body.first() == Some(&b'{');
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let words = words(&String::from_utf8_lossy(&body));
                return Err(PromError::Denied { host: self.host(), status: status.as_u16(), words });
            }
            status if !is_json => {
                let what = if body.is_empty() { "an empty answer".to_owned() } else { first_line(&body) };
                return Err(PromError::NoApi { host: self.host(), status: status.as_u16(), what });
            }
            status if !status.is_success() => {
                let refused = answer::read(&body, query, wanted, self.settings.max_series);
                let odd = || {
                    let what = first_line(&body);
                    PromError::NoApi { host: self.host(), status: status.as_u16(), what }
                };
                return Err(match refused {
                    Err(error @ PromError::Refused { .. }) => error,
                    _ => odd(),
                });
            }
            _ => {}
        }
        let series = answer::read(&body, query, wanted, self.settings.max_series)?;
        Ok(Answer { series, date, bytes: body.len() })
    }

    /// One exchange, with redirects inside the same origin. Those to elsewhere would carry our secrets there.
    async fn ask(
        &self,
        query: &str,
        at: Timestamp,
    ) -> Result<(StatusCode, Option<Timestamp>, Vec<u8>), PromError> {
        let first = endpoint(&self.settings.url);
        let mut url = first.clone();
        for _ in 0..=MAX_HOPS {
            let mut response =
                self.request(&url, query, at)?.send().await.map_err(|e| self.unreachable(&e))?;
            let status = response.status();
            if !status.is_redirection() {
                let date = date(&response);
                let body = self.body(&mut response, query).await?;
                return Ok((status, date, body));
            }
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.and_then(|to| url.join(to).ok());
            match to {
                Some(to) if to.origin() == first.origin() => url = without_query(to),
                Some(to) => return Err(self.redirected(to.origin().ascii_serialization())),
                None => return Err(self.redirected("nowhere".to_owned())),
            }
        }
        Err(self.redirected("itself again and again".to_owned()))
    }

    fn request(&self, url: &Url, query: &str, at: Timestamp) -> Result<RequestBuilder, PromError> {
        let http = self.http()?;
        let time = format!("{:.3}", at.as_duration().as_secs_f64());
        let mut form = vec![("query", query), ("time", time.as_str())];
        form.extend(self.settings.params.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let request = match self.settings.method {
            Method::Post => http.post(url.clone()).form(&form),
            Method::Get => http.get(url.clone()).query(&form),
        };
        let request = request.headers(self.headers.clone());
        Ok(match &self.settings.login {
            Login::None => request,
            Login::Token(file) => {
                let token = secret(file)?;
                let bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()));
                let mut bearer =
                    bearer.map_err(|_| file_error(file, "holds a character that no token can"))?;
                bearer.set_sensitive(true);
                request.header(AUTHORIZATION, bearer)
            }
            Login::Password(name, file) => request.basic_auth(name, Some(secret(file)?.expose_secret())),
        })
    }

    /// The connections; made anew when a certificate file has changed, since such files rotate.
    fn http(&self) -> Result<reqwest::Client, PromError> {
        let mut made = self.http.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = self.stamps();
        if let Some((of, http)) = made.as_ref().filter(|(of, _)| *of == stamps) {
            let _ = of;
            return Ok(http.clone());
        }
        let http = self.connect()?;
        *made = Some((stamps, http.clone()));
        Ok(http)
    }

    fn stamps(&self) -> Stamps {
        let identity = self.settings.identity.iter().flat_map(|(cert, key)| [cert, key]);
        let files = self.settings.ca_file.iter().chain(identity);
        files.map(|file| fs::metadata(file).and_then(|about| about.modified()).ok()).collect()
    }

    fn connect(&self) -> Result<reqwest::Client, PromError> {
        // Whoever installed one first has the same one: only ring is compiled in.
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("gpu-culler/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .retry(retry::never()); // and no time limit, since that is for a query with all its redirects
        builder = match &self.settings.proxy {
            Proxy::Environment => builder,
            Proxy::None => builder.no_proxy(),
            Proxy::Through(url) => {
                let proxy = reqwest::Proxy::all(url.clone()).map_err(|e| self.unreachable(&e))?;
                builder.proxy(proxy.no_proxy(NoProxy::from_env()))
            }
        };
        if let Some((cert, key)) = &self.settings.identity {
            let pem = [read(key)?, b"\n".to_vec(), read(cert)?].concat();
            let odd = "and its key do not hold a certificate and a key in PEM";
            builder = builder.identity(Identity::from_pem(&pem).map_err(|_| file_error(cert, odd))?);
        }
        if let Some(file) = &self.settings.ca_file {
            let all = Certificate::from_pem_bundle(&read(file)?).unwrap_or_default();
            if all.is_empty() {
                return Err(file_error(file, "holds no certificate in PEM"));
            }
            builder = builder.tls_certs_only(all);
        } else if self.settings.url.scheme() == "http" {
            // A slim container has no system certificates and needs none for plain HTTP.
            builder = builder.tls_certs_only([]);
        }
        builder.build().map_err(|e| self.unreachable(&e))
    }

    async fn body(&self, response: &mut Response, query: &str) -> Result<Vec<u8>, PromError> {
        let too_large =
            || PromError::TooLarge { query: query.to_owned(), limit: format!("{} MiB", self.max_body >> 20) };
        if response.content_length().is_some_and(|length| length > self.max_body as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|e| self.unreachable(&e))? {
            if body.len() + chunk.len() > self.max_body {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn host(&self) -> String {
        let url = &self.settings.url;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}{port}", url.host_str().unwrap_or_default())
    }

    fn unreachable(&self, error: &reqwest::Error) -> PromError {
        let mut innermost: &dyn std::error::Error = error;
        while let Some(source) = innermost.source() {
            innermost = source;
        }
        let why = match innermost.is::<reqwest::Error>() {
            true => "the request could not be built or sent".to_owned(),
            false => words(&innermost.to_string()),
        };
        PromError::Unreachable { host: self.host(), why }
    }

    fn redirected(&self, to: String) -> PromError {
        PromError::Redirected { host: self.host(), to }
    }
}

fn endpoint(base: &Url) -> Url {
    let mut url = base.clone();
    let path = format!("{}/api/v1/query", base.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}

/// A redirect may repeat our query, which is added again.
fn without_query(mut url: Url) -> Url {
    url.set_query(None);
    url
}

fn date(response: &Response) -> Option<Timestamp> {
    let text = response.headers().get(DATE)?.to_str().ok()?;
    jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp())
}

fn first_line(body: &[u8]) -> String {
    let start = String::from_utf8_lossy(&body[..body.len().min(400)]);
    format!("beginning with \"{}\"", words(start.trim_start().lines().next().unwrap_or_default()))
}

fn secret(file: &Path) -> Result<SecretString, PromError> {
    let text = String::from_utf8(read(file)?).map_err(|_| file_error(file, "is no text"))?;
    match text.trim() {
        "" => Err(file_error(file, "is empty")),
        secret => Ok(SecretString::from(secret.to_owned())),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, PromError> {
    fs::read(file).map_err(|error| file_error(file, &format!("cannot be read ({error})")))
}

fn file_error(file: &Path, why: &str) -> PromError {
    PromError::File { path: file.display().to_string(), why: why.to_owned() }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("host", &self.host()).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests;

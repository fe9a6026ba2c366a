//! One HTTP exchange: no redirects, no proxies, bounded in time and size.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::header::{DATE, ETAG, HeaderValue};
use reqwest::{Certificate, ClientBuilder, Identity, RequestBuilder, Response, redirect, retry};
use secrecy::{ExposeSecret, SecretString};

use super::TlsFiles;
use super::clock::Dated;

/// An answer read to its end.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) etag: Option<HeaderValue>,
    pub(super) dated: Option<Dated>,
    pub(super) body: Vec<u8>,
}

/// Why there is no answer.
pub(super) enum Failure {
    Unreachable(String),
    TimedOut,
    TooLarge(usize),
}

/// A client that knows no token: each request brings its own.
pub(super) fn client(tls: &TlsFiles, timeout: Duration) -> Result<reqwest::Client, String> {
    // reqwest is built without a TLS provider of its own; a second call is harmless.
    rustls::crypto::ring::default_provider().install_default().ok();
    let builder = || -> Result<ClientBuilder, String> {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("gpu-culler/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .retry(retry::never()) // a DELETE must go out once; GETs are repeated by `Client::get`
            .no_proxy() // the Hub is near, and a forward proxy must not learn the token
            .timeout(timeout);
        present(tls, builder)
    };
    match &tls.ca_file {
        Some(file) => builder()?.tls_certs_only(authorities(file)?).build(),
        // A slim container has no system certificates and needs none for plain HTTP.
        None => builder()?.build().or_else(|error| match builder() {
            Ok(builder) => builder.tls_certs_only([]).build(),
            Err(_) => Err(error),
        }),
    }
    .map_err(|error| cause(&error))
}

/// The header that carries `token`.
pub(super) fn authorization(token: &SecretString) -> Result<HeaderValue, String> {
    if token.expose_secret().is_empty() {
        return Err("there is no API token; is JUPYTERHUB_API_TOKEN set?".to_owned());
    }
    let mut value = HeaderValue::from_str(&format!("token {}", token.expose_secret()))
        .map_err(|_| "the API token holds a character (a line end?) that no token can".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn present(tls: &TlsFiles, builder: ClientBuilder) -> Result<ClientBuilder, String> {
    let Some(files) = &tls.identity else {
        return Ok(builder);
    };
    let mut pem = read(&files.key_file)?;
    pem.push(b'\n');
    pem.extend(read(&files.cert_file)?);
    let identity = Identity::from_pem(&pem).map_err(|_| {
        let (key, cert) = (files.key_file.display(), files.cert_file.display());
        format!("{key} and {cert} do not hold a key and a certificate in PEM")
    })?;
    Ok(builder.identity(identity))
}

fn authorities(file: &Path) -> Result<Vec<Certificate>, String> {
    let certificates = Certificate::from_pem_bundle(&read(file)?).unwrap_or_default();
    if certificates.is_empty() {
        return Err(format!("{} holds no certificate in PEM", file.display()));
    }
    Ok(certificates)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|e| {
        let own = "JupyterHub names its certificates relative to its own folder: \
                   a service with another `cwd` or `user` may not reach them";
        format!("cannot read {}: {e}. {own}", file.display())
    })
}

/// Sends `request` and reads at most `limit` bytes of the answer.
pub(super) async fn exchange(request: RequestBuilder, limit: usize) -> Result<Answer, Failure> {
    let asked = Instant::now();
    let mut response = request.send().await?;
    let dated = Dated::read(response.headers().get(DATE), asked);
    let status = response.status().as_u16();
    let etag = response.headers().get(ETAG).cloned();
    let body = body(&mut response, limit).await?;
    Ok(Answer { status, etag, dated, body })
}

async fn body(response: &mut Response, limit: usize) -> Result<Vec<u8>, Failure> {
    let announced = response.content_length().unwrap_or(0);
    if usize::try_from(announced).is_ok_and(|n| n > limit) {
        return Err(Failure::TooLarge(limit));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Err(Failure::TooLarge(limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() { Self::TimedOut } else { Self::Unreachable(cause(&error)) }
    }
}

/// The innermost cause: the outer layers only repeat the address.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if innermost.is::<reqwest::Error>() {
        "the request could not be built or sent".to_owned()
    } else {
        innermost.to_string()
    }
}

//! One question to one agent: no redirects, no proxies, bounded in time and size.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Certificate, ClientBuilder, Response, redirect};

use super::wire::Evidence;
use super::{AgentsSettings, Node};

/// The longest answer that is read, in bytes: some ten thousand processes.
const LIMIT: usize = 32 << 20;

/// An answer, and the address it came from.
pub(super) struct Answer {
    pub(super) evidence: Evidence,
    pub(super) from: Option<SocketAddr>,
}

/// Asks agents. One that DNS names by an address only has a connection that leads there.
#[derive(Debug)]
pub(super) struct Client {
    authorities: Option<Vec<Certificate>>,
    timeout: Duration,
    token_file: Option<PathBuf>,
    any: reqwest::Client,
    bound: Mutex<BTreeMap<SocketAddr, reqwest::Client>>,
}

impl Client {
    pub(super) fn new(settings: &AgentsSettings) -> Result<Self, String> {
        // reqwest is built without a TLS provider of its own; a second call is harmless.
        rustls::crypto::ring::default_provider().install_default().ok();
        let AgentsSettings { token_file, ca_file, timeout, whom: _ } = settings.clone();
        let authorities = ca_file.map(authorities).transpose()?;
        let any = build(authorities.as_deref(), timeout, |builder| builder)?;
        Ok(Self { authorities, timeout, token_file, any, bound: Mutex::default() })
    }

    /// The token as it stands in its file now, so that it can be exchanged under us.
    pub(super) fn token(&self) -> Result<Option<HeaderValue>, String> {
        let Some(file) = &self.token_file else { return Ok(None) };
        let text = fs::read_to_string(file)
            .map_err(|e| format!("the token cannot be read from {}: {e}", file.display()))?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", text.trim()))
            .map_err(|_| format!("{} holds what cannot be a token", file.display()))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    pub(super) async fn evidence(
        &self,
        node: &Node,
        token: Option<HeaderValue>,
        since: Option<&str>,
        fresh: bool,
    ) -> Result<Answer, String> {
        let mut url = node.url.clone();
        url.set_path("/v1/evidence");
        let mut request = self.to(node)?.get(url);
        if let Some(since) = since {
            request = request.query(&[("since", since)]);
        }
        if fresh {
            request = request.query(&[("fresh", "true")]);
        }
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let mut response = request.send().await.map_err(|error| self.cause(&error))?;
        let from = response.remote_addr();
        accepted(response.status().as_u16())?;
        let body = self.body(&mut response).await?;
        let evidence = serde_json::from_slice(&body)
            .map_err(|e| format!("what it answers is cut short, or not an agent's ({e})"))?;
        Ok(Answer { evidence, from })
    }

    async fn body(&self, response: &mut Response) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.cause(&error))? {
            if body.len() + chunk.len() > LIMIT {
                return Err(format!("its answer is longer than {} MB", LIMIT >> 20));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn to(&self, node: &Node) -> Result<reqwest::Client, String> {
        let (Some(at), Some(host)) = (node.at, node.url.host_str()) else {
            return Ok(self.any.clone());
        };
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = bound.get(&at) {
            return Ok(client.clone());
        }
        let client = build(self.authorities.as_deref(), self.timeout, |builder| builder.resolve(host, at))?;
        bound.insert(at, client.clone());
        Ok(client)
    }

    fn cause(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            format!("no answer within {} s", self.timeout.as_secs_f64())
        } else {
            cause(error)
        }
    }
}

fn accepted(status: u16) -> Result<(), String> {
    match status {
        200 => Ok(()),
        401 | 403 => {
            Err("it refuses our token: telemetry.agents.token_file here and agent.token_file there must \
                          hold the same"
                .to_owned())
        }
        404 => Err("there is no agent at this address (404)".to_owned()),
        other => Err(format!("it answered with status {other}")),
    }
}

fn build(
    authorities: Option<&[Certificate]>,
    timeout: Duration,
    change: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<reqwest::Client, String> {
    let builder = || {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("gpu-culler/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .no_proxy() // agents are near, and a forward proxy must not learn the token
            .pool_max_idle_per_host(1)
            .timeout(timeout);
        change(builder)
    };
    match authorities {
        Some(own) => builder().tls_certs_only(own.to_vec()).build(),
        // A slim container has no system certificates and needs none for plain HTTP.
        None => builder().build().or_else(|_| builder().tls_certs_only([]).build()),
    }
    .map_err(|error| cause(&error))
}

fn authorities(file: PathBuf) -> Result<Vec<Certificate>, String> {
    let pem = fs::read(&file)
        .map_err(|e| format!("telemetry.agents.ca_file: {} cannot be read: {e}", file.display()))?;
    let certificates = Certificate::from_pem_bundle(&pem).unwrap_or_default();
    if certificates.is_empty() {
        return Err(format!("telemetry.agents.ca_file: {} holds no certificate in PEM", file.display()));
    }
    Ok(certificates)
}

/// The innermost cause: the outer layers only repeat the address.
fn cause(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if innermost.is::<reqwest::Error>() {
        "the request could not be sent".to_owned()
    } else {
        innermost.to_string()
    }
}

//! The agent on a GPU node: samples its cards as the service would, and tells whoever has the token.
//!
//! It decides nothing and keeps nothing on disk. Every reader says where its last answer ended, so that
//! none takes another's peaks.

mod evidence;
mod metrics;
mod token;

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use jiff::Timestamp;
use serde::Deserialize;

use crate::telemetry::NvmlSampler;
pub use token::Token;

/// How long answers in hand may take when the agent ends.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// How often it is looked whether the certificate was exchanged.
const CERTIFICATE_EVERY: Duration = Duration::from_secs(10);

/// The certificate and its key, as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The chain, in PEM.
    pub cert_file: PathBuf,
    /// The key, in PEM.
    pub key_file: PathBuf,
}

/// What the agent needs.
#[derive(Clone, Debug)]
pub struct Agent {
    /// The cards.
    pub sampler: Arc<NvmlSampler>,
    /// Whom it tells; anybody where there is none.
    pub token: Option<Arc<Token>>,
    /// Its id from start to end.
    pub run: Arc<str>,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

impl Agent {
    /// An agent that begins now.
    pub fn new(sampler: NvmlSampler, token: Option<Token>, clock: fn() -> Timestamp) -> anyhow::Result<Self> {
        let run = std::fs::read_to_string("/proc/sys/kernel/random/uuid").context("no /proc is mounted")?;
        Ok(Self { sampler: Arc::new(sampler), token: token.map(Arc::new), run: run.trim().into(), clock })
    }
}

/// Answers until `handle` is told to end.
pub async fn serve(
    agent: Agent,
    listen: SocketAddr,
    tls: Option<Identity>,
    handle: Handle<SocketAddr>,
) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("cannot listen on {listen}"))?;
    listener.set_nonblocking(true)?;
    let app = router(agent).into_make_service();
    let Some(identity) = tls else {
        tracing::info!(address = %listener.local_addr()?, "answering without TLS");
        return Ok(axum_server::from_tcp(listener)?.handle(handle).serve(app).await?);
    };
    rustls::crypto::ring::default_provider().install_default().ok();
    let config = RustlsConfig::from_pem_file(&identity.cert_file, &identity.key_file).await;
    let config = config.with_context(|| {
        let (cert, key) = (identity.cert_file.display(), identity.key_file.display());
        format!("{cert} and {key} do not hold a certificate and its key in PEM")
    })?;
    tracing::info!(address = %listener.local_addr()?, "answering with TLS");
    let exchange = tokio::spawn(exchange_certificates(config.clone(), identity));
    let served = axum_server::from_tcp_rustls(listener, config)?.handle(handle).serve(app).await;
    exchange.abort();
    Ok(served?)
}

/// Ends the answering, with some time for answers in hand.
pub fn end(handle: &Handle<SocketAddr>) {
    handle.graceful_shutdown(Some(LAST_ANSWERS));
}

/// Takes over a new certificate; one that cannot be used is refused and the old one stays.
async fn exchange_certificates(config: RustlsConfig, identity: Identity) {
    let stamps = || (changed(&identity.cert_file), changed(&identity.key_file));
    let mut seen = stamps();
    loop {
        tokio::time::sleep(CERTIFICATE_EVERY).await;
        let now = stamps();
        if now == seen {
            continue;
        }
        match config.reload_from_pem_file(&identity.cert_file, &identity.key_file).await {
            Ok(()) => {
                tracing::info!("the new certificate is in force");
                seen = now;
            }
            Err(error) => tracing::error!(%error, "the new certificate cannot be used, the old one stays"),
        }
    }
}

fn changed(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).ok()?.modified().ok()
}

fn router(agent: Agent) -> Router {
    Router::new()
        .route("/v1/evidence", get(evidence))
        .route("/metrics", get(metrics))
        .route_layer(from_fn_with_state(agent.clone(), known))
        .route("/health", get(|| async { "alive\n" }))
        .with_state(agent)
}

/// Lets in who has the token.
async fn known(State(agent): State<Agent>, request: Request, next: Next) -> Response {
    let given = request.headers().get(axum::http::header::AUTHORIZATION);
    if agent.token.as_ref().is_some_and(|token| !token.is_in(given)) {
        let ask = [(WWW_AUTHENTICATE, "Bearer")];
        return (StatusCode::UNAUTHORIZED, ask, "the token of agent.token_file is needed\n").into_response();
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(CACHE_CONTROL, axum::http::HeaderValue::from_static("no-store"));
    response
}

/// What a reader asks for.
#[derive(Clone, Debug, Default, Deserialize)]
struct Question {
    /// The cursor of its last answer.
    since: Option<String>,
    /// Whether to read the cards once more before.
    #[serde(default)]
    fresh: bool,
}

async fn evidence(State(agent): State<Agent>, Query(question): Query<Question>) -> Response {
    let told = tokio::task::spawn_blocking(move || evidence::tell(&agent, &question)).await;
    told.map_or_else(
        |_| StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        |told| axum::Json(told).into_response(),
    )
}

async fn metrics(State(agent): State<Agent>) -> Response {
    let text = metrics::render(&agent);
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}

#[cfg(test)]
mod tests;

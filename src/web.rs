//! The page and the metrics. Reads what the last cycle reported; changes nothing.
//!
//! The proxy forwards any visitor, logged in or not, so nothing here names a person or a server.

mod metrics;
mod page;
mod status;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

pub use status::{Board, Counters, Status};

/// Answers requests below `prefix` until the process ends.
pub async fn serve(listener: TcpListener, prefix: &str, board: Arc<Board>) -> std::io::Result<()> {
    axum::serve(listener, router(prefix, board)).await
}

/// Binds the service's address. Every caller keeps trying: the port may be held by a predecessor
/// that is about to end.
pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

fn router(prefix: &str, board: Arc<Board>) -> Router {
    let base = prefix.trim_end_matches('/');
    let mut router = Router::new()
        .route(&format!("{base}/"), get(page))
        .route(&format!("{base}/metrics"), get(metrics))
        .route(&format!("{base}/health"), get(health));
    if !base.is_empty() {
        router = router.route(base, get(page));
    }
    router.layer(axum::middleware::map_response(guarded)).with_state(board)
}

async fn page(State(board): State<Arc<Board>>) -> Response {
    match board.read(page::render) {
        Ok(html) => Html(html).into_response(),
        Err(error) => {
            tracing::error!(%error, "the page could not be written");
            "gpu-culler runs, but its page could not be written; see the log".into_response()
        }
    }
}

async fn metrics(State(board): State<Arc<Board>>) -> Response {
    let text = board.read(metrics::render);
    ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
}

/// Always 200: the Hub ends itself when a managed service answers 5xx at its start.
async fn health(State(board): State<Arc<Board>>) -> Response {
    let culling = board.read(|status| status.troubles().is_empty());
    axum::Json(serde_json::json!({ "alive": true, "working": culling })).into_response()
}

const GUARDS: [(HeaderName, HeaderValue); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

async fn guarded(mut response: Response) -> Response {
    response.headers_mut().extend(GUARDS);
    response
}

#[cfg(test)]
mod tests;

//! Pages, metrics and the JSON interface. They read the board that the daemon writes, and leave wishes in
//! the inbox; nothing here touches the ledger.
//!
//! The proxy forwards any visitor, logged in or not: whatever names a person or a server is behind
//! [`entry`], and a change is behind [`posted`].

mod admin;
mod answer;
mod api;
mod arbiter;
mod card;
mod chart;
mod cookies;
mod doors;
mod entry;
mod frame;
mod history;
mod listing;
mod metrics;
mod oauth;
mod owner;
mod posted;
mod refused;
mod server;
mod status;
mod view;
mod visitor;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use jiff::Timestamp;
use tokio::net::TcpListener;

use crate::executor::{Clock, Inbox};
use crate::hub::Login;
use crate::settings::Environment;
use cookies::Cookies;
use doors::Doors;
pub use history::History;
pub use server::{Patience, serve};
pub use status::{Board, Counters, Shown, Status};

/// Everything that answers a visitor.
#[derive(Clone, Debug)]
pub struct Pages(Arc<App>);

#[derive(Debug)]
struct App {
    /// The path before everything, without a slash at its end.
    base: String,
    /// What stands before `hub/…` in the Hub's own pages.
    hub_pages: String,
    board: Arc<Board>,
    inbox: Inbox,
    clock: Clock,
    /// Who is let in, or why nobody can be.
    doors: Result<Doors, String>,
    cookies: Cookies,
    patience: Patience,
}

type Shared = Arc<App>;

impl Pages {
    /// Pages below `prefix`. Where the environment does not tell how to log in, they say so.
    pub fn new(
        environment: &Environment,
        prefix: &str,
        board: Arc<Board>,
        inbox: Inbox,
        clock: Clock,
    ) -> Self {
        let login = environment.login().and_then(|settings| Login::new(settings).map_err(|e| e.to_string()));
        if let Err(problem) = &login {
            tracing::error!("nobody can log in to the pages: {problem}");
        }
        Self(Arc::new(App {
            base: prefix.trim_end_matches('/').to_owned(),
            hub_pages: environment.hub_pages(),
            board,
            inbox,
            clock,
            doors: login.map(Doors::new),
            cookies: Cookies::new(environment, prefix),
            patience: Patience::default(),
        }))
    }
}

impl App {
    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

/// Binds the service's address. Every caller keeps trying: the port may be held by a predecessor
/// that is about to end.
pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

fn router(pages: &Pages) -> Router {
    let base = &pages.0.base;
    let at = |path: &str| format!("{base}{path}");
    let mut router = Router::new()
        .route(&at("/"), get(owner::mine))
        .route(&at("/session/{user}/"), get(owner::default_server))
        .route(&at("/session/{user}/{server}"), get(owner::named_server))
        .route(&at("/keep"), post(answer::keep))
        .route(&at("/stop"), post(answer::stop))
        .route(&at("/lift"), post(answer::lift))
        .route(&at("/admin"), get(admin::sessions))
        .route(&at("/admin/cards"), get(admin::cards))
        .route(&at("/admin/exemptions"), get(admin::exemptions))
        .route(&at("/admin/log"), get(admin::log))
        .route(&at("/oauth_callback"), get(oauth::callback))
        .route(&at("/static/{file}"), get(files))
        .route(&at("/metrics"), get(metrics::metrics))
        .route(&at("/health"), get(health))
        .merge(api::router(base))
        .fallback(refused::not_found);
    if !base.is_empty() {
        router = router.route(base, get(owner::mine));
    }
    router.layer(axum::middleware::map_response(guarded)).with_state(Arc::clone(&pages.0))
}

/// Always 200: the Hub ends itself when a managed service answers 5xx at its start.
async fn health(State(app): State<Shared>) -> Response {
    let culling = app.board.read(|status| status.troubles().is_empty());
    axum::Json(serde_json::json!({ "alive": true, "working": culling })).into_response()
}

const STYLE: &str = include_str!("web/static/style.css");
const SCRIPT: &str = include_str!("web/static/page.js");

/// Style and script: they hold nothing of anybody.
async fn files(State(app): State<Shared>, request: Request) -> Response {
    let file = request.uri().path().rsplit('/').next().unwrap_or_default();
    let (kind, text) = match file {
        "style.css" => ("text/css; charset=utf-8", STYLE),
        "page.js" => ("text/javascript; charset=utf-8", SCRIPT),
        _ => return refused::not_found(State(app)).await,
    };
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "public, max-age=3600")], text).into_response()
}

const GUARDS: [(HeaderName, HeaderValue); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
];

async fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.extend(GUARDS);
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests;

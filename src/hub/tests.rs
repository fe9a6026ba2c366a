//! The Hub's side and the single-user server's side, played by a fake HTTP server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should stop at once")]

mod accounts;
mod kernels;
mod listing;
mod minter;
mod one;
mod probe;
mod secrets;
mod stop;
mod trouble;

use std::time::Duration;

use serde_json::{Value, json};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers};

use super::*;
use crate::domain::{Afterwards, IntentKeys};

const TOKEN: &str = "s3cr3t-t0ken";

fn settings(server: &MockServer) -> HubSettings {
    HubSettings {
        chosen: Some(IntentKeys::default()),
        api_url: Url::parse(&server.uri()).unwrap().join("/hub/api").unwrap(),
        token: TOKEN.to_owned().into(),
        page_size: None,
        concurrency: 4,
        request_timeout: Duration::from_secs(5),
        tls: TlsFiles::default(),
    }
}

fn hub(server: &MockServer) -> Hub {
    Hub::new(settings(server)).unwrap()
}

/// A server's model as a Hub 6 gives it.
fn server_model(name: &str) -> Value {
    json!({
        "name": name, "display_name": name, "full_name": format!("alice/{name}"),
        "started": "2026-12-01T08:00:00.000000Z",
        "last_activity": "2026-12-01T08:59:30.250000Z",
        "pending": null, "ready": true, "stopped": false, "url": "/user/alice/",
        "user_options": {"profile": "a100"}, "state": {"pid": 4242},
    })
}

/// A user with a default server.
fn user_model(name: &str) -> Value {
    json!({
        "kind": "user", "name": name, "admin": false, "groups": ["phd"],
        "user_info": null, "servers": {"": server_model("")},
    })
}

async fn answer(server: &MockServer, path: &str, template: ResponseTemplate) {
    Mock::given(matchers::path(path)).respond_with(template).mount(server).await;
}

fn ok(body: Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(body)
}

/// Path and query of each request that came, in order.
async fn asked(server: &MockServer) -> Vec<String> {
    let requests = server.received_requests().await.unwrap();
    let line = |url: &Url| match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    requests.iter().map(|request| line(&request.url)).collect()
}

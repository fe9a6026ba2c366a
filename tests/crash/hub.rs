//! A Hub with one server, alice's, that ends the service at some request.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::world::{How, Point, Request, World};

const SCOPES: [&str; 4] = ["list:users", "read:servers", "admin:server_state", "delete:servers"];

pub async fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

pub async fn serve(listener: TcpListener, world: Weak<World>) {
    axum::serve(listener, Router::new().fallback(answer).with_state(world)).await.unwrap();
}

async fn answer(State(world): State<Weak<World>>, method: Method, uri: Uri) -> Response {
    let Some(world) = world.upgrade() else { return StatusCode::GONE.into_response() };
    match (method.as_str(), uri.path().trim_start_matches("/hub/api")) {
        ("GET", "/") => Json(json!({"version": "6.1.1"})).into_response(),
        ("GET", "/user") => Json(json!({"name": "gpu-culler", "scopes": SCOPES})).into_response(),
        ("GET", "/users") => {
            let listings = {
                let mut state = world.state();
                state.listings += 1;
                state.listings
            };
            world.reached(Point::Listing(listings));
            let page = json!({"offset": 0, "limit": 200, "total": 1, "next": null});
            Json(json!({"items": [alice(&world)], "_pagination": page})).into_response()
        }
        ("GET", "/users/alice") => {
            let stopped = world.state().session.is_none();
            let request = if stopped { Request::LookAfterwards } else { Request::Look };
            if let Some(how) = world.troubled(request) {
                return instead(how).await;
            }
            world.reached(if stopped { Point::LookAfterwards } else { Point::LastLook });
            Json(alice(&world)).into_response()
        }
        ("DELETE", "/users/alice/server") => stop(world).await,
        other => panic!("the Hub has no answer to {other:?}"),
    }
}

async fn stop(world: Arc<World>) -> Response {
    let trouble = world.troubled(Request::Delete);
    if let Some(how) = trouble.filter(|how| *how != How::DoesAndHangs) {
        return instead(how).await;
    }
    if world.reached(Point::DeleteCame) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let session = world.state().session.take();
    let Some(mut session) = session else { return StatusCode::NOT_FOUND.into_response() };
    let lock = (world.point == Point::DeleteAnswered).then(|| world.no_more_commits());
    session.kill().unwrap();
    session.wait().unwrap();
    world.state().stops.push(Instant::now());
    world.reached(Point::DeleteDone);
    if let Some(lock) = lock {
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(700)).await;
            world.reached(Point::DeleteAnswered);
            drop(lock);
        });
    }
    match trouble {
        Some(how) => instead(how).await,
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

async fn instead(how: How) -> Response {
    match how {
        How::Refuses(status) => {
            let body = json!({"status": status, "message": "not now"});
            (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
        }
        How::Hangs | How::DoesAndHangs => std::future::pending().await,
    }
}

fn alice(world: &World) -> Value {
    let mut servers = json!({});
    if let Some(session) = &world.state().session {
        servers[""] = json!({
            "name": "", "ready": true, "pending": null, "stopped": false, "url": "/user/alice/",
            "started": "2026-11-30T08:00:00Z", "last_activity": "2026-11-30T08:00:00Z",
            "state": {"pid": session.id()}, "user_options": {},
        });
    }
    json!({"name": "alice", "admin": false, "groups": [], "servers": servers})
}

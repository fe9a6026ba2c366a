//! What is posted: read within limits, by somebody whom the Hub has just confirmed, from our own pages.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use axum::http::request::Parts;
use axum::response::Response;
use serde::de::DeserializeOwned;
use url::Url;

use super::doors::{Ask, same_secret};
use super::entry::{CSRF_HEADER, Guest, guest, header, turned_away};
use super::{App, refused};
use crate::message::said::refused as words;

/// Reasons are short.
const BODY_LIMIT: usize = 16 << 10;

/// A form or JSON that somebody may send.
#[derive(Debug)]
pub struct Posted<T> {
    /// Who sent it.
    pub guest: Guest,
    /// What they sent.
    pub body: T,
}

impl<T: DeserializeOwned> FromRequest<Arc<App>> for Posted<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let guest = guest(&parts, app, Ask::Anew).await.map_err(|out| turned_away(&out, &parts, app))?;
        let refuse = |status, words| refused::page(app, status, words);
        let read = tokio::time::timeout(app.patience.body, to_bytes(body, BODY_LIMIT)).await;
        let bytes = match read {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(_)) => return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, words::NOT_UNDERSTOOD)),
            Err(_) => return Err(refuse(StatusCode::REQUEST_TIMEOUT, words::NOT_UNDERSTOOD)),
        };
        if let Some(expected) = &guest.visitor.csrf {
            let given = header(&parts.headers, CSRF_HEADER).map_or_else(|| in_form(&bytes), str::to_owned);
            if !same_secret(&given, expected) || !is_from_here(&parts.headers) {
                return Err(refuse(StatusCode::FORBIDDEN, words::FORGED));
            }
        }
        let body =
            read_as(&parts, &bytes).ok_or_else(|| refuse(StatusCode::BAD_REQUEST, words::NOT_UNDERSTOOD))?;
        Ok(Self { guest, body })
    }
}

fn read_as<T: DeserializeOwned>(parts: &Parts, bytes: &[u8]) -> Option<T> {
    let kind = header(&parts.headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim() {
        "application/json" => serde_json::from_slice(bytes).ok(),
        "application/x-www-form-urlencoded" => {
            let fields: serde_json::Map<_, _> = url::form_urlencoded::parse(bytes)
                .map(|(key, value)| (key.into_owned(), value.into_owned().into()))
                .collect();
            serde_json::from_value(fields.into()).ok()
        }
        _ => None,
    }
}

fn in_form(bytes: &[u8]) -> String {
    let mut fields = url::form_urlencoded::parse(bytes);
    fields.find(|(key, _)| key == "csrf").map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// Whether the browser says that the form stood on a page of this host. An old browser says nothing; then
/// the secret in the form must do.
fn is_from_here(headers: &HeaderMap) -> bool {
    if let Some(site) = header(headers, "sec-fetch-site") {
        return site == "same-origin";
    }
    let Some(origin) = header(headers, ORIGIN.as_str()) else {
        return true;
    };
    let ours = ["x-forwarded-host", HOST.as_str()].into_iter().filter_map(|name| header(headers, name));
    let Ok(origin) = Url::parse(origin) else {
        return false; // `null`: a page that hides where it is from
    };
    let from = origin.host_str().map(|host| match origin.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    });
    ours.filter_map(|host| host.split(',').next()).any(|host| from.as_deref() == Some(host.trim()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    #[test]
    fn only_forms_of_this_host_are_from_here() {
        for (site, origin, ours) in [
            (Some("same-origin"), None, true),
            (Some("same-site"), Some("https://hub.example.org"), false),
            (Some("cross-site"), None, false),
            (Some("none"), None, false),
            (None, Some("https://hub.example.org"), true),
            (None, Some("https://hub.example.org:8443"), false),
            (None, Some("https://evil.example.org"), false),
            (None, Some("null"), false),
            (None, None, true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, "hub.example.org".parse().unwrap());
            if let Some(site) = site {
                headers.insert("sec-fetch-site", site.parse().unwrap());
            }
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(is_from_here(&headers), ours, "{site:?} {origin:?}");
        }
    }
}

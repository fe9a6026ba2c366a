//! Behind this, everybody has been let in.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, HeaderMap, LOCATION};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use secrecy::SecretString;

use super::cookies::Cookies;
use super::doors::{Ask, Outside, Pass, same_secret};
use super::visitor::Visitor;
use super::{App, refused};
use crate::message::said::refused as words;

/// The header in which scripts and programs show the secret of a login's forms.
pub const CSRF_HEADER: &str = "x-csrf-token";

/// Somebody who may look at pages.
#[derive(Debug)]
pub struct Guest {
    /// Who.
    pub visitor: Visitor,
    /// What they showed.
    pub pass: Pass,
}

impl FromRequestParts<Arc<App>> for Guest {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let guest = guest(parts, app, Ask::IfOld).await.map_err(|out| turned_away(&out, parts, app))?;
        // A neighbour's script on the same host could read our pages with its victim's cookie. A browser
        // says what it fetches for: a page to be looked at, or something for a script.
        let fetched = header(&parts.headers, "sec-fetch-mode").is_some_and(|mode| mode != "navigate");
        let shown = header(&parts.headers, CSRF_HEADER);
        if let (true, Some(csrf)) = (fetched, &guest.visitor.csrf)
            && !shown.is_some_and(|shown| same_secret(shown, csrf))
        {
            return Err(refused::page(app, StatusCode::FORBIDDEN, words::FORGED));
        }
        Ok(guest)
    }
}

/// Somebody who may use the JSON interface: what they are told is JSON, too.
#[derive(Debug)]
pub struct Client(pub Guest);

impl FromRequestParts<Arc<App>> for Client {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        let as_json = |response: Response| refused::json_instead(&response);
        parts.extensions.insert(NoRedirect);
        Guest::from_request_parts(parts, app).await.map(Self).map_err(as_json)
    }
}

#[derive(Clone)]
struct NoRedirect;

/// Who sent this request.
pub async fn guest(parts: &Parts, app: &App, ask: Ask) -> Result<Guest, Outside> {
    let Ok(doors) = &app.doors else {
        return Err(Outside::NoLogin);
    };
    let pass = pass(&parts.headers, &app.cookies).ok_or(Outside::NoLogin)?;
    let visitor = doors.visitor(&pass, ask, Instant::now()).await?;
    Ok(Guest { visitor, pass })
}

fn pass(headers: &HeaderMap, cookies: &Cookies) -> Option<Pass> {
    if let Some(authorization) = header(headers, AUTHORIZATION.as_str()) {
        let (scheme, token) = authorization.split_once(' ')?;
        let known = scheme.eq_ignore_ascii_case("token") || scheme.eq_ignore_ascii_case("bearer");
        return known.then(|| Pass::Token(SecretString::from(token.trim())));
    }
    let hub_session = Cookies::hub_session(headers);
    cookies.login(headers).map(|login| Pass::Cookie { login, hub_session })
}

/// Sends a visitor without a login to the Hub, and everybody else away.
pub fn turned_away(out: &Outside, parts: &Parts, app: &App) -> Response {
    let doors = match &app.doors {
        Ok(doors) => doors,
        Err(_) => return refused::page(app, StatusCode::SERVICE_UNAVAILABLE, words::NO_DOOR),
    };
    match out {
        Outside::NoAccess => refused::page(app, StatusCode::FORBIDDEN, words::NO_ACCESS),
        Outside::HubSilent(error) => {
            tracing::warn!("a visitor cannot be let in: {error}");
            refused::page(app, StatusCode::SERVICE_UNAVAILABLE, words::HUB_SILENT)
        }
        Outside::NoLogin => {
            let shows_token = parts.headers.contains_key(AUTHORIZATION);
            let looks = matches!(parts.method, Method::GET | Method::HEAD);
            if !looks || shows_token || parts.extensions.get::<NoRedirect>().is_some() {
                let status = if looks { StatusCode::UNAUTHORIZED } else { StatusCode::FORBIDDEN };
                return refused::page(app, status, words::NO_LOGIN);
            }
            let begun = doors.login.begin();
            let wanted = parts.uri.path_and_query().map_or("/", |wanted| wanted.as_str());
            let jar = app.cookies.begun(&begun, next(wanted, app), &parts.headers, app.now());
            (StatusCode::FOUND, jar, [(LOCATION, begun.go_to)]).into_response()
        }
    }
}

/// Where a visitor goes after the login: the page that was asked for, which is one of ours.
pub fn next(wanted: &str, app: &App) -> String {
    const LONGEST: usize = 1024; // it must fit into a cookie
    let ours = wanted.strip_prefix(&app.base).is_some_and(|rest| rest.starts_with('/'));
    let plain = wanted.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if ours && plain && !wanted.starts_with("//") && wanted.len() <= LONGEST {
        wanted.to_owned()
    } else {
        format!("{}/", app.base)
    }
}

/// A header's value where it is text.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

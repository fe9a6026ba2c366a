//! The cookies: which, for whom, and for how long.

use axum::http::HeaderMap;
use axum_extra::extract::cookie::{Cookie, CookieJar, Key, PrivateCookieJar, SameSite};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::hub::Begun;
use crate::settings::Environment;

/// A login that takes longer was begun in vain.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);
const HUB_SESSION: &str = "jupyterhub-session-id";
/// Enough of a state to tell two logins of the same browser apart.
const SHORT: usize = 12;

/// How cookies are named and limited.
#[derive(Clone)]
pub struct Cookies {
    prefix: &'static str,
    path: String,
    always_secure: bool,
    key: Key,
}

/// Without its key.
impl std::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cookies").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What a visitor's browser remembers while the visitor is at the Hub. It is encrypted: the verifier is
/// what proves that the code was brought back by the browser that was sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct Pending {
    state: String,
    /// The secret behind the challenge.
    pub verifier: String,
    /// Where the visitor wanted to go: a path of this service.
    pub next: String,
    at: Timestamp,
}

impl Cookies {
    /// As the Hub wants them; the key lives as long as the service.
    pub fn new(environment: &Environment, prefix: &str) -> Self {
        let bound = environment.cookies_are_bound_to_host();
        let options = environment.get("JUPYTERHUB_COOKIE_OPTIONS").unwrap_or("{}");
        let options: serde_json::Value = serde_json::from_str(options).unwrap_or_default();
        Self {
            prefix: if bound { "__Host-" } else { "" },
            path: if bound { "/".to_owned() } else { prefix.to_owned() },
            always_secure: bound || options["secure"] == true,
            key: Key::generate(),
        }
    }

    /// The login that a request names.
    pub fn login(&self, headers: &HeaderMap) -> Option<String> {
        let jar = CookieJar::from_headers(headers);
        jar.get(&self.login_name()).map(|cookie| cookie.value().to_owned())
    }

    /// The Hub's session that a request names.
    pub fn hub_session(headers: &HeaderMap) -> Option<String> {
        CookieJar::from_headers(headers).get(HUB_SESSION).map(|cookie| cookie.value().to_owned())
    }

    /// The cookie of a login. It ends with the browser's session.
    pub fn logged_in(&self, login: String, headers: &HeaderMap) -> CookieJar {
        CookieJar::new().add(self.cookie(self.login_name(), login, headers))
    }

    /// Remembers a login that was begun. Each has a cookie of its own, since a browser that opens all its
    /// tabs again begins several.
    pub fn begun(
        &self,
        begun: &Begun,
        next: String,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> PrivateCookieJar {
        let pending = Pending { state: begun.state.clone(), verifier: begun.verifier.clone(), next, at: now };
        let value = serde_json::to_string(&pending).unwrap_or_default();
        let mut cookie = self.cookie(self.pending_name(&begun.state), value, headers);
        // Read from a text, which spares a dependency for one length of time.
        let patience = format!("_=_; Max-Age={}", PATIENCE.as_secs());
        cookie.set_max_age(Cookie::parse(patience).ok().and_then(|cookie| cookie.max_age()));
        PrivateCookieJar::new(self.key.clone()).add(cookie)
    }

    /// The login that comes back with this state, where it was begun in this browser a short while ago;
    /// and the jar that forgets it.
    pub fn came_back(
        &self,
        state: &str,
        headers: &HeaderMap,
        now: Timestamp,
    ) -> (PrivateCookieJar, Option<Pending>) {
        let name = self.pending_name(state);
        let jar = PrivateCookieJar::from_headers(headers, self.key.clone());
        let pending = jar.get(&name).and_then(|cookie| serde_json::from_str::<Pending>(cookie.value()).ok());
        let good = |pending: &Pending| {
            let age = now.duration_since(pending.at);
            super::doors::same_secret(state, &pending.state) && !age.is_negative() && age <= PATIENCE
        };
        let forget = Cookie::build((name, "")).path(self.path.clone());
        (jar.remove(forget), pending.filter(good))
    }

    fn cookie(&self, name: String, value: String, headers: &HeaderMap) -> Cookie<'static> {
        let mut cookie = Cookie::new(name, value);
        cookie.set_path(self.path.clone());
        cookie.set_http_only(true);
        // Lax and not Strict: people come from a link in a mail.
        cookie.set_same_site(SameSite::Lax);
        cookie.set_secure(self.always_secure || is_https(headers));
        cookie
    }

    fn login_name(&self) -> String {
        format!("{}gpu-culler-login", self.prefix)
    }

    fn pending_name(&self, state: &str) -> String {
        let short: String = state.chars().filter(char::is_ascii_alphanumeric).take(SHORT).collect();
        format!("{}gpu-culler-begun-{short}", self.prefix)
    }
}

/// Whether the visitor's own connection is encrypted, as the first proxy on the way says.
fn is_https(headers: &HeaderMap) -> bool {
    let forwarded = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    let first = forwarded.and_then(|text| text.split(',').next()).unwrap_or_default();
    first.trim().eq_ignore_ascii_case("https")
}

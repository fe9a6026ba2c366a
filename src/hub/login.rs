//! Login through the Hub's OAuth, and what a visitor's token says about its holder.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use oauth2::basic::BasicClient;
use oauth2::{
    AsyncHttpClient, AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet,
    EndpointSet, PkceCodeChallenge, PkceCodeVerifier, RequestTokenError, TokenResponse, TokenUrl,
};
use reqwest::header::{ACCEPT, AUTHORIZATION};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::error::remedy;
use super::{HubError, TlsFiles, http, json, route};

/// A user's model is small; a Hub with thousands of groups has a few hundred kilobytes.
const BODY_LIMIT: usize = 4 << 20;
/// Somebody waits in front of a browser.
const PATIENCE: Duration = Duration::from_secs(15);
/// Only the crate wants an absolute address here: it is taken off again.
const ANYWHERE: &str = "http://hub.invalid";

/// How visitors log in, as the Hub tells a managed service in its environment.
#[derive(Clone, Debug)]
pub struct LoginSettings {
    /// The Hub's API.
    pub api_url: Url,
    /// The service's token, which is also its OAuth secret.
    pub token: SecretString,
    /// `service-<name>`.
    pub client_id: String,
    /// Where the Hub sends visitors back to, as it is registered there.
    pub callback: String,
    /// Where visitors are sent: a path, or with subdomains an address on the Hub's host.
    pub authorize: String,
    /// One of these lets a visitor in (`access:services!service=gpu-culler`).
    pub access_scopes: BTreeSet<String>,
    /// Certificates, where the Hub speaks TLS of its own.
    pub tls: TlsFiles,
}

/// Who a token belongs to, asked at the Hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The user's or service's name.
    pub name: String,
    /// Whether it is a person and not a service.
    pub is_user: bool,
    /// Whether the Hub calls this person an admin.
    pub admin: bool,
    /// The token's scopes, as the Hub expanded them.
    pub scopes: BTreeSet<String>,
}

/// A login under way: what must come back, and what proves that it was begun here.
#[derive(Clone, PartialEq, Eq)]
pub struct Begun {
    /// Where to send the visitor.
    pub go_to: String,
    /// What the Hub hands back with the code.
    pub state: String,
    /// The secret behind the challenge that was sent.
    pub verifier: String,
}

/// Without its secrets.
impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begun").finish_non_exhaustive()
    }
}

type OAuth = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// The door: speaks to the Hub about visitors.
#[derive(Debug)]
pub struct Login {
    http: reqwest::Client,
    oauth: OAuth,
    user: Url,
    settings: LoginSettings,
}

impl Login {
    /// Nothing is sent yet.
    pub fn new(settings: LoginSettings) -> Result<Self, HubError> {
        let setup = |what: String| HubError::Setup(format!("nobody can log in: {what}"));
        let http = http::client(&settings.tls, PATIENCE).map_err(HubError::Setup)?;
        let below = |segments: &[&str]| route::below(&settings.api_url, segments).map_err(HubError::BadName);
        let authorize = match settings.authorize.starts_with('/') {
            true => format!("{ANYWHERE}{}", settings.authorize),
            false => settings.authorize.clone(),
        };
        let oauth = BasicClient::new(ClientId::new(settings.client_id.clone()))
            .set_client_secret(ClientSecret::new(settings.token.expose_secret().to_owned()))
            .set_auth_type(AuthType::RequestBody)
            .set_auth_uri(AuthUrl::new(authorize).map_err(|e| setup(format!("JUPYTERHUB_HOST: {e}")))?)
            .set_token_uri(TokenUrl::from_url(below(&["oauth2", "token"])?));
        Ok(Self { http, oauth, user: below(&["user"])?, settings })
    }

    /// Whether these scopes let their holder in.
    pub fn lets_in(&self, holder: &Holder) -> bool {
        !self.settings.access_scopes.is_disjoint(&holder.scopes)
    }

    /// Begins a login. The challenge is always sent: a Hub that does not know it ignores it.
    pub fn begin(&self) -> Begun {
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let (url, state) = self
            .oauth
            .authorize_url(CsrfToken::new_random)
            .set_pkce_challenge(challenge)
            .add_extra_param("redirect_uri", self.settings.callback.clone())
            .url();
        let go_to = url.as_str();
        let go_to = go_to.strip_prefix(ANYWHERE).unwrap_or(go_to).to_owned();
        Begun { go_to, state: state.into_secret(), verifier: verifier.into_secret() }
    }

    /// Exchanges the code that the visitor brought back. `None`: the Hub does not accept it (it was used
    /// before, is too old, or belongs to another login).
    pub async fn finish(&self, code: String, verifier: String) -> Result<Option<SecretString>, HubError> {
        let answer = self
            .oauth
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(verifier))
            .add_extra_param("redirect_uri", self.settings.callback.clone())
            .request_async(self)
            .await;
        let what = || "POST /hub/api/oauth2/token".to_owned();
        match answer {
            Ok(token) => Ok(Some(SecretString::from(token.access_token().secret().clone()))),
            Err(RequestTokenError::ServerResponse(_)) => Ok(None),
            Err(RequestTokenError::Request(Broken(failure))) => {
                Err(HubError::failed(what(), failure, PATIENCE))
            }
            // Neither is quoted: what was sent may come back.
            Err(RequestTokenError::Parse(..) | RequestTokenError::Other(_)) => {
                Err(HubError::Unparsable { what: what(), why: "no token in it".to_owned() })
            }
        }
    }

    /// Whose token this is; `None` where the Hub does not know it (any more).
    pub async fn holder(&self, token: &SecretString) -> Result<Option<Holder>, HubError> {
        let Ok(authorization) = http::authorization(token) else {
            return Ok(None);
        };
        let what = || "GET /hub/api/user for a visitor".to_owned();
        let request = self.http.get(self.user.clone()).header(AUTHORIZATION, authorization);
        let answer = http::exchange(request.header(ACCEPT, "application/json"), BODY_LIMIT)
            .await
            .map_err(|failure| HubError::failed(what(), failure, PATIENCE))?;
        match answer.status {
            200 => holder(&answer.body).map(Some).map_err(|why| HubError::Unparsable { what: what(), why }),
            401 | 403 => Ok(None),
            status @ 300..=399 => Err(HubError::Redirected { what: what(), status }),
            status => {
                Err(HubError::Status { what: what(), status, said: None, remedy: remedy(status, None, "") })
            }
        }
    }

    async fn exchange(&self, request: oauth2::HttpRequest) -> Result<oauth2::HttpResponse, Broken> {
        let broken = |why: &str| Broken(http::Failure::Unreachable(why.to_owned()));
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string()).map_err(|_| broken("no address"))?;
        let request = self.http.request(parts.method, url).headers(parts.headers).body(body);
        let answer = http::exchange(request, BODY_LIMIT).await.map_err(Broken)?;
        let mut response = oauth2::HttpResponse::new(answer.body);
        *response.status_mut() = answer.status.try_into().map_err(|_| broken("no status"))?;
        Ok(response)
    }
}

impl<'a> AsyncHttpClient<'a> for Login {
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<oauth2::HttpResponse, Broken>> + Send + 'a>>;

    fn call(&'a self, request: oauth2::HttpRequest) -> Self::Future {
        Box::pin(self.exchange(request))
    }
}

/// A hard-to-guess name for a login or a form, of 256 bits.
pub fn unguessable() -> String {
    CsrfToken::new_random_len(32).into_secret()
}

fn holder(body: &[u8]) -> Result<Holder, String> {
    let model = json::parse(body).and_then(json::object)?;
    Ok(Holder {
        name: model.required("name")?,
        is_user: model.optional::<String>("kind")?.is_none_or(|kind| kind == "user"),
        admin: model.optional("admin")?.unwrap_or(false),
        scopes: model.required("scopes")?,
    })
}

/// The exchange did not come about.
pub struct Broken(http::Failure);

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Broken")
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the Hub did not answer")
    }
}

impl std::error::Error for Broken {}

//! As much of a Hub as a login needs: codes that are good once, tokens, and who they belong to.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::json;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate, matchers};

pub const SECRET: &str = "s3cr3t-of-the-service";

/// A Hub of which everybody with a name has an account; `admin` is one.
pub struct FakeHub {
    server: MockServer,
    state: State,
}

#[derive(Clone, Default)]
struct State(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    used: BTreeSet<String>,
    logged_out: BTreeSet<String>,
    asked: usize,
    silent: bool,
}

impl FakeHub {
    pub async fn start() -> Self {
        let (server, state) = (MockServer::start().await, State::default());
        let token = Mock::given(matchers::path("/hub/api/oauth2/token")).and(matchers::method("POST"));
        token.respond_with(Tokens(state.clone())).mount(&server).await;
        Mock::given(matchers::path("/hub/api/user")).respond_with(Users(state.clone())).mount(&server).await;
        Self { server, state }
    }

    pub fn url(&self) -> String {
        self.server.uri()
    }

    /// The Hub revokes the tokens of a login that somebody leaves.
    pub fn log_out(&self, user: &str) {
        self.state.0.lock().unwrap().logged_out.insert(user.to_owned());
    }

    /// It answers nothing useful any more.
    pub fn breaks(&self) {
        self.state.0.lock().unwrap().silent = true;
    }

    /// How often it was asked about somebody.
    pub fn asked(&self) -> usize {
        self.state.0.lock().unwrap().asked
    }
}

/// A code `code-of-alice.7` gives the token `token-of-alice`, once, to who knows the verifier.
struct Tokens(State);

impl Respond for Tokens {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let form: std::collections::BTreeMap<String, String> =
            url::form_urlencoded::parse(&request.body).into_owned().collect();
        let code = &form["code"];
        let right = form["client_secret"] == SECRET
            && form["client_id"] == "service-gpu-culler"
            && form["redirect_uri"] == "/services/gpu-culler/oauth_callback"
            && form["code_verifier"].len() >= 43;
        let unused = self.0.0.lock().unwrap().used.insert(code.clone());
        match code.strip_prefix("code-of-").and_then(|rest| rest.split_once('.')) {
            Some((user, _)) if right && unused => ResponseTemplate::new(200).set_body_json(
                json!({ "access_token": format!("token-of-{}", hidden(user)), "token_type": "Bearer", "expires_in": 1_209_600 }),
            ),
            _ => ResponseTemplate::new(400).set_body_json(json!({ "error": "invalid_grant" })),
        }
    }
}

struct Users(State);

impl Respond for Users {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let shown = request.headers["authorization"].to_str().unwrap();
        let user = seen(shown.strip_prefix("token token-of-").unwrap_or_default());
        let user = user.as_str();
        let mut known = self.0.0.lock().unwrap();
        known.asked += 1;
        if known.silent {
            return ResponseTemplate::new(503);
        }
        if user.is_empty() || known.logged_out.contains(user) {
            return ResponseTemplate::new(403).set_body_json(json!({ "status": 403, "message": null }));
        }
        let access =
            if user == "outsider" { "read:users:name" } else { "access:services!service=gpu-culler" };
        let kind = if user == "service" { "service" } else { "user" };
        let scopes = match user {
            "service" => vec![access, "read:servers"],
            "prometheus" => vec![access, "read:metrics"],
            _ => vec![access],
        };
        ResponseTemplate::new(200)
            .set_body_json(json!({ "kind": kind, "name": user, "admin": user == "admin", "scopes": scopes }))
    }
}

/// A token is plain whatever the name of its owner.
fn hidden(user: &str) -> String {
    url::form_urlencoded::byte_serialize(user.as_bytes()).collect()
}

fn seen(token: &str) -> String {
    percent_encoding::percent_decode_str(token).decode_utf8_lossy().replace('+', " ")
}

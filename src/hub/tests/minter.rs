//! Whose token is shown to whom.

use std::time::Instant;

use secrecy::ExposeSecret;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

fn alice() -> ServerId {
    ServerId::new("alice", "")
}

/// A Hub that makes the tokens `minted-1`, `minted-2` and so on.
async fn minting_hub() -> MockServer {
    let server = MockServer::start().await;
    for n in 1..=9 {
        Mock::given(matchers::method("POST"))
            .and(matchers::header("authorization", format!("token {TOKEN}").as_str()))
            .respond_with(ResponseTemplate::new(201).set_body_json(json!({"token": format!("minted-{n}")})))
            .up_to_n_times(1)
            .mount(&server)
            .await;
    }
    server
}

fn minter(hub: &MockServer) -> TokenMinter {
    TokenMinter::new(&settings(hub)).unwrap()
}

async fn token(minter: &TokenMinter, id: &ServerId, now: Instant) -> String {
    minter.token(id, now).await.unwrap().expose_secret().to_owned()
}

fn prober(token: ProbeToken, public_url: Option<Url>) -> Prober {
    let (request_timeout, total_timeout) = (Duration::from_secs(2), Duration::from_secs(4));
    Prober::new(token, ProbeSettings { public_url, request_timeout, total_timeout }).unwrap()
}

/// The tokens that a server was asked with.
async fn shown(server: &MockServer) -> Vec<String> {
    let requests = server.received_requests().await.unwrap();
    let token = |request: &wiremock::Request| request.headers["authorization"].to_str().unwrap().to_owned();
    requests.iter().map(token).collect()
}

#[tokio::test]
async fn a_token_is_asked_for_that_opens_one_server_for_a_day() {
    for (id, path, scope) in [
        (alice(), "alice", "access:servers!server=alice/"),
        (ServerId::new("alice", "n 1"), "alice", "access:servers!server=alice/n 1"),
        (ServerId::new("b ob@x.org", ""), "b%20ob@x.org", "access:servers!server=b ob@x.org/"),
        (ServerId::new("a=b!c,é\"'", "x"), "a%3Db%21c%2C%C3%A9%22%27", "access:servers!server=a=b!c,é\"'/x"),
    ] {
        let hub = minting_hub().await;
        minter(&hub).token(&id, Instant::now()).await.unwrap();
        let requests = hub.received_requests().await.unwrap();
        assert_eq!(requests[0].url.path(), format!("/hub/api/users/{path}/tokens"));
        let body: Value = requests[0].body_json().unwrap();
        assert_eq!(body["scopes"], json!([scope]));
        assert_eq!(body["expires_in"], json!(86400));
        let note = body["note"].as_str().unwrap();
        assert!(note.starts_with("Server at "), "otherwise the token's use is its owner's activity: {note}");
        assert!(note.ends_with("gpu-culler reads kernels and terminals"), "{note}");
    }
}

#[tokio::test]
async fn a_token_is_used_again_and_replaced_before_it_ends() {
    let hub = minting_hub().await;
    let (minter, start) = (minter(&hub), Instant::now());
    assert_eq!(token(&minter, &alice(), start).await, "minted-1");
    assert_eq!(token(&minter, &alice(), start + 19 * HOUR).await, "minted-1");
    assert_eq!(token(&minter, &alice(), start + 20 * HOUR).await, "minted-2");
    assert_eq!(token(&minter, &alice(), start + 39 * HOUR).await, "minted-2");
}

#[tokio::test]
async fn each_server_has_a_token_of_its_own() {
    let hub = minting_hub().await;
    let (minter, now) = (minter(&hub), Instant::now());
    assert_eq!(token(&minter, &alice(), now).await, "minted-1");
    assert_eq!(token(&minter, &ServerId::new("alice", "n"), now).await, "minted-2");
    assert_eq!(token(&minter, &ServerId::new("bob", ""), now).await, "minted-3");
    assert_eq!(token(&minter, &alice(), now).await, "minted-1");
}

#[tokio::test]
async fn a_refused_token_is_replaced_but_not_at_the_pace_of_the_refusals() {
    let hub = minting_hub().await;
    let (minter, start) = (minter(&hub), Instant::now());
    token(&minter, &alice(), start).await;
    minter.refused(&alice(), start + 9 * MINUTE);
    assert_eq!(token(&minter, &alice(), start + 9 * MINUTE).await, "minted-1");
    minter.refused(&ServerId::new("bob", ""), start + 11 * MINUTE);
    assert_eq!(token(&minter, &alice(), start + 11 * MINUTE).await, "minted-1");
    minter.refused(&alice(), start + 11 * MINUTE);
    assert_eq!(token(&minter, &alice(), start + 11 * MINUTE).await, "minted-2");
}

#[tokio::test]
async fn a_name_that_would_mean_another_users_server_is_not_asked_for() {
    let hub = minting_hub().await;
    for id in [ServerId::new("alice/x", ""), ServerId::new("alice", "x/y"), ServerId::new("", "")] {
        let error = minter(&hub).token(&id, Instant::now()).await.unwrap_err();
        assert!(matches!(error, HubError::NoScope(_)), "{error}");
    }
    assert!(asked(&hub).await.is_empty());
}

#[tokio::test]
async fn a_server_is_shown_its_own_token_and_never_the_services() {
    let (hub, server) = (minting_hub().await, MockServer::start().await);
    answer(&server, "/user/alice/api/kernels", ok(json!([]))).await;
    answer(&server, "/user/alice/api/terminals", ok(json!([]))).await;
    answer(&server, "/user/alice/api/status", ok(json!({"connections": 0}))).await;
    let prober = prober(ProbeToken::PerServer(minter(&hub)), None);
    let base = Url::parse(&server.uri()).unwrap().join("/user/alice/").unwrap();
    for _ in 0..2 {
        prober.look(&alice(), &base).await.unwrap();
    }
    assert_eq!(shown(&server).await, ["token minted-1"; 6]);
    assert_eq!(asked(&hub).await.len(), 1);
}

#[tokio::test]
async fn without_a_token_the_server_is_unread_and_not_asked() {
    let (hub, server) = (MockServer::start().await, MockServer::start().await);
    let said = "Service alice not found or no permissions to generate tokens";
    let refusal = ResponseTemplate::new(403).set_body_json(json!({"status": 403, "message": said}));
    answer(&hub, "/hub/api/users/alice/tokens", refusal).await;
    let base = Url::parse(&server.uri()).unwrap();
    let prober = prober(ProbeToken::PerServer(minter(&hub)), None);
    let error = prober.look(&alice(), &base).await.unwrap_err();
    assert!(matches!(error, ProbeError::NoToken(_)), "{error}");
    assert!(error.to_string().contains(said) && error.to_string().contains("scopes tokens"), "{error}");
    assert!(asked(&server).await.is_empty());
}

#[tokio::test]
async fn an_answer_without_a_token_is_not_quoted() {
    let hub = MockServer::start().await;
    answer(&hub, "/hub/api/users/alice/tokens", ok(json!({"token": ["s3same"]}))).await;
    let error = minter(&hub).token(&alice(), Instant::now()).await.unwrap_err();
    assert!(matches!(error, HubError::Unparsable { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("s3same"), "{error}");
}

#[tokio::test]
async fn the_services_own_token_goes_to_this_host_and_the_public_address_only() {
    let own = || ProbeToken::Own(TOKEN.to_owned().into());
    let public = Url::parse("https://hub.invalid/").unwrap();
    let prober = prober(own(), Some(public));
    for (base, foreign) in [
        ("http://127.0.0.1:1/user/alice/", false),
        ("http://[::1]:1/user/alice/", false),
        ("https://hub.invalid/user/alice/", false),
        ("http://hub.invalid/user/alice/", true),
        ("https://hub.invalid:8443/user/alice/", true),
        ("https://other.invalid/user/alice/", true),
        ("http://localhost.invalid/user/alice/", true),
        ("http://192.0.2.7/user/alice/", true),
    ] {
        let error = prober.look(&alice(), &Url::parse(base).unwrap()).await.unwrap_err();
        assert_eq!(matches!(error, ProbeError::Foreign(_)), foreign, "{base}: {error}");
    }
}

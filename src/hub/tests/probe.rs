use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::domain::{Jupyter, Kernel, KernelState, Terminal};

fn prober() -> Prober {
    hasty_prober(Duration::from_secs(2), Duration::from_secs(4))
}

fn hasty_prober(request_timeout: Duration, total_timeout: Duration) -> Prober {
    let settings = ProbeSettings { public_url: None, request_timeout, total_timeout };
    Prober::new(ProbeToken::Own(TOKEN.to_owned().into()), settings).unwrap()
}

fn alice() -> ServerId {
    ServerId::new("alice", "")
}

fn base(server: &MockServer) -> Url {
    Url::parse(&server.uri()).unwrap().join("/user/alice/").unwrap()
}

fn kernels() -> Value {
    json!([{"id": "k1", "name": "python3", "last_activity": "2026-12-01T08:40:00.000000Z",
            "execution_state": "busy", "connections": 1}])
}

/// A server with one kernel and one terminal; each of `changed` answers otherwise.
async fn jupyter_server(changed: &[(&str, ResponseTemplate)]) -> MockServer {
    let server = MockServer::start().await;
    let usual = [
        ("kernels", ok(kernels())),
        ("terminals", ok(json!([{"name": "1", "last_activity": "2026-12-01T08:10:00Z"}]))),
        (
            "status",
            ok(json!({"connections": 2, "kernels": 1, "started": "2026-12-01T08:00:00Z",
                             "last_activity": "2026-12-01T08:59:55.000000Z"})),
        ),
        ("sessions", ok(json!([{"path": "a b.ipynb", "kernel": {"id": "k1"}}, {"path": "x"}]))),
    ];
    for (endpoint, template) in usual {
        let other = changed.iter().find(|(name, _)| *name == endpoint);
        let template = other.map_or(template, |(_, template)| template.clone());
        Mock::given(matchers::path(format!("/user/alice/api/{endpoint}")))
            .and(matchers::query_param("no_track_activity", "1"))
            .and(matchers::header("authorization", format!("token {TOKEN}").as_str()))
            .respond_with(template)
            .mount(&server)
            .await;
    }
    server
}

async fn failure(endpoint: &str, template: ResponseTemplate) -> ProbeError {
    let server = jupyter_server(&[(endpoint, template)]).await;
    prober().jupyter(&alice(), &base(&server)).await.unwrap_err()
}

#[tokio::test]
async fn a_server_tells_its_kernels_terminals_and_clocks() {
    let server = jupyter_server(&[]).await;
    let expected = Jupyter {
        last_activity: Some("2026-12-01T08:59:55Z".parse().unwrap()),
        connections: 2,
        kernels: vec![Kernel {
            id: "k1".to_owned(),
            state: KernelState::Busy,
            last_activity: Some("2026-12-01T08:40:00Z".parse().unwrap()),
            connections: 1,
            notebook: Some("a b.ipynb".to_owned()),
        }],
        terminals: vec![Terminal {
            name: "1".to_owned(),
            last_activity: Some("2026-12-01T08:10:00Z".parse().unwrap()),
        }],
    };
    assert_eq!(prober().jupyter(&alice(), &base(&server)).await, Ok(expected));
}

#[tokio::test]
async fn a_base_without_the_last_slash_is_the_same_server() {
    let server = jupyter_server(&[]).await;
    let base = Url::parse(&server.uri()).unwrap().join("/user/alice").unwrap();
    assert!(prober().jupyter(&alice(), &base).await.is_ok());
}

#[tokio::test]
async fn switched_off_terminals_and_unknown_notebooks_spoil_nothing() {
    let server = jupyter_server(&[
        ("terminals", ResponseTemplate::new(404)),
        ("sessions", ResponseTemplate::new(500)),
    ])
    .await;
    let jupyter = prober().jupyter(&alice(), &base(&server)).await.unwrap();
    assert!(jupyter.terminals.is_empty());
    assert_eq!(jupyter.kernels[0].notebook, None);
    assert_eq!(jupyter.connections, 2);
}

#[tokio::test]
async fn terminals_that_fail_are_unknown_and_not_none() {
    let error = failure("terminals", ResponseTemplate::new(500)).await;
    assert!(matches!(error, ProbeError::Status { status: 500, .. }), "{error}");
}

#[tokio::test]
async fn an_unchanged_server_is_read_without_a_trace() {
    let server = jupyter_server(&[]).await;
    server.reset().await;
    for endpoint in ["kernels", "terminals", "status", "sessions"] {
        let body = if endpoint == "kernels" { kernels() } else { json!([]) };
        let body = if endpoint == "status" { json!({"connections": 0}) } else { body };
        let path = format!("/user/alice/api/{endpoint}");
        Mock::given(matchers::path(path.as_str()))
            .and(matchers::header("if-none-match", "\"tag\""))
            .respond_with(ResponseTemplate::new(304))
            .mount(&server)
            .await;
        answer(&server, &path, ok(body).insert_header("etag", "\"tag\"")).await;
    }
    let prober = prober();
    let first = prober.look(&alice(), &base(&server)).await.unwrap();
    let second = prober.look(&alice(), &base(&server)).await.unwrap();
    assert_eq!((first.left_trace, second.left_trace), (true, false));
    assert_eq!(first.jupyter, second.jupyter);
    assert_eq!(second.jupyter.kernels[0].state, KernelState::Busy);
}

#[tokio::test]
async fn a_304_that_nobody_asked_for_is_no_answer() {
    let error = failure("kernels", ResponseTemplate::new(304)).await;
    assert!(matches!(error, ProbeError::Redirected { status: 304, .. }), "{error}");
}

#[tokio::test]
async fn a_403_names_the_scope_and_the_server_is_asked_once() {
    let server = jupyter_server(&[("kernels", ResponseTemplate::new(403))]).await;
    let error = prober().jupyter(&alice(), &base(&server)).await.unwrap_err();
    assert!(error.to_string().contains("access:servers"), "{error}");
    assert_eq!(asked(&server).await.len(), 1);
}

#[tokio::test]
async fn a_redirect_to_a_login_is_not_followed() {
    let elsewhere = MockServer::start().await;
    let redirect = ResponseTemplate::new(302).insert_header("location", elsewhere.uri());
    let error = failure("kernels", redirect).await;
    assert!(matches!(error, ProbeError::Redirected { status: 302, .. }), "{error}");
    assert!(asked(&elsewhere).await.is_empty());
}

#[tokio::test]
async fn another_kind_of_application_is_not_a_server_without_kernels() {
    let page = ResponseTemplate::new(200).set_body_string("<html>RStudio</html>");
    let error = failure("kernels", page).await;
    assert!(matches!(error, ProbeError::Unparsable { .. }), "{error}");
    assert!(!error.to_string().contains("RStudio"), "a user's page is not quoted: {error}");
}

#[tokio::test]
async fn a_kernel_that_cannot_be_read_makes_the_server_unknown() {
    for (field, value) in [("id", json!(7)), ("last_activity", json!("now")), ("connections", json!(-1))] {
        let mut body = kernels();
        body[0][field] = value;
        let error = failure("kernels", ok(body)).await;
        assert!(error.to_string().contains(field), "{error}");
    }
}

#[tokio::test]
async fn a_flood_is_refused_at_once() {
    let flood = ResponseTemplate::new(200).set_body_bytes(vec![b'['; 50 << 20]);
    let server = jupyter_server(&[("kernels", flood)]).await;
    let start = Instant::now();
    let error = prober().jupyter(&alice(), &base(&server)).await.unwrap_err();
    assert!(matches!(error, ProbeError::TooLarge { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(2));
}

/// A server that writes `head` and then `chunk` over and over.
async fn endless(head: &'static str, chunk: Vec<u8>, pause: Duration) -> Url {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(head.as_bytes()).await;
        while stream.write_all(&chunk).await.is_ok() {
            tokio::time::sleep(pause).await;
        }
    });
    Url::parse(&format!("http://{address}/user/alice/")).unwrap()
}

const ENDLESS: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";

#[tokio::test]
async fn a_flood_without_an_announced_length_is_cut_off() {
    let base = endless(ENDLESS, vec![b' '; 1 << 20], Duration::ZERO).await;
    let error = prober().jupyter(&alice(), &base).await.unwrap_err();
    assert!(matches!(error, ProbeError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_drips_is_given_up() {
    let base = endless(ENDLESS, vec![b' '], Duration::from_millis(20)).await;
    let prober = hasty_prober(Duration::from_millis(200), Duration::from_secs(30));
    let error = prober.jupyter(&alice(), &base).await.unwrap_err();
    assert!(matches!(error, ProbeError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn one_server_has_one_limit_for_all_its_answers() {
    let slow = |body| ok(body).set_delay(Duration::from_millis(300));
    let server = jupyter_server(&[("kernels", slow(kernels())), ("status", slow(json!({})))]).await;
    let prober = hasty_prober(Duration::from_secs(30), Duration::from_millis(450));
    let error = prober.jupyter(&alice(), &base(&server)).await.unwrap_err();
    let after = Duration::from_millis(450);
    assert_eq!(error, ProbeError::TimedOut { what: "GET /user/alice/api/".to_owned(), after });
}

#[tokio::test]
async fn only_web_addresses_are_asked() {
    let base = Url::parse("file:///etc/").unwrap();
    let error = prober().jupyter(&alice(), &base).await.unwrap_err();
    assert!(matches!(error, ProbeError::BadAddress(_)), "{error}");
}

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use std::time::Duration;

use wiremock::matchers::{body_string_contains, header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::super::names::Names;
use super::*;

const EMPTY: &str = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;

pub(in crate::telemetry::prometheus) fn settings(url: &str) -> PrometheusSettings {
    PrometheusSettings {
        url: Url::parse(url).unwrap(),
        login: Login::None,
        ca_file: None,
        identity: None,
        proxy: Proxy::None,
        headers: Vec::new(),
        params: Vec::new(),
        method: Method::Post,
        matchers: Vec::new(),
        names: Names::default(),
        weak_utilization: false,
        timeout: Duration::from_secs(5),
        max_series: 1000,
        collect_interval: Duration::from_secs(30),
        label_delay: Duration::from_secs(600),
        sm_threshold: 0.01,
        dram_threshold: 0.01,
        max_gap: Duration::from_secs(180),
        history: Duration::from_secs(86_400),
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

async fn ask(settings: PrometheusSettings) -> Result<Answer, PromError> {
    Client::new(settings)?.ranges("up[1m]", now()).await
}

async fn answering(response: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(path("/api/v1/query")).respond_with(response).mount(&server).await;
    server
}

#[tokio::test]
async fn a_query_is_posted_with_its_own_time_headers_and_parameters() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/prom/api/v1/query"))
        .and(header("x-scope-orgid", "t1"))
        .and(body_string_contains("query=up%5B1m%5D&time=1800000000.000&partial_response=false"))
        .respond_with(ResponseTemplate::new(200).set_body_string(EMPTY))
        .expect(1)
        .mount(&server)
        .await;
    let mut settings = settings(&format!("{}/prom/", server.uri()));
    settings.headers = vec![("X-Scope-OrgID".to_owned(), "t1".to_owned())];
    settings.params = vec![("partial_response".to_owned(), "false".to_owned())];
    assert!(ask(settings).await.unwrap().series.is_empty());
}

#[tokio::test]
async fn where_only_reading_is_allowed_it_goes_by_get() {
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .and(query_param("query", "up[1m]"))
        .respond_with(ResponseTemplate::new(200).set_body_string(EMPTY))
        .expect(1)
        .mount(&server)
        .await;
    ask(PrometheusSettings { method: Method::Get, ..settings(&server.uri()) }).await.unwrap();
}

#[tokio::test]
async fn a_token_that_rotates_is_read_anew_for_each_query() {
    let server = MockServer::start().await;
    for token in ["one", "two"] {
        Mock::given(header("authorization", format!("Bearer {token}")))
            .respond_with(ResponseTemplate::new(200).set_body_string(EMPTY))
            .expect(1)
            .mount(&server)
            .await;
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let settings =
        PrometheusSettings { login: Login::Token(file.path().to_owned()), ..settings(&server.uri()) };
    let client = Client::new(settings).unwrap();
    for token in ["one\n", "two"] {
        fs::write(file.path(), token).unwrap();
        client.ranges("up[1m]", now()).await.unwrap();
    }
    fs::write(file.path(), " \n").unwrap();
    let said = client.ranges("up[1m]", now()).await.unwrap_err().to_string();
    assert!(said.contains("is empty") && said.contains(&file.path().display().to_string()), "{said}");
}

#[tokio::test]
async fn a_name_and_password_go_as_basic_authentication() {
    let server = MockServer::start().await;
    Mock::given(header("authorization", "Basic bWU6c2VjcmV0"))
        .respond_with(ResponseTemplate::new(200).set_body_string(EMPTY))
        .expect(1)
        .mount(&server)
        .await;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "secret\n").unwrap();
    let login = Login::Password("me".to_owned(), file.path().to_owned());
    ask(PrometheusSettings { login, ..settings(&server.uri()) }).await.unwrap();
}

#[tokio::test]
async fn a_redirect_within_the_server_is_followed_with_the_whole_query() {
    let server =
        answering(ResponseTemplate::new(301).insert_header("location", "/there/api/v1/query?x=1")).await;
    Mock::given(method("POST"))
        .and(path("/there/api/v1/query"))
        .and(body_string_contains("query=up"))
        .respond_with(ResponseTemplate::new(200).set_body_string(EMPTY))
        .expect(1)
        .mount(&server)
        .await;
    ask(settings(&server.uri())).await.unwrap();
}

#[tokio::test]
async fn a_redirect_to_elsewhere_is_not_followed_and_no_secret_goes_there() {
    let elsewhere = answering(ResponseTemplate::new(200).set_body_string(EMPTY)).await;
    let to = format!("{}/api/v1/query", elsewhere.uri());
    let server = answering(ResponseTemplate::new(302).insert_header("location", to.as_str())).await;
    let error = ask(settings(&server.uri())).await.unwrap_err();
    assert_eq!(error, PromError::Redirected { host: server.address().to_string(), to: elsewhere.uri() });
    assert!(elsewhere.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_redirect_in_a_circle_ends() {
    let server = answering(ResponseTemplate::new(302).insert_header("location", "/api/v1/query")).await;
    assert!(matches!(ask(settings(&server.uri())).await, Err(PromError::Redirected { .. })));
}

#[tokio::test]
async fn each_refusal_is_told_in_its_own_words() {
    let error = r#"{"status":"error","errorType":"execution","error":"query processing would load too many samples"}"#;
    for (status, body, said) in [
        (422, error, "too many samples"),
        (401, "no org id", "no org id"),
        (403, "", "token or password"),
        (404, "404 page not found", "no Prometheus API answers"),
        (200, "<html><title>Log in</title>", "<html>"),
        (200, "", "an empty answer"),
        (503, r#"{"message":"no upstream"}"#, "status 503"),
        (500, EMPTY, "status 500"),
    ] {
        let server = answering(ResponseTemplate::new(status).set_body_string(body)).await;
        let refused = ask(settings(&server.uri())).await.unwrap_err().to_string();
        assert!(refused.contains(said), "{status} {body}: {refused}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_is_given_up_with_its_query() {
    let late = ResponseTemplate::new(200).set_body_string(EMPTY).set_delay(Duration::from_secs(30));
    let server = answering(late).await;
    let timeout = Duration::from_millis(200);
    let error = ask(PrometheusSettings { timeout, ..settings(&server.uri()) }).await.unwrap_err();
    assert!(error.to_string().contains("`up[1m]`"), "{error}");
}

#[tokio::test]
async fn nobody_there_is_told_with_its_address() {
    let said = ask(settings("http://127.0.0.1:9")).await.unwrap_err().to_string();
    assert!(said.contains("127.0.0.1:9") && said.contains("refused"), "{said}");
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off() {
    let server = answering(ResponseTemplate::new(200).set_body_bytes(vec![b' '; MAX_BODY + 1])).await;
    assert!(matches!(ask(settings(&server.uri())).await, Err(PromError::TooLarge { .. })));
}

#[tokio::test]
async fn a_proxy_that_was_named_is_used() {
    let proxy = MockServer::start().await;
    Mock::given(header("host", "prometheus.invalid"))
        .respond_with(ResponseTemplate::new(200).set_body_string(EMPTY))
        .expect(1)
        .mount(&proxy)
        .await;
    let through = Proxy::Through(Url::parse(&proxy.uri()).unwrap());
    ask(PrometheusSettings { proxy: through, ..settings("http://prometheus.invalid") }).await.unwrap();
}

#[test]
fn files_that_hold_no_certificate_are_refused_at_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let ca = PrometheusSettings { ca_file: Some(file.path().to_owned()), ..settings("https://p") };
    assert!(matches!(Client::new(ca), Err(PromError::File { .. })));
    let pair = Some((file.path().to_owned(), file.path().to_owned()));
    assert!(Client::new(PrometheusSettings { identity: pair, ..settings("https://p") }).is_err());
}

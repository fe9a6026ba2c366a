use std::time::Instant;

use super::*;

async fn sequence(server: &MockServer, statuses: &[u16]) {
    for status in statuses {
        Mock::given(matchers::path("/hub/api/"))
            .respond_with(ResponseTemplate::new(*status))
            .up_to_n_times(1)
            .mount(server)
            .await;
    }
    answer(server, "/hub/api/", ok(json!({"version": "6.1.1"}))).await;
}

#[tokio::test]
async fn a_hub_that_is_out_for_a_moment_is_asked_again() {
    for statuses in [vec![503], vec![500, 502], vec![429]] {
        let server = MockServer::start().await;
        sequence(&server, &statuses).await;
        assert!(hub(&server).info().await.is_ok(), "{statuses:?}");
        assert_eq!(asked(&server).await.len(), statuses.len() + 1);
    }
}

#[tokio::test]
async fn asking_again_has_an_end() {
    let server = MockServer::start().await;
    sequence(&server, &[503; 9]).await;
    let error = hub(&server).info().await.unwrap_err();
    assert!(error.is_transient());
    assert_eq!(asked(&server).await.len(), 3);
}

#[tokio::test]
async fn a_403_soon_after_the_start_is_tried_once_more() {
    let server = MockServer::start().await;
    sequence(&server, &[403]).await;
    assert!(hub(&server).info().await.is_ok());

    let server = MockServer::start().await;
    sequence(&server, &[403; 9]).await;
    assert!(hub(&server).info().await.unwrap_err().is_forbidden());
    assert_eq!(asked(&server).await.len(), 2);
}

#[tokio::test]
async fn a_403_names_the_scopes_that_are_missing() {
    let server = MockServer::start().await;
    let body = json!({"status": 403, "message": "Action is not authorized with current scopes"});
    answer(&server, "/hub/api/users", ResponseTemplate::new(403).set_body_json(body)).await;
    let error = hub(&server).servers().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "GET /hub/api/users?state=active&offset=0&limit=200: 403 (Action is not authorized with current scopes). \
         Give the service's role the scopes list:users and read:servers (c.JupyterHub.load_roles)"
    );
}

#[tokio::test]
async fn an_unknown_token_is_not_taken_for_a_missing_scope() {
    let server = MockServer::start().await;
    let body = json!({"status": 403, "message": "Missing or invalid credentials."});
    answer(&server, "/hub/api/users", ResponseTemplate::new(403).set_body_json(body)).await;
    let error = hub(&server).servers().await.unwrap_err();
    assert!(error.to_string().contains("JUPYTERHUB_API_TOKEN"), "{error}");
}

#[tokio::test]
async fn waiting_for_a_hub_that_does_not_answer_is_bounded() {
    let server = MockServer::start().await;
    let late = ok(json!({"version": "6.1.1"})).set_delay(Duration::from_secs(60));
    answer(&server, "/hub/api/", late).await;
    let request_timeout = Duration::from_millis(100);
    let hub = Hub::new(HubSettings { request_timeout, ..settings(&server) }).unwrap();
    let start = Instant::now();
    let error = hub.info().await.unwrap_err();
    assert!(matches!(error, HubError::TimedOut { .. }), "{error}");
    assert!(error.to_string().starts_with("GET /hub/api/: no answer within 100ms"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_closed_port_is_said_to_refuse() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let server = MockServer::start().await;
    let api_url = Url::parse(&format!("http://127.0.0.1:{port}/hub/api")).unwrap();
    let hub = Hub::new(HubSettings { api_url, ..settings(&server) }).unwrap();
    let error = hub.info().await.unwrap_err();
    assert!(matches!(error, HubError::Unreachable { .. }));
    assert!(error.to_string().contains("Connection refused"), "{error}");
}

#[tokio::test]
async fn a_redirect_is_refused_and_its_target_never_sees_the_token() {
    let (server, elsewhere) = (MockServer::start().await, MockServer::start().await);
    let redirect = ResponseTemplate::new(302).insert_header("location", elsewhere.uri());
    answer(&server, "/hub/api/", redirect).await;
    let error = hub(&server).info().await.unwrap_err();
    assert!(matches!(error, HubError::Redirected { status: 302, .. }), "{error}");
    assert!(asked(&elsewhere).await.is_empty());
}

#[tokio::test]
async fn a_page_for_people_is_not_taken_for_the_api() {
    let server = MockServer::start().await;
    let page = ResponseTemplate::new(200).set_body_string("<html>Welcome</html>");
    answer(&server, "/hub/api/users", page).await;
    let error = hub(&server).servers().await.unwrap_err();
    assert!(matches!(error, HubError::Unparsable { .. }), "{error}");
}

#[test]
fn certificate_files_that_cannot_be_used_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    let absent = folder.path().join("absent.pem");
    for (file, complaint) in [(absent, "cannot read"), (empty, "no certificate")] {
        let error = Hub::new(HubSettings {
            api_url: Url::parse("https://127.0.0.1:1/hub/api").unwrap(),
            token: TOKEN.to_owned().into(),
            page_size: None,
            concurrency: 0,
            request_timeout: Duration::from_secs(1),
            tls: TlsFiles { ca_file: Some(file), identity: None },
            chosen: None,
        })
        .unwrap_err();
        assert!(error.to_string().contains(complaint), "{error}");
    }
}

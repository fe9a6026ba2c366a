use super::*;

fn hides_the_token(shown: &str) {
    assert!(!shown.contains(TOKEN), "{shown}");
}

#[tokio::test]
async fn no_error_of_the_hub_shows_the_token() {
    let refused = |status| ResponseTemplate::new(status).set_body_string(format!("<p>{TOKEN}</p>"));
    let mut failures = Vec::new();
    for template in [
        refused(403),
        refused(500),
        refused(404),
        refused(200),
        ResponseTemplate::new(302).insert_header("location", format!("/?token={TOKEN}")),
        ResponseTemplate::new(403).set_body_json(json!({"status": 403, "message": TOKEN})),
        ResponseTemplate::new(200).set_delay(Duration::from_secs(60)),
    ] {
        let server = MockServer::start().await;
        Mock::given(matchers::any()).respond_with(template).mount(&server).await;
        let request_timeout = Duration::from_millis(100);
        let settings = HubSettings { request_timeout, ..settings(&server) };
        failures.push(Hub::new(settings.clone()).unwrap().servers().await.unwrap_err());
        let stopper = Stopper::new(settings).unwrap();
        failures.push(stopper.stop(&ServerId::new("alice", ""), Afterwards::Keep).await.unwrap_err());
    }
    assert_eq!(failures.len(), 14);
    for error in failures {
        hides_the_token(&format!("{error} {error:?}"));
    }
}

#[tokio::test]
async fn neither_settings_nor_clients_show_the_token() {
    let server = MockServer::start().await;
    let settings = settings(&server);
    let probe = ProbeSettings::from(&settings);
    hides_the_token(&format!("{settings:?} {probe:?}"));
    let minter = ProbeToken::PerServer(TokenMinter::new(&settings).unwrap());
    for token in [ProbeToken::Own(settings.token.clone()), minter] {
        hides_the_token(&format!("{token:?}"));
        hides_the_token(&format!("{:?}", Prober::new(token, probe.clone()).unwrap()));
    }
    hides_the_token(&format!("{:?}", Stopper::new(settings.clone()).unwrap()));
    hides_the_token(&format!("{:?}", Hub::new(settings).unwrap()));
}

#[tokio::test]
async fn a_token_that_no_header_can_carry_is_refused_without_being_shown() {
    let server = MockServer::start().await;
    let token = format!("{TOKEN}\n").into();
    let error = Hub::new(HubSettings { token, ..settings(&server) }).unwrap_err();
    assert!(error.to_string().contains("line end"), "{error}");
    hides_the_token(&format!("{error} {error:?}"));
}

#[tokio::test]
async fn an_empty_token_is_refused() {
    let server = MockServer::start().await;
    let token = String::new().into();
    let error = Hub::new(HubSettings { token, ..settings(&server) }).unwrap_err();
    assert!(error.to_string().contains("JUPYTERHUB_API_TOKEN"), "{error}");
}

use super::*;

const KERNELS: &str = "/user/alice/api/kernels";

async fn stopper(server: &MockServer) -> (KernelStopper, Url) {
    let minted = ResponseTemplate::new(201).set_body_json(json!({"token": "for-alice"}));
    Mock::given(matchers::path("/hub/api/users/alice/tokens")).respond_with(minted).mount(server).await;
    let token = ProbeToken::PerServer(TokenMinter::for_stops(&settings(server)).unwrap());
    let stopper = KernelStopper::new(token, ProbeSettings::from(&settings(server))).unwrap();
    (stopper, Url::parse(&server.uri()).unwrap().join("/user/alice/").unwrap())
}

#[tokio::test]
async fn a_kernel_is_shut_down_or_interrupted_without_leaving_presence() {
    let server = MockServer::start().await;
    let (stopper, base) = stopper(&server).await;
    for verb in ["DELETE", "POST"] {
        let fine = ResponseTemplate::new(204);
        let here = Mock::given(matchers::method(verb)).and(matchers::path_regex("^/user/alice/"));
        here.and(matchers::header("Authorization", "token for-alice"))
            .respond_with(fine)
            .mount(&server)
            .await;
    }
    let id = ServerId::new("alice", "");
    stopper.shut_down(&id, &base, "5e-1f").await.unwrap();
    stopper.interrupt(&id, &base, "5e-1f").await.unwrap();
    let asked = asked(&server).await;
    assert_eq!(
        asked[1..],
        [
            format!("{KERNELS}/5e-1f?no_track_activity=1"),
            format!("{KERNELS}/5e-1f/interrupt?no_track_activity=1")
        ]
    );
    let minted = &server.received_requests().await.unwrap()[0];
    let body: Value = serde_json::from_slice(&minted.body).unwrap();
    assert_eq!(body["note"], "Server at alice/: gpu-culler shuts idle kernels down");
}

#[tokio::test]
async fn a_kernel_that_is_gone_is_fine_and_everything_else_is_told() {
    for (status, fine) in [(204, true), (404, true), (200, false), (302, false), (403, false), (500, false)] {
        let server = MockServer::start().await;
        let (stopper, base) = stopper(&server).await;
        answer(&server, &format!("{KERNELS}/k"), ResponseTemplate::new(status)).await;
        let done = stopper.shut_down(&ServerId::new("alice", ""), &base, "k").await;
        assert_eq!(done.is_ok(), fine, "{status}: {done:?}");
    }
}

#[tokio::test]
async fn no_name_of_a_kernel_leads_to_another_address() {
    let server = MockServer::start().await;
    let (stopper, base) = stopper(&server).await;
    let id = ServerId::new("alice", "");
    assert!(stopper.shut_down(&id, &base, "..").await.is_err());
    let _ = stopper.shut_down(&id, &base, "../../shutdown?x=1").await;
    let sent = asked(&server).await;
    assert_eq!(sent.last().unwrap(), &format!("{KERNELS}/..%2F..%2Fshutdown%3Fx%3D1?no_track_activity=1"));
}

use super::*;

async fn stop(id: &ServerId, template: ResponseTemplate) -> (Result<StopAnswer, HubError>, Vec<String>) {
    let server = MockServer::start().await;
    Mock::given(matchers::method("DELETE")).respond_with(template).mount(&server).await;
    let settings = HubSettings { request_timeout: Duration::from_secs(1), ..settings(&server) };
    let result = Stopper::new(settings).unwrap().stop(id, Afterwards::Keep).await;
    for request in server.received_requests().await.unwrap() {
        assert!(request.body.is_empty(), "a body could ask to remove the server for good");
    }
    (result, asked(&server).await)
}

#[tokio::test]
async fn both_of_the_hubs_answers_are_told_apart() {
    let id = ServerId::new("alice", "");
    for (status, expected) in [(204, StopAnswer::Gone), (202, StopAnswer::Slow)] {
        let (result, asked) = stop(&id, ResponseTemplate::new(status)).await;
        assert_eq!(result, Ok(expected));
        assert_eq!(asked, ["/hub/api/users/alice/server"]);
    }
}

#[tokio::test]
async fn exactly_the_named_server_is_stopped() {
    let id = ServerId::new("a/b", "n 1");
    let (_, asked) = stop(&id, ResponseTemplate::new(204)).await;
    assert_eq!(asked, ["/hub/api/users/a%2Fb/servers/n%201"]);
}

#[tokio::test]
async fn a_name_that_would_reach_another_address_is_never_sent() {
    for (user, name) in [("..", ""), (".", ""), ("alice", ".."), ("", "")] {
        let (result, asked) = stop(&ServerId::new(user, name), ResponseTemplate::new(204)).await;
        assert!(matches!(result, Err(HubError::BadName(_))), "{user:?} {name:?}");
        assert!(asked.is_empty(), "{asked:?}");
    }
}

#[tokio::test]
async fn a_stop_is_never_sent_twice() {
    let id = ServerId::new("alice", "");
    let late = ResponseTemplate::new(204).set_delay(Duration::from_secs(60));
    for template in [late, ResponseTemplate::new(503), ResponseTemplate::new(403)] {
        let (result, asked) = stop(&id, template).await;
        assert!(result.is_err());
        assert_eq!(asked.len(), 1);
    }
}

#[tokio::test]
async fn an_answer_the_hub_never_gives_is_not_taken_for_a_stop() {
    let (result, _) = stop(&ServerId::new("alice", ""), ResponseTemplate::new(200)).await;
    assert!(matches!(result, Err(HubError::Unparsable { .. })), "{result:?}");
}

#[tokio::test]
async fn a_record_is_removed_only_where_that_was_asked_for() {
    let server = MockServer::start().await;
    Mock::given(matchers::method("DELETE")).respond_with(ResponseTemplate::new(204)).mount(&server).await;
    let stopper = Stopper::new(settings(&server)).unwrap();
    stopper.stop(&ServerId::new("alice", "x"), Afterwards::Remove).await.unwrap();
    let asked = &server.received_requests().await.unwrap()[0];
    assert_eq!(asked.body_json::<Value>().unwrap(), json!({ "remove": true }));
}

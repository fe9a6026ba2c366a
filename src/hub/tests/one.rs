use super::*;

async fn fresh(body: Value, id: &ServerId) -> Result<Option<Server>, HubError> {
    let server = MockServer::start().await;
    answer(&server, "/hub/api/users/alice", ok(body)).await;
    hub(&server).server(id).await
}

#[tokio::test]
async fn a_running_server_is_found_by_its_owner_and_name() {
    let mut user = user_model("alice");
    user["servers"]["train"] = server_model("train");
    let id = ServerId::new("alice", "train");
    let found = fresh(user, &id).await.unwrap().unwrap();
    assert_eq!((found.id, found.spawner.pid), (id, Some(4242)));
}

#[tokio::test]
async fn a_server_that_is_absent_or_stopped_is_none() {
    let mut user = user_model("alice");
    user["servers"][""]["stopped"] = json!(true);
    for name in ["", "never"] {
        let found = fresh(user.clone(), &ServerId::new("alice", name)).await;
        assert_eq!(found, Ok(None), "{name}");
    }
}

#[tokio::test]
async fn servers_that_may_not_be_seen_are_an_error_and_not_gone() {
    let mut user = user_model("alice");
    user.as_object_mut().unwrap().remove("servers");
    let error = fresh(user, &ServerId::new("alice", "")).await.unwrap_err();
    assert!(error.to_string().contains("read:servers"), "{error}");
}

#[tokio::test]
async fn a_server_that_cannot_be_read_is_an_error_and_not_gone() {
    let mut user = user_model("alice");
    user["servers"][""]["started"] = json!(7);
    let error = fresh(user, &ServerId::new("alice", "")).await.unwrap_err();
    assert!(error.to_string().contains("`started`"), "{error}");
}

#[tokio::test]
async fn only_a_404_of_the_hub_itself_means_gone() {
    for (body, gone) in [
        (r#"{"status": 404, "message": null}"#, true),
        (r#"{"status": 404, "message": "Not Found"}"#, true),
        ("<html>the proxy knows no Hub</html>", false),
    ] {
        let server = MockServer::start().await;
        let template = ResponseTemplate::new(404).set_body_string(body);
        answer(&server, "/hub/api/users/alice", template).await;
        let found = hub(&server).server(&ServerId::new("alice", "")).await;
        assert_eq!(found == Ok(None), gone, "{body}: {found:?}");
    }
}

#[tokio::test]
async fn odd_names_are_asked_for_as_one_segment() {
    for (name, path) in [
        ("a/b", "/hub/api/users/a%2Fb"),
        ("é lo@x.org", "/hub/api/users/%C3%A9%20lo@x.org"),
        ("100%?", "/hub/api/users/100%25%3F"),
    ] {
        let server = MockServer::start().await;
        let found = hub(&server).server(&ServerId::new(name, "")).await;
        assert!(found.is_err(), "nothing answers here");
        assert_eq!(asked(&server).await, [path]);
    }
}

#[tokio::test]
async fn a_name_with_no_address_is_not_asked_for() {
    let server = MockServer::start().await;
    let found = hub(&server).server(&ServerId::new("..", "")).await;
    assert_eq!(found, Err(HubError::BadName("..".to_owned())));
    assert!(asked(&server).await.is_empty());
}

#[tokio::test]
async fn the_token_owner_and_its_scopes_are_read() {
    let server = MockServer::start().await;
    let scopes = json!(["list:users", "read:servers!group=gpu"]);
    let body = json!({"kind": "service", "name": "gpu-culler", "scopes": scopes});
    answer(&server, "/hub/api/user", ok(body)).await;
    let identity = hub(&server).identity().await.unwrap();
    assert_eq!(identity.name, "gpu-culler");
    assert!(identity.scopes.contains("read:servers!group=gpu"));
    assert_eq!(identity.scopes.len(), 2);
}

#[tokio::test]
async fn the_version_is_read_at_the_root_of_the_api() {
    let server = MockServer::start().await;
    answer(&server, "/hub/api/", ok(json!({"version": "6.1.1"}))).await;
    assert_eq!(hub(&server).info().await.unwrap().version, "6.1.1");
}

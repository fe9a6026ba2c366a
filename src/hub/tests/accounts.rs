use super::*;
use crate::domain::UserName;

fn account_model(name: &str, last_activity: &str) -> Value {
    json!({
        "kind": "user", "name": name, "admin": false, "last_activity": last_activity,
        "created": "2026-01-01T00:00:00Z", "servers": {}, "pending": null, "server": null,
    })
}

fn name(name: &str) -> UserName {
    UserName(name.into())
}

#[tokio::test]
async fn only_the_wanted_of_all_users_without_a_server_are_kept() {
    let server = MockServer::start().await;
    let page = |items: Value, next: Value| {
        ok(json!({"items": items, "_pagination": {"offset": 0, "limit": 2, "total": 3, "next": next}}))
    };
    let old = "2026-01-02T00:00:00Z";
    Mock::given(matchers::query_param("offset", "0"))
        .and(matchers::query_param("state", "inactive"))
        .respond_with(page(
            json!([account_model("ann", old), account_model("bob", "2026-11-30T00:00:00Z")]),
            json!({"offset": 2, "limit": 2, "url": "http://forged.invalid/"}),
        ))
        .mount(&server)
        .await;
    Mock::given(matchers::query_param("offset", "2"))
        .respond_with(page(json!([account_model("c d", old)]), Value::Null))
        .mount(&server)
        .await;
    let before: jiff::Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    let accounts = hub(&server).inactive_users(|a| a.last_activity < Some(before)).await.unwrap();
    let names: Vec<_> = accounts.wanted.iter().map(|account| &*account.name.0).collect();
    assert_eq!((names, accounts.seen, accounts.troubles), (vec!["ann", "c d"], 3, vec![]));
}

#[tokio::test]
async fn a_user_of_whom_the_token_may_not_see_enough_is_no_candidate() {
    for hidden in ["last_activity", "servers", "admin"] {
        let server = MockServer::start().await;
        let mut model = account_model("ann", "2026-01-02T00:00:00Z");
        model.as_object_mut().unwrap().remove(hidden);
        answer(&server, "/hub/api/users", ok(json!([model]))).await;
        let accounts = hub(&server).inactive_users(|_| true).await.unwrap();
        assert!(accounts.wanted.is_empty(), "{hidden}");
        assert!(accounts.troubles[0].contains("read:users:activity"), "{:?}", accounts.troubles);
    }
}

#[tokio::test]
async fn whoever_has_a_server_or_is_being_worked_on_is_active() {
    let (spawning, started) = (json!({"": {"ready": false, "pending": "spawn"}}), json!("/user/ann/"));
    for (field, value) in [("servers", spawning), ("pending", json!("stop")), ("server", started)] {
        let server = MockServer::start().await;
        let mut model = account_model("ann", "2026-01-02T00:00:00Z");
        model[field] = value;
        answer(&server, "/hub/api/users/ann", ok(model)).await;
        let account = hub(&server).account(&name("ann")).await.unwrap().unwrap();
        assert!(account.active, "{field}");
    }
}

#[tokio::test]
async fn a_user_that_the_hub_spells_otherwise_is_not_the_one_asked_for() {
    let server = MockServer::start().await;
    answer(&server, "/hub/api/users/Ann", ok(account_model("ann", "2026-01-02T00:00:00Z"))).await;
    assert!(matches!(hub(&server).account(&name("Ann")).await, Err(HubError::Unparsable { .. })));
}

#[tokio::test]
async fn exactly_the_named_user_is_deleted_and_nothing_else_is_sent() {
    for (user, path) in [("a b", "a%20b"), ("a/b", "a%2Fb"), ("é@x.org", "%C3%A9@x.org"), ("50%", "50%25")] {
        let server = MockServer::start().await;
        Mock::given(matchers::method("DELETE")).respond_with(ResponseTemplate::new(204)).mount(&server).await;
        let remover = UserRemover::new(&settings(&server)).unwrap();
        assert_eq!(remover.remove(&name(user)).await, Ok(()));
        assert_eq!(asked(&server).await, [format!("/hub/api/users/{path}")]);
    }
}

#[tokio::test]
async fn nobody_and_dots_are_never_sent() {
    let server = MockServer::start().await;
    let remover = UserRemover::new(&settings(&server)).unwrap();
    for user in ["", ".", ".."] {
        assert!(matches!(remover.remove(&name(user)).await, Err(HubError::BadName(_))), "{user}");
    }
    assert!(asked(&server).await.is_empty());
}

#[tokio::test]
async fn a_refusal_names_the_scope() {
    let server = MockServer::start().await;
    let refused = json!({"status": 403, "message": "Action is not authorized with current scopes"});
    Mock::given(matchers::method("DELETE"))
        .respond_with(ResponseTemplate::new(403).set_body_json(refused))
        .mount(&server)
        .await;
    let remover = UserRemover::new(&settings(&server)).unwrap();
    let error = remover.remove(&name("ann")).await.unwrap_err().to_string();
    assert!(error.contains("delete:users"), "{error}");
}

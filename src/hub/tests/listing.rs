use super::*;
use crate::domain::SpawnerState;

/// A Hub that holds `users`, gives at most `cap` a page and treats the pages at `broken` as told.
struct Pages {
    users: Vec<Value>,
    cap: usize,
    broken: Vec<usize>,
    totals: Vec<(usize, usize)>,
}

impl Pages {
    fn of(names: &[&str], cap: usize) -> Self {
        let users = names.iter().map(|name| user_model(name)).collect();
        Self { users, cap, broken: Vec::new(), totals: Vec::new() }
    }
}

impl wiremock::Respond for Pages {
    fn respond(&self, request: &wiremock::Request) -> ResponseTemplate {
        let number = |key: &str| {
            let mut pairs = request.url.query_pairs();
            pairs.find(|(k, _)| k == key).map(|(_, v)| v.parse::<usize>().unwrap())
        };
        let offset = number("offset").unwrap_or(0);
        let limit = number("limit").unwrap_or(50).min(self.cap);
        if self.broken.contains(&offset) {
            return ResponseTemplate::new(500);
        }
        let items: Vec<_> = self.users.iter().skip(offset).take(limit).collect();
        let total = self.users.len();
        let shown = self.totals.iter().find(|(at, _)| *at == offset).map_or(total, |(_, n)| *n);
        let next = (offset + limit < total).then(|| {
            let url = format!("http://forged.invalid/hub/api/users?offset={}", offset + limit);
            json!({"offset": offset + limit, "limit": limit, "url": url})
        });
        ok(json!({"items": items, "_pagination":
            {"offset": offset, "limit": limit, "total": shown, "next": next}}))
    }
}

async fn list(pages: Pages, page_size: Option<u32>) -> (Listing, Vec<String>) {
    let server = MockServer::start().await;
    Mock::given(matchers::path("/hub/api/users"))
        .and(matchers::header("authorization", format!("token {TOKEN}").as_str()))
        .and(matchers::header("accept", "application/jupyterhub-pagination+json"))
        .respond_with(pages)
        .mount(&server)
        .await;
    let hub = Hub::new(HubSettings { page_size, ..settings(&server) }).unwrap();
    let listing = hub.servers().await.unwrap();
    (listing, asked(&server).await)
}

async fn list_one_page(body: Value) -> Listing {
    let server = MockServer::start().await;
    answer(&server, "/hub/api/users", ok(body)).await;
    hub(&server).servers().await.unwrap()
}

fn ids(listing: &Listing) -> Vec<String> {
    listing.servers.iter().map(|server| server.id.to_string()).collect()
}

#[tokio::test]
async fn a_page_size_beyond_the_hubs_maximum_skips_nobody() {
    let (listing, asked) = list(Pages::of(&["a", "b", "c", "d", "e"], 2), Some(500)).await;
    assert_eq!(ids(&listing), ["a/", "b/", "c/", "d/", "e/"]);
    assert!(listing.is_complete());
    let query = |offset, limit| format!("/hub/api/users?state=active&offset={offset}&limit={limit}");
    // Only our own addresses were asked, though each page named a forged one as the next.
    assert_eq!(asked, [query(0, 500), query(2, 2), query(4, 2)]);
}

#[tokio::test]
async fn an_empty_page_is_not_the_end_while_there_is_a_next() {
    let server = MockServer::start().await;
    let page = |items: Value, next: Value| {
        ok(json!({"items": items, "_pagination": {"offset": 0, "limit": 1, "total": 2, "next": next}}))
    };
    for (offset, template) in [
        ("0", page(json!([]), json!({"offset": 1, "limit": 1, "url": ""}))),
        ("1", page(json!([user_model("late")]), Value::Null)),
    ] {
        Mock::given(matchers::query_param("offset", offset)).respond_with(template).mount(&server).await;
    }
    let listing = hub(&server).servers().await.unwrap();
    assert_eq!(ids(&listing), ["late/"]);
    assert!(listing.is_complete());
}

#[tokio::test]
async fn a_failing_page_costs_its_own_users_only() {
    let pages = Pages { broken: vec![2], ..Pages::of(&["a", "b", "c", "d", "e"], 2) };
    let (listing, _) = list(pages, None).await;
    assert_eq!(ids(&listing), ["a/", "b/", "e/"]);
    assert!(!listing.is_complete());
    assert_eq!(listing.incomplete.len(), 1, "{:?}", listing.incomplete);
    assert!(listing.incomplete[0].starts_with("users 2 to 4: GET /hub/api/users?"));
}

#[tokio::test]
async fn a_hub_that_went_away_is_not_asked_for_every_page_left() {
    let names: Vec<_> = (0..20).map(|n| format!("u{n:02}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let pages = Pages { broken: (1..20).collect(), ..Pages::of(&names, 1) };
    let (listing, asked) = list(pages, None).await;
    assert_eq!(ids(&listing), ["u00/"]);
    assert_eq!(asked.len(), 1 + 2 * 3, "two pages, each tried three times");
    assert!(listing.incomplete.last().unwrap().contains("users from 3 on"));
}

#[tokio::test]
async fn a_list_that_shrank_on_the_way_proves_nobodys_absence() {
    let pages = Pages { totals: vec![(2, 3)], ..Pages::of(&["a", "b", "c", "d"], 2) };
    let (listing, _) = list(pages, None).await;
    assert_eq!(listing.servers.len(), 4);
    assert!(!listing.is_complete());
}

#[tokio::test]
async fn a_user_seen_on_two_pages_counts_once() {
    let (listing, _) = list(Pages::of(&["a", "b", "b", "c"], 2), None).await;
    assert_eq!(ids(&listing), ["a/", "b/", "c/"]);
}

#[tokio::test]
async fn a_page_that_points_back_ends_the_list() {
    let body = json!({"items": [user_model("a")], "_pagination":
        {"offset": 0, "limit": 1, "total": 9, "next": {"offset": 0, "limit": 1, "url": ""}}});
    let listing = list_one_page(body).await;
    assert_eq!(ids(&listing), ["a/"]);
    assert!(!listing.is_complete());
}

#[tokio::test]
async fn a_list_without_pages_is_read_and_trusted_below_the_hubs_cut() {
    let listing = list_one_page(json!([user_model("a"), user_model("b")])).await;
    assert_eq!(ids(&listing), ["a/", "b/"]);
    assert!(listing.is_complete());

    let names: Vec<_> = (0..200).map(|n| user_model(&format!("u{n}"))).collect();
    let listing = list_one_page(Value::Array(names)).await;
    assert_eq!(listing.servers.len(), 200);
    assert!(!listing.is_complete());
}

#[tokio::test]
async fn every_field_arrives_in_the_domain() {
    let mut user = user_model("alice");
    user["admin"] = json!(true);
    user["user_info"] =
        json!({"email": "alice@example.org", "uid": 7, "zoneinfo": "Asia/Tokyo", "login": "al", "x": ""});
    user["servers"] = json!({"train 1": server_model("train 1")});
    let listing = list_one_page(json!([user])).await;
    let expected = Server {
        id: ServerId::new("alice", "train 1"),
        groups: vec!["phd".to_owned()],
        admin: true,
        profile: Some("a100".to_owned()),
        labels: [].into(),
        started: Some("2026-12-01T08:00:00Z".parse().unwrap()),
        last_activity: Some("2026-12-01T08:59:30.25Z".parse().unwrap()),
        pending: None,
        ready: true,
        // A login is neither an address nor a time zone.
        contacts: [("user_info.email", "alice@example.org"), ("user_info.zoneinfo", "Asia/Tokyo")]
            .map(|(source, text)| (source.to_owned(), text.to_owned()))
            .to_vec(),
        spawner: SpawnerState { pid: Some(4242), ..SpawnerState::default() },
        path: "/user/alice/".to_owned(),
    };
    assert_eq!(listing.servers, [Box::new(expected)]);
    assert_eq!(listing.hidden, Hidden::default());
}

#[tokio::test]
async fn of_what_users_chose_only_what_is_asked_for_is_read() {
    let mut model = user_model("alice");
    model["servers"][""]["user_options"] = json!({
        "profile": "a100", "token": "hunter2", "team": "vision", "expected_duration": ["8h"],
        "project": 7, "owner": {"a": 1}, "expected-until": "x".repeat(100_000), "gpu-culler.io/team": ["a", "b"],
    });
    let labels = |listing: Listing| listing.servers[0].labels.clone();
    let listing = list_one_page(json!([model])).await;
    let expected = [
        ("expected-until", "x".repeat(200)),
        ("expected_duration", "8h".to_owned()),
        ("team", "vision".to_owned()),
    ];
    assert_eq!(labels(listing), expected.map(|(key, value)| (format!("user_options.{key}"), value)).into());
    for odd in [json!(null), json!("team"), json!([1]), json!({"team": null}), json!({"team": []})] {
        let mut model = user_model("alice");
        model["servers"][""]["user_options"] = odd;
        assert_eq!(labels(list_one_page(json!([model])).await), [].into());
    }
}

#[tokio::test]
async fn a_hub_5_without_the_newer_fields_is_read() {
    let model = json!({"name": "bob", "admin": false, "groups": [], "servers": {"": {
        "name": "", "last_activity": null, "started": "2026-12-01T08:00:00", "pending": "spawn",
        "ready": false, "url": "/user/bob/", "user_options": {}, "progress_url": ""}}});
    let listing = list_one_page(json!([model])).await;
    let server = &listing.servers[0];
    assert_eq!(server.last_activity, None);
    assert_eq!(server.started, Some("2026-12-01T08:00:00Z".parse().unwrap()));
    assert_eq!(server.pending.as_deref(), Some("spawn"));
    assert_eq!((server.profile.as_ref(), server.contacts.len()), (None, 0));
    assert_eq!(listing.hidden, Hidden { state: 1, groups: 0 });
}

#[tokio::test]
async fn what_the_token_may_not_see_is_told_apart_from_empty() {
    let (mut empty, mut hidden) = (user_model("a"), user_model("b"));
    empty["servers"][""]["state"] = json!({});
    hidden["servers"][""].as_object_mut().unwrap().remove("state");
    hidden.as_object_mut().unwrap().remove("groups");
    let listing = list_one_page(json!([empty, hidden])).await;
    assert_eq!(listing.servers.len(), 2);
    assert_eq!(listing.hidden, Hidden { state: 1, groups: 1 });
}

#[tokio::test]
async fn stopped_servers_are_left_out() {
    let mut user = user_model("alice");
    user["servers"]["old"] = server_model("old");
    user["servers"]["old"]["stopped"] = json!(true);
    user["servers"]["old"]["ready"] = json!(false);
    let listing = list_one_page(json!([user])).await;
    assert_eq!(ids(&listing), ["alice/"]);
    assert!(listing.is_complete());
}

#[tokio::test]
async fn an_entry_that_cannot_be_read_is_named_and_the_others_are_kept() {
    let change = |name: &str, field: &str, value: Value| {
        let mut user = user_model(name);
        user[field] = value;
        user
    };
    let change_server = |name: &str, field: &str, value: Value| {
        let mut user = user_model(name);
        user["servers"][""][field] = value;
        user["servers"]["fine"] = server_model("fine");
        user
    };
    let mut no_servers = user_model("f");
    no_servers.as_object_mut().unwrap().remove("servers");
    let listing = list_one_page(json!([
        change("a", "servers", json!("garbage")),
        change("b", "groups", json!(3)),
        json!(["no", "user"]),
        change_server("c", "started", json!("yesterday")),
        change_server("d", "ready", json!("yes")),
        change_server("e", "last_activity", json!(1_764_579_600)),
        no_servers,
        user_model("g"),
    ]))
    .await;
    assert_eq!(ids(&listing), ["c/fine", "d/fine", "e/fine", "g/"]);
    assert!(!listing.is_complete());
    let told: Vec<_> = listing.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "user a: `servers` is a text, not an object",
            "user b: `groups` is a number that does not fit",
            "a user without a readable name: a list, not an object",
            "server c/: `started` is a text that does not fit",
            "server d/: `ready` is a text that does not fit",
            "server e/: `last_activity` is a number that does not fit",
            "user f: `servers` is missing; the token needs the scope read:servers for this user",
        ]
    );
}

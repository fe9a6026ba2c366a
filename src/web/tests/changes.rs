//! What is posted.

use super::*;
use crate::executor::What;
use crate::policy::Keep;

fn kept() -> Answer {
    let until = "2026-12-01T12:30:00Z".parse().unwrap();
    Answer::Kept(Keep { until, by: "alice".to_owned(), at: now(), reason: None, cost: Default::default() })
}

#[tokio::test]
async fn looking_changes_nothing_and_a_form_with_its_secret_does() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice"]));
    let mut alice = service.of("alice").await;
    let page = alice.get("/session/alice/").await;
    assert_eq!(page.status, 200);
    for path in ["/keep?user=alice&server=&for=2h", "/stop?user=alice&server="] {
        assert_eq!(alice.get(path).await.status, 405, "{path}");
    }
    assert!(service.nothing_was_asked());
    service.will_answer(kept());
    let csrf = page.csrf();
    let sent =
        alice.post("/keep", &[("user", "alice"), ("server", ""), ("for", "2h"), ("csrf", &csrf)]).await;
    assert_eq!((sent.status, sent.location()), (303, "/services/gpu-culler/session/alice/"));
    let page = alice.get("/session/alice/").await;
    assert!(page.text.contains("Kept until Tue 1 Dec 2026 12:30"), "{}", page.text);
    assert!(page.text.contains("alice keeps it until"), "it is shown before the next look");
    assert!(!alice.get("/session/alice/").await.text.contains("role=\"status\""), "it is told once");
}

#[tokio::test]
async fn a_form_without_the_secret_or_from_another_site_changes_nothing() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice"]));
    let mut alice = service.of("alice").await;
    let csrf = alice.get("/session/alice/").await.csrf();
    let base = [("user", "alice"), ("server", ""), ("for", "2h")];
    let with = |csrf: &str| {
        [&base[..], &[("csrf", csrf)]]
            .concat()
            .into_iter()
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .collect::<Vec<_>>()
    };
    assert_eq!(alice.post("/keep", &base).await.status, 403);
    let mallory = service.of("mallory").await.get("/").await;
    assert_eq!(mallory.status, 200);
    for wrong in ["", "x", &csrf[1..]] {
        let fields = with(wrong);
        let fields: Vec<_> = fields.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(alice.post("/keep", &fields).await.status, 403, "{wrong}");
    }
    let right = with(&csrf);
    let right: Vec<_> = right.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    for (name, value) in [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")] {
        alice.headers = [(name, value.to_owned())].into();
        assert_eq!(alice.post("/keep", &right).await.status, 403, "{name}");
    }
    assert!(service.nothing_was_asked());
}

#[tokio::test]
async fn nobody_keeps_or_stops_what_is_not_theirs() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice", "bob"]));
    let mut bob = service.of("bob").await;
    let csrf = bob.get("/session/bob/").await.csrf();
    for path in ["/keep", "/stop"] {
        let fields = [("user", "alice"), ("server", ""), ("for", "2h"), ("reason", "x"), ("csrf", &csrf)];
        assert_eq!(bob.post(path, &fields).await.status, 403, "{path}");
    }
    assert_eq!(bob.post("/lift", &[("reason", "x"), ("csrf", &csrf)]).await.status, 403);
    assert!(service.nothing_was_asked());
}

#[tokio::test]
async fn an_admin_acts_for_others_by_name_and_with_a_reason() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice"]));
    let mut admin = service.of("admin").await;
    let csrf = admin.get("/session/alice/").await.csrf();
    let fields = [("user", "alice"), ("server", ""), ("csrf", csrf.as_str()), ("reason", "")];
    assert_eq!(admin.post("/stop", &fields).await.status, 303);
    assert!(service.nothing_was_asked(), "without a reason nothing is stopped");
    let inbox = service.inbox.clone();
    let seen = tokio::spawn(async move {
        inbox.arrived().await;
        let asked = inbox.take_all().pop_front().unwrap();
        let wish = asked.wish.clone();
        asked.answer(Answer::Stopped);
        wish
    });
    let fields =
        [("user", "alice"), ("server", ""), ("csrf", csrf.as_str()), ("reason", "the  node\r\nfails")];
    assert_eq!(admin.post("/stop", &fields).await.status, 303);
    let wish = seen.await.unwrap();
    assert_eq!((wish.by.as_str(), wish.as_admin), ("admin", true));
    assert_eq!(wish.reason.as_deref(), Some("the node fails"));
    assert!(matches!(wish.what, What::StopNow { even_if_busy: false, .. }));
}

#[tokio::test]
async fn an_oversized_body_is_refused() {
    let service = Service::start().await;
    let mut alice = service.of("alice").await;
    let reason = "x".repeat(20_000);
    assert_eq!(alice.post("/keep", &[("user", "alice"), ("reason", &reason)]).await.status, 413);
    assert!(service.nothing_was_asked());
}

#[tokio::test]
async fn names_with_line_ends_get_into_no_header() {
    let service = Service::start().await;
    let mut admin = service.of("admin").await;
    let name = "a\r\nSet-Cookie: stolen=1";
    service.looks_at(&line(&[name]));
    let csrf = admin.get("/session/a%0D%0ASet-Cookie%3A%20stolen%3D1/").await.csrf();
    let fields = [("user", name), ("server", ""), ("for", "nonsense"), ("csrf", &csrf)];
    let sent = admin.post("/keep", &fields).await;
    assert_eq!(sent.status, 303);
    assert_eq!(sent.location(), "/services/gpu-culler/session/a%0D%0ASet-Cookie%3A%20stolen%3D1/");
    assert!(!admin.cookies.contains_key("stolen"));
}

#[tokio::test]
async fn a_login_needs_its_secret_in_the_json_interface_and_a_token_does_not() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice"]));
    service.will_answer(kept());
    let mut alice = service.of("alice").await;
    let csrf = alice.get("/session/alice/").await.csrf();
    let body = serde_json::json!({ "server": "alice/", "for": "2h" });
    assert_eq!(alice.post_json("/api/v1/keep", &body).await.status, 403);
    alice.headers.insert("x-csrf-token", csrf);
    assert_eq!(alice.post_json("/api/v1/keep", &body).await.status, 200);
    let mut token = service.browser();
    token.headers.insert("authorization", "Bearer token-of-alice".to_owned());
    let answer = token.post_json("/api/v1/keep", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.text.contains("\"kept_until\":\"2026-12-01T12:30:00Z\""), "{}", answer.text);
    assert_eq!(token.post_json("/api/v1/stop", &body).await.status, 403, "the token may stop nothing");
}

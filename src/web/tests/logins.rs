//! The way in.

use super::browsing::query;
use super::*;

#[tokio::test]
async fn the_hub_is_asked_with_state_and_challenge_and_the_cookie_is_out_of_reach_of_scripts() {
    let service = Service::start().await;
    let mut browser = service.browser();
    let sent = browser.get("/session/alice/").await;
    let asked = query(sent.location());
    assert_eq!(asked["client_id"], "service-gpu-culler");
    assert_eq!(asked["redirect_uri"], "/services/gpu-culler/oauth_callback");
    assert_eq!((asked["response_type"].as_str(), asked["code_challenge_method"].as_str()), ("code", "S256"));
    assert!(asked["state"].len() >= 20 && asked["code_challenge"].len() == 43);
    let back = browser.come_back(sent.location(), "alice").await;
    assert_eq!(back.location(), "/services/gpu-culler/session/alice/");
    let cookie = cookie_of(&back);
    for part in ["HttpOnly", "SameSite=Lax", "Path=/services/gpu-culler/"] {
        assert!(cookie.contains(part), "{part} is missing: {cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains("token-of"), "{cookie}");
    assert_eq!(browser.get("/").await.status, 200);
}

fn cookie_of(page: &super::browsing::Page) -> String {
    let all = page.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
    all.into_iter().find(|cookie| cookie.contains("gpu-culler-login=")).unwrap().to_owned()
}

#[tokio::test]
async fn over_https_the_cookie_is_never_sent_in_the_clear() {
    let service = Service::start().await;
    let mut browser = service.browser();
    browser.headers.insert("x-forwarded-proto", "https,http".to_owned());
    let back = browser.log_in(&service, "alice", "").await;
    assert!(cookie_of(&back).contains("Secure"));
}

#[tokio::test]
async fn where_the_hub_wants_cookies_bound_to_the_host_they_are() {
    let bound = [("JUPYTERHUB_COOKIE_HOST_PREFIX_ENABLED", "1")];
    let service = Service::with(Patience::default(), &bound).await;
    let back = service.browser().log_in(&service, "alice", "").await;
    let cookie = cookie_of(&back);
    assert!(cookie.starts_with("__Host-gpu-culler-login="), "{cookie}");
    assert!(cookie.ends_with("Path=/") && cookie.contains("Secure"), "{cookie}");
}

#[tokio::test]
async fn with_subdomains_people_are_sent_to_the_hubs_own_host() {
    let more = [("JUPYTERHUB_HOST", "https://hub.example.org"), ("JUPYTERHUB_BASE_URL", "/jupyter/")];
    let service = Service::with(Patience::default(), &more).await;
    let sent = service.browser().get("/").await;
    assert!(sent.location().starts_with("https://hub.example.org/jupyter/hub/api/oauth2/authorize?"));
}

#[tokio::test]
async fn a_state_that_was_not_given_to_this_browser_lets_nobody_in() {
    let service = Service::start().await;
    let victim_sent = service.browser().get("/").await;
    let mut browser = service.browser();
    let back = browser.come_back(victim_sent.location(), "alice").await;
    assert_eq!(back.status, 403);
    let mine = browser.get("/").await;
    let forged = mine.location().replace("state=", "state=x");
    assert_eq!(browser.come_back(&forged, "alice").await.status, 403);
    assert_eq!(browser.get("/").await.status, 302);
}

#[tokio::test]
async fn a_way_back_leads_in_once() {
    let service = Service::start().await;
    let mut browser = service.browser();
    let sent = browser.get("/").await;
    let before = browser.cookies.clone();
    assert_eq!(browser.come_back(sent.location(), "alice").await.status, 302);
    assert_eq!(browser.come_back(sent.location(), "alice").await.status, 403, "the browser forgot it");
    let mut thief = service.browser();
    thief.cookies = before;
    assert_eq!(thief.come_back(sent.location(), "alice").await.status, 403, "the Hub forgot it");
}

#[tokio::test]
async fn several_tabs_may_log_in_at_the_same_time() {
    let service = Service::start().await;
    let mut browser = service.browser();
    let (first, second) = (browser.get("/").await, browser.get("/session/alice/").await);
    let back = browser.come_back(second.location(), "alice").await;
    assert_eq!(back.location(), "/services/gpu-culler/session/alice/");
    let back = browser.come_back(first.location(), "alice").await;
    assert_eq!(back.location(), "/services/gpu-culler/");
}

#[tokio::test]
async fn who_may_not_use_the_service_is_not_let_in() {
    let service = Service::start().await;
    let mut browser = service.browser();
    let sent = browser.get("/").await;
    assert_eq!(browser.come_back(sent.location(), "outsider").await.status, 403);
    assert_eq!(browser.get("/").await.status, 302);
    browser.headers.insert("authorization", "token token-of-outsider".to_owned());
    assert_eq!(browser.get("/api/v1/sessions").await.status, 403);
}

#[tokio::test]
async fn nobody_is_sent_anywhere_else_after_the_login() {
    let service = Service::start().await;
    for path in ["/?next=https://evil.example", "/?next=//evil.example", "/session//evil.example/x"] {
        let mut browser = service.browser();
        let sent = browser.get(path).await;
        if sent.status == 302 {
            let back = browser.come_back(sent.location(), "alice").await;
            assert!(back.location().starts_with("/services/gpu-culler/"), "{path}: {}", back.location());
        } else {
            assert_eq!(sent.status, 404, "{path}");
        }
    }
}

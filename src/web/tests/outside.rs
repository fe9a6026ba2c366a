//! Who is outside sees and does nothing.

use super::*;

const PAGES: [&str; 9] = [
    "/",
    "",
    "/session/alice/",
    "/session/alice/x",
    "/admin",
    "/admin/cards",
    "/admin/exemptions",
    "/admin/log",
    "/admin?q=alice",
];
const DATA: [&str; 5] =
    ["/api/v1/sessions", "/api/v1/sessions/alice/", "/api/v1/decisions", "/api/v1/openapi.json", "/metrics"];
const CHANGES: [&str; 7] =
    ["/keep", "/stop", "/lift", "/api/v1/keep", "/api/v1/stop", "/api/v1/freeze/lift", "/api/v1/arbiter"];

#[tokio::test]
async fn without_a_login_nothing_is_shown_and_nothing_done() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice"]));
    let mut browser = service.browser();
    for path in PAGES {
        let page = browser.get(path).await;
        assert_eq!((page.status, page.text.as_str()), (302, ""), "{path}");
        assert!(page.location().starts_with("/hub/api/oauth2/authorize?"), "{path}: {}", page.location());
    }
    for path in DATA {
        let page = browser.get(path).await;
        assert_eq!(page.status, 401, "{path}");
        assert!(!page.text.contains("alice"), "{path}");
    }
    for path in CHANGES {
        let page = browser.post(path, &[("user", "alice"), ("for", "2h"), ("csrf", "x")]).await;
        assert_eq!(page.status, 403, "{path}");
    }
    assert!(service.nothing_was_asked());
}

#[tokio::test]
async fn a_cookie_or_a_token_that_somebody_made_up_is_no_login() {
    let service = Service::start().await;
    let mut browser = service.browser();
    browser.cookies.insert("gpu-culler-login".to_owned(), "AAAAAAAAAAAAAAAAAAAAAA".to_owned());
    assert_eq!(browser.get("/").await.status, 302);
    browser.headers.insert("authorization", "token made-up".to_owned());
    assert_eq!(browser.get("/api/v1/sessions").await.status, 401);
    browser.headers.insert("authorization", "Basic YWxpY2U6eA==".to_owned());
    assert_eq!(browser.get("/api/v1/sessions").await.status, 401);
}

#[tokio::test]
async fn before_anything_is_known_the_prefix_is_answered_and_health_too() {
    let service = Service::start().await;
    let mut browser = service.browser();
    assert_eq!(browser.get("").await.status, 302);
    let health = browser.get("/health").await;
    assert_eq!((health.status, health.text.contains("\"alive\":true")), (200, true));
}

#[tokio::test]
async fn where_the_hub_tells_no_way_in_the_page_says_so_and_stays_up() {
    let service = Service::with(Patience::default(), &[("JUPYTERHUB_API_TOKEN", "")]).await;
    let page = service.browser().get("/").await;
    assert_eq!(page.status, 503);
    assert!(page.text.contains("Nobody can log in"), "{}", page.text);
}

#[tokio::test]
async fn no_page_can_be_put_into_a_frame_or_run_a_foreign_script() {
    let service = Service::start().await;
    let mut browser = service.of("alice").await;
    for path in ["/", "/session/bob/", "/nowhere", "/static/style.css", "/health", "/api/v1/sessions"] {
        let headers = browser.get(path).await.headers;
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{path}");
        assert!(!policy.contains("unsafe"), "{path}");
        assert_eq!(headers["x-frame-options"], "DENY", "{path}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
    }
    assert_eq!(browser.get("/").await.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn a_slow_head_and_a_slow_body_are_cut_off() {
    let short = Duration::from_millis(200);
    let patience = Patience { head: short, body: short, ..Patience::default() };
    let service = Service::with(patience, &[]).await;
    let mut stream = tokio::net::TcpStream::connect(service.address).await.unwrap();
    stream.write_all(b"GET /services/gpu-culler/ HTTP/1.1\r\nHost: x\r\n").await.unwrap();
    let mut answer = String::new();
    let closed = stream.read_to_string(&mut answer);
    tokio::time::timeout(Duration::from_secs(5), closed).await.expect("it is closed").ok();

    let mut browser = service.of("alice").await;
    let cookies: Vec<_> = std::mem::take(&mut browser.cookies).into_iter().collect();
    let cookies: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let head = format!(
        "POST /services/gpu-culler/keep HTTP/1.1\r\nHost: x\r\nCookie: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nuser=",
        cookies.join("; ")
    );
    let mut stream = tokio::net::TcpStream::connect(service.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let closed = stream.read_to_string(&mut answer);
    tokio::time::timeout(Duration::from_secs(5), closed).await.expect("it is answered").ok();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

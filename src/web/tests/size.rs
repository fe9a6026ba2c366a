//! Five thousand sessions.

use std::time::Instant;

use super::*;

#[expect(clippy::print_stdout, reason = "a figure to look at, not to fail on")]
#[tokio::test]
async fn a_page_of_five_thousand_sessions_holds_fifty_of_them() {
    let service = Service::start().await;
    let users: Vec<String> = (0..5000).map(|n| format!("user{n:04}")).collect();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    service.looks_at(&line(&users));
    let mut admin = service.of("admin").await;
    for path in ["/admin", "/admin?sort=server&page=100", "/admin?q=user49", "/admin?verdict=idle&sort=cards"]
    {
        let began = Instant::now();
        let page = admin.get(path).await;
        println!("{path}: {} ms for {} bytes", began.elapsed().as_millis(), page.text.len());
        assert_eq!(page.text.matches("<th scope=\"row\"").count(), 50, "{path}");
    }
    assert!(admin.get("/admin?page=100").await.text.contains("5000 sessions, page 100 of 100"));
    assert!(admin.get("/admin?page=9999").await.text.contains("page 100 of 100"));
}

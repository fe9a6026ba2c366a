//! What is shown to whom.

use super::*;

#[tokio::test]
async fn everybody_sees_their_own_and_nobody_learns_of_anybody_else() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice", "bob"]));
    let mut bob = service.of("bob").await;
    assert!(!bob.get("/").await.text.contains("alice"));
    let (theirs, nobodys) = (bob.get("/session/alice/").await, bob.get("/session/nobody/").await);
    assert_eq!((theirs.status, nobodys.status), (403, 403));
    assert_eq!(theirs.text, nobodys.text, "whether there is such a session stays unknown");
    assert!(theirs.text.contains("not yours"));
    for path in ["/admin", "/admin/cards", "/admin/exemptions", "/admin/log"] {
        assert_eq!(bob.get(path).await.status, 403, "{path}");
    }
    let sessions = bob.get("/api/v1/sessions").await;
    assert!(sessions.text.contains("bob/") && !sessions.text.contains("alice"), "{}", sessions.text);
    assert_eq!(bob.get("/api/v1/decisions?server=alice/").await.status, 403);
    assert_eq!(bob.get("/api/v1/decisions?server=bob/").await.status, 200);
    assert_eq!(bob.get("/metrics").await.status, 403);
}

#[tokio::test]
async fn names_that_climb_lead_nowhere() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice"]));
    let mut bob = service.of("bob").await;
    for path in [
        "/session/..%2Falice/",
        "/session/bob%2F..%2Falice/",
        "/session/%2e%2e%2fadmin/x",
        "/session/bob/..%2F..%2Fadmin",
        "/session/alice%00/",
        "/session/bob%2Falice/",
        "/static/..%2f..%2fCargo.toml",
        "/static/%2e%2e/health",
    ] {
        let page = bob.get(path).await;
        assert!(matches!(page.status, 200 | 400 | 403 | 404), "{path}: {}", page.status);
        assert!(!page.text.contains("GPU-alice") && !page.text.contains("[package]"), "{path}");
    }
}

#[tokio::test]
async fn foreign_words_become_no_markup() {
    const EVIL: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    let service = Service::start().await;
    let servers = [server(EVIL, EVIL, EVIL)];
    let line = serde_json::json!({ "at": NOW, "hub": "ok", "telemetry": "ok", "servers": servers });
    service.looks_at(&line.to_string());
    service.board.write(|status| {
        status.problems = vec![EVIL.to_owned()];
        let known = status.last.as_mut().map(|last| &mut last.sessions[0]).unwrap();
        let record = known.record.as_mut().unwrap();
        let until = "2027-01-01T00:00:00Z".parse().unwrap();
        let (by, reason) = (EVIL.to_owned(), Some(EVIL.to_owned()));
        let keep = crate::policy::Keep { until, by, at: now(), reason, cost: Default::default() };
        record.keep = Some(Box::new(keep));
    });
    let mut store = crate::store::Store::open(&service._folder.path().join("ledger.sqlite")).unwrap();
    let id = crate::domain::ServerId::new(EVIL, "");
    let entry = crate::store::Entry {
        at: now(),
        server: Some(id.clone()),
        event: EVIL.to_owned(),
        reason: EVIL.to_owned(),
    };
    store.log(&[entry]).unwrap();
    let mut admin = service.of("admin").await;
    let own = format!("/{}", crate::message::pages::session_path(&id));
    let query =
        "/admin?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&sort=%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    for path in ["/admin", query, "/admin/cards", "/admin/exemptions", "/admin/log", own.as_str()] {
        let page = admin.get(path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        assert!(!page.text.contains("<script>alert") && !page.text.contains("<img"), "{path}: {}", page.text);
    }
    assert!(admin.get("/admin/log").await.text.contains("&lt;script&gt;alert"));
}

#[tokio::test]
async fn a_neighbours_script_cannot_read_a_page_with_its_victims_cookie() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice"]));
    let mut alice = service.of("alice").await;
    alice.headers.insert("sec-fetch-mode", "cors".to_owned());
    for path in ["/", "/session/alice/", "/api/v1/sessions"] {
        assert_eq!(alice.get(path).await.status, 403, "{path}");
    }
    alice.headers.insert("sec-fetch-mode", "navigate".to_owned());
    assert_eq!(alice.get("/").await.status, 200);
}

#[tokio::test]
async fn metrics_are_for_a_token_that_may_measure_or_for_all_where_the_settings_say_so() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice"]));
    let mut prometheus = service.browser();
    prometheus.headers.insert("authorization", "Bearer token-of-prometheus".to_owned());
    let page = prometheus.get("/metrics").await;
    assert_eq!(page.status, 200, "{}", page.text);
    for line in [
        "gpu_culler_mode{mode=\"enforce\"} 1",
        "gpu_culler_problems 0",
        "gpu_culler_sessions{verdict=\"idle\"} 1",
        "gpu_culler_source_up{source=\"hub\"} 1",
        "gpu_culler_source_age_seconds{source=\"cards\"} 0.0",
        "gpu_culler_last_cycle_seconds 0.02",
        "gpu_culler_freezes_total 0",
        "gpu_culler_stops_total{outcome=\"stopped\"} 0",
        "gpu_culler_stops_total{outcome=\"called-off\"} 0",
        "gpu_culler_stops_total{outcome=\"failed\"} 0",
        "gpu_culler_warnings_total 0",
    ] {
        assert!(page.text.lines().any(|l| l == line), "{line} is missing:\n{}", page.text);
    }
    assert!(!page.text.contains("alice"));
    service.board.write(|status| status.shown.as_mut().unwrap().metrics_name_users = true);
    let named = "gpu_culler_session_cards{user=\"alice\",server=\"\",verdict=\"idle\"} 1";
    assert!(prometheus.get("/metrics").await.text.lines().any(|line| line == named));
    service.board.write(|status| status.shown.as_mut().unwrap().metrics_are_open = true);
    assert_eq!(service.browser().get("/metrics").await.status, 200);
}

#[tokio::test]
async fn what_is_declared_is_shown_with_what_is_left_of_it_and_who_waits_is_told() {
    let service = Service::start().await;
    let mut mine = server("alice", "A100", "k");
    mine["labels"] = serde_json::json!({
        "gpu-culler.io/expected-until": "2030-01-01", "project": "tides", "user_options.team": "<b>vision</b>",
        "expected-duration": "3 bananas",
    });
    let waiting = serde_json::json!([{ "count": 3, "for": "nvidia.com/gpu", "served_by": ["bob/"] }]);
    service.looks_at(
        &serde_json::json!({ "at": NOW, "hub": "ok", "telemetry": "ok", "waiting": waiting, "servers": [mine] })
            .to_string(),
    );
    let mut alice = service.of("alice").await;
    let page = alice.get("/session/alice/").await.text;
    for words in [
        "Idle, within its declared time",
        "It was declared to be needed until",
        "tides",
        "expected-duration `3 bananas` cannot be read, so it protects nothing",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("<b>vision"), "{page}");
    let answer = alice.get("/api/v1/sessions").await.text;
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let told = &answer["sessions"][0];
    assert_eq!(told["verdict"], "protected");
    let reason = told["reason"].as_str().unwrap();
    assert!(reason.starts_with("idle for ") && reason.contains(" left: "), "{reason}");
    let intent = &told["intent"];
    assert_eq!((&intent["project"], &intent["team"]), (&"tides".into(), &"<b>vision</b>".into()));
    assert_eq!((&intent["capped"], &intent["owner"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(intent["unreadable"], serde_json::json!(["expected-duration `3 bananas`"]));
    let line = serde_json::json!([{ "count": 3, "for": "nvidia.com/gpu", "since": null }]);
    assert_eq!(answer["waiting"], line);
    let mut prometheus = service.browser();
    prometheus.headers.insert("authorization", "Bearer token-of-prometheus".to_owned());
    let metrics = prometheus.get("/metrics").await.text;
    assert!(metrics.contains("gpu_culler_waiting{for=\"nvidia.com/gpu\"} 3\n"), "{metrics}");
    service.looks_at(&line_of_nobody());
    let metrics = prometheus.get("/metrics").await.text;
    assert!(!metrics.contains("gpu_culler_waiting"), "not known is not nobody: {metrics}");
}

fn line_of_nobody() -> String {
    serde_json::json!({ "at": NOW, "hub": "ok", "telemetry": "ok", "servers": [] }).to_string()
}

#[tokio::test]
async fn pods_that_are_no_session_are_shown_to_admins_and_counted() {
    let service = Service::start().await;
    service.looks_at(&line(&["alice"]));
    service.board.write(|status| {
        let last = status.last.as_mut().unwrap();
        let mut pod = crate::domain::Pod::named("lab", "<script>alert(1)</script>");
        pod.node = Some("gpu-node-1".to_owned());
        pod.cards = [("nvidia.com/gpu".to_owned(), 4)].into();
        pod.started = Some("2026-12-01T07:00:00Z".parse().unwrap());
        last.pods = vec![pod.into()];
        last.cluster_up = Some(false);
    });
    let page = service.of("admin").await.get("/admin/cards").await.text;
    for shown in ["gpu-node-1", "4 nvidia.com", "07:00", "&lt;script&gt;"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let mut prometheus = service.browser();
    prometheus.headers.insert("authorization", "Bearer token-of-prometheus".to_owned());
    let metrics = prometheus.get("/metrics").await.text;
    for line in ["gpu_culler_unattributed_pods 1", "gpu_culler_source_up{source=\"cluster\"} 0"] {
        assert!(metrics.lines().any(|l| l == line), "{line} is missing:\n{metrics}");
    }
}

#[tokio::test]
async fn the_arbiter_lets_the_idle_culler_stop_what_holds_no_card_and_nothing_else() {
    let service = Service::start().await;
    let mut free = server("carl", "", "");
    free["gpus"] = serde_json::json!([]);
    let mut unknown = server("dora", "", "");
    unknown["gpus"] = serde_json::Value::Null;
    let mut declared = server("emil", "", "");
    declared["gpus"] = serde_json::json!([]);
    declared["labels"] = serde_json::json!({ "expected-duration": "71h" });
    let servers = [server("alice", "A100", "k"), free, unknown, declared];
    service.looks_at(
        &serde_json::json!({ "at": NOW, "hub": "ok", "telemetry": "ok", "servers": servers }).to_string(),
    );
    let mut culler = service.browser();
    culler.headers.insert("authorization", "token token-of-service".to_owned());
    for (url, inactive, cull) in [
        ("/user/alice/", Some(9000.0), false),
        ("/user/carl/", Some(9000.0), true),
        ("/user/carl/", Some(10.0), false),
        ("/user/carl/", None, false),
        ("/user/dora/", Some(9000.0), false),
        ("/user/emil/", Some(9000.0), false),
        ("/user/nobody/", Some(9000.0), false),
    ] {
        let body = serde_json::json!({ "server": { "name": "", "url": url }, "inactive": inactive, "inactive_limit": 3600 });
        let answer = culler.post_json("/api/v1/arbiter", &body).await;
        let ruling: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(ruling["cull"], cull, "{url} {inactive:?}: {}", answer.text);
    }
}

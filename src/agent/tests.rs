#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use std::path::PathBuf;
use std::time::Instant;

use axum::body::{Body, to_bytes};
use axum::http::header::AUTHORIZATION;
use tower::ServiceExt;

use super::*;
use crate::telemetry::NvmlSettings;

/// An agent on a machine without NVML.
fn agent(token: Option<Token>) -> Agent {
    let library = Some(PathBuf::from("/nonexistent/libnvidia-ml.so.1"));
    let sampler = NvmlSampler::start(NvmlSettings { library, ..NvmlSettings::default() });
    sampler.wait_for_poll(Instant::now(), Duration::from_secs(10)).unwrap_err();
    Agent::new(sampler, token, || Timestamp::UNIX_EPOCH).unwrap()
}

async fn ask(agent: &Agent, path: &str, token: Option<&str>) -> (StatusCode, String) {
    let mut request = Request::builder().uri(path);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let answer = router(agent.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = answer.status();
    (status, String::from_utf8(to_bytes(answer.into_body(), 1 << 24).await.unwrap().to_vec()).unwrap())
}

#[tokio::test]
async fn who_lacks_the_token_learns_nothing() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "right").unwrap();
    let agent = agent(Some(Token::open(file.path().to_owned()).unwrap()));
    for path in ["/v1/evidence", "/metrics"] {
        for token in [None, Some("wrong")] {
            let (status, body) = ask(&agent, path, token).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(body, "the token of agent.token_file is needed\n");
        }
        assert_eq!(ask(&agent, path, Some("right")).await.0, StatusCode::OK, "{path}");
    }
    assert_eq!(ask(&agent, "/health", None).await, (StatusCode::OK, "alive\n".to_owned()));
    assert_eq!(ask(&agent, "/v1/other", None).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn without_nvml_it_says_so_and_still_tells_of_the_processes() {
    let agent = agent(None);
    let (status, body) = ask(&agent, "/v1/evidence?since=elsewhere.5", None).await;
    assert_eq!(status, StatusCode::OK);
    let told: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert!(told["cards"]["unknown"].as_str().unwrap().contains("could not be loaded"), "{told}");
    assert_eq!(told["cursor"], "elsewhere.5", "nothing was told, so it goes on from there");
    let processes = &told["processes"];
    assert!(processes["known"]["list"].is_array() || processes["unknown"].is_string());
    let (_, metrics) = ask(&agent, "/metrics", None).await;
    assert!(metrics.contains("gpu_culler_agent_cards_known 0\n"), "{metrics}");
    assert!(!metrics.contains("gpu_culler_card_sm_peak{"), "no zero for what is not known");
}

#[tokio::test]
async fn a_question_that_cannot_be_read_is_refused() {
    let (status, _) = ask(&agent(None), "/v1/evidence?fresh=perhaps", None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use super::*;
use crate::policy::Mode;

async fn get_path(board: Board, path: &str) -> (u16, reqwest::header::HeaderMap, String) {
    rustls::crypto::ring::default_provider().install_default().ok();
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        serve(listener, "/services/gpu-culler/", Arc::new(board)).await.unwrap();
    });
    let answer = reqwest::get(format!("http://{address}{path}")).await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let text = answer.text().await.unwrap();
    server.abort();
    (status, headers, text)
}

fn troubled() -> Board {
    let board = Board::default();
    board.write(|status| {
        status.mode = Some(Mode::Enforce);
        status.problems = vec!["no library <libnvidia-ml.so.1>".to_owned()];
    });
    board
}

#[tokio::test]
async fn the_prefix_is_answered_before_anything_is_known() {
    for path in ["/services/gpu-culler/", "/services/gpu-culler"] {
        let (status, _, text) = get_path(Board::default(), path).await;
        assert_eq!(status, 200);
        assert!(text.contains("Starting"), "{text}");
    }
}

#[tokio::test]
async fn the_page_says_why_nothing_is_culled_and_escapes_it() {
    let (status, headers, text) = get_path(troubled(), "/services/gpu-culler/").await;
    assert_eq!(status, 200);
    assert!(text.contains("no library &lt;libnvidia-ml.so.1&gt;"), "{text}");
    assert!(headers["content-security-policy"].to_str().unwrap().contains("frame-ancestors 'none'"));
}

#[tokio::test]
async fn the_metrics_tell_mode_and_problems() {
    let (_, _, text) = get_path(troubled(), "/services/gpu-culler/metrics").await;
    for line in [
        "gpu_culler_mode{mode=\"enforce\"} 1",
        "gpu_culler_mode{mode=\"observe\"} 0",
        "gpu_culler_problems 1",
        "gpu_culler_sessions{verdict=\"idle\"} 0",
        "gpu_culler_warnings_total 0",
        "gpu_culler_stops_total{outcome=\"stopped\"} 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is missing:\n{text}");
    }
}

#[tokio::test]
async fn other_paths_are_not_found() {
    for path in ["/", "/services/", "/services/gpu-culler/../../x", "/services/gpu-culler/x"] {
        assert_eq!(get_path(Board::default(), path).await.0, 404, "{path}");
    }
}

//! How many wait for a card, asked of real servers: whatever is not one number of people is refused in words that
//! name the expression.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gpu_culler::telemetry::DemandQuery;

use crate::servers::{Kind, Server};
use crate::{BOTH, now, settings};

async fn ask(url: &str, promql: &str) -> Result<u32, String> {
    let query = DemandQuery::new(settings(url, 2), promql.to_owned(), "demand.prometheus").unwrap();
    query.waiting(now()).await
}

#[tokio::test]
async fn one_number_is_how_many_wait() {
    for kind in BOTH {
        let Some(server) = Server::start(kind, None, "") else { continue };
        for (promql, count) in [
            ("vector(0)", 0),
            ("vector(3)", 3),
            ("vector(2.9)", 2),
            ("count(kube_pod_status_unschedulable == 1) or vector(0)", 0),
            ("sum(label_replace(vector(2), \"a\", \"1\", \"\", \"\") or vector(3))", 5),
        ] {
            assert_eq!(ask(&server.url, promql).await, Ok(count), "{kind:?} {promql}");
        }
    }
}

#[tokio::test]
async fn what_is_no_number_of_people_is_refused_with_the_expression_and_the_servers_words() {
    for kind in BOTH {
        let Some(server) = Server::start(kind, None, "") else { continue };
        let several = "label_replace(vector(2), \"a\", \"1\", \"\", \"\") or vector(3)";
        for (promql, words) in [
            ("sum(", "pars"),
            ("nothing_of_this_name", "gives nothing: add \"or vector(0)\""),
            ("vector(-1)", "gives -1, which is no number of people"),
            ("vector(1e18)", "which is no number of people"),
            (several, "gives more than one series: wrap it in sum(…) or count(…)"),
        ] {
            let said = ask(&server.url, promql).await.unwrap_err();
            assert!(
                said.contains(words) && said.contains(&format!("`{promql}`")),
                "{kind:?} {promql}: {said}"
            );
        }
        if kind == Kind::VictoriaMetrics {
            continue; // which takes each of these for a vector, or leaves it out
        }
        for (promql, words) in [
            ("\"three\"", "gives a string, not one number for each series"),
            ("3", "gives a scalar, not one number"),
            ("vector(3)[5m:1m]", "gives a matrix, not one number"),
            ("vector(0) / vector(0)", "gives NaN, which is no number of people"),
            ("vector(1) / vector(0)", "gives inf, which is no number of people"),
        ] {
            let said = ask(&server.url, promql).await.unwrap_err();
            assert!(said.contains(words) && said.contains(&format!("`{promql}`")), "{promql}: {said}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_named_with_its_section() {
    let Some(server) = Server::start(Kind::Prometheus, None, "") else { return };
    let url = server.url.clone();
    assert_eq!(ask(&url, "vector(1)").await, Ok(1));
    drop(server);
    let said = ask(&url, "vector(1)").await.unwrap_err();
    assert!(said.contains("cannot be reached") && said.contains("[demand.prometheus]"), "{said}");
}

/// Series that go on for ever, as a server would send a million of them. How many bytes of it were taken.
fn endless() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n";
            let begin = r#"{"status":"success","data":{"resultType":"vector","result":["#;
            let _ = stream.write_all(format!("{head}{begin}").as_bytes());
            let one = r#"{"metric":{"pod":"a"},"value":[1764579600,"1"]},"#.repeat(1000);
            while stream.write_all(one.as_bytes()).is_ok() {
                counted.fetch_add(one.len(), Ordering::Relaxed);
            }
        }
    });
    (url, sent)
}

#[tokio::test]
async fn of_a_million_series_no_more_than_a_few_megabytes_are_read() {
    let (url, sent) = endless();
    let begun = Instant::now();
    let said = ask(&url, "kube_pod_info").await.unwrap_err();
    assert!(said.contains("`kube_pod_info` gives more than one series"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    // What the kernel's buffers took is not ours.
    assert!(sent.load(Ordering::Relaxed) < 32 << 20, "{sent:?}");
}

#[tokio::test]
async fn histograms_and_partial_answers_are_no_number() {
    for (result, more, words) in [
        (
            r#"[{"metric":{"__name__":"wait_seconds"},"histogram":[1764579600,{"count":"7","sum":"3"}]}]"#,
            "",
            "gives histograms (wait_seconds), not one number",
        ),
        (
            r#"[{"metric":{},"value":[1764579600,"3"]}]"#,
            r#","isPartial":true"#,
            "is not whole: partial response",
        ),
        (
            r#"[{"metric":{},"value":[1764579600,"3"]}]"#,
            r#","warnings":["remote read: 503"]"#,
            "is not whole: remote read: 503",
        ),
        (r#"[{"metric":{},"value":[1764579600,"three"]}]"#, "", "cannot be read"),
        ("7", "", "cannot be read"),
    ] {
        let body =
            format!(r#"{{"status":"success"{more},"data":{{"resultType":"vector","result":{result}}}}}"#);
        let server = wiremock::MockServer::start().await;
        let answer = wiremock::ResponseTemplate::new(200).set_body_string(body);
        wiremock::Mock::given(wiremock::matchers::any()).respond_with(answer).mount(&server).await;
        let said = ask(&server.uri(), "wait_seconds").await.unwrap_err();
        assert!(said.contains("`wait_seconds`") && said.contains(words), "{said}");
    }
}

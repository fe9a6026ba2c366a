#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use super::*;

const QUERY: &str = "up[5m]";

fn ranges(body: &str) -> Result<Vec<Series>, PromError> {
    read(body.as_bytes(), QUERY, Wanted::Ranges, 100)
}

fn matrix(series: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{series}]}}}}"#)
}

#[test]
fn samples_come_with_their_own_times_and_special_values() {
    let body = matrix(r#"{"metric":{"__name__":"up","a":"b"},"values":[[1.5,"0.25"],[2,"NaN"],[3,"+Inf"]]}"#);
    let series = ranges(&body).unwrap().remove(0);
    assert_eq!(series.labels.get("a").map(String::as_str), Some("b"));
    assert_eq!(series.samples[0], (1500, 0.25));
    assert!(series.samples[1].1.is_nan() && series.samples[2].1.is_infinite());
}

#[test]
fn an_error_is_told_in_the_servers_own_words_with_the_expression() {
    let body = r#"{"status":"error","errorType":"bad_data","error":"1:4: parse error: unexpected <op:/>"}"#;
    let said = ranges(body).unwrap_err().to_string();
    for part in ["`up[5m]`", "bad_data", "1:4: parse error"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn warnings_and_partial_answers_of_thanos_and_victoriametrics_are_no_answer() {
    let data = r#""data":{"resultType":"matrix","result":[]}"#;
    for odd in [r#""warnings":["store 10.0.0.1 is down"]"#, r#""isPartial":true"#] {
        let body = format!(r#"{{"status":"success",{odd},{data}}}"#);
        assert!(matches!(ranges(&body), Err(PromError::Partial { .. })), "{odd}");
    }
    assert_eq!(
        ranges(&format!(r#"{{"status":"success","isPartial":false,"warnings":[],{data}}}"#)),
        Ok(vec![])
    );
}

#[test]
fn strings_scalars_and_vectors_where_samples_are_wanted_are_refused_by_name() {
    for (kind, result) in [("string", r#"[1,"x"]"#), ("scalar", r#"[1,"2"]"#), ("vector", "[]")] {
        let body = format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}"#);
        let said = ranges(&body).unwrap_err().to_string();
        assert!(said.contains(QUERY) && said.contains(kind), "{said}");
    }
}

#[test]
fn histograms_are_refused_by_name() {
    let body = matrix(r#"{"metric":{"__name__":"latency"},"histograms":[[1,{"count":"1"}]]}"#);
    assert!(ranges(&body).unwrap_err().to_string().contains("histograms (latency)"));
}

#[test]
fn more_series_than_allowed_are_refused_and_not_held() {
    let many = vec![r#"{"metric":{},"values":[]}"#; 101].join(",");
    assert!(matches!(ranges(&matrix(&many)), Err(PromError::TooLarge { .. })));
    let enough = vec![r#"{"metric":{},"values":[]}"#; 100].join(",");
    assert_eq!(ranges(&matrix(&enough)).unwrap().len(), 100);
}

#[test]
fn what_is_no_answer_at_all_is_an_error_and_never_a_panic() {
    for body in [
        "",
        "{}",
        "null",
        "[]",
        "{\"status\":\"success\"}",
        "<html>",
        "{\"status\":3}",
        r#"{"status":"success","data":{"resultType":"matrix","result":{}}}"#,
        &matrix(r#"{"metric":{},"values":[[1]]}"#),
        &matrix(r#"{"metric":{},"values":[[1,"x"]]}"#),
        &matrix(r#"{"metric":{},"values":[[1e300,"1"]]}"#),
        &matrix(r#"{"metric":{"a":1},"values":[]}"#),
    ] {
        assert!(ranges(body).is_err(), "{body}");
    }
}

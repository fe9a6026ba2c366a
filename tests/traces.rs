//! Scripted days with the right answer, and what `simulate` makes of traces that are not as they should be.

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use gpu_culler::cli::simulate::replay;
use gpu_culler::policy::{Mode, Policy};
use gpu_culler::settings::policy_of;
use serde_json::Value;
use tempfile::TempDir;

const DAYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces");
const HEADER: &str = r#"{"trace":"gpu-culler/1"}"#;

/// An hour and a quarter of an idle session, with nothing in it that may be left out.
const SHORTEST: &str = r#"{"trace":"gpu-culler/1"}
{"at":"2026-12-01T08:00:00Z","servers":[{"user":"a","started":"2026-12-01T08:00:00Z","last_activity":"2026-12-01T08:00:00Z","ready":true,"jupyter":{"kernels":[]},"gpus":[{"id":"G","sm":0,"dram":0,"covered":"1h","largest_gap":"1s"}]}]}
{"at":"2026-12-01T09:00:00Z","servers":[{"user":"a","started":"2026-12-01T08:00:00Z","last_activity":"2026-12-01T08:00:00Z","ready":true,"jupyter":{"kernels":[]},"gpus":[{"id":"G","sm":0,"dram":0,"covered":"1h","largest_gap":"1s"}]}]}
"#;

/// What a run of the program printed and how it ended.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn events(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn simulate(arguments: &[&str], traces: &[&Path]) -> Ran {
    let mut command = Command::cargo_bin("gpu-culler").unwrap();
    command.env_remove("GPU_CULLER_CONFIG").env_remove("GPU_CULLER_LOG").arg("simulate");
    let output = command.args(arguments).args(traces).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// The trace `text`, replayed with JSON output.
fn told(text: impl AsRef<[u8]>) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    simulate(&["--format", "json"], &[&written(&folder, "day.jsonl", text)])
}

fn written(folder: &TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn day(name: &str) -> PathBuf {
    Path::new(DAYS).join(name).with_extension("jsonl")
}

fn named<'a>(events: &'a [Value], event: &str) -> Vec<&'a str> {
    events.iter().filter(|told| told["event"] == event).map(|told| told["at"].as_str().unwrap()).collect()
}

#[test]
fn every_scripted_day_ends_as_its_last_line_says() {
    let mut days = 0;
    for entry in fs::read_dir(DAYS).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            continue; // the config of the trace beside it
        }
        let config = Some(path.with_extension("toml")).filter(|config| config.exists());
        let policy = Policy { mode: Mode::Enforce, ..policy_of(config.as_deref()).unwrap() };
        let outcome = replay(BufReader::new(File::open(&path).unwrap()), &policy).unwrap();
        assert!(outcome.expected > 0, "{} expects nothing", path.display());
        assert!(outcome.failures.is_empty(), "{}: {:#?}", path.display(), outcome.failures);
        days += 1;
    }
    assert!(days >= 65, "only {days} traces were found");
}

#[test]
fn each_event_is_a_line_with_its_time_server_and_reason() {
    let ran = told(SHORTEST);
    let keys = |event: &Value| event.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let events = ran.events();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(keys(&events[0]), ["at", "event", "reason", "server"]);
    assert_eq!(events[1]["event"], "warned");
    assert_eq!(events[1]["server"], "a/");
    assert_eq!(events[1]["at"], "2026-12-01T09:00:00Z");
    assert_eq!(events[1]["deadline"], "2026-12-01T10:00:00Z");
    assert!(events[1]["reason"].as_str().unwrap().contains("since 2026-12-01 08:00:00Z"));
}

#[test]
fn of_several_traces_each_line_says_which() {
    let (first, second) = (day("abandoned_notebook"), day("named_servers"));
    let ran = simulate(&["--format", "json"], &[&first, &second]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let events = ran.events();
    let of = |path: &Path| events.iter().filter(|told| told["trace"] == path.to_str().unwrap()).count();
    assert!(of(&first) > 0 && of(&second) > 0);
    assert_eq!(of(&first) + of(&second), events.len());
}

#[test]
fn a_failed_expectation_is_an_error_with_its_reason_in_both_formats() {
    let wrong = r#"{"expect":[{"server":"a/","event":"warned","never":true},{"event":"stopped","between":["2026-12-01T08:00:00Z","2026-12-01T08:30:00Z"]}]}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = written(&folder, "day.jsonl", format!("{SHORTEST}{wrong}\n"));
    for format in ["json", "text"] {
        let ran = simulate(&["--format", format], &[&path]);
        assert_eq!(ran.code, Some(1));
        let never = "a/ must never be warned, but was at 2026-12-01 09:00:00Z";
        assert!(ran.err.contains(never), "{}", ran.err);
        assert!(ran.err.contains("anything must be stopped between"), "{}", ran.err);
        assert!(ran.err.contains("but was: never"), "{}", ran.err);
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named_with_its_file_and_the_next_trace_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let bad = [
        "not json",
        "{}",
        "[]",
        "7",
        r#"{"at":"yesterday"}"#,
        r#"{"at":"2026-12-01T08:00:00Z","servers":[{}]}"#,
        r#"{"at":"2026-12-01T08:00:00Z","hub":"away"}"#,
        r#"{"at":"2026-12-01T08:00:00Z","servers":[{"user":"a","gpus":[{"id":"G","covered":"long"}]}]}"#,
        r#"{"at":"2026-12-01T08:00:00Z","servers":[{"user":"a","started":"long ago"}]}"#,
        r#"{"at":"2026-12-01T08:00:00Z","keeps":[{"server":"/","for":"1h"}]}"#,
        r#"{"expect":[{"event":"stopped"}]}"#,
        r#"{"expect":7}"#,
    ];
    for line in bad {
        let path = written(&folder, "bad.jsonl", format!("{HEADER}\n\n{line}\n"));
        let ran = simulate(&["--format", "json"], &[&path, &day("abandoned_notebook")]);
        assert_eq!(ran.code, Some(1), "{line}");
        assert!(ran.err.contains("bad.jsonl"), "{line}: {}", ran.err);
        assert!(ran.err.contains("line 3"), "{line}: {}", ran.err);
        assert_eq!(named(&ran.events(), "stopped").len(), 1, "{line}: the good one is replayed all the same");
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    for text in
        ["", "\n\n", "{}", "hello", r#"{"trace":"gpu-culler/2"}"#, SHORTEST.split_once('\n').unwrap().1]
    {
        let ran = told(text);
        assert_eq!(ran.code, Some(1), "{text}");
        assert!(ran.err.contains(r#"a trace begins with {"trace":"gpu-culler/1"}"#), "{}", ran.err);
    }
    for ran in
        [told(b"{\"trace\":\"gpu-culler/1\"}\n\xff\xfe\n"), simulate(&[], &[Path::new("no such file")])]
    {
        assert_eq!(ran.code, Some(1));
        assert!(!ran.err.contains("panicked"), "{}", ran.err);
    }
    assert_eq!(simulate(&[], &[Path::new(DAYS)]).code, Some(1), "a folder");
}

#[test]
fn line_ends_and_marks_of_other_systems_are_taken() {
    let expected = told(SHORTEST).out;
    assert!(!expected.is_empty());
    for text in [
        SHORTEST.replace('\n', "\r\n"),
        SHORTEST.replace('\n', "\n\n"),
        format!("\u{feff}{SHORTEST}"),
        format!("\n{SHORTEST}"),
        SHORTEST.trim_end().to_owned(),
        SHORTEST.replace(r#""ready":true"#, r#""ready":true,"from a later version":[{}]"#),
        SHORTEST.replace(
            r#""ready":true"#,
            r#""ready":true,"groups":null,"labels":null,"admin":null,"profile":null,"server":null"#,
        ),
        SHORTEST.replace(r#""servers":"#, r#""hub":null,"waiting":null,"keeps":null,"mail":null,"servers":"#),
        SHORTEST.replace(r#""kernels":[]"#, r#""kernels":[],"connections":null,"last_activity":null"#),
    ] {
        assert_eq!(told(&text).out, expected, "{text}");
    }
}

#[test]
fn what_is_not_readable_or_left_out_is_never_idle() {
    let base = SHORTEST;
    for text in [
        base.replace(r#""jupyter":{"kernels":[]}"#, r#""jupyter":null"#),
        base.replace(r#""kernels":[]"#, r#""kernels":null"#),
        base.replace(r#""kernels":[]"#, r#""kernels":[],"terminals":null"#),
        base.replace(r#""kernels":[]"#, r#""kernels":[{"id":"k"}]"#),
        base.replace(r#""gpus":["#, r#""gpus":null,"other":["#),
        base.replace(r#""gpus":["#, r#""gpus":[],"other":["#),
        base.replace(r#""sm":0"#, r#""sm":null"#),
        base.replace(r#""sm":0"#, r#""sm":"NaN""#),
        base.replace(r#""sm":0"#, r#""sm":2147483632"#),
        base.replace(r#""sm":0,"#, ""),
        base.replace(r#""sm":0"#, r#""copy":null,"sm":0"#),
        base.replace(r#""covered":"1h","#, ""),
        base.replace(r#","largest_gap":"1s""#, ""),
        base.replace(r#""ready":true"#, r#""ready":null"#),
        base.replace(r#""ready":true,"#, ""),
        base.replace(r#""started""#, r#""begun""#),
        base.replace(r#""last_activity""#, r#""other""#),
        base.replace(r#""servers""#, r#""other""#),
        base.replace(r#""servers""#, r#""hub":"down","servers""#),
        base.replace(r#""servers""#, r#""telemetry":"down","servers""#),
    ] {
        assert_ne!(text, base);
        let ran = told(&text);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{text}{}", ran.err);
    }
}

#[test]
fn stamps_beyond_the_end_of_time_are_survived() {
    for stamp in
        ["9999-12-31T23:59:59Z", "9999-12-30T00:00:00Z", "-009999-01-01T00:00:00Z", "2026-12-01T08:00:00"]
    {
        for key in ["started", "last_activity"] {
            let text = SHORTEST
                .replace(&format!(r#""{key}":"2026-12-01T08:00:00Z""#), &format!(r#""{key}":"{stamp}""#));
            assert_ne!(text, SHORTEST);
            let ran = told(&text);
            assert_eq!(ran.code, Some(0), "{text}{}", ran.err);
            assert_eq!(named(&ran.events(), "warned").is_empty(), stamp.starts_with("9999"), "{text}");
        }
    }
}

#[test]
fn times_that_stand_still_or_run_backwards_stop_nobody() {
    let lines: Vec<&str> = SHORTEST.lines().collect();
    let [header, first, second] = lines[..] else { panic!("{lines:?}") };
    let backwards = [header, second, first, second, first].join("\n");
    assert_eq!(named(&told(backwards).events(), "stopped"), [""; 0]);
    let twice = [header, first, first, second, second].join("\n");
    assert_eq!(named(&told(twice).events(), "warned"), ["2026-12-01T09:00:00Z"]);
}

#[test]
fn keeps_of_unknown_servers_are_passed_over() {
    let keeps = r#""keeps":[{"server":"nobody/","for":"8h","by":"x"},{"server":"a","for":"30m"}],"servers""#;
    let ran = told(SHORTEST.replace(r#""servers""#, keeps));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let events = ran.events();
    assert!(events.iter().all(|told| told["server"] == "a/"), "{}", ran.out);
    assert_eq!(named(&events, "kept").len(), 2);
    assert_eq!(named(&events, "warned").len(), 0);
}

/// A scripted day, replayed with the config `text`.
fn with_config(text: &str, trace: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let config = written(&folder, "gpu-culler.toml", text);
    simulate(&["--format", "json", "--config", config.to_str().unwrap()], &[&day(trace)])
}

#[test]
fn an_exemption_of_the_config_holds_in_a_replay() {
    let config = r#"
        [[rule]]
        name = "standby"
        match = { users = ["al*"] }
        exempt = { until = "2027-03-31", reason = "nightly scoring", owner = "mlops" }
    "#;
    let ran = with_config(config, "abandoned_notebook");
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "nothing happens, so its expectations fail");
}

#[test]
fn max_age_of_the_config_reaches_a_session_that_is_used_but_whose_card_rests() {
    let ran = with_config("[policy]\nmax_age = \"6h\"", "polling_extension");
    let events = ran.events();
    assert_eq!(named(&events, "warned").len(), 1);
    let warned = events.iter().find(|told| told["event"] == "warned").unwrap();
    assert!(warned["reason"].as_str().unwrap().contains("older than `max_age`"), "{warned}");
}

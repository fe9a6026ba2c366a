//! What `simulate` counts, how it sets two policies side by side, and what it says of broken traces.

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use gpu_culler::cli::simulate::{Summary, replay, replay_both};
use gpu_culler::policy::{Mode, Policy};
use gpu_culler::settings::policy_of;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

const HEADER: &str = r#"{"trace":"gpu-culler/1"}"#;

/// Alice's server with two cards, as it is at one instant.
#[derive(Clone)]
struct Alice {
    started: Timestamp,
    used: Timestamp,
    works: bool,
    there: bool,
}

/// A trace of twelve hours from eight, a line every five minutes; `lives` tells what becomes of her.
fn trace(mut lives: impl FnMut(i64, &mut Alice)) -> String {
    let start: Timestamp = "2026-12-01T08:00:00Z".parse().unwrap();
    let mut alice = Alice { started: start, used: start, works: false, there: true };
    let mut lines = vec![HEADER.to_owned()];
    for minute in (0..=720).step_by(5) {
        let at = start + SignedDuration::from_mins(minute);
        lives(minute, &mut alice);
        let card = |id: &str| {
            let sm = if alice.works { 0.9 } else { 0.0 };
            json!({"id": id, "model": "A100", "sm": sm, "dram": 0, "covered": "5m", "largest_gap": "2s"})
        };
        let server = json!({"user": "alice", "started": alice.started, "last_activity": alice.used, "ready": true,
            "jupyter": {"kernels": [{"id": "k", "state": "idle", "last_activity": alice.used}]},
            "gpus": [card("G1"), card("G2")]});
        let servers = if alice.there { vec![server] } else { Vec::new() };
        lines.push(json!({"at": at, "servers": servers}).to_string());
    }
    lines.join("\n") + "\n"
}

fn at(minute: i64) -> Timestamp {
    "2026-12-01T08:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minute)
}

fn policy() -> Policy {
    Policy { mode: Mode::Enforce, ..policy_of(None).unwrap() }
}

fn summary(trace: &str) -> Summary {
    replay(trace.as_bytes(), &policy()).unwrap().summary
}

fn freed(trace: &str) -> (f64, usize) {
    let sum = summary(trace);
    assert_eq!(sum.stopped, 1);
    ((sum.gpu_hours_freed * 10.0).round() / 10.0, sum.regretted)
}

/// Nothing happens after eight, so she is stopped at ten.
#[test]
fn a_stop_frees_every_card_up_to_the_end_of_the_trace() {
    assert_eq!(freed(&trace(|_, _| {})), (20.0, 0));
}

#[test]
fn work_after_the_stop_ends_what_was_freed_and_soon_after_it_is_regret() {
    for (minute, expected) in [(140, (0.7, 1)), (150, (1.0, 1)), (155, (1.2, 0)), (240, (4.0, 0))] {
        let worked = trace(|now, alice| alice.works = now == minute);
        assert_eq!(freed(&worked), expected, "the card works in minute {minute}");
        let used = trace(|now, alice| alice.used = if now >= minute { at(minute) } else { at(0) });
        assert_eq!(freed(&used), expected, "a kernel is used in minute {minute}");
    }
}

#[test]
fn a_new_start_after_the_stop_is_a_new_session() {
    for (minute, expected) in [(130, (0.3, 1)), (300, (6.0, 0))] {
        let restarted = trace(|now, alice| {
            if now >= minute {
                (alice.started, alice.used, alice.works) = (at(minute), at(minute), true);
            }
        });
        assert_eq!(freed(&restarted), expected, "restarted in minute {minute}");
    }
    let again = trace(|now, alice| {
        if now >= 300 {
            (alice.started, alice.used) = (at(300), at(300));
        }
    });
    let sum = summary(&again);
    assert_eq!((sum.warned, sum.stopped), (2, 2), "the new session is warned and stopped as any");
}

#[test]
fn a_server_that_ends_by_itself_after_the_stop_frees_nothing_from_then_on() {
    assert_eq!(freed(&trace(|now, alice| alice.there = now < 180)), (2.0, 0));
}

#[test]
fn a_moving_use_clock_is_no_regret_where_only_the_card_counted() {
    let mut policy = policy();
    policy.limits.card_unused_warn_after = Some(SignedDuration::from_hours(2));
    let polled = trace(|now, alice| alice.used = at(now));
    let sum = replay(polled.as_bytes(), &policy).unwrap().summary;
    assert_eq!((sum.stopped, sum.regretted), (1, 0));
}

#[test]
fn two_policies_see_the_same_trace() {
    let longer = Policy {
        limits: gpu_culler::policy::Limits { warn_after: SignedDuration::from_hours(3), ..policy().limits },
        ..policy()
    };
    let text = trace(|now, alice| alice.works = now == 130);
    let [short, long] = replay_both(text.as_bytes(), [&policy(), &longer]).unwrap();
    assert_eq!((short.summary.stopped, short.summary.regretted), (1, 1));
    assert_eq!((long.summary.stopped, long.summary.regretted), (1, 0));
    assert_eq!(short.events, replay(text.as_bytes(), &policy()).unwrap().events);
    assert_eq!(long.events, replay(text.as_bytes(), &longer).unwrap().events);
}

struct Lab(TempDir);

impl Lab {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Exit code, standard output and standard error.
    fn simulate(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::cargo_bin("gpu-culler").unwrap();
        command.env_remove("GPU_CULLER_CONFIG").env_remove("GPU_CULLER_LOG").current_dir(self.0.path());
        let output = command.arg("simulate").args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn policies_are_compared_for_programs_and_for_people() {
    let lab = Lab::new();
    lab.file("day.jsonl", trace(|now, alice| alice.works = now == 130));
    lab.file("rest.jsonl", trace(|_, _| {}));
    lab.file("other.toml", "[policy]\nwarn_after = \"3h\"\n");
    let arguments = ["--compare", "other.toml", "day.jsonl", "rest.jsonl"];
    let (code, out, err) = lab.simulate(&[&["--format", "json"], &arguments[..]].concat());
    assert_eq!(code, Some(0), "{err}");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(|l| (l["trace"].as_str(), l["config"].as_str().unwrap())).collect();
    let (day, rest) = (Some("day.jsonl"), Some("rest.jsonl"));
    let (a, b) = ("defaults", "other.toml");
    assert_eq!(told, [(day, a), (day, b), (rest, a), (rest, b), (None, a), (None, b)]);
    let numbers = |line: &Value| (line["stopped"].as_u64().unwrap(), line["regretted"].as_u64().unwrap());
    assert_eq!(
        lines.iter().map(numbers).collect::<Vec<_>>(),
        [(1, 1), (1, 0), (1, 0), (1, 0), (2, 1), (2, 0)]
    );
    assert_eq!(lines[2]["gpu_hours_freed"], 20.0);

    let (code, out, _) = lab.simulate(&arguments);
    assert_eq!(code, Some(0));
    for words in ["GPU-hours freed", "worked again within 30 minutes", "2 traces together"] {
        assert!(out.contains(words), "{out}");
    }
    assert!(out.contains("only other.toml stops alice/ at 2026-12-01 14:10:00Z"), "{out}");
}

#[test]
fn a_second_config_that_is_not_there_or_wrong_is_named() {
    let lab = Lab::new();
    lab.file("day.jsonl", trace(|_, _| {}));
    lab.file("wrong.toml", "[policy]\nwarn_afer = \"3h\"\n");
    for (config, words) in [("wrong.toml", "did you mean `warn_after`?"), ("none.toml", "cannot be read")] {
        let (code, out, err) = lab.simulate(&["--compare", config, "day.jsonl"]);
        assert_eq!((code, out.as_str()), (Some(1), ""));
        assert!(err.contains(config) && err.contains(words), "{err}");
    }
}

#[test]
fn people_get_a_strip_the_events_and_the_sum() {
    let lab = Lab::new();
    lab.file("day.jsonl", trace(|now, alice| alice.works = now == 130));
    let (code, out, _) = lab.simulate(&["day.jsonl"]);
    assert_eq!(code, Some(0));
    for words in [
        "145 observations",
        "alice/  ·····wwwwwSSSS",
        "worked-again 10m after its stop",
        "stops: 1; GPU-hours freed: 0.3; worked again within 30 minutes: 1",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
}

#[test]
fn the_mode_of_the_command_line_is_taken_and_that_of_the_file_is_not() {
    let lab = Lab::new();
    lab.file("day.jsonl", trace(|_, _| {}));
    lab.file("observe.toml", "mode = \"observe\"\n");
    for (arguments, stopped, warned) in [
        (&["--config", "observe.toml"][..], true, true),
        (&["--mode", "warn"], false, true),
        (&["--mode", "observe"], false, false),
    ] {
        let (_, out, err) = lab.simulate(&[arguments, &["--format", "json", "day.jsonl"]].concat());
        let has = |event: &str| out.contains(&format!("\"event\":\"{event}\""));
        assert_eq!((has("stopped"), has("warned")), (stopped, warned), "{arguments:?}: {out}{err}");
    }
}

#[test]
fn a_trace_that_breaks_off_says_so_and_what_to_do() {
    let lab = Lab::new();
    let whole = trace(|_, _| {});
    lab.file("cut.jsonl", &whole[..whole.len() - 40]);
    let (code, _, err) = lab.simulate(&["cut.jsonl"]);
    assert_eq!(code, Some(1));
    for words in ["cut.jsonl", "line 146", "breaks off in the middle of this line", "remove it"] {
        assert!(err.contains(words), "{err}");
    }
    lab.file("no_end.jsonl", whole.trim_end());
    assert_eq!(lab.simulate(&["no_end.jsonl"]).0, Some(0), "only the last line break is missing");
}

#[test]
fn what_is_no_text_or_has_no_end_is_refused_without_eating_the_memory() {
    let lab = Lab::new();
    let utf16: Vec<u8> = HEADER.encode_utf16().flat_map(u16::to_le_bytes).collect();
    lab.file("utf16.jsonl", [b"\xff\xfe".to_vec(), utf16].concat());
    let (code, _, err) = lab.simulate(&["utf16.jsonl"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("line 1: is no UTF-8"), "{err}");

    let endless = [HEADER.as_bytes(), b"\n", &vec![b' '; 100 << 20]].concat();
    lab.file("endless.jsonl", endless);
    let (code, _, err) = lab.simulate(&["endless.jsonl"]);
    assert_eq!(code, Some(1));
    assert!(err.contains("line 2: is longer than 64 MiB"), "{err}");
}

/// It is read line by line.
#[test]
fn of_a_long_trace_only_what_happened_is_kept() {
    let mut lines = trace(|_, alice| alice.works = true);
    let day = lines.split_once('\n').unwrap().1.to_owned();
    for _ in 0..30 {
        lines.push_str(&day);
    }
    let outcome = replay(lines.as_bytes(), &policy()).unwrap();
    assert_eq!(outcome.observed, 31 * 145);
    assert_eq!(outcome.events, [], "nothing happened, so nothing is kept");
}

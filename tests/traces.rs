//! Scripted days with the right answer.

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use std::fs::{self, File};
use std::io::BufReader;

use gpu_culler::cli::simulate::replay;
use gpu_culler::policy::Mode;
use gpu_culler::settings::policy_of;

#[test]
fn every_scripted_day_ends_as_its_last_line_says() {
    let mut policy = policy_of(None).unwrap();
    policy.mode = Mode::Enforce;
    let mut days = 0;
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces")).unwrap() {
        let path = entry.unwrap().path();
        let outcome = replay(BufReader::new(File::open(&path).unwrap()), &policy).unwrap();
        assert!(outcome.expected > 0, "{} expects nothing", path.display());
        assert!(outcome.failures.is_empty(), "{}: {:#?}", path.display(), outcome.failures);
        days += 1;
    }
    assert!(days >= 18, "only {days} traces were found");
}

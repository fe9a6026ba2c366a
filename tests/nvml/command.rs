//! The command that prints what the cards did, which the check on a real card relies on.

use serde_json::{Value, json};

use crate::driver::{Driver, card, scene, with};

#[test]
fn the_cards_are_printed_as_read() {
    let load = json!([{"from": 0.0, "sm": 25.0, "dram": 5.0}]);
    let processes = json!([{"pid": std::process::id(), "memory": 9}]);
    let busy = with(with(card("GPU-a"), "load", load), "processes", processes);
    let driver = Driver::playing(&scene(&[busy]));
    let mut command = assert_cmd::Command::cargo_bin("gpu-culler").unwrap();
    command.env("LD_LIBRARY_PATH", driver.library.parent().unwrap()).args(["cards", "--time", "1s"]);
    let output = command.assert().success().get_output().stdout.clone();
    let lines: Vec<Value> =
        String::from_utf8(output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0], json!({"watching": 1}));
    let seen = &lines[1];
    assert_eq!((&seen["id"], &seen["sm"], &seen["dram"]), (&json!("GPU-a"), &json!(0.25), &json!(0.05)));
    assert_eq!((&seen["holders"], &seen["unreadable"]), (&json!([std::process::id()]), &Value::Null));
    assert!(seen["covered"].as_f64().unwrap() >= 1.0, "{seen}");
}

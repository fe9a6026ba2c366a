//! The agent's answers about a pretended card, over HTTP.

use std::process::Command;
use std::time::{Duration, Instant};

use axum_server::Handle;
use gpu_culler::agent::{self, Agent};
use gpu_culler::domain::Ratio;
use gpu_culler::telemetry::agents::{Ask, Whom};
use gpu_culler::telemetry::{Agents, AgentsSettings, Machine};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::driver::{Driver, TIMEOUT, card, scene, unix_seconds, with};

#[expect(clippy::disallowed_methods, reason = "the agent and the test are on the same clock")]
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// The agent of a driver, and its address.
async fn agent_of(driver: &Driver) -> (String, Handle<std::net::SocketAddr>) {
    let agent = Agent::new(driver.watched(), None, now).unwrap();
    let handle = Handle::new();
    tokio::spawn(agent::serve(agent, "127.0.0.1:0".parse().unwrap(), None, handle.clone()));
    let at = handle.listening().await.unwrap();
    (format!("http://{at}/"), handle)
}

fn reader(url: &str) -> Agents {
    let whom = Whom::Nodes(vec![url.parse().unwrap()]);
    let timeout = Duration::from_secs(10);
    Agents::new(AgentsSettings { whom, token_file: None, ca_file: None, timeout }).unwrap()
}

async fn look(reader: &Agents, ask: Ask) -> Machine {
    reader.look(ask, now()).await.remove(0)
}

fn sm(machine: &Machine) -> Option<f64> {
    machine.devices.as_ref().unwrap()[0].sample.sm.map(Ratio::get)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_told_to_every_reader_once_however_often_the_others_ask() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let (url, handle) = agent_of(&driver).await;
    let (service, other) = (reader(&url), reader(&url));
    for reader in [&service, &other] {
        assert!(
            look(reader, Ask::Next).await.devices.is_ok() || sm(&look(reader, Ask::Fresh).await).is_some()
        );
        look(reader, Ask::Next).await;
    }
    let began = unix_seconds();
    let burst = json!([{"from": began, "to": began + 0.5, "sm": 70.0}]);
    driver.play(&scene(&[with(card("GPU-a"), "load", burst)]));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    for _ in 0..3 {
        // Prometheus keeps nothing and takes nothing from anybody.
        let text = reqwest::get(format!("{url}metrics")).await.unwrap().text().await.unwrap();
        let labels = r#"{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname=""#;
        let line = text.lines().find(|line| line.starts_with(&format!("gpu_culler_card_sm_peak{labels}")));
        assert!(line.is_some_and(|line| line.ends_with("\"} 0.7")), "{text}");
    }
    assert_eq!(sm(&look(&other, Ask::Next).await), Some(0.7));
    assert_eq!(sm(&look(&other, Ask::Fresh).await), Some(0.0), "told once");
    assert_eq!(sm(&look(&service, Ask::Again).await), Some(0.7));
    let taken = look(&service, Ask::Next).await;
    assert_eq!(sm(&taken), Some(0.7), "a look that is not taken takes nothing");
    assert!(taken.devices.unwrap()[0].sample.covered >= Duration::from_secs(1));
    handle.shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_look_reads_the_cards_once_more() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let slow = Agent::new(driver.watched_every(Duration::from_secs(5)), None, now).unwrap();
    let handle = Handle::new();
    tokio::spawn(agent::serve(slow, "127.0.0.1:0".parse().unwrap(), None, handle.clone()));
    let service = reader(&format!("http://{}/", handle.listening().await.unwrap()));
    look(&service, Ask::Fresh).await;
    look(&service, Ask::Next).await;
    let work = json!([{"from": unix_seconds() - 1.0, "sm": 40.0}]);
    driver.play(&scene(&[with(card("GPU-a"), "load", work)]));
    assert_eq!(sm(&look(&service, Ask::Fresh).await), Some(0.4));
    handle.shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_agent_is_not_taken_for_one_that_watched_all_the_time() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let agent = || Agent::new(driver.watched(), None, now).unwrap();
    let handle = Handle::new();
    let first = tokio::spawn(agent::serve(agent(), "127.0.0.1:0".parse().unwrap(), None, handle.clone()));
    let at = handle.listening().await.unwrap();
    let service = reader(&format!("http://{at}/"));
    look(&service, Ask::Fresh).await;
    assert_eq!(sm(&look(&service, Ask::Next).await), Some(0.0));
    handle.shutdown();
    first.await.unwrap().unwrap(); // the port is free
    let second = Handle::new();
    tokio::spawn(agent::serve(agent(), at, None, second.clone()));
    second.listening().await.unwrap();
    let machine = look(&service, Ask::Fresh).await;
    let sample = &machine.devices.unwrap()[0].sample;
    assert_eq!((sample.sm, sample.covered), (None, Duration::ZERO));
    assert!(sample.unreadable.as_ref().unwrap().contains("restarted"));
    look(&service, Ask::Next).await;
    assert_eq!(sm(&look(&service, Ask::Fresh).await), Some(0.0), "from then on it is watched again");
    second.shutdown();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_card_draws_is_told_to_the_service_and_to_prometheus() {
    let drawing = with(with(card("GPU-a"), "watts", json!(80.0)), "power_limit", json!(400.0));
    let driver = Driver::playing(&scene(&[drawing]));
    let (url, handle) = agent_of(&driver).await;
    let service = reader(&url);
    look(&service, Ask::Fresh).await;
    let machine = look(&service, Ask::Fresh).await;
    // Energy over a time of which little has passed: on a crowded machine only about what it is.
    let power = machine.devices.as_ref().unwrap()[0].sample.power.unwrap();
    assert!((40.0..160.0).contains(&power.mean) && power.limit == Some(400.0), "{power:?}");
    let text = reqwest::get(format!("{url}metrics")).await.unwrap().text().await.unwrap();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")))?;
        line.rsplit_once(' ')?.1.parse::<f64>().ok()
    };
    assert!(value("DCGM_FI_DEV_POWER_USAGE").is_some_and(|watts| (40.0..160.0).contains(&watts)), "{text}");
    assert_eq!(value("DCGM_FI_DEV_ENFORCED_POWER_LIMIT"), Some(400.0), "{text}");
    handle.shutdown();
}

/// Waits until it is so.
fn eventually(what: &str, is: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_signal_lets_nvml_go_and_a_second_one_takes_it_up_again() {
    let driver = Driver::playing(&scene(&[card("GPU-a")]));
    let config = driver.library.with_file_name("agent.toml");
    std::fs::write(&config, format!("[telemetry.nvml]\nlibrary = {:?}\n", driver.library)).unwrap();
    let mut agent = Command::new(env!("CARGO_BIN_EXE_gpu-culler"));
    agent.args(["agent", "--listen", "127.0.0.1:0", "--config"]).arg(&config);
    let mut agent = agent.spawn().unwrap();
    let pid = Pid::from_child(&agent);
    eventually("NVML is open", || driver.users() == "1");
    kill_process(pid, Signal::USR1).unwrap();
    eventually("NVML is closed", || driver.users() == "0");
    kill_process(pid, Signal::USR1).unwrap();
    eventually("NVML is open again", || driver.users() == "1");
    kill_process(pid, Signal::TERM).unwrap();
    assert!(agent.wait().unwrap().success());
}

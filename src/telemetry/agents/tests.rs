#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use serde_json::{Value, json};
use wiremock::matchers::{header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;

const NOW: &str = "2026-12-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn card(sm: f64) -> Value {
    json!({"id": "GPU-1", "card": "GPU-1", "index": 0, "instance": null, "model": "NVIDIA H100", "sm": sm,
        "dram": 0.0, "engines": {"tensor": 0.0}, "memory_used": 1, "covered": 60.0, "largest_gap": 2.0,
        "unreadable": null, "holders": {"known": [{"pid": 20, "memory_used": null}]}})
}

fn answer() -> Value {
    json!({"gpu_culler_agent": 1, "release": "0.1.0", "node": "gpu1", "boot": "b", "run": "r", "at": NOW,
        "since": null, "cursor": "r.7", "cards": {"known": [card(0.0)]},
        "processes": {"known": {"own_uid": 0, "groups": ["/"], "list": [[1, 0, 1, 0, "init", [0], 0.5]],
            "pods": {}, "servers": {"20": "alice/"}, "kernels": {}, "addresses": {}}}})
}

fn with(key: &str, value: Value) -> Value {
    let mut answer = answer();
    answer[key] = value;
    answer
}

fn settings(urls: &[String]) -> AgentsSettings {
    AgentsSettings {
        whom: Whom::Nodes(urls.iter().map(|url| Url::parse(url).unwrap()).collect()),
        token_file: None,
        ca_file: None,
        timeout: Duration::from_millis(500),
    }
}

async fn answering(template: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("GET")).and(path("/v1/evidence")).respond_with(template).mount(&server).await;
    server
}

/// What one agent that answers so is found to be.
async fn found(template: ResponseTemplate) -> Machine {
    let server = answering(template).await;
    let agents = Agents::new(settings(&[server.uri()])).unwrap();
    agents.look(Ask::Next, now()).await.remove(0)
}

#[tokio::test]
async fn a_good_answer_is_a_machine_with_its_cards_and_processes() {
    let machine = found(ResponseTemplate::new(200).set_body_json(answer())).await;
    assert_eq!(machine.devices.as_ref().map(Vec::len), Ok(1));
    assert!(machine.processes.unwrap().get(1).is_some());
    assert!(["gpu1", "127.0.0.1"].iter().all(|name| machine.names.as_ref().unwrap().contains(*name)));
    assert!(!machine.ours, "it has another boot id");
}

#[tokio::test]
async fn whatever_is_wrong_with_an_answer_makes_its_machine_silent_and_says_why() {
    let ok = || ResponseTemplate::new(200);
    let cut = answer().to_string();
    let old = with("gpu_culler_agent", json!(2));
    let late = with("at", json!("2026-12-01T11:58:30Z"));
    let early = with("at", json!("2026-12-01T12:01:30Z"));
    for (template, words) in [
        (ResponseTemplate::new(401), "refuses our token"),
        (ResponseTemplate::new(404), "no agent at this address"),
        (ResponseTemplate::new(500), "status 500"),
        (ResponseTemplate::new(302).insert_header("location", "/elsewhere"), "status 302"),
        (ok().set_body_string(&cut[..cut.len() / 2]), "cut short"),
        (ok().set_body_string(""), "cut short"),
        (ok().set_body_string("<html>"), "not an agent's"),
        (ok().set_body_json(json!({"gpu_culler_agent": 1})), "not an agent's"),
        (ok().set_body_json(old), "speaks version 2"),
        (ok().set_body_json(late), "clock and ours are"),
        (ok().set_body_json(early), "clock and ours are"),
        (ok().set_body_json(answer()).set_delay(Duration::from_secs(5)), "no answer within 0.5 s"),
    ] {
        let machine = found(template).await;
        let (devices, processes) = (machine.devices.unwrap_err(), machine.processes.unwrap_err());
        assert!(devices.contains(words) && devices.contains("127.0.0.1:"), "{words}: {devices}");
        assert_eq!(devices, processes);
    }
}

#[tokio::test]
async fn a_part_that_is_not_known_or_impossible_is_unknown_and_the_other_part_stands() {
    let of = |answer: Value| found(ResponseTemplate::new(200).set_body_json(answer));
    let unread = of(with("cards", json!({"unknown": "the cards cannot be read"}))).await;
    assert!(unread.devices.unwrap_err().ends_with("the cards cannot be read"));
    assert!(unread.processes.is_ok());
    let mut astray = card(0.0);
    astray["covered"] = json!(-5.0);
    let impossible = of(with("cards", json!({"known": [astray]}))).await;
    assert!(impossible.devices.unwrap_err().contains("what cannot be") && impossible.processes.is_ok());
    let unseen = of(with("processes", json!({"unknown": "hidepid"}))).await;
    assert!(unseen.devices.is_ok() && unseen.processes.unwrap_err().ends_with("hidepid"));
}

#[tokio::test]
async fn what_nobody_answers_is_asked_of_the_others_all_the_same() {
    let server = answering(ResponseTemplate::new(200).set_body_json(answer())).await;
    let nobody = "http://127.0.0.1:1/".to_owned();
    let agents = Agents::new(settings(&[nobody, server.uri()])).unwrap();
    let machines = agents.look(Ask::Next, now()).await;
    assert_eq!(machines.len(), 2);
    assert!(machines[0].devices.as_ref().is_err_and(|why| why.contains("127.0.0.1:1 cannot be asked")));
    assert!(machines[1].devices.is_ok());
}

#[tokio::test]
async fn a_machine_with_two_addresses_is_there_once() {
    let server = answering(ResponseTemplate::new(200).set_body_json(answer())).await;
    let second = server.uri().replace("127.0.0.1", "localhost");
    let agents = Agents::new(settings(&[server.uri(), second])).unwrap();
    assert_eq!(agents.look(Ask::Next, now()).await.len(), 1);
}

/// Answers with what it was asked since, as an agent that goes on there does.
async fn going_on(server: &MockServer, since: &str, answer: Value) {
    let mock = Mock::given(method("GET")).and(query_param("since", since));
    mock.respond_with(ResponseTemplate::new(200).set_body_json(answer)).with_priority(1).mount(server).await;
}

#[tokio::test]
async fn an_answer_goes_on_where_the_last_one_that_was_taken_ended() {
    let server = answering(ResponseTemplate::new(200).set_body_json(answer())).await;
    let mut next = with("since", json!("r.7"));
    (next["cursor"], next["cards"]) = (json!("r.9"), json!({"known": [card(0.5)]}));
    going_on(&server, "r.7", next).await;
    let agents = Agents::new(settings(&[server.uri()])).unwrap();
    let sm = |machine: &Machine| machine.devices.as_ref().unwrap()[0].sample.sm.map(Ratio::get);
    assert_eq!(sm(&agents.look(Ask::Next, now()).await[0]), Some(0.0));
    for ask in [Ask::Again, Ask::Fresh, Ask::Next] {
        assert_eq!(sm(&agents.look(ask, now()).await[0]), Some(0.5), "{ask:?} asks from the same place");
    }
    let asked = server.received_requests().await.unwrap();
    assert_eq!(asked[2].url.query(), Some("since=r.7&fresh=true"));
}

#[tokio::test]
async fn rest_told_by_an_agent_that_was_restarted_proves_nothing_and_work_does() {
    let server = answering(ResponseTemplate::new(200).set_body_json(answer())).await;
    let agents = Agents::new(settings(&[server.uri()])).unwrap();
    agents.look(Ask::Next, now()).await;
    // It answers as if nothing had been asked for: `since` is null.
    let sample = agents.look(Ask::Next, now()).await[0].devices.clone().unwrap().remove(0).sample;
    assert_eq!((sample.sm, sample.dram, sample.covered), (None, None, Duration::ZERO));
    assert!(sample.engines.values().all(Option::is_none));
    assert!(sample.unreadable.unwrap().contains("restarted"));
    let work = with("cards", json!({"known": [card(0.4)]}));
    going_on(&server, "r.7", work).await;
    let sample = agents.look(Ask::Next, now()).await[0].devices.clone().unwrap().remove(0).sample;
    assert_eq!(sample.sm.map(Ratio::get), Some(0.4));
}

#[tokio::test]
async fn the_token_is_read_anew_each_time() {
    let server = MockServer::start().await;
    let right = Mock::given(header("authorization", "Bearer second"));
    right.respond_with(ResponseTemplate::new(200).set_body_json(answer())).mount(&server).await;
    let wrong = Mock::given(method("GET")).respond_with(ResponseTemplate::new(401));
    wrong.with_priority(9).mount(&server).await;
    let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let token_file = Some(file.to_path_buf());
    let agents = Agents::new(AgentsSettings { token_file, ..settings(&[server.uri()]) }).unwrap();
    std::fs::write(&file, "first\n").unwrap();
    assert!(agents.look(Ask::Next, now()).await[0].devices.is_err());
    std::fs::write(&file, "second\n").unwrap();
    assert!(agents.look(Ask::Next, now()).await[0].devices.is_ok());
    std::fs::remove_file(&file).unwrap();
    let why = agents.look(Ask::Next, now()).await[0].devices.clone().unwrap_err();
    assert!(why.contains("token cannot be read"), "{why}");
}

#[tokio::test]
async fn every_address_of_a_name_is_an_agent_and_a_name_without_any_is_silent() {
    let server = answering(ResponseTemplate::new(200).set_body_json(answer())).await;
    let named = |name: &str| {
        let url = format!("http://{name}:{}/", server.address().port());
        AgentsSettings { whom: Whom::Dns(Url::parse(&url).unwrap()), ..settings(&[]) }
    };
    let machines = Agents::new(named("localhost")).unwrap().look(Ask::Next, now()).await;
    let here = machines.iter().find(|machine| machine.name.starts_with("127.0.0.1:")).unwrap();
    assert!(here.devices.is_ok());
    let machines = Agents::new(named("no-such-host.invalid")).unwrap().look(Ask::Next, now()).await;
    assert!(machines[0].devices.as_ref().is_err_and(|why| why.contains("cannot be resolved")));
}

#[test]
fn a_stand_in_for_an_unknown_card_names_its_machine() {
    let read: Card = serde_json::from_value(card(0.0)).unwrap();
    let mut device = read.read().unwrap();
    device.sample.id = GpuId("unknown-at-index-0".to_owned());
    assert_eq!(device.of_node("gpu1:9410").sample.id.0, "unknown-at-index-0-of-gpu1:9410");
}

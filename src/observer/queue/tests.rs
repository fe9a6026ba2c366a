#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::*;
use crate::domain::{GpuSample, Phase, PodName, Server, Want};

fn at(text: &str) -> Timestamp {
    format!("2026-12-01T{text}:00Z").parse().unwrap()
}

fn pod(name: &str, resource: &str) -> Pod {
    Pod {
        name: PodName::new("hub", name),
        uid: name.to_owned(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        session: None,
        cards: [(resource.to_owned(), 1)].into(),
        claims: false,
        node: None,
        ip: None,
        port: None,
        phase: Phase::Pending,
        created: None,
        started: None,
        priority_class: None,
        wants: None,
        deletion_timestamp: None,
    }
}

fn waits(name: &str, resource: &str, since: &str) -> Arc<Pod> {
    let wants = Some(Want { resource: resource.to_owned(), since: at(since) });
    Arc::new(Pod { wants, ..pod(name, resource) })
}

fn holds(user: &str, resource: &str) -> Arc<Pod> {
    let session = Some(ServerId::new(user, ""));
    Arc::new(Pod { session, node: Some("n1".to_owned()), phase: Phase::Running, ..pod(user, resource) })
}

fn session(user: &str, model: &str) -> Session {
    let card = GpuSample { model: model.to_owned(), ..GpuSample::unread(format!("GPU-{user}")) };
    Session {
        server: Box::new(Server::named(ServerId::new(user, ""))),
        jupyter: Err("".into()),
        gpus: Ok(vec![card]),
        cpu: None,
        holds: Vec::new(),
    }
}

const GPU: &str = "nvidia.com/gpu";
const SLICE: &str = "nvidia.com/mig-1g.10gb";

#[test]
fn pods_are_counted_by_what_they_lack_since_the_first_of_them() {
    let waiting = [waits("a", GPU, "10:00"), waits("b", SLICE, "08:00"), waits("c", GPU, "09:00")];
    let queue = of_pods(&waiting, &[], &[]);
    let lines: Vec<_> = queue.lines.iter().map(|it| (it.count, it.what.as_deref(), it.since)).collect();
    assert_eq!(lines, [(2, Some(GPU), Some(at("09:00"))), (1, Some(SLICE), Some(at("08:00")))]);
    assert_eq!(of_pods(&[], &[], &[]), Queue::default(), "nobody waits, which is known");
}

#[test]
fn a_pod_is_served_by_cards_of_its_own_resource_only() {
    let pods = [holds("alice", GPU), holds("bob", SLICE), Arc::new(pod("unscheduled", GPU))];
    let sessions = [session("alice", "A100"), session("bob", "A100"), session("carol", "A100")];
    let queue = of_pods(&[waits("a", GPU, "10:00")], &pods, &sessions);
    let counts = ["alice", "bob", "carol"].map(|user| queue.for_server(&ServerId::new(user, "")));
    assert_eq!(counts, [1, 0, 0]);
}

#[test]
fn where_a_resource_stands_for_several_models_nobodys_card_is_taken_for_it() {
    let pods = [holds("alice", GPU), holds("bob", GPU)];
    let sessions = [session("alice", "A100"), session("bob", "V100")];
    let queue = of_pods(&[waits("a", GPU, "10:00")], &pods, &sessions);
    assert_eq!((queue.total(), queue.for_server(&ServerId::new("alice", ""))), (1, 0));
}

#[test]
fn a_pod_that_ends_waits_no_longer() {
    let ending = Pod { deletion_timestamp: Some(at("10:00")), ..(*waits("a", GPU, "09:00")).clone() };
    let over = Pod { phase: Phase::Failed, ..(*waits("b", GPU, "09:00")).clone() };
    assert_eq!(of_pods(&[Arc::new(ending), Arc::new(over)], &[], &[]), Queue::default());
}

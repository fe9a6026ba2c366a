#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use super::*;
use crate::domain::ServerId;

fn pod(resources: &[(&str, u32)]) -> Pod {
    Pod {
        uid: "7d0c".to_owned(),
        session: Some(ann()),
        cards: resources.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        node: Some("gpu-1".to_owned()),
        phase: Phase::Running,
        ..Pod::named("hub", "jupyter-ann")
    }
}

fn ann() -> ServerId {
    ServerId::new("ann", "")
}

fn gpus(count: usize) -> Result<Vec<GpuSample>, String> {
    let gpu = |number| GpuSample::unread(format!("GPU-{number}"));
    Ok((0..count).map(gpu).collect())
}

fn labelled(pod: &Pod, gpus: Result<Vec<GpuSample>, String>) -> Result<usize, String> {
    judge(pod, &ann(), gpus, true).map(|gpus| gpus.len())
}

fn by_processes(pod: &Pod, gpus: Result<Vec<GpuSample>, String>) -> Result<usize, String> {
    judge(pod, &ann(), gpus, false).map(|gpus| gpus.len())
}

fn late() -> Result<Vec<GpuSample>, String> {
    Err("no card names its pod yet".to_owned())
}

#[test]
fn a_pod_that_asks_for_no_card_holds_none_whatever_labels_are_late() {
    assert_eq!(labelled(&pod(&[]), late()), Ok(0));
    assert_eq!(labelled(&pod(&[]), gpus(0)), Ok(0));
    assert_eq!(by_processes(&pod(&[]), Err("no process of it is on gpu-1".to_owned())), Ok(0));
}

#[test]
fn a_card_that_was_not_asked_for_is_a_contradiction_in_labels_and_a_fact_in_processes() {
    let why = labelled(&pod(&[]), gpus(1)).unwrap_err();
    assert!(why.contains("asks for none") && why.contains("[kubernetes] resources"), "{why}");
    assert_eq!(by_processes(&pod(&[]), gpus(1)), Ok(1));
}

#[test]
fn fewer_cards_than_asked_for_are_not_all_cards() {
    let two = pod(&[("nvidia.com/gpu", 2)]);
    assert_eq!(
        labelled(&two, gpus(1)),
        Err("its pod hub/jupyter-ann asks for 2 cards, the exporter names 1".to_owned())
    );
    let none = "its pod hub/jupyter-ann asks for 2 cards, and no card names it";
    assert_eq!(labelled(&two, gpus(0)), Err(none.to_owned()));
    assert_eq!(labelled(&two, gpus(2)), Ok(2));
    assert_eq!(labelled(&two, late()), Err("no card names its pod yet".to_owned()));
    // Processes show only the cards that they use.
    assert_eq!(by_processes(&two, gpus(1)), Ok(1));
    assert!(by_processes(&two, gpus(0)).unwrap_err().contains("no process of it shows which"));
}

#[test]
fn parts_of_cards_are_counted_and_shares_of_one_may_be_the_same_card() {
    let parts = pod(&[("nvidia.com/mig-1g.10gb", 2), ("nvidia.com/mig-3g.40gb", 1)]);
    assert_eq!(labelled(&parts, gpus(3)), Ok(3));
    assert!(labelled(&parts, gpus(2)).unwrap_err().contains("asks for 3 cards, the exporter names 2"));
    assert_eq!(labelled(&pod(&[("nvidia.com/gpu.shared", 4)]), gpus(1)), Ok(1));
    assert!(labelled(&pod(&[("nvidia.com/gpu.shared", 4)]), gpus(0)).is_err());
}

#[test]
fn devices_that_are_claimed_are_known_only_where_something_names_them() {
    let claims = Pod { claims: true, ..pod(&[]) };
    assert!(labelled(&claims, gpus(0)).unwrap_err().contains("by claims"));
    assert_eq!(labelled(&claims, gpus(1)), Ok(1));
    assert_eq!(labelled(&claims, late()), Err("no card names its pod yet".to_owned()));
}

#[test]
fn a_pod_of_somebody_else_is_a_contradiction() {
    let foreign = Pod { session: Some(ServerId::new("bob", "")), ..pod(&[]) };
    let why = "the Hub says that it runs in the pod hub/jupyter-ann, whose annotations name bob/";
    assert_eq!(labelled(&foreign, gpus(0)), Err(why.to_owned()));
    let silent = Pod { session: None, ..pod(&[]) };
    assert_eq!(labelled(&silent, gpus(0)), Ok(0), "a spawner need not annotate");
}

#[test]
fn only_a_pod_that_runs_is_judged() {
    let in_phase = |phase| labelled(&Pod { phase, ..pod(&[("nvidia.com/gpu", 1)]) }, gpus(1));
    assert_eq!(
        (in_phase(Phase::Succeeded), in_phase(Phase::Failed)),
        (Ok(0), Ok(0)),
        "it has given its cards back"
    );
    assert!(in_phase(Phase::Pending).is_err() && in_phase(Phase::Unknown).is_err());
    assert_eq!(in_phase(Phase::Running), Ok(1));
    let ending = Pod { deletion_timestamp: Some(Timestamp::UNIX_EPOCH), ..pod(&[]) };
    assert!(labelled(&ending, gpus(0)).unwrap_err().contains("is being ended"));
}

#[test]
fn without_a_cluster_nothing_changes() {
    let pods = Pods::default();
    assert_eq!((pods.queue(&[]), pods.up(), pods.troubles()), (None, None, Vec::new()));
    assert!(pods.strangers(&[]).is_empty());
}

#[test]
fn a_server_is_asked_only_at_the_address_of_a_running_pod_that_says_it_is_its_own() {
    let at = Pod { ip: Some([10, 0, 0, 7].into()), port: Some(8888), ..pod(&[]) };
    let asked = |pod: Pod| own_address(&pod, &ann()).map(|address| address.to_string());
    assert_eq!(asked(at.clone()).as_deref(), Some("10.0.0.7:8888"));
    let six = Pod { ip: "2001:db8::7".parse().ok(), ..at.clone() };
    assert_eq!(asked(six).as_deref(), Some("[2001:db8::7]:8888"));
    for elsewhere in [
        Pod { session: None, ..at.clone() },
        Pod { session: Some(ServerId::new("bob", "")), ..at.clone() },
        Pod { session: Some(ServerId::new("ann", "other")), ..at.clone() },
        Pod { phase: Phase::Pending, ..at.clone() },
        Pod { phase: Phase::Failed, ..at.clone() },
        Pod { deletion_timestamp: Some(Timestamp::UNIX_EPOCH), ..at.clone() },
        Pod { port: None, ..at.clone() }, // it speaks TLS
        Pod { ip: None, ..at },
    ] {
        assert_eq!(asked(elsewhere.clone()), None, "{elsewhere:?}");
    }
}

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::domain::{GpuId, Ratio};
use crate::telemetry::{Claims, Place as Slot, ProcessTable};

fn server(user: &str, spawner: SpawnerState) -> Server {
    Server {
        id: ServerId::new(user, ""),
        groups: vec![],
        admin: false,
        profile: None,
        labels: BTreeMap::new(),
        started: Some(Timestamp::UNIX_EPOCH),
        last_activity: None,
        pending: None,
        ready: true,
        contacts: vec![],
        spawner,
        path: format!("/user/{user}/"),
    }
}

fn by_container(user: &str) -> Server {
    server(user, SpawnerState { container: Some(container(user)), ..SpawnerState::default() })
}

fn by_job(user: &str, job: &str) -> Server {
    server(user, SpawnerState { job: Some(job.to_owned()), ..SpawnerState::default() })
}

fn by_pid(user: &str, pid: u32, host: Option<&str>) -> Server {
    let host = host.map(str::to_owned);
    server(user, SpawnerState { pid: Some(pid), host, ..SpawnerState::default() })
}

fn container(user: &str) -> String {
    format!("{user:0>64}")
}

fn in_container(user: &str) -> String {
    format!("/docker/{}", container(user))
}

/// A machine with a card, and the processes 1 and 20, the latter in this control group and on the card.
fn machine(name: &str, ours: bool, group: &str) -> Machine {
    let process = |pid, parent, group: &str| Process {
        pid,
        parent,
        uid: 1000,
        cgroups: vec![group.to_owned()],
        ..Process::default()
    };
    let table = ProcessTable::new([process(1, 0, "/"), process(20, 1, group)], 0);
    Machine {
        name: name.to_owned(),
        names: Some([name.to_owned()].into()),
        ours,
        devices: Ok(vec![device(name)]),
        processes: Ok(table),
        partial: None,
        claims: Claims::default(),
        notes: vec![],
    }
}

fn device(name: &str) -> DeviceReading {
    let id = GpuId(format!("GPU-of-{name}"));
    DeviceReading {
        sample: GpuSample {
            id: id.clone(),
            model: "NVIDIA H100".to_owned(),
            sm: Ratio::reading(0.0),
            dram: Ratio::reading(0.0),
            engines: BTreeMap::new(),
            memory_used: Some(1),
            processes: Some(1),
            covered: Duration::from_secs(60),
            largest_gap: Duration::ZERO,
            unreadable: None,
            power: None,
            past: None,
        },
        place: Slot { card: id, index: 0, instance: None },
        holders: Ok(vec![Holder { pid: 20, memory_used: None }]),
    }
}

fn silent(name: &str) -> Machine {
    Machine::silent(name.to_owned(), [name.to_owned()].into(), &format!("{name} cannot be asked: no answer"))
}

/// Looks at one state of the machines after the other, and tells of the last which cards each server has.
fn judged(servers: &[Server], looks: Vec<Vec<Machine>>) -> Vec<Result<Vec<String>, String>> {
    let running: Vec<Running> = servers.iter().map(|s| (s.id.clone(), s.spawner.clone())).collect();
    let (mut homes, mut cards) = (Homes::default(), Cards::default());
    for machines in looks {
        cards = Cards::attribute(machines, &running);
        cards.note(servers.iter(), &mut homes);
    }
    let of = |server| Ok(cards.of(server, &homes)?.into_iter().map(|gpu| gpu.id.0).collect());
    servers.iter().map(of).collect()
}

fn has(name: &str) -> Result<Vec<String>, String> {
    Ok(vec![format!("GPU-of-{name}")])
}

fn both() -> Vec<Machine> {
    vec![machine("n1", false, &in_container("ann")), machine("n2", false, &in_container("bob"))]
}

fn n2_silent() -> Vec<Machine> {
    vec![machine("n1", false, &in_container("ann")), silent("n2")]
}

#[test]
fn a_silent_machine_is_unknown_for_those_who_were_on_it_and_for_no_one_else() {
    let servers = [by_container("ann"), by_container("bob")];
    assert_eq!(judged(&servers, vec![both()]), [has("n1"), has("n2")]);
    let [ann, bob] = <[_; 2]>::try_from(judged(&servers, vec![both(), n2_silent()])).unwrap();
    assert_eq!(ann, has("n1"));
    assert_eq!(bob, Err("n2 cannot be asked: no answer".to_owned()));
}

#[test]
fn who_is_found_nowhere_may_be_on_the_silent_machine() {
    let servers = [by_container("ann"), by_container("bob")];
    let [ann, bob] = <[_; 2]>::try_from(judged(&servers, vec![n2_silent()])).unwrap();
    assert_eq!(ann, has("n1"), "a container is in one place");
    assert!(bob.is_err_and(|why| why.contains("not known where it runs") && why.contains("n2")));
}

#[test]
fn who_is_found_nowhere_although_all_answer_is_unknown_too() {
    let lost = judged(&[by_container("eve")], vec![both()]).remove(0).unwrap_err();
    assert_eq!(lost, "no process of it is on any of the 2 machines asked");
}

#[test]
fn a_machine_that_is_no_longer_asked_is_not_forgotten() {
    let servers = [by_container("bob")];
    let only_one = vec![machine("n1", false, "/")];
    let why = judged(&servers, vec![both(), only_one]).remove(0).unwrap_err();
    assert!(why.contains("it ran on n2, which is no longer among the agents"), "{why}");
}

#[test]
fn a_job_may_reach_to_a_silent_machine_unless_all_were_asked_before() {
    let servers = [by_job("jon", "17")];
    let job = "/slurm/uid_1000/job_17/step_0";
    let whole = || vec![machine("n1", false, job), machine("n2", false, "/")];
    let cut = || vec![machine("n1", false, job), silent("n2")];
    assert_eq!(judged(&servers, vec![whole(), cut()]), [has("n1")]);
    let why = judged(&servers, vec![cut()]).remove(0).unwrap_err();
    assert!(why.contains("its job may reach to a machine that is silent"), "{why}");
}

#[test]
fn a_job_on_several_machines_has_the_cards_of_all_and_none_when_one_is_silent() {
    let servers = [by_job("jon", "17")];
    let job = "/system.slice/slurmstepd.scope/job_17/step_0";
    let whole = || vec![machine("n1", false, job), machine("n2", false, job)];
    let both = Ok(vec!["GPU-of-n1".to_owned(), "GPU-of-n2".to_owned()]);
    assert_eq!(judged(&servers, vec![whole()]), [both]);
    let cut = vec![machine("n1", false, job), silent("n2")];
    assert!(judged(&servers, vec![whole(), cut]).remove(0).is_err());
}

#[test]
fn a_new_start_of_a_server_is_looked_for_anew() {
    let mut bob = by_container("bob");
    let running = [(bob.id.clone(), bob.spawner.clone())];
    let mut homes = Homes::default();
    Cards::attribute(both(), &running).note(std::iter::once(&bob), &mut homes);
    bob.started = Timestamp::from_second(60).ok();
    let moved = vec![machine("n1", false, &in_container("bob")), silent("n2")];
    let cards = Cards::attribute(moved, &running);
    cards.note(std::iter::once(&bob), &mut homes);
    assert_eq!(cards.of(&bob, &homes).map(|gpus| gpus.len()), Ok(1));
}

#[test]
fn a_pid_means_a_process_of_the_named_machine_or_of_the_hubs_and_of_no_other() {
    let all = || vec![machine("n1", false, "/"), machine("hub", true, "/")];
    assert_eq!(judged(&[by_pid("ann", 20, Some("n1"))], vec![all()]), [has("n1")]);
    assert_eq!(judged(&[by_pid("ann", 20, None)], vec![all()]), [has("hub")]);
    let why = judged(&[by_pid("ann", 20, Some("n7"))], vec![all()]).remove(0).unwrap_err();
    assert_eq!(why, "it runs on n7, where no agent is asked");
    let why = judged(&[by_pid("ann", 20, None)], vec![vec![machine("n1", false, "/")]]).remove(0);
    assert_eq!(why, Err("it runs beside the Hub, where no agent is asked".to_owned()));
}

#[test]
fn a_unit_of_the_same_name_on_another_machine_is_somebody_elses() {
    let unit = SpawnerState { unit: Some("jupyter-ann-singleuser".to_owned()), ..SpawnerState::default() };
    let group = "/system.slice/jupyter-ann-singleuser.service";
    let all = vec![machine("n1", false, group), machine("hub", true, group)];
    assert_eq!(judged(&[server("ann", unit)], vec![all]), [has("hub")]);
}

#[test]
fn a_machine_whose_cards_or_lists_cannot_be_read_is_known_to_hold_its_own_sessions_only() {
    let servers = [by_container("ann"), by_container("bob")];
    let mut unread = both();
    unread[1].devices = Err("n2: the cards cannot be read".to_owned());
    let mut unlisted = both();
    unlisted[1].devices.as_mut().unwrap()[0].holders = Err("denied".to_owned());
    for machines in [unread, unlisted] {
        let [ann, bob] = <[_; 2]>::try_from(judged(&servers, vec![machines])).unwrap();
        assert_eq!(ann, has("n1"));
        assert!(bob.is_err());
    }
}

#[test]
fn where_other_peoples_processes_are_hidden_no_card_is_anybodys() {
    let mut machines = vec![machine("n1", true, &in_container("ann"))];
    machines[0].partial = Some("/proc hides other people's processes".to_owned());
    let cards = Cards::attribute(machines, &[(ServerId::new("ann", ""), by_container("ann").spawner)]);
    assert_eq!((cards.devices.len(), cards.devices[0].servers.len()), (1, 0));
    let told = cards.of(&by_container("ann"), &Homes::default());
    assert_eq!(told, Err("/proc hides other people's processes".to_owned()));
}

#[test]
fn all_machines_silent_is_no_telemetry_at_all() {
    let down = |machines| Cards::attribute(machines, &[]).down();
    assert_eq!(down(vec![silent("n1"), silent("n2")]), Some("n1 cannot be asked: no answer".to_owned()));
    assert_eq!(down(n2_silent()), None);
    assert_eq!(down(vec![]), None);
}

/// A server in a pod of which the cluster tells uid and node.
fn by_pod(user: &str, node: &str) -> Server {
    let pod = Some((format!("jupyter-{user}"), "hub".to_owned()));
    let (pod_uid, host) = (Some(format!("uid-of-{user}")), Some(node.to_owned()));
    server(user, SpawnerState { pod, pod_uid, host, ..SpawnerState::default() })
}

#[test]
fn of_a_pod_only_the_silence_of_its_own_node_matters() {
    let servers =
        [by_pod("ann", "gpu1"), by_pod("bob", "gpu2"), by_pod("cat", "gpu1"), by_pod("dan", "elsewhere")];
    let gpu1 = machine("gpu1", false, "/kubepods/poduid-of-ann/abc");
    let judged = judged(&servers, vec![vec![gpu1, silent("gpu2")]]);
    assert_eq!(judged[0], has("gpu1"));
    assert_eq!(judged[1], Err("gpu2 cannot be asked: no answer".to_owned()));
    assert_eq!(judged[2], Err("no process of its pod is on gpu1".to_owned()));
    let why = judged[3].clone().unwrap_err();
    assert!(why.contains("it is not known where it runs"), "its node has no agent of that name: {why}");
}

#![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

use super::*;

const OWN_UID: u32 = 900;
const ID: &str = "4f1c2a9be07d4f1c2a9be07d4f1c2a9be07d4f1c2a9be07d4f1c2a9be07d4f1c";

fn process(pid: u32, parent: u32, uid: u32, cgroup: &str) -> Process {
    Process {
        pid,
        parent,
        uid,
        name: format!("p{pid}"),
        cgroups: vec![cgroup.to_owned()],
        ..Process::default()
    }
}

fn table(processes: impl IntoIterator<Item = Process>) -> ProcessTable {
    ProcessTable::new(processes, OWN_UID)
}

fn by_pid(id: &str, pid: u32) -> Running {
    let spawner = SpawnerState { pid: Some(pid), ..SpawnerState::default() };
    (server(id), spawner)
}

fn by_unit(id: &str, unit: &str) -> Running {
    let spawner = SpawnerState { unit: Some(unit.to_owned()), ..SpawnerState::default() };
    (server(id), spawner)
}

fn by_container(id: &str, container: &str) -> Running {
    let spawner = SpawnerState { container: Some(container.to_owned()), ..SpawnerState::default() };
    (server(id), spawner)
}

fn server(id: &str) -> ServerId {
    let (user, name) = id.split_once('/').unwrap_or((id, ""));
    ServerId::new(user, name)
}

/// Whose process 20 is, as `alice/ by ProcessTree`, or `nobody's`.
fn whose(servers: &[Running], table: &ProcessTable) -> String {
    let found = attribute([20], servers, table);
    assert_eq!(found.owners.len() + found.unattributed.len(), 1);
    found.owners.get(&20).map_or("nobody's".to_owned(), |(id, basis)| format!("{id} by {basis:?}"))
}

#[test]
fn a_process_in_the_units_control_group_is_the_units_servers() {
    let servers = [by_unit("alice/", "jupyter-alice-singleuser"), by_unit("al/", "jupyter-al-singleuser")];
    for group in [
        "/system.slice/jupyter-alice-singleuser.service",
        "/system.slice/jupyter-alice-singleuser.service/kernel/inner",
    ] {
        assert_eq!(whose(&servers, &table([process(20, 1, 1000, group)])), "alice/ by Unit");
    }
    let longer = table([process(20, 1, 1000, "/system.slice/x-jupyter-alice-singleuser.service")]);
    assert_eq!(whose(&servers, &longer), "nobody's");
}

#[test]
fn a_process_in_the_container_is_the_containers_server() {
    let servers = [by_container("alice/", ID), by_container("bob/", &ID.replace('4', "5"))];
    for group in [
        format!("/docker/{ID}"),
        format!("/system.slice/docker-{ID}.scope"),
        format!("/machine.slice/libpod-{ID}.scope/container"),
        format!("/kubepods.slice/kubepods-podx.slice/cri-containerd-{ID}.scope"),
        format!("/docker/0123456789ab/docker/{ID}"),
    ] {
        let table = table([process(20, 1, 0, &group)]);
        assert_eq!(whose(&servers, &table), "alice/ by Container", "{group}");
    }
    let monitor = table([process(20, 1, 0, &format!("/machine.slice/libpod-conmon-{ID}.scope"))]);
    assert_eq!(whose(&servers, &monitor), "nobody's");
}

#[test]
fn an_empty_id_or_unit_matches_nothing() {
    let servers = [by_container("alice/", ""), by_unit("bob/", "")];
    for group in ["/", "/docker-.scope", "/.service", ""] {
        assert_eq!(whose(&servers, &table([process(20, 1, 1000, group)])), "nobody's", "{group}");
    }
}

#[test]
fn a_group_that_a_user_named_himself_proves_nothing() {
    let servers = [by_unit("bob/", "jupyter-bob-singleuser")];
    let group = |uid| format!("/user.slice/user@{uid}.service/app.slice/jupyter-bob-singleuser.service");
    assert_eq!(whose(&servers, &table([process(20, 1, 1000, &group(1000))])), "nobody's");
    assert_eq!(whose(&servers, &table([process(20, 1, 1000, &group(OWN_UID))])), "bob/ by Unit");
}

#[test]
fn a_descendant_of_the_named_process_is_the_servers() {
    let servers = [by_pid("alice/", 10), by_pid("bob/", 30)];
    let table = table([
        process(10, 1, 1000, "/"),
        process(15, 10, 1000, "/"),
        process(20, 15, 1000, "/"),
        process(30, 1, 1001, "/"),
    ]);
    assert_eq!(whose(&servers, &table), "alice/ by ProcessTree");
}

#[test]
fn the_nearest_named_ancestor_wins() {
    let servers = [by_pid("outer/", 10), by_pid("inner/", 15)];
    let table = table([process(10, 1, 0, "/"), process(15, 10, 0, "/"), process(20, 15, 0, "/")]);
    assert_eq!(whose(&servers, &table), "inner/ by ProcessTree");
}

#[test]
fn the_control_group_beats_the_process_tree() {
    let servers = [by_pid("alice/", 10), by_container("bob/", ID)];
    let table = table([process(10, 1, 0, "/"), process(20, 10, 0, &format!("/docker/{ID}"))]);
    assert_eq!(whose(&servers, &table), "bob/ by Container");
}

#[test]
fn the_tree_tells_servers_in_one_unit_apart() {
    let unit = "jupyter-alice-singleuser";
    let in_unit = |id, pid| {
        let (id, mut spawner) = by_pid(id, pid);
        spawner.unit = Some(unit.to_owned());
        (id, spawner)
    };
    let servers = [in_unit("alice/", 10), in_unit("alice/training", 15), by_pid("bob/", 17)];
    let group = format!("/system.slice/{unit}.service");
    let below = |parent| {
        table([
            process(10, 1, 1000, &group),
            process(15, 1, 1000, &group),
            process(17, 1, 1000, "/"),
            process(20, parent, 1000, &group),
        ])
    };
    assert_eq!(whose(&servers, &below(15)), "alice/training by ProcessTree");
    assert_eq!(whose(&servers, &below(1)), "nobody's", "started by neither: could be either's");
    assert_eq!(whose(&servers, &below(17)), "nobody's", "bob is not in this unit");
}

#[test]
fn two_servers_that_name_the_same_process_own_nothing() {
    let servers = [by_pid("alice/", 10), by_pid("bob/", 10)];
    let table = table([process(10, 1, 1000, "/"), process(20, 10, 1000, "/")]);
    assert_eq!(whose(&servers, &table), "nobody's");
}

#[test]
fn process_one_is_nobodys_server() {
    let table = table([process(1, 0, 0, "/"), process(20, 1, 0, "/")]);
    assert_eq!(whose(&[by_pid("alice/", 1)], &table), "nobody's");
}

#[test]
fn a_process_that_left_the_tree_is_known_by_a_uid_that_one_server_has() {
    let servers = [by_pid("alice/", 10), by_pid("bob/", 11)];
    let table = table([process(10, 1, 1000, "/"), process(11, 1, 1001, "/"), process(20, 1, 1000, "/")]);
    assert_eq!(whose(&servers, &table), "alice/ by Uid");
}

#[test]
fn a_uid_that_says_too_little_says_nothing() {
    let one_uid = |uid| table([process(10, 1, uid, "/"), process(11, 1, uid, "/"), process(20, 1, uid, "/")]);
    let alone = [by_pid("alice/", 10)];
    assert_eq!(whose(&alone, &one_uid(0)), "nobody's", "root");
    assert_eq!(whose(&alone, &one_uid(OWN_UID)), "nobody's", "the Hub's own account");
    assert_eq!(whose(&[by_pid("alice/", 10), by_pid("bob/", 11)], &one_uid(1000)), "nobody's");
    let other_unknown = [by_pid("alice/", 10), (server("alice/training"), SpawnerState::default())];
    assert_eq!(whose(&other_unknown, &one_uid(1000)), "nobody's", "could be the other server's");
}

#[test]
fn a_process_that_is_not_there_is_nobodys() {
    let found = attribute([20], &[by_pid("alice/", 20)], &table([]));
    let gone = Unattributed { pid: 20, name: String::new(), uid: None, claims: None };
    assert_eq!(found.unattributed, [gone]);
}

#[test]
fn what_a_process_claims_is_told_and_changes_nothing() {
    let servers = [by_pid("alice/", 10)];
    let found = attribute([20], &servers, &table([process(20, 1, 1000, "/")]));
    let found = found.with_claims(|pid| (pid == 20).then(|| server("alice/")));
    assert!(found.owners.is_empty());
    assert_eq!(found.unattributed[0].claims, Some(server("alice/")));
    assert_eq!((found.unattributed[0].name.as_str(), found.unattributed[0].uid), ("p20", Some(1000)));
}

#[test]
fn members_are_the_tree_and_the_control_group_but_not_the_uid() {
    let (id, mut spawner) = by_pid("alice/", 10);
    spawner.unit = Some("jupyter-alice".to_owned());
    let table = table([
        process(10, 1, 1000, "/"),
        process(20, 10, 1000, "/"),
        process(30, 1, 1000, "/system.slice/jupyter-alice.service"),
        process(40, 1, 1000, "/user.slice"),
    ]);
    assert_eq!(members(&id, &[(id.clone(), spawner)], &table), [10, 20, 30]);
}

#[test]
fn a_process_in_the_batch_jobs_control_group_is_the_jobs_server() {
    let job = |id: &str| SpawnerState { job: Some(id.to_owned()), ..SpawnerState::default() };
    let servers = [(server("alice/"), job("4711")), (server("bob/"), job("471"))];
    for group in
        ["/slurm/uid_1000/job_4711/step_0", "/system.slice/n1_slurmstepd.scope/job_4711/step_0/user/task_0"]
    {
        assert_eq!(whose(&servers, &table([process(20, 1, 1000, group)])), "alice/ by Job", "{group}");
    }
    let named = "/user.slice/user@1000.service/slurm/uid_1000/job_4711/step_0";
    assert_eq!(whose(&servers, &table([process(20, 1, 1000, named)])), "nobody's", "named by a user");
}

#[test]
fn an_environment_that_names_somebody_elses_server_changes_nobodys_attribution() {
    let servers = [by_pid("alice/", 10), by_pid("bob/", 30)];
    let table = table([process(10, 1, 1000, "/"), process(20, 10, 1000, "/"), process(30, 1, 1001, "/")]);
    let plain = attribute([20], &servers, &table);
    let forged = plain.clone().with_claims(|_| Some(server("bob/")));
    assert_eq!(forged, plain);
    assert_eq!(forged.owners[&20].0, server("alice/"));
}

#[test]
fn a_parent_that_is_younger_than_its_child_has_a_pid_that_was_used_again() {
    let servers = [by_pid("alice/", 10)];
    let started = |process: Process, start_ticks| Process { start_ticks, ..process };
    let parent = |start_ticks| {
        table([started(process(10, 1, 1000, "/"), start_ticks), started(process(20, 10, 1001, "/"), 500)])
    };
    assert_eq!(whose(&servers, &parent(400)), "alice/ by ProcessTree");
    assert_eq!(whose(&servers, &parent(600)), "nobody's");
}

#[test]
fn what_hidepid_hides_is_not_guessed() {
    // Neither the server's own process nor that on the card can be seen, only one of the same user.
    let found = attribute([20], &[by_pid("alice/", 10)], &table([process(40, 1, 1000, "/")]));
    assert!(found.owners.is_empty());
    assert_eq!((found.unattributed[0].pid, found.unattributed[0].uid), (20, None));
    let seen = table([process(20, 1, 1000, "/")]);
    assert_eq!(whose(&[by_pid("alice/", 10)], &seen), "nobody's", "the server's uid is hidden");
}

#[test]
fn a_process_in_a_pod_is_the_servers_whose_pod_has_that_name_and_namespace() {
    let pod = |namespace: &str| Some((namespace.to_owned(), "jupyter-alice".to_owned()));
    let in_pod = |pod| SpawnerState { pod, ..SpawnerState::default() };
    let servers = [(server("alice/"), in_pod(pod("hub"))), (server("bob/"), in_pod(pod("other")))];
    let group =
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod8ee4_b1.slice/cri-containerd-c.scope";
    let pods = [("8ee4-b1".to_owned(), pod("hub").unwrap())].into();
    let known = table([process(20, 1, 1000, group)]).with_pods(pods);
    assert_eq!(whose(&servers, &known), "alice/ by Pod");
    let unknown = table([process(20, 1, 1000, group)]);
    assert_eq!(whose(&servers, &unknown), "nobody's", "a uid alone is no name");
}

#[test]
fn where_the_pods_uid_is_known_an_earlier_pod_of_the_same_name_is_another() {
    let pod = Some(("hub".to_owned(), "jupyter-alice".to_owned()));
    let of = |uid: &str| SpawnerState {
        pod: pod.clone(),
        pod_uid: Some(uid.to_owned()),
        ..SpawnerState::default()
    };
    let group = "/kubepods/burstable/pod8ee4-b1/abc";
    // The folder of the earlier one's logs may still be there.
    let pods = [("8ee4-b1".to_owned(), pod.clone().unwrap())].into();
    let known = table([process(20, 1, 1000, group)]).with_pods(pods);
    assert_eq!(whose(&[(server("alice/"), of("8ee4-b1"))], &known), "alice/ by Pod");
    assert_eq!(whose(&[(server("alice/"), of("0f3c-22"))], &known), "nobody's");
    let without_folders = table([process(20, 1, 1000, group)]);
    assert_eq!(whose(&[(server("alice/"), of("8ee4-b1"))], &without_folders), "alice/ by Pod");
}

//! A ledger that cannot be written: nobody is warned or stopped, the log says why, and the service goes on by itself
//! once it can.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use gpu_culler::store::Store;

use crate::eventually;
use crate::world::{GRACE, Point, World};

/// The limit on files that a process may write is raised and lowered from outside, as a disk fills up and is cleared.
fn limit_files(pid: u32, bytes: &str) {
    let mut prlimit = Command::new("prlimit");
    prlimit.args(["--pid", &pid.to_string(), &format!("--fsize={bytes}:unlimited")]);
    assert!(prlimit.status().unwrap().success());
}

async fn logged(world: &World, words: &str) {
    eventually(words, || world.log().contains(words).then_some(())).await;
}

async fn warned(world: &World) {
    eventually("alice is warned", || (!world.state().letters.is_empty()).then_some(())).await;
    let saved = || {
        let ledger = Store::peek(&world.ledger()).ok()??;
        ledger.records.values().next()?.warning.as_ref().map(|_| ())
    };
    eventually("the warning is saved", saved).await;
}

async fn stopped(world: &Arc<World>) {
    eventually("alice's server is stopped", || world.state().session.is_none().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_nobody_is_warned_until_there_is_room() {
    let world = World::new(Point::Never).await;
    // Where a limit is passed the kernel would also send a signal; a disk sends none.
    let ignoring = ["-c", r#"trap "" XFSZ; exec "$0" "$@""#, env!("CARGO_BIN_EXE_gpu-culler")];
    world.start_as(world.run(Path::new("bash"), &ignoring, &["run"]));
    eventually("the ledger is made", || Store::peek(&world.ledger()).ok().flatten()).await;
    limit_files(world.pid(), "4096");
    logged(&world, "nothing more is warned or stopped: cannot").await;
    logged(&world, "the disk or its file system refused (full, over a quota, or broken)").await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(world.state().letters.is_empty(), "{}", world.log());
    limit_files(world.pid(), "unlimited");
    warned(&world).await;
    stopped(&world).await;
    logged(&world, "no longer: nothing more is warned or stopped").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_another_program_has_the_ledger_locked_nobody_is_stopped() {
    let world = World::new(Point::Never).await;
    world.start();
    warned(&world).await;
    let lock = world.no_more_commits();
    tokio::time::sleep(GRACE + Duration::from_secs(3)).await;
    assert!(world.state().stops.is_empty(), "{}", world.log());
    assert!(world.log().contains("another program has it locked"), "{}", world.log());
    drop(lock);
    stopped(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_ledger_is_left_as_it_is_and_taken_up_again_once_mended() {
    let world = World::new(Point::Never).await;
    drop(Store::open(&world.ledger()).unwrap());
    let good = fs::read(world.ledger()).unwrap();
    let mut bad = good.clone();
    bad[..100].fill(b'x');
    fs::write(world.ledger(), &bad).unwrap();
    world.start();
    logged(&world, "nothing is culled: cannot read the ledger").await;
    let check = world.command(&["check"]).output().unwrap();
    let told = String::from_utf8(check.stdout).unwrap();
    assert!(told.contains("wrong  ledger") && told.contains("put a good copy in its place"), "{told}");
    assert_eq!(check.status.code(), Some(1));
    assert!(fs::read(world.ledger()).unwrap() == bad, "the damaged file was changed");
    assert!(world.state().letters.is_empty());
    fs::write(world.ledger(), good).unwrap();
    warned(&world).await;
    stopped(&world).await;
}

//! The service is killed wherever it has written or sent something, or is about to, and started again: nobody is
//! stopped unwarned, no mail comes twice, and the idle server is stopped in the end. The real program, with a Hub,
//! a mail server and a pretended card that end it from outside.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test should stop at once")]

mod faults;
mod hub;
mod hub_trouble;
mod mail;
mod world;

use std::time::Duration;

use futures::StreamExt;
use world::{GRACE, Point, Seen, Step, World};

/// Services that run at the same time.
const AT_ONCE: usize = 12;

/// Everything outside the ledger's file: each step of each of the three letters, and of the stop.
fn outside() -> Vec<Point> {
    let letters = (1..=3).flat_map(|letter| Step::ALL.map(|step| Point::Letter(letter, step)));
    let stop = [
        Point::Listing(1),
        Point::Listing(3),
        Point::LastLook,
        Point::DeleteCame,
        Point::DeleteDone,
        Point::DeleteAnswered,
        Point::LookAfterwards,
    ];
    letters.chain(stop).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn wherever_it_is_killed_the_owner_is_warned_once_and_in_time() {
    let undisturbed = World::new(Point::Never).await.lives().await;
    assert_eq!(undisturbed.kinds(), ["warning", "reminder", "stopped"]);
    let commits = undisturbed.commits;
    assert!(commits >= 6, "the watch over the ledger's log sees too little: {commits}");

    let points = outside().into_iter().chain((1..=commits).map(Point::Commit));
    let lives = points.map(|point| async move { World::new(point).await.lives().await });
    let mut lives = futures::stream::iter(lives).buffer_unordered(AT_ONCE);
    let mut killed = 0;
    while let Some(seen) = lives.next().await {
        // A shorter life than the undisturbed one may have had fewer commits.
        assert!(seen.killed || matches!(seen.point, Point::Commit(_)), "{:?} was never reached", seen.point);
        killed += usize::from(seen.killed);
        holds(&seen);
    }
    assert!(killed > outside().len() + 6, "{killed} kills");
}

fn holds(seen: &Seen) {
    let Seen { point, letters, stops, log, .. } = seen;
    let case = format!("killed at {point:?}: {letters:#?}, stopped {stops:?}\n{log}");
    let accepted = |kind: &str| seen.letters.iter().filter(|l| l.kind == kind).collect::<Vec<_>>();
    let warnings = accepted("warning");
    let first = warnings.first().unwrap_or_else(|| panic!("never warned, {case}"));
    assert_eq!(seen.stops.len(), 1, "{case}");
    assert!(seen.stops[0] >= first.at + GRACE, "stopped before its time, {case}");
    // One that nobody can know to have arrived is followed by a new one, after its grace has passed.
    let in_doubt = matches!(
        seen.point,
        Point::Letter(1, Step::Content | Step::Accepted) | Point::Commit(_) | Point::Never
    );
    assert!(warnings.len() <= if in_doubt { 2 } else { 1 }, "{case}");
    for pair in warnings.windows(2) {
        assert!(pair[1].at >= pair[0].at + GRACE, "warned twice at once, {case}");
    }
    assert!(accepted("reminder").len() <= warnings.len(), "{case}");
    assert!(accepted("stopped").len() <= 1, "{case}");
    let limit = if in_doubt { 2 } else { 1 };
    for letter in &seen.letters {
        let same = seen.letters.iter().filter(|other| other.id == letter.id).count();
        assert!(same <= limit, "{} came {same} times, {case}", letter.id);
    }
}

/// Waits for something that the service brings about.
async fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(40);
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "not within 40 s: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

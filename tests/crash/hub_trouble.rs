//! A Hub that restarts, refuses or hangs in the middle of a stop: it is tried again or followed up, never taken for
//! done, and never done twice.

use futures::StreamExt;

use crate::holds;
use crate::world::{How, Point, Request, Trouble, World};

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_hub_gets_wrong_during_a_stop_it_is_stopped_once_and_its_owner_told() {
    let refusals = [403, 429, 500, 503].map(How::Refuses);
    let before = refusals.into_iter().chain([How::Hangs]);
    let troubles = before
        .clone()
        .map(|how| (Request::Look, how))
        .chain(before.clone().map(|how| (Request::Delete, how)))
        .chain([(Request::Delete, How::DoesAndHangs)])
        .chain(before.map(|how| (Request::LookAfterwards, how)));
    // A reading request is repeated twice within one look, so that three in a row are one failed look.
    let lives = troubles.map(|(at, how)| async move {
        let world = World::new(Point::Never).await;
        *world.trouble.lock().unwrap() =
            Some(Trouble { at, how, times: if at == Request::Delete { 1 } else { 3 } });
        let seen = world.clone().lives().await;
        let left = world.trouble.lock().unwrap().unwrap().times;
        (at, how, left, seen)
    });
    let mut lives = futures::stream::iter(lives).buffer_unordered(8);
    while let Some((at, how, left, seen)) = lives.next().await {
        let case = format!("{how:?} at {at:?}: {seen:#?}");
        assert_eq!(left, 0, "the trouble was never met, {case}");
        holds(&seen);
        assert_eq!(seen.kinds(), ["warning", "reminder", "stopped"], "{case}");
    }
}

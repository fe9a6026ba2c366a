//! What must hold in every history, however unlucky: random days of a few sessions, run through the
//! ledger and the planner as a cycle does it, next to what was really going on.
//!
//! The world has a true time that only runs forward, and a wall clock that somebody may set. Every
//! step is longer than `max_gap`, so whatever is not seen in one step is a gap that counts.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed test should stop at once")]

mod admin;
mod history;
mod truth;
mod world;

use proptest::prelude::*;

use history::history;
use world::World;

/// Ten thousand histories; `PROPTEST_CASES` can only raise that.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(10_000), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_history_stops_work_and_every_rest_ends(
        history in history(),
        brakes in prop::bool::weighted(0.2),
        odd in any::<bool>(),
        counts_on in any::<bool>(),
    ) {
        let mut world = World::new(brakes, odd, counts_on);
        for step in &history {
            world.step(step);
        }
        world.rests_for_good();
        let left = world.sessions.iter().filter(|truth| truth.running).count();
        prop_assert!(left == 0, "{left} idle sessions are never stopped: {:?}", world.sessions);
    }
}

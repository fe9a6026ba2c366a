//! One look at everything, for the commands that only tell.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use crate::cycle::CycleReport;
use crate::daemon::{self, Parts};
use crate::policy::{Ledger, Policy, plan};
use crate::settings::{Cost, Settings, Sources};
use crate::store::Store;

/// How long the cards may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a look found, with what it was judged by.
pub struct Look {
    /// What one cycle would see and plan.
    pub report: CycleReport,
    /// The ledger, as the cycle would leave it.
    pub ledger: Ledger,
    /// The policy in force.
    pub policy: Policy,
    /// What an admin should know.
    pub notes: Vec<String>,
    /// What cards cost.
    pub cost: Cost,
}

/// Looks once, with the clocks that the running service has saved. Changes nothing.
pub async fn look(sources: &Sources) -> anyhow::Result<Look> {
    let settings = sources.load()?;
    let Parts { mut observer, sampler, policy, notes, .. } =
        daemon::parts(&settings).await.map_err(|problem| anyhow!(problem))?;
    let poll = tokio::task::spawn_blocking(move || sampler.wait_for_poll(Instant::now(), PATIENCE));
    // That the cards cannot be read is a finding: the look goes on and reports it.
    let _ = poll.await.context("the cards' thread ended")?;
    let mut ledger = saved(&settings)?;
    let now = daemon::now();
    let seen = observer.observe(now).await;
    ledger.observe(&seen.snapshot, &policy);
    let plan = plan(&seen.snapshot, &ledger, &policy, now);
    let report = CycleReport {
        at: now,
        snapshot: seen.snapshot,
        cards: seen.cards,
        plan,
        happened: Vec::new(),
        troubles: seen.troubles,
    };
    Ok(Look { report, ledger, policy, notes, cost: settings.cost })
}

fn saved(settings: &Settings) -> anyhow::Result<Ledger> {
    Ok(Store::peek(&settings.store)?.unwrap_or_default())
}

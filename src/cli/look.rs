//! One look at everything, for the commands that only tell.

use std::time::Duration;

use anyhow::anyhow;

use crate::cycle::CycleReport;
use crate::daemon::{self, Parts};
use crate::observer::SlowClocks;
use crate::policy::{Ledger, Policy, plan};
use crate::settings::{Cost, Settings, Sources};
use crate::store::{Store, looks};

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
    /// Whose stamps were taken for later than they say.
    pub slow: SlowClocks,
}

/// Looks once, with the clocks that the running service has saved. Changes nothing, but tells the service where
/// looking left a trace.
pub async fn look(sources: &Sources) -> anyhow::Result<Look> {
    let settings = sources.load()?;
    let Parts { mut observer, policy, notes, .. } =
        daemon::parts(&settings).await.map_err(|problem| anyhow!(problem))?;
    // That the cards cannot be read is a finding: the look goes on and reports it.
    observer.begin(PATIENCE).await;
    let mut ledger = saved(&settings)?;
    let now = daemon::now();
    let mut seen = observer.observe(now).await;
    if let Err(error) = looks::leave(&settings.store, &observer.looks()) {
        tracing::warn!("the service may take this look for somebody: {error}");
    }
    ledger.observe(&seen.snapshot, &policy);
    let plan = plan(&seen.snapshot, &ledger, &policy, now);
    let slow = std::mem::take(&mut seen.slow);
    let report = CycleReport::of(seen, plan);
    Ok(Look { report, ledger, policy, notes, cost: settings.cost, slow })
}

fn saved(settings: &Settings) -> anyhow::Result<Ledger> {
    Ok(Store::peek(&settings.store)?.unwrap_or_default())
}

//! Where readings come from. Each source answers with [`Cards`]: whose they are is found here, since only
//! here it is known which servers run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::Running;
use super::cards::Cards;
use super::held::Held;
use crate::telemetry::agents::Ask;
use crate::telemetry::{Agents, DeviceReading, Machine, NvmlSampler, TelemetryError};

/// How long a fresh reading of the cards may take before a stop is called off.
const FRESH_WITHIN: Duration = Duration::from_secs(10);

/// The sources there are.
#[derive(Debug)]
pub enum Source {
    /// The cards of this machine.
    Nvml(Arc<NvmlSampler>),
    /// The cards of other machines.
    Agents(Box<Agents>),
}

impl Source {
    /// Waits for a first reading where this source has to begin with one. That there is none is shown by
    /// the look that follows.
    pub async fn begin(&self, patience: Duration) {
        if let Self::Nvml(sampler) = self {
            let _ = fresh(sampler, patience).await;
        }
    }

    /// The cards and whose they are, of all machines. `held` remembers who held a card that fell off the bus.
    pub(super) async fn look(
        &self,
        ask: Ask,
        running: &[Running],
        held: Option<&mut Held>,
        now: Timestamp,
    ) -> Cards {
        let mut machines = self.machines(ask, now, |_| true).await;
        if let Some(held) = held {
            machines.iter_mut().for_each(|machine| held.fill_in(machine));
        }
        Cards::attribute(machines, running)
    }

    /// The same up to this very moment, of these machines.
    pub(super) async fn look_fresh(
        &self,
        running: &[Running],
        only: Option<&BTreeSet<String>>,
        now: Timestamp,
    ) -> Cards {
        let wanted = |name: &str| only.is_none_or(|only| only.contains(name));
        Cards::attribute(self.machines(Ask::Fresh, now, wanted).await, running)
    }

    async fn machines(&self, ask: Ask, now: Timestamp, wanted: impl Fn(&str) -> bool) -> Vec<Machine> {
        match self {
            Self::Nvml(sampler) => {
                vec![Machine::only(read(sampler, ask).await.map_err(|error| error.to_string()))]
            }
            Self::Agents(agents) => agents.look_at(ask, now, wanted).await,
        }
    }

    /// Those of these processes that still run. Where that cannot be seen they count as running.
    pub(super) async fn still_running(&self, before: &[Resident], now: Timestamp) -> Vec<Resident> {
        let machines = match self {
            Self::Nvml(_) => vec![Machine::only(Ok(Vec::new()))],
            Self::Agents(agents) => {
                let concerned = |name: &str| before.iter().any(|resident| resident.machine == name);
                agents.look_at(Ask::Again, now, concerned).await
            }
        };
        let runs = |resident: &&Resident| {
            let machine = machines.iter().find(|machine| machine.name == resident.machine);
            let table = machine.and_then(|machine| machine.processes.as_ref().ok());
            table.is_none_or(|table| table.still_has(resident.pid, resident.start_ticks))
        };
        before.iter().filter(runs).cloned().collect()
    }
}

/// A process of a server, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    /// The machine's name.
    pub machine: String,
    /// Its id.
    pub pid: u32,
    /// When it started, in ticks since boot: a later process may have the same id.
    pub start_ticks: u64,
    /// Its short name.
    pub name: String,
}

async fn read(sampler: &Arc<NvmlSampler>, ask: Ask) -> Result<Vec<DeviceReading>, TelemetryError> {
    match ask {
        Ask::Next => sampler.drain(),
        Ask::Again => sampler.peek(),
        // What the cards did up to this moment, not up to the last poll.
        Ask::Fresh => {
            fresh(sampler, FRESH_WITHIN).await?;
            sampler.peek()
        }
    }
}

async fn fresh(sampler: &Arc<NvmlSampler>, patience: Duration) -> Result<(), TelemetryError> {
    let sampler = Arc::clone(sampler);
    let asked = Instant::now();
    let poll = tokio::task::spawn_blocking(move || sampler.wait_for_poll(asked, patience));
    poll.await.unwrap_or(Err(TelemetryError::Ended))
}

//! The answer to the service.

use std::time::{Duration, Instant};

use super::{Agent, Question};
use crate::telemetry::agents::wire::{Card, Evidence, Processes, Told, VERSION};
use crate::telemetry::process_table::boot_id;
use crate::telemetry::{Claims, DeviceReading, Handout, Mark, ProcessTable, TelemetryError};

/// How long a fresh reading may take before the answer goes out with what there is.
const FRESH_WITHIN: Duration = Duration::from_secs(8);

/// All that is known now.
pub(super) fn tell(agent: &Agent, question: &Question) -> Evidence {
    if question.fresh {
        // What went wrong shows in what is told of the cards.
        let _ = agent.sampler.wait_for_poll(Instant::now(), FRESH_WITHIN);
    }
    let told = agent.sampler.since(question.since.as_deref().map(|cursor| mark(agent, cursor)));
    let (since, cursor) = places(agent, question, &told);
    let devices = told.map(|told| told.devices);
    let processes = processes(devices.as_deref().unwrap_or_default());
    Evidence {
        gpu_culler_agent: VERSION,
        release: env!("CARGO_PKG_VERSION").to_owned(),
        node: host_name(),
        boot: boot_id().unwrap_or_default(),
        run: agent.run.to_string(),
        at: (agent.clock)(),
        since,
        cursor,
        notes: agent.sampler.lacking().into_iter().map(str::to_owned).collect(),
        cards: Told::new(devices.map(|devices| devices.iter().map(Card::from).collect())),
        processes: Told::new(processes),
    }
}

/// Where the answer begins and where the next one will.
fn places(
    agent: &Agent,
    question: &Question,
    told: &Result<Handout, TelemetryError>,
) -> (Option<String>, String) {
    let asked = question.since.clone();
    match told {
        Ok(told) => (asked.filter(|_| told.continues), format!("{}.{}", agent.run, told.mark)),
        // Nothing of the cards was told: it goes on from the same place.
        Err(_) => (asked.clone(), asked.unwrap_or_else(|| format!("{}.0", agent.run))),
    }
}

/// The place that a cursor stands for; that of another run was never given.
fn mark(agent: &Agent, cursor: &str) -> Mark {
    let own = cursor.strip_prefix(&*agent.run).and_then(|rest| rest.strip_prefix('.'));
    own.and_then(|mark| mark.parse().ok()).unwrap_or(Mark::MAX)
}

fn processes(devices: &[DeviceReading]) -> Result<Processes, String> {
    let table = ProcessTable::of_machine()?;
    if let Some(why) = table.partial() {
        return Err(why);
    }
    let holders = devices.iter().flat_map(|device| device.holders.iter().flatten());
    let claims = Claims::of_holders(holders.map(|holder| holder.pid), &table).with_addresses(&table);
    Ok(Processes::new(&table, claims))
}

/// What this machine calls itself.
pub(super) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

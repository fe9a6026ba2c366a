//! How many cores each server's processes use.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::domain::{ServerId, SpawnerState};
use crate::telemetry::{ProcessTable, all_members};

/// Remembers each process's CPU time, so that the next measurement can tell the difference.
#[derive(Debug, Default)]
pub struct CpuMeter {
    before: Option<(Timestamp, Seconds)>,
}

/// CPU seconds by process; the start tells a reused pid apart.
type Seconds = BTreeMap<(u32, u64), f64>;

impl CpuMeter {
    /// Cores used since the last measurement; nothing where there was none.
    pub fn measure(
        &mut self,
        servers: &[(ServerId, SpawnerState)],
        table: &ProcessTable,
        now: Timestamp,
    ) -> BTreeMap<ServerId, f64> {
        let seconds: Seconds = table.iter().map(|p| ((p.pid, p.start_ticks), p.cpu_seconds)).collect();
        let before = self.before.replace((now, seconds));
        let Some((then, before)) = before else {
            return BTreeMap::new();
        };
        let elapsed = now.duration_since(then).as_secs_f64();
        if elapsed <= 0.0 {
            return BTreeMap::new();
        }
        let used = |pid: u32| {
            let process = table.get(pid)?;
            let earlier = before.get(&(pid, process.start_ticks)).copied().unwrap_or(0.0);
            Some((process.cpu_seconds - earlier).max(0.0))
        };
        let cores = |pids: Vec<u32>| pids.into_iter().filter_map(used).sum::<f64>() / elapsed;
        all_members(servers, table).into_iter().map(|(id, pids)| (id, cores(pids))).collect()
    }
}

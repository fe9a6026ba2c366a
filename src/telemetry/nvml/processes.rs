//! Who holds a card. The lists take a lock that all of the driver waits for, so they are not read in
//! every poll.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nvml_wrapper::Device;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;

use super::read::soft;
use crate::domain::Holder;

/// The largest pid Linux can give.
const PID_MAX: u32 = 4_194_304;

/// How old a list may be. A process that comes or goes changes the memory in use, and is seen at once.
const FRESH: Duration = Duration::from_secs(30);

/// The processes on a card, or why they are not known.
pub type Holders = Result<Vec<Holder>, String>;

/// A list and what it belongs to.
#[derive(Debug)]
pub struct Listed {
    at: Instant,
    memory_used: Option<u64>,
    holders: Holders,
}

impl Listed {
    /// Reads the lists of a card.
    pub fn read(device: &Device<'_>, memory_used: Option<u64>, at: Instant) -> Result<Self, NvmlError> {
        Ok(Self { at, memory_used, holders: holders(device)? })
    }

    /// The holders, if they still stand while this much memory is in use.
    pub fn still(&self, memory_used: Option<u64>, at: Instant) -> Option<&Holders> {
        let same = memory_used.is_some() && memory_used == self.memory_used;
        let fresh = at.saturating_duration_since(self.at) < FRESH;
        (same && fresh && self.holders.is_ok()).then_some(&self.holders)
    }

    /// What was listed.
    pub fn holders(&self) -> &Holders {
        &self.holders
    }
}

/// The processes that hold a context, of whatever sort. All lists have to be readable: half a list
/// would make a card look free of somebody.
fn holders(device: &Device<'_>) -> Result<Holders, NvmlError> {
    let mut all: BTreeMap<u32, Option<u64>> = BTreeMap::new();
    for (list, required) in [
        (device.running_compute_processes(), true),
        (device.running_graphics_processes(), false),
        (device.mps_running_compute_processes(), false),
    ] {
        let absent = matches!(list, Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_)));
        if absent && !required {
            continue;
        }
        match soft(list)? {
            Err(reason) => {
                return Ok(Err(format!("the card's processes could not be listed: {reason}")));
            }
            Ok(list) => {
                for process in list {
                    let held = all.entry(process.pid).or_default();
                    *held = (*held).max(memory(&process));
                }
            }
        }
    }
    // Drivers 535.43 to 535.86 write longer entries than they declare: pids then are bits of memory sizes.
    if all.keys().any(|&pid| pid == 0 || pid > PID_MAX) {
        return Ok(Err("the driver lists processes that cannot exist".to_owned()));
    }
    Ok(Ok(all.into_iter().map(|(pid, memory_used)| Holder { pid, memory_used }).collect()))
}

fn memory(process: &ProcessInfo) -> Option<u64> {
    match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_stands_while_it_is_fresh_and_the_memory_in_use_is_the_same() {
        let at = Instant::now();
        let listed = |holders| Listed { at, memory_used: Some(7), holders };
        let empty = listed(Ok(vec![]));
        assert_eq!(empty.still(Some(7), at + Duration::from_secs(29)), Some(&Ok(vec![])));
        assert_eq!(empty.still(Some(7), at + FRESH), None);
        assert_eq!(empty.still(Some(8), at), None);
        assert_eq!(empty.still(None, at), None, "unknown is not the same");
        assert_eq!(listed(Err("denied".to_owned())).still(Some(7), at), None, "a failure is tried again");
    }
}

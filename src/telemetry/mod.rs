//! What the cards do and who holds them: readings only, no opinion about idleness.

pub mod agents;
pub mod attribution;
pub mod cgroup;
mod claims;
mod demand;
pub mod listeners;
mod machine;
pub mod nvml;
pub mod pods;
mod power;
pub mod process_table;
pub mod prometheus;
mod window;

use crate::domain::{GpuId, GpuSample, Holder};

pub use agents::{Agents, AgentsSettings};
pub use attribution::{Attribution, Basis, Unattributed, all_members, attribute, members};
pub use claims::Claims;
pub use demand::DemandQuery;
pub use machine::Machine;
pub use nvml::{Handout, NvmlSampler, NvmlSettings};
pub use process_table::{Process, ProcessTable};
pub use prometheus::{Prometheus, PrometheusSettings};
pub use window::Mark;

/// One card: what it did since it was last asked, and who holds it now.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceReading {
    /// What it did.
    pub sample: GpuSample,
    /// Where it is in its machine.
    pub place: Place,
    /// The processes that hold it, or why they are not known.
    pub holders: Result<Vec<Holder>, String>,
}

/// Where a device is in its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The card it is, or is a part of.
    pub card: GpuId,
    /// The card's number, which is not stable.
    pub index: u32,
    /// The number of the MIG instance, where it is one and that is known.
    pub instance: Option<u32>,
}

/// Why there are no readings at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryError {
    /// Too early.
    #[error("no card was read yet: NVML is being opened")]
    Starting,
    /// The source cannot be used; it is tried again.
    #[error("the cards cannot be read: {reason}")]
    Unavailable {
        /// What is wrong and what to do.
        reason: String,
    },
    /// A call does not return.
    #[error(
        "NVML has not answered for {seconds} s: a card may be wedged; look for Xid lines in the kernel log"
    )]
    NotAnswering {
        /// Since when.
        seconds: u64,
    },
    /// The thread that reads the cards is gone.
    #[error("the cards are no longer read: the NVML thread ended; restart gpu-culler")]
    Ended,
}

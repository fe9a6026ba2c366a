//! The words of the product as values: who, which server, which card, what was read.
//!
//! Nothing here reads a clock, knows a wire format or decides anything.

mod account;
mod gpu;
mod ids;
mod intent;
mod jupyter;
mod pod;
mod queue;
mod sentences;
mod server;

pub use account::Account;
pub use gpu::{Engine, GpuId, GpuSample, Hold, Holder, Past, Power, Ratio};
pub use ids::{IdError, ServerId, ServerName, UserName};
pub use intent::{CHOSEN, Intent, IntentKeys, LONGEST_LABEL, Unreadable};
pub use jupyter::{Jupyter, Kernel, KernelState, Terminal};
pub use pod::{Phase, Pod, PodName, Want};
pub use queue::{Queue, QueueLine};
pub use sentences::Sentences;
pub use server::{Afterwards, Server, SpawnerState};

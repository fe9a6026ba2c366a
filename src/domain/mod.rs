//! The words of the product as values: who, which server, which card, what was read.
//!
//! Nothing here reads a clock, knows a wire format or decides anything.

mod account;
mod gpu;
mod ids;
mod jupyter;
mod server;

pub use account::Account;
pub use gpu::{Engine, GpuId, GpuSample, Hold, Holder, Past, Power, Ratio};
pub use ids::{IdError, ServerId, ServerName, UserName};
pub use jupyter::{Jupyter, Kernel, KernelState, Terminal};
pub use server::{Afterwards, Server, SpawnerState};

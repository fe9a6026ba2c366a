//! What a single-user server says about itself.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A readable single-user server. That it could not be read is `None` where this is held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jupyter {
    /// The server's own stamp (`/api/status`); an open tab moves it.
    pub last_activity: Option<Timestamp>,
    /// Connected clients, as the server counts them.
    pub connections: u32,
    /// Running kernels.
    pub kernels: Vec<Kernel>,
    /// Open terminals.
    pub terminals: Vec<Terminal>,
}

/// One running kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Its id.
    pub id: String,
    /// What it says it is doing.
    pub state: KernelState,
    /// The last message of a request that counts.
    pub last_activity: Option<Timestamp>,
    /// Connected clients.
    pub connections: u32,
    /// The notebook's path, where known.
    pub notebook: Option<String>,
}

/// A kernel's execution state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum KernelState {
    /// Computes.
    Busy,
    /// Waits for a request.
    Idle,
    /// Starts, or was started and has not been talked to yet.
    Starting,
    /// Anything else; not a proof of rest.
    Other(String),
}

impl From<String> for KernelState {
    fn from(s: String) -> Self {
        match s.as_str() {
            "busy" => Self::Busy,
            "idle" => Self::Idle,
            "starting" => Self::Starting,
            _ => Self::Other(s),
        }
    }
}

impl From<KernelState> for String {
    fn from(state: KernelState) -> Self {
        match state {
            KernelState::Busy => "busy".to_owned(),
            KernelState::Idle => "idle".to_owned(),
            KernelState::Starting => "starting".to_owned(),
            KernelState::Other(s) => s,
        }
    }
}

/// One open terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Its name within the server, a number as a rule.
    pub name: String,
    /// The last input or output.
    pub last_activity: Option<Timestamp>,
}

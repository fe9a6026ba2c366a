//! The cards of a cluster, through dcgm-exporter's series in a server of Prometheus' kind.
//!
//! Each look reads the raw samples since the last one (never resampled ones, which hide gaps), with some overlap
//! for what came late, and folds them into what is remembered of each device (`memory.rs`). What a device did
//! before this service began is read once, for devices that a session holds (`history.rs`). So a look costs the
//! same however long the limits are, and a sample carries the whole past with it ([`crate::domain::Past`]).
//!
//! Whose a card is, the exporter says by labels (`names.rs`); they come late and go missing, so a session that is
//! not named is Unknown until it is certain that it would be (`look.rs`).

mod answer;
mod batch;
mod client;
mod doctor;
mod error;
mod fault;
mod heart;
mod history;
mod look;
mod memory;
mod names;
mod settings;
mod state;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::Mutex;

pub use answer::{Labels, Series};
pub use batch::Device;
pub use client::{Answer, Client};
pub use doctor::{Advice, Concern};
pub use error::PromError;
pub use fault::Fault;
pub use look::{Cost, DeviceLook, Look, Tenant};
pub use names::{Names, Role, Tag, Workload};
pub use settings::{Login, Method, PrometheusSettings, Proxy};

use self::state::State;

/// Looks closer to each other than this share what was read: no new scrape can have come.
const SAME: Duration = Duration::from_secs(3);

/// One server and what is remembered of its devices.
#[derive(Debug)]
pub struct Prometheus {
    client: Client,
    state: Mutex<State>,
}

impl Prometheus {
    /// Asks nothing yet.
    pub fn new(settings: PrometheusSettings) -> Result<Self, PromError> {
        Ok(Self { client: Client::new(settings)?, state: Mutex::default() })
    }

    /// The server, for other questions.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// What the devices did and who holds them. `tenants` are the running sessions. Any trouble with an answer
    /// makes all of it Unknown; nothing is lost by it, since the next look reads further back.
    pub async fn look(&self, tenants: &[Tenant], now: Timestamp) -> Result<Look, PromError> {
        let mut state = self.state.lock().await;
        state.cost = Cost::default();
        if state.read_at.is_none_or(|at| at.elapsed() >= SAME) {
            state.read_new(&self.client, now).await?;
            state.read_at = Some(Instant::now());
        }
        let trouble = state.read_history(&self.client, tenants, now).await.err();
        Ok(Look::new(&state, trouble.map(|error| error.to_string()), now, self.client.settings()))
    }
}

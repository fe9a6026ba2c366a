//! What processes say of themselves. Anybody can write anything there: it is shown to people, and it may
//! protect a session, but it is never a ground to act on.

use std::collections::BTreeMap;

use super::process_table::{self, ProcessTable};
use crate::domain::ServerId;

/// CPU seconds from which on a process is asked for its server's address. The many that never did
/// anything are not worth a look into their environment.
const WORTH_ASKING: f64 = 1.0;

/// What some of a machine's processes say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The server that a process on a card says it belongs to.
    pub servers: BTreeMap<u32, ServerId>,
    /// The kernel that a process on a card is, or descends from.
    pub kernels: BTreeMap<u32, String>,
    /// The address of the server in whose environment a process runs.
    pub addresses: BTreeMap<u32, String>,
}

impl Claims {
    /// What the processes on the cards of this machine say.
    pub fn of_holders(holders: impl Iterator<Item = u32>, table: &ProcessTable) -> Self {
        let mut claims = Self::default();
        for pid in holders {
            claims.servers.extend(process_table::hint(pid).map(|server| (pid, server)));
            let kernel = table.ancestry(pid).into_iter().find_map(process_table::kernel_id);
            claims.kernels.extend(kernel.map(|kernel| (pid, kernel)));
        }
        claims
    }

    /// The same, and the address of every process of this machine that ever did anything.
    #[must_use]
    pub fn with_addresses(mut self, table: &ProcessTable) -> Self {
        let worked = table.iter().filter(|process| process.cpu_seconds >= WORTH_ASKING);
        let address = |pid| Some((pid, process_table::service_url(pid)?));
        self.addresses = worked.filter_map(|process| address(process.pid)).collect();
        self
    }
}

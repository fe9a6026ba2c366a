//! Kernels that are busy while card and CPU rest: a cell that waits for an answer, a lock, a network.
//!
//! Only what was observed without a break counts: a gap starts the wait anew, and so does CPU work; another
//! state of the kernel ends it. A CPU that is not known proves no rest.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Policy, Session};
use crate::domain::{Kernel, KernelState};

/// What was seen of a kernel that is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Since when it has been seen busy without a break, with a CPU at rest.
    pub since: Timestamp,
    /// When that was last seen.
    pub seen: Timestamp,
    /// When its owner was told. That outlives a gap: the cell is the same.
    pub told: Option<Timestamp>,
}

/// A kernel that has waited for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its id.
    pub kernel: String,
    /// Its notebook, where that is known.
    pub notebook: Option<String>,
    /// Since when kernel, card and CPU show that nothing goes on.
    pub since: Timestamp,
}

/// By kernel.
pub type Waits = BTreeMap<String, Wait>;

/// Folds one observation in.
pub(super) fn observe(waits: &mut Waits, session: &Session, at: Timestamp, policy: &Policy) {
    let Ok(jupyter) = &session.jupyter else { return };
    waits.retain(|id, _| jupyter.kernels.iter().any(|kernel| kernel.id == *id && is_busy(kernel)));
    let Some(cores) = session.cpu else { return };
    let watched = watched(session);
    for kernel in jupyter.kernels.iter().filter(|kernel| is_busy(kernel) && !kernel.id.is_empty()) {
        let wait = waits.entry(kernel.id.clone()).or_insert(Wait { since: at, seen: at, told: None });
        let unseen = at.duration_since(wait.seen) - watched;
        let set_back = wait.seen.duration_since(at) > policy.max_gap;
        if cores >= policy.thresholds.cpu_cores || unseen > policy.max_gap || set_back {
            wait.since = at;
        }
        (wait.since, wait.seen) = (wait.since.min(at), at);
    }
}

/// For how long before an observation the session was watched, as its cards tell.
fn watched(session: &Session) -> SignedDuration {
    let covered = session.gpus.iter().flatten().map(|gpu| gpu.covered).min().unwrap_or_default();
    SignedDuration::try_from(covered).unwrap_or_default()
}

/// The kernels that have waited since before `limit`, the longest first.
pub(super) fn waiting(
    waits: &Waits,
    session: &Session,
    card: Timestamp,
    limit: SignedDuration,
    max_gap: SignedDuration,
    now: Timestamp,
) -> Vec<Waiting> {
    let kernels = session.jupyter.iter().flat_map(|jupyter| &jupyter.kernels);
    let mut found: Vec<Waiting> = kernels
        .filter(|kernel| is_busy(kernel))
        .filter_map(|kernel| {
            let since = fresh(waits, kernel, max_gap, now)?.since.max(card);
            let waited = Waiting { kernel: kernel.id.clone(), notebook: kernel.notebook.clone(), since };
            (now.duration_since(since) >= limit).then_some(waited)
        })
        .collect();
    found.sort_by(|a, b| (a.since, &a.kernel).cmp(&(b.since, &b.kernel)));
    found
}

/// Since when the whole session does nothing but wait: each busy kernel of it, and nobody has used another
/// kernel or a terminal. `None` where that cannot be said.
pub(super) fn all_wait_since(
    waits: &Waits,
    session: &Session,
    max_gap: SignedDuration,
    now: Timestamp,
) -> Option<Timestamp> {
    let jupyter = session.jupyter.as_ref().ok()?;
    let kernels = jupyter.kernels.iter().map(|kernel| {
        if is_busy(kernel) {
            // Between two looks one cell may have ended and another begun: the kernel's own stamp tells. So does a
            // cell that prints, which may be worth its wait; its owner is told of it, and it is not stopped.
            let since = |wait: &Wait| kernel.last_activity.map_or(wait.since, |at| at.max(wait.since));
            fresh(waits, kernel, max_gap, now).map(since)
        } else {
            kernel.last_activity
        }
    });
    let terminals = jupyter.terminals.iter().map(|terminal| terminal.last_activity);
    let all: Option<Vec<Timestamp>> = kernels.chain(terminals).collect();
    jupyter.kernels.iter().any(is_busy).then_some(all?.into_iter().max()?.min(now))
}

fn fresh<'a>(waits: &'a Waits, kernel: &Kernel, max_gap: SignedDuration, now: Timestamp) -> Option<&'a Wait> {
    waits.get(&kernel.id).filter(|wait| now.duration_since(wait.seen) <= max_gap)
}

pub(super) fn is_busy(kernel: &Kernel) -> bool {
    kernel.state == KernelState::Busy
}

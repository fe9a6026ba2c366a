//! What is done to single kernels: shut down those that hold an idle card, or interrupt a running one before a
//! stop, so that it can save what it has.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::SignedDuration;

use super::Clock;
use super::stop::Told;
use crate::domain::{KernelState, Server};
use crate::hub::KernelStopper;
use crate::message::reasons;
use crate::observer::{Observer, Resident};
use crate::policy::KernelName;

/// How long kernels may take to be gone from the card.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Interrupts running kernels and waits until they rest, for `save_wait` at most. Somebody who runs something in
/// one of them meanwhile still needs it.
pub async fn interrupt(
    server: &Server,
    kernels: &[KernelName],
    save_wait: SignedDuration,
    stopper: &KernelStopper,
    observer: &Observer,
    clock: Clock,
) -> Result<(), String> {
    for kernel in kernels {
        let sent = observer
            .at_its_address(server, clock(), async |base| {
                stopper.interrupt(&server.id, base, &kernel.id).await
            })
            .await
            .map_err(str::to_owned)
            .and_then(|sent| sent.map_err(|error| error.to_string()));
        sent.map_err(|error| format!("{} could not be interrupted: {error}", reasons::kernel_name(kernel)))?;
    }
    let end = tokio::time::Instant::now() + save_wait.unsigned_abs();
    let mut rested: BTreeSet<&str> = BTreeSet::new();
    let mut look = tokio::time::interval(LOOK_EVERY);
    while rested.len() < kernels.len() && tokio::time::Instant::now() < end {
        look.tick().await;
        let Ok(seen) = observer.kernels(server, clock()).await else { continue };
        for kernel in kernels {
            let now = seen.kernels.iter().find(|seen| seen.id == kernel.id);
            let busy = now.is_some_and(|kernel| kernel.state == KernelState::Busy);
            if busy && rested.contains(kernel.id.as_str()) {
                return Err(format!("{} was used again after its interrupt", reasons::kernel_name(kernel)));
            }
            if !busy {
                rested.insert(&kernel.id);
            }
        }
    }
    Ok(())
}

/// Shuts kernels down, and looks whether they are gone from the card. `Err` says what is left.
pub async fn shut_down(
    told: &Told,
    kernels: &[KernelName],
    stopper: &KernelStopper,
    observer: &Observer,
    clock: Clock,
) -> Result<(), String> {
    let server = &told.server;
    let ids: Vec<String> = kernels.iter().map(|kernel| kernel.id.clone()).collect();
    let before = observer.on_cards(&server.id, &ids, clock()).await;
    let mut refused = Vec::new();
    for kernel in kernels {
        let sent = observer
            .at_its_address(server, clock(), async |base| {
                stopper.shut_down(&server.id, base, &kernel.id).await
            })
            .await
            .map_err(str::to_owned)
            .and_then(|sent| sent.map_err(|error| error.to_string()));
        if let Err(error) = sent {
            refused.push(format!("{}: {error}", reasons::kernel_name(kernel)));
        }
    }
    match wait_until_gone(server, &ids, &before, observer, clock).await {
        Ok(()) => Ok(()),
        Err(left) if refused.is_empty() => Err(left),
        Err(left) => Err(format!("{}; {left}", refused.join("; "))),
    }
}

/// Their processes must be gone, and nothing of them may be on a card.
async fn wait_until_gone(
    server: &Server,
    ids: &[String],
    before: &[Resident],
    observer: &Observer,
    clock: Clock,
) -> Result<(), String> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut look = tokio::time::interval(LOOK_EVERY);
    loop {
        look.tick().await;
        let alive = observer.still_running(before, clock()).await;
        let left = if alive.is_empty() {
            match observer.look_again(&server.id, clock()).await {
                Ok(None) => return Ok(()),
                Ok(Some(session)) => {
                    let of_them = |kernel: Option<&String>| kernel.is_some_and(|kernel| ids.contains(kernel));
                    let holds = session.holds.iter().any(|hold| of_them(hold.kernel.as_ref()));
                    if session.gpus.is_ok() && !holds {
                        return Ok(());
                    }
                    "the card still lists them".to_owned()
                }
                Err(error) => format!("it could not be looked at again: {error}"),
            }
        } else {
            let pids: Vec<String> =
                alive.iter().map(|left| format!("{} ({})", left.pid, left.name)).collect();
            format!("these processes live on: {}", pids.join(", "))
        };
        if tokio::time::Instant::now() >= deadline {
            return Err(left);
        }
    }
}

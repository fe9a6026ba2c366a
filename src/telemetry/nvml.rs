//! The cards of this machine, through NVML.
//!
//! What is credited as watched, and why. Hopper and newer have performance counters (GPM): two samples
//! tell all that happened between them, as doubles (`nvml/gpm.rs`). Everywhere the driver samples each
//! card every 139 ms into a ring of ten seconds; polled more often than that, the ring speaks for all
//! the time between two polls (`nvml/ring.rs`). Where there is neither, the utilization rates speak for
//! a sixth of a second per poll, which is far from enough to call a card idle. Per-process utilization
//! and the other engines can prove work but never rest (`nvml/signals.rs`).
//!
//! A card that MIG shares out is read instance by instance, which takes GPM (`nvml/mig.rs`). Energy
//! proves neither work nor rest, and is only a veto (`power.rs` one floor up).

mod gpm;
mod mig;
mod power;
mod processes;
mod read;
mod ring;
mod signals;
mod state;
mod symbols;
mod words;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use self::read::UNKNOWN;
use self::state::Shared;
use super::window::Mark;
use super::{DeviceReading, TelemetryError};

/// How to reach NVML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvmlSettings {
    /// The library's file; by default `libnvidia-ml.so.1` as the loader finds it.
    pub library: Option<PathBuf>,
    /// Time between polls; held between 50 ms and 5 s, half of what the driver's ring holds.
    pub poll: Duration,
}

impl Default for NvmlSettings {
    fn default() -> Self {
        Self { library: None, poll: Duration::from_secs(2) }
    }
}

/// What one reader is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Handout {
    /// The cards.
    pub devices: Vec<DeviceReading>,
    /// Where the next reading goes on.
    pub mark: Mark,
    /// Whether it goes on where the reader's last one ended; else part of what was between is lost.
    pub continues: bool,
}

/// Watches the cards in a thread of its own until it is dropped.
pub struct NvmlSampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    watchdog: Duration,
}

impl NvmlSampler {
    const POLL: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

    /// A card that is never watched again would be a card that nobody gets back.
    const RELEASE_MAX: Duration = Duration::from_secs(24 * 3600);

    /// How long the thread may take to end before it is left behind.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// Starts to watch. Failures show in [`drain`](Self::drain) and are retried.
    pub fn start(mut settings: NvmlSettings) -> Self {
        settings.poll = settings.poll.clamp(Self::POLL.0, Self::POLL.1);
        // Six polls in a row without an answer are no slowness any more.
        let watchdog = 6 * settings.poll.max(Duration::from_millis(500));
        let shared = Arc::new(Shared::new(Instant::now()));
        let theirs = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("nvml".to_owned()).spawn(move || worker::run(&theirs, &settings));
        if let Err(error) = &thread {
            tracing::error!(%error, "the NVML thread could not be started");
            shared.update(|state| state.ended = true);
        }
        Self { shared, thread: thread.ok(), watchdog }
    }

    /// What each card did since the previous drain. An error forgets nothing: the next successful
    /// drain covers the time from the last successful one.
    pub fn drain(&self) -> Result<Vec<DeviceReading>, TelemetryError> {
        let mut state = self.shared.lock();
        state.health(Instant::now(), self.watchdog)?;
        let told = state.since(Some(state.drained));
        state.drained = told.mark;
        Ok(told.devices)
    }

    /// The same without beginning anew, for a last look before a stop.
    pub fn peek(&self) -> Result<Vec<DeviceReading>, TelemetryError> {
        let state = self.shared.lock();
        state.health(Instant::now(), self.watchdog)?;
        Ok(state.since(Some(state.drained)).devices)
    }

    /// The same for any number of readers, each of whom keeps the mark it was given last. Without a mark
    /// it is told of the newest poll alone.
    pub fn since(&self, mark: Option<Mark>) -> Result<Handout, TelemetryError> {
        let state = self.shared.lock();
        state.health(Instant::now(), self.watchdog)?;
        Ok(state.since(mark))
    }

    /// What each card did in the last `time`, for a reader who keeps nothing.
    pub fn of_the_last(&self, time: Duration) -> Result<Vec<DeviceReading>, TelemetryError> {
        let now = Instant::now();
        let state = self.shared.lock();
        state.health(now, self.watchdog)?;
        let mark = now.checked_sub(time).map_or(0, |then| state.made_by(then));
        Ok(state.since(Some(mark)).devices)
    }

    /// What the driver's library lacks, each with what is off for lack of it.
    pub fn lacking(&self) -> Vec<&'static str> {
        self.shared.lock().lacking.clone()
    }

    /// For how much longer NVML is let go, if it is.
    pub fn released_for(&self) -> Option<Duration> {
        self.shared.lock().released_for()
    }

    /// Lets go of NVML for some time, so that the driver can be reloaded, a card reset or MIG set up.
    /// Until then, a day at most, there are no readings: a gap and never rest. Zero takes it up again.
    pub fn release(&self, time: Duration) {
        let until = Instant::now() + time.min(Self::RELEASE_MAX);
        self.shared.update(|state| state.release(until));
    }

    /// Blocks until a poll is complete that was begun at `since` or later, and asks for one at once.
    /// It also lists the processes anew.
    /// Returns early with the reason where NVML cannot be used.
    pub fn wait_for_poll(&self, since: Instant, timeout: Duration) -> Result<(), TelemetryError> {
        self.shared.update(|state| state.want(since));
        let state = self.shared.wait(timeout, |state| state.attempted_since(since) || state.is_down());
        state.health(Instant::now(), self.watchdog)?;
        if state.attempted_since(since) {
            Ok(())
        } else {
            Err(TelemetryError::NotAnswering { seconds: timeout.as_secs() })
        }
    }
}

impl std::fmt::Debug for NvmlSampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NvmlSampler").field("watchdog", &self.watchdog).finish_non_exhaustive()
    }
}

impl Drop for NvmlSampler {
    /// Ends the thread; one that hangs in the driver cannot be ended and is left behind.
    fn drop(&mut self) {
        self.shared.update(|state| state.stop = true);
        let ended = self.shared.wait(Self::PATIENCE, |state| state.ended).ended;
        if let Some(thread) = self.thread.take().filter(|_| ended)
            && thread.join().is_err()
        {
            tracing::error!("the NVML thread had panicked");
        }
    }
}

#[cfg(test)]
mod tests;

//! The one thread that owns NVML: opens it, polls, and opens it anew when it is lost.
//!
//! A thread of its own, since a call to a wedged card never returns. Nobody waits for this thread
//! without a limit, and it holds no lock while it calls.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use super::NvmlSettings;
use super::gpm::Samples;
use super::read::{self, Memory};
use super::state::{Shared, State};
use super::symbols;
use super::words::words;

/// The longest wait between attempts to open NVML.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// A card that was lost comes back only to an NVML opened anew. Opening attaches every card, which
/// takes seconds, so it is tried ever more rarely.
const REOPEN_FIRST: Duration = Duration::from_secs(30);
const REOPEN_MAX: Duration = Duration::from_secs(600);

/// The thread's body. Ends when asked to.
pub fn run(shared: &Arc<Shared>, settings: &NvmlSettings) {
    let _ended = Ended(shared);
    let mut memory = Memory::default();
    let mut retry = settings.poll;
    let mut reopen = Reopen::default();
    while !shared.lock().stop {
        let begun = Instant::now();
        if released(shared, begun) {
            continue;
        }
        match open(settings) {
            Ok(nvml) => {
                memory.reopened();
                shared.update(|state| note(state, symbols::lacking(&nvml)));
                if poll_until_lost(&nvml, shared, settings, &mut memory, &mut reopen) {
                    retry = settings.poll;
                }
            }
            Err(reason) => {
                tracing::warn!(%reason, "NVML cannot be used; trying again in {retry:?}");
                shared.update(|state| state.failed(begun, reason));
            }
        }
        if shared.lock().released_for().is_none() {
            pause(shared, retry, false);
        }
        retry = (retry * 2).min(RETRY_MAX);
    }
}

/// Leaves NVML alone as long as somebody wants that. True if so.
fn released(shared: &Shared, begun: Instant) -> bool {
    let Some(rest) = shared.lock().released_for() else { return false };
    let reason = format!("NVML was let go on request, for another {} s", rest.as_secs());
    shared.update(|state| state.failed(begun, reason));
    // Not for long at a time, so that the reason stays true and the request may change.
    pause(shared, rest.min(Duration::from_secs(1)), false);
    true
}

/// Says what is off for lack of a call, once for each library.
fn note(state: &mut State, lacking: Vec<&'static str>) {
    for words in lacking.iter().filter(|words| !state.lacking.contains(words)) {
        tracing::warn!("the driver's library is an old one: {words}");
    }
    state.lacking = lacking;
}

fn open(settings: &NvmlSettings) -> Result<Nvml, String> {
    let mut builder = Nvml::builder();
    if let Some(path) = &settings.library {
        builder.lib_path(path.as_os_str());
    }
    let nvml = builder.init().map_err(|error| words(&error))?;
    if nvml.lib().nvmlShutdown.is_err() {
        // The wrapper's Drop would panic.
        std::mem::forget(nvml);
        return Err("what was loaded is not NVIDIA's library: nvmlShutdown is missing".to_owned());
    }
    Ok(nvml)
}

/// Polls until NVML has to be opened anew or let go, or the thread shall end. True if any poll worked.
fn poll_until_lost(
    nvml: &Nvml,
    shared: &Shared,
    settings: &NvmlSettings,
    memory: &mut Memory,
    reopen: &mut Reopen,
) -> bool {
    let mut samples = Samples::new(nvml);
    let mut worked = false;
    loop {
        let begun = Instant::now();
        if shared.lock().hurried() {
            memory.forget_lists();
        }
        let first = !worked;
        let cards = match read::cards(nvml, memory, &mut samples) {
            Ok(cards) => cards,
            Err(error) => {
                lost(shared, begun, &error);
                return worked;
            }
        };
        worked = true;
        if first && samples.any() {
            continue; // performance counters tell nothing before their second sample
        }
        let any_lost = cards.iter().any(|card| matches!(&card.parts, Err(unread) if unread.lost));
        shared.update(|state| state.polled(begun, cards, memory));
        let stop = pause(shared, settings.poll, true);
        if stop || shared.lock().released_for().is_some() || reopen.due(any_lost, Instant::now()) {
            return worked;
        }
    }
}

fn lost(shared: &Shared, begun: Instant, error: &NvmlError) {
    let reason = words(error);
    tracing::warn!(%reason, "NVML was lost; opening it anew");
    shared.update(|state| state.failed(begun, reason));
}

/// Waits; shorter where somebody waits for a poll and that is `hurried`. True if the thread shall end.
fn pause(shared: &Shared, time: Duration, hurried: bool) -> bool {
    let called =
        |state: &State| state.stop || (hurried && (state.hurried() || state.released_for().is_some()));
    shared.wait(time, called).stop
}

/// Says that the thread ended, for whatever reason.
struct Ended<'a>(&'a Shared);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.update(|state| state.ended = true);
    }
}

/// When to open NVML anew for the sake of a lost card.
struct Reopen {
    wait: Duration,
    at: Option<Instant>,
}

impl Default for Reopen {
    fn default() -> Self {
        Self { wait: REOPEN_FIRST, at: None }
    }
}

impl Reopen {
    fn due(&mut self, any_lost: bool, now: Instant) -> bool {
        if !any_lost {
            *self = Self::default();
            return false;
        }
        let due = now >= *self.at.get_or_insert(now + self.wait);
        if due {
            *self = Self { wait: (self.wait * 2).min(REOPEN_MAX), at: None };
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvml_is_opened_anew_ever_more_rarely_for_a_card_that_stays_lost() {
        let start = Instant::now();
        let mut reopen = Reopen::default();
        let opened: Vec<u64> =
            (0..1000).filter(|&second| reopen.due(true, start + Duration::from_secs(second))).collect();
        assert_eq!(opened, [30, 91, 212, 453, 934]);
        assert!(!reopen.due(false, start));
        assert_eq!(reopen.wait, REOPEN_FIRST);
    }
}

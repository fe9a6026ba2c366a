//! What the NVML thread and those who ask it share.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Handout;
use super::processes::Holders;
use super::read::{Answers, Card, Memory, UNKNOWN};
use crate::domain::{GpuId, GpuSample};
use crate::telemetry::power::vetoed;
use crate::telemetry::window::{Mark, Poll, Window};
use crate::telemetry::{DeviceReading, Place, TelemetryError};

/// The meeting point. The lock is never held during an NVML call.
pub struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Everything under the lock.
pub struct State {
    cards: BTreeMap<GpuId, Watched>,
    /// How many polls there were.
    polls: Mark,
    /// Up to which poll [`NvmlSampler::drain`](super::NvmlSampler::drain) has told.
    pub drained: Mark,
    /// Why NVML cannot be used at the moment; `None` from the first poll on.
    down: Option<TelemetryError>,
    /// When an attempt (to poll, or to open NVML) last came to an end, and when it had begun.
    pub answered: Instant,
    begun: Option<Instant>,
    /// Somebody waits for a poll that begins at this instant or later.
    wanted: Option<Instant>,
    /// Until when NVML shall be left alone.
    released: Option<Instant>,
    /// What the library that is open lacks.
    pub lacking: Vec<&'static str>,
    /// The thread shall end.
    pub stop: bool,
    /// The thread has ended.
    pub ended: bool,
}

/// One device over time.
struct Watched {
    place: Place,
    model: String,
    window: Window,
    memory_used: Option<u64>,
    holders: Holders,
}

impl Shared {
    /// Before the first attempt.
    pub fn new(now: Instant) -> Self {
        Self {
            state: Mutex::new(State {
                cards: BTreeMap::new(),
                polls: 0,
                drained: 0,
                down: Some(TelemetryError::Starting),
                answered: now,
                begun: None,
                wanted: None,
                released: None,
                lacking: Vec::new(),
                stop: false,
                ended: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// The state; a panic elsewhere does not make it wrong.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes whoever waits for that.
    pub fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until `done` or the time is up.
    pub fn wait<'a>(&'a self, timeout: Duration, done: impl Fn(&State) -> bool) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout_while(self.lock(), timeout, |state| !done(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    /// An attempt that was begun at `begun` found NVML unusable.
    pub fn failed(&mut self, begun: Instant, reason: String) {
        self.down = Some(TelemetryError::Unavailable { reason });
        self.attempted(begun);
    }

    /// A poll that was begun at `begun` read these cards.
    pub fn polled(&mut self, begun: Instant, cards: Vec<Card>, memory: &mut Memory) {
        self.down = None;
        self.polls += 1;
        self.attempted(begun);
        // A stand-in disappears with the card's true name; a card does not just disappear.
        self.cards.retain(|_, watched| {
            !watched.place.card.0.starts_with(UNKNOWN)
                || cards.iter().any(|card| card.id == watched.place.card)
        });
        for watched in self.cards.values_mut() {
            if !cards.iter().any(|card| card.id == watched.place.card) {
                watched.lost(self.polls, begun, "NVML does not list this card any more");
            }
        }
        for card in cards {
            self.take(card, memory);
        }
    }

    fn take(&mut self, card: Card, memory: &mut Memory) {
        let Card { id: whole, index, at, parts } = card;
        let place = |instance| Place { card: whole.clone(), index, instance };
        let parts = match parts {
            Ok(parts) => parts,
            Err(unread) => {
                if !self.cards.values().any(|watched| watched.place.card == whole) {
                    self.cards.insert(whole.clone(), Watched::new(place(None), at));
                }
                let lost = self.cards.values_mut().filter(|watched| watched.place.card == whole);
                lost.for_each(|watched| watched.lost(self.polls, at, &unread.reason));
                return;
            }
        };
        // The card tells of itself what it is divided into: what it does not name exists no more.
        self.cards
            .retain(|id, watched| watched.place.card != whole || parts.iter().any(|part| part.id == *id));
        for part in parts {
            let new = || Watched::new(place(part.instance), at);
            let watched = self.cards.entry(part.id.clone()).or_insert_with(new);
            watched.place = place(part.instance);
            match part.answers {
                Err(reason) => watched.lost(self.polls, at, &reason),
                Ok(answers) => watched.take(&part.id, self.polls, at, answers, memory),
            }
        }
    }

    fn attempted(&mut self, begun: Instant) {
        self.begun = Some(begun);
        self.answered = Instant::now();
        self.wanted = self.wanted.filter(|&since| since > begun);
    }

    /// Asks for a poll that begins at `since` or later.
    pub fn want(&mut self, since: Instant) {
        self.wanted = self.wanted.max(Some(since));
    }

    /// Asks to leave NVML alone until then.
    pub fn release(&mut self, until: Instant) {
        self.released = Some(until);
    }

    /// How much longer NVML shall be left alone, if at all.
    pub fn released_for(&self) -> Option<Duration> {
        let rest = self.released?.saturating_duration_since(Instant::now());
        (!rest.is_zero()).then_some(rest)
    }

    /// Shall the next poll come at once?
    pub fn hurried(&self) -> bool {
        self.wanted.is_some_and(|since| since <= Instant::now())
    }

    /// Was NVML found unusable?
    pub fn is_down(&self) -> bool {
        matches!(self.down, Some(TelemetryError::Unavailable { .. }))
    }

    /// Has an attempt been completed that began at `since` or later?
    pub fn attempted_since(&self, since: Instant) -> bool {
        self.ended || self.begun.is_some_and(|begun| begun >= since)
    }

    /// Whether the readings can be relied on at all.
    pub fn health(&self, now: Instant, watchdog: Duration) -> Result<(), TelemetryError> {
        if self.ended {
            return Err(TelemetryError::Ended);
        }
        let silent = now.saturating_duration_since(self.answered);
        match &self.down {
            Some(error @ TelemetryError::Unavailable { .. }) => Err(error.clone()),
            _ if silent > watchdog => Err(TelemetryError::NotAnswering { seconds: silent.as_secs() }),
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// What the cards did after the poll number `mark`; without one in the newest poll alone. A mark that
    /// was never given, or is of too long ago, is told all that is kept.
    pub fn since(&self, mark: Option<Mark>) -> Handout {
        let forgotten = self.cards.values().map(|watched| watched.window.forgotten()).max();
        let known = |mark: &Mark| (forgotten.unwrap_or(0)..=self.polls).contains(mark);
        let continues = mark.is_none_or(|mark| known(&mark));
        let mark = mark.map_or(self.polls.saturating_sub(1), |mark| if known(&mark) { mark } else { 0 });
        let devices = self.cards.iter().map(|(id, watched)| watched.reading(id, mark)).collect();
        Handout { devices, mark: self.polls, continues }
    }

    /// The newest poll that was made by `then`.
    pub fn made_by(&self, then: Instant) -> Mark {
        self.cards.values().map(|watched| watched.window.made_by(then)).max().unwrap_or(self.polls)
    }
}

impl Watched {
    fn new(place: Place, now: Instant) -> Self {
        Self {
            place,
            model: String::new(),
            window: Window::new(now),
            memory_used: None,
            holders: Err("it was not read yet".to_owned()),
        }
    }

    fn lost(&mut self, mark: Mark, at: Instant, reason: &str) {
        self.window.add(mark, at, Poll::unreadable(reason));
        self.memory_used = None;
        self.holders = Err(reason.to_owned());
    }

    fn take(&mut self, id: &GpuId, mark: Mark, at: Instant, answers: Answers, memory: &mut Memory) {
        let poll = match answers.signals {
            Err(reason) => Poll::unreadable(reason),
            Ok(signals) => {
                let cursors = memory.cursors.entry(id.clone()).or_default();
                signals.judge(cursors, self.window.unwatched(at))
            }
        };
        self.window.add(mark, at, Poll { draw: answers.draw, ..poll });
        self.model = answers.model.unwrap_or_else(|| std::mem::take(&mut self.model));
        self.memory_used = answers.held.memory_used;
        self.holders = answers.held.holders;
    }

    fn reading(&self, id: &GpuId, mark: Mark) -> DeviceReading {
        let seen = vetoed(self.window.since(mark));
        let count = self.holders.as_ref().ok().map(Vec::len);
        DeviceReading {
            sample: GpuSample {
                id: id.clone(),
                model: self.model.clone(),
                sm: seen.sm,
                dram: seen.dram,
                engines: seen.engines,
                memory_used: self.memory_used,
                processes: count.and_then(|n| u32::try_from(n).ok()),
                covered: seen.covered,
                largest_gap: seen.largest_gap,
                unreadable: seen.unreadable,
                power: seen.power,
                past: None,
            },
            place: self.place.clone(),
            holders: self.holders.clone(),
        }
    }
}

//! What each session's cards did in the last day, thinned so that peaks survive.
//!
//! Kept by session and not by card: nobody gets to see what a card did for somebody else before.

mod saved;

use std::collections::{BTreeMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use crate::domain::{GpuId, GpuSample, Ratio, ServerId};
use crate::policy::Snapshot;

/// The most slots of one card, which bounds the memory: beyond it two slots become one.
const SLOTS: usize = 288;
/// The finest slot, in seconds.
const FINEST: i64 = 15;
/// How far back it goes.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// The past of all sessions.
#[derive(Debug, Default)]
pub struct History(BTreeMap<ServerId, Past>);

/// One run of a server.
#[derive(Debug)]
struct Past {
    started: Option<Timestamp>,
    cards: BTreeMap<GpuId, Ring>,
}

/// The past of one card in one session: slots of equal length, the last of them in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    width: i64,
    first: i64,
    slots: VecDeque<Slot>,
}

/// What is known of one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    sm: Option<Thousandths>,
    dram: Option<Thousandths>,
    /// Whether some of it could not be read.
    holes: bool,
}

/// A share in thousandths, rounded up: the least activity is not nothing.
type Thousandths = u16;

/// A slot with its time, for the chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stretch {
    /// When it begins.
    pub from: Timestamp,
    /// When it ends.
    pub to: Timestamp,
    /// The peak of the SMs, where any reading of them is known.
    pub sm: Option<f64>,
    /// The peak of memory bandwidth.
    pub dram: Option<f64>,
    /// Whether some of it could not be read.
    pub holes: bool,
}

impl History {
    /// Takes a snapshot in. Where the Hub could not be asked nothing is known, and a hole is left.
    pub fn saw(&mut self, snapshot: &Snapshot) {
        let Ok(sessions) = &snapshot.sessions else {
            return;
        };
        for session in sessions {
            let samples = session.gpus.as_deref().unwrap_or_default();
            if samples.is_empty() {
                continue;
            }
            let past = self
                .0
                .entry(session.server.id.clone())
                .or_insert_with(|| Past { started: session.server.started, cards: BTreeMap::new() });
            if past.started != session.server.started {
                *past = Past { started: session.server.started, cards: BTreeMap::new() };
            }
            for sample in samples {
                let ring = past.cards.entry(sample.id.clone());
                ring.or_insert_with(|| Ring::new(snapshot.at)).add(sample, snapshot.at);
            }
        }
        self.forget(snapshot);
    }

    /// The past of one card of a session.
    pub fn of(&self, server: &ServerId, card: &GpuId) -> Option<&Ring> {
        self.0.get(server)?.cards.get(card)
    }

    /// A session that is gone, and a card that was given back a day ago, need no room.
    fn forget(&mut self, snapshot: &Snapshot) {
        let recent = |ring: &Ring| ring.end() > snapshot.at.as_second() - DAY.as_secs();
        for past in self.0.values_mut() {
            past.cards.retain(|_, ring| recent(ring));
        }
        if let (true, Ok(sessions)) = (snapshot.complete, &snapshot.sessions) {
            let mut ids: Vec<&ServerId> = sessions.iter().map(|session| &session.server.id).collect();
            ids.sort_unstable();
            self.0.retain(|id, past| !past.cards.is_empty() && ids.binary_search(&id).is_ok());
        }
    }
}

impl Ring {
    fn new(at: Timestamp) -> Self {
        Self { width: FINEST, first: at.as_second().div_euclid(FINEST), slots: VecDeque::new() }
    }

    fn add(&mut self, sample: &GpuSample, at: Timestamp) {
        let number = at.as_second().div_euclid(self.width);
        if number < self.first {
            return; // a clock was set back
        }
        let index = usize::try_from(number - self.first).unwrap_or(usize::MAX);
        if index >= self.slots.len().saturating_add(SLOTS * 8) {
            // Nothing was seen for longer than is shown.
            *self = Self { width: self.width, first: number, slots: VecDeque::new() };
            return self.add(sample, at);
        }
        while self.slots.len() <= index {
            self.slots.push_back(Slot::default());
        }
        let slot = &mut self.slots[index];
        slot.sm = slot.sm.max(sample.sm.map(thousandths));
        slot.dram = slot.dram.max(sample.dram.map(thousandths));
        slot.holes |= sample.sm.is_none() || sample.dram.is_none();
        self.shorten(at);
    }

    fn shorten(&mut self, at: Timestamp) {
        let oldest = (at.as_second() - DAY.as_secs()).div_euclid(self.width);
        while self.first < oldest && self.slots.pop_front().is_some() {
            self.first += 1;
        }
        if self.slots.len() > SLOTS {
            self.halve();
        }
        self.slots.shrink_to(SLOTS + 1);
    }

    /// Two slots become one: the higher peak of both, and the holes of either.
    fn halve(&mut self) {
        let first = self.first.div_euclid(2);
        let mut merged: VecDeque<Slot> = VecDeque::with_capacity(self.slots.len() / 2 + 1);
        for (number, slot) in (self.first..).zip(&self.slots) {
            let index = usize::try_from(number.div_euclid(2) - first).unwrap_or_default();
            match merged.get_mut(index) {
                Some(into) => into.merge(slot),
                None => merged.push_back(*slot),
            }
        }
        *self = Self { width: self.width * 2, first, slots: merged };
    }

    fn end(&self) -> i64 {
        (self.first + i64::try_from(self.slots.len()).unwrap_or_default()) * self.width
    }

    /// The slots from `from` on, each with its time.
    pub fn since(&self, from: Timestamp) -> Vec<Stretch> {
        let at = |number: i64| Timestamp::from_second(number * self.width).unwrap_or(from);
        let numbered = (self.first..).zip(&self.slots);
        let stretch = |(number, slot): (i64, &Slot)| Stretch {
            from: at(number),
            to: at(number + 1),
            sm: slot.sm.map(|peak| f64::from(peak) / 1000.0),
            dram: slot.dram.map(|peak| f64::from(peak) / 1000.0),
            holes: slot.holes || slot.sm.is_none() && slot.dram.is_none(),
        };
        numbered.map(stretch).filter(|stretch| stretch.to > from).collect()
    }
}

impl Slot {
    fn merge(&mut self, other: &Self) {
        let empty = |slot: &Self| *slot == Self::default();
        let holes = self.holes || other.holes || empty(self) != empty(other);
        *self = Self { sm: self.sm.max(other.sm), dram: self.dram.max(other.dram), holes };
    }
}

fn thousandths(ratio: Ratio) -> Thousandths {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share between 0 and 1.05 in thousandths"
    )]
    let rounded_up = (ratio.get() * 1000.0).ceil() as Thousandths;
    rounded_up
}

#[cfg(test)]
mod tests;

//! What is remembered of one device: since when it has certainly rested, and how much of that time was watched.
//!
//! A reading at rest speaks for the exporter's collect interval before it, never for more: a scrape that failed, a
//! reading that is missing, blank or stalled leaves a hole. A hole longer than `max_gap` ends all certainty about
//! what was before it. Work is believed whatever else is wrong.

use std::collections::BTreeMap;

use super::batch::{Pulse, Readings, Slot};
use super::fault::Fault;
use super::heart::Heart;
use super::names::{Role, Workload};

/// By what a device is judged; times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// From which share on its SMs work.
    pub sm: f64,
    /// From which share on its memory works.
    pub dram: f64,
    /// How far back one reading speaks.
    pub reach: i64,
    /// The longest hole that leaves what was before it certain.
    pub max_gap: i64,
    /// Whether utilization alone may do.
    pub weak: bool,
}

impl Rules {
    /// How long a device may be without a new reading, or its pulse without a beat, before it is Unknown.
    pub fn patience(&self) -> i64 {
        3 * self.reach
    }

    /// How long a metric that was exported is missed.
    fn missed_for(&self) -> i64 {
        20 * self.reach
    }
}

/// The highest shares of some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Peaks {
    /// Engines and SMs.
    pub sm: Option<f64>,
    /// Memory.
    pub dram: Option<f64>,
    /// Tensor cores, where they are told.
    pub tensor: Option<f64>,
    /// Encoder, where it is told.
    pub encode: Option<f64>,
    /// Decoder, where it is told.
    pub decode: Option<f64>,
}

impl Peaks {
    fn raise(&mut self, other: Self) {
        let higher = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (one, other) => one.or(other),
        };
        self.sm = higher(self.sm, other.sm);
        self.dram = higher(self.dram, other.dram);
        self.tensor = higher(self.tensor, other.tensor);
        self.encode = higher(self.encode, other.encode);
        self.decode = higher(self.decode, other.decode);
    }
}

/// What one slot proves.
#[derive(Clone, Debug, PartialEq)]
enum Proof {
    Work,
    Rest,
    Nothing(Fault),
}

/// What is remembered of a device; times in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Whether it is a MIG instance.
    on_instance: bool,
    /// Nothing is known of the time before.
    pub begun: i64,
    /// It has certainly rested since then.
    pub since: i64,
    /// Whether a hole ends there.
    pub after_gap: bool,
    /// The last instant at which it worked.
    pub last_active: Option<i64>,
    /// The last instant that was watched.
    pub covered_until: i64,
    /// How much of the time since `since` was not.
    pub unwatched: i64,
    /// The shares of the newest readings.
    pub peaks: Peaks,
    /// How much of the newest readings' time was watched, and the longest hole in it.
    pub watched: (i64, i64),
    /// Why the newest slot proves nothing, if so.
    pub fault: Option<Fault>,
    /// Who held it when that was last said, and when that was.
    pub holders: BTreeMap<Workload, i64>,
    /// The product's name.
    pub model: String,
    /// The machine it is in.
    pub host: Option<String>,
    /// Memory held, in MiB.
    pub memory: Option<f64>,
    /// When each metric was last exported.
    exported: [Option<i64>; Role::COUNT],
    heart: Heart,
    /// The newest slot.
    pub newest: i64,
    /// The usual time between two scrapes.
    pub scrape: Option<i64>,
}

impl Memory {
    /// Nothing is known before `at`.
    pub fn new(at: i64, on_instance: bool) -> Self {
        Self {
            on_instance,
            begun: at,
            since: at,
            after_gap: false,
            last_active: None,
            covered_until: at,
            unwatched: 0,
            peaks: Peaks::default(),
            watched: (0, 0),
            fault: Some(Fault::NotExported(Role::Engine)),
            holders: BTreeMap::new(),
            model: String::new(),
            host: None,
            memory: None,
            exported: [None; Role::COUNT],
            heart: Heart::default(),
            newest: at - 1,
            scrape: None,
        }
    }

    /// Takes in what was read up to `end`. It may begin before the newest reading known, so that what came late is
    /// not missed; what is known is not counted twice.
    pub fn fold(&mut self, readings: &Readings, pulse: Option<&Pulse>, end: i64, rules: &Rules) {
        self.take_names(readings);
        let newest = self.holders.values().max().copied().unwrap_or_default();
        self.holders.retain(|_, said| newest - *said <= rules.patience());
        if readings.slots.keys().next_back().is_some_and(|last| *last > self.newest) {
            (self.peaks, self.watched) = (Peaks::default(), (0, 0));
        }
        let mut beats = pulse.into_iter().flatten().peekable();
        let (mut previous, mut waiting) = (None, false);
        for (&at, slot) in &readings.slots {
            while let Some((when, bits)) = beats.next_if(|(when, _)| **when <= at) {
                self.heart.beat(*when, *bits);
            }
            self.note_exported(at, slot);
            let (peaks, proof) = self.proof(at, slot, rules);
            // Metrics of one scrape may become visible one after the other: what lacks some is looked at again.
            waiting |= end - at <= rules.reach && matches!(proof, Proof::Nothing(Fault::Vanished(_)));
            match proof {
                Proof::Work => self.worked(at, peaks),
                _ if at <= self.newest || waiting => {}
                Proof::Rest => self.rested(at, previous, peaks, rules),
                Proof::Nothing(fault) => (self.fault, self.newest) = (Some(fault), at),
            }
            self.scrape = previous.map(|before| at - before).into_iter().chain(self.scrape).min();
            previous = Some(at);
        }
    }

    /// Whether a metric has anything to say of it.
    pub fn needs(&self, role: Role) -> bool {
        !self.on_instance || matches!(role, Role::Engine | Role::Tensor | Role::Sm)
    }

    /// Whether a metric of it was ever read.
    pub fn has_exported(&self, role: Role) -> bool {
        self.exported[role as usize].is_some()
    }

    /// Whether it is told how much energy or power it takes.
    pub fn has_pulse(&self) -> bool {
        self.heart.last.iter().any(Option::is_some)
    }

    /// The shortest time between two changes of that.
    pub fn pulse_step(&self) -> Option<i64> {
        self.heart.step
    }

    /// Takes over what reading the history anew has brought; what is known of now stays.
    pub fn rebuild(&mut self, new: Self) {
        let old = std::mem::replace(self, new);
        self.host = self.host.take().or(old.host);
        self.memory = old.memory.or(self.memory);
        for (holder, said) in old.holders {
            let newest = self.holders.entry(holder).or_insert(said);
            *newest = (*newest).max(said);
        }
    }

    fn take_names(&mut self, readings: &Readings) {
        for (holder, said) in &readings.holders {
            let known = self.holders.entry(holder.clone()).or_insert(*said);
            *known = (*known).max(*said);
        }
        if let Some(model) = &readings.model {
            self.model.clone_from(model);
        }
        self.host = readings.host.clone().or_else(|| self.host.take());
        self.memory = readings.memory.map(|(_, mib)| mib).or(self.memory);
    }

    fn note_exported(&mut self, at: i64, slot: &Slot) {
        for role in Role::ALL.into_iter().filter(|role| slot.share(*role).is_some()) {
            let last = &mut self.exported[role as usize];
            *last = (*last).max(Some(at));
        }
    }

    fn worked(&mut self, at: i64, peaks: Peaks) {
        if self.last_active.is_some_and(|before| before >= at) {
            return;
        }
        self.last_active = Some(at);
        self.peaks.raise(peaks);
        if at >= self.since {
            (self.since, self.after_gap) = (at, false);
        }
        if at >= self.covered_until {
            self.watched.0 += at - self.covered_until;
            (self.covered_until, self.unwatched) = (at, 0);
        }
        if at > self.newest {
            (self.newest, self.fault) = (at, None);
        }
    }

    /// A reading at rest speaks for the time since the scrape before it, at most for the collect interval.
    fn rested(&mut self, at: i64, previous: Option<i64>, peaks: Peaks, rules: &Rules) {
        self.peaks.raise(peaks);
        let open = at - self.covered_until;
        let step = previous.map_or(open, |before| at - before);
        let reach = open.min(step).min(rules.reach);
        let hole = open - reach;
        if hole > rules.max_gap {
            (self.since, self.after_gap, self.unwatched) = (at - reach, true, 0);
        } else {
            self.unwatched += hole;
        }
        (self.covered_until, self.newest, self.fault) = (at, at, None);
        self.watched = (self.watched.0 + reach, self.watched.1.max(hole));
    }

    fn proof(&self, at: i64, slot: &Slot, rules: &Rules) -> (Peaks, Proof) {
        let has =
            |role: Role| self.exported[role as usize].is_some_and(|last| at - last <= rules.missed_for());
        let weak = !has(Role::Engine) && !has(Role::Dram) && has(Role::Utilization);
        let peaks = peaks(slot, weak, self.on_instance);
        let engines = [peaks.tensor, peaks.encode, peaks.decode];
        let works = peaks.sm.is_some_and(|share| share >= rules.sm)
            || peaks.dram.is_some_and(|share| share >= rules.dram)
            || engines.into_iter().flatten().any(|share| share > 0.0);
        if works {
            return (peaks, Proof::Work);
        }
        if let Some(fault) = &slot.fault {
            return (peaks, Proof::Nothing(fault.clone()));
        }
        let lacking = self.lacking(at, slot, weak, rules);
        let fault = lacking.or_else(|| self.heart.fault(at, rules.patience()));
        (peaks, fault.map_or(Proof::Rest, Proof::Nothing))
    }

    /// What of the required set is missing. Of an instance the memory's share is not part of it, its tensor cores
    /// are; whatever else was exported lately has to be there, too.
    fn lacking(&self, at: i64, slot: &Slot, weak: bool, rules: &Rules) -> Option<Fault> {
        if weak {
            let missing =
                slot.share(Role::Utilization).is_none().then_some(Fault::Vanished(Role::Utilization));
            return if rules.weak { missing } else { Some(Fault::WeakOnly) };
        }
        let exported = |role: Role| self.exported[role as usize];
        let required = [Role::Engine, if self.on_instance { Role::Tensor } else { Role::Dram }];
        let never = required.into_iter().find(|role| exported(*role).is_none());
        if let Some(role) = never {
            return Some(Fault::NotExported(role));
        }
        let lately = |role: &Role| exported(*role).is_some_and(|last| at - last <= rules.missed_for());
        let others = [Role::Sm, Role::Tensor, Role::Utilization, Role::Encoder, Role::Decoder];
        let wanted = required.into_iter().chain(others.into_iter().filter(lately));
        wanted.into_iter().find(|role| slot.share(*role).is_none()).map(Fault::Vanished)
    }
}

/// Work shows in the engines, in the SMs or, where profiling counters have died, in the utilization.
///
/// Memory is shared by the instances of a card, so of an instance nothing but its engines can be told.
fn peaks(slot: &Slot, weak: bool, on_instance: bool) -> Peaks {
    let shares = [Role::Engine, Role::Sm, Role::Utilization].map(|role| slot.share(role));
    let sm = shares.into_iter().flatten().reduce(f64::max);
    let instead = slot.share(Role::MemoryUtilization).or(sm).filter(|_| weak || on_instance);
    Peaks {
        sm,
        dram: slot.share(Role::Dram).or(instead),
        tensor: slot.share(Role::Tensor),
        encode: slot.share(Role::Encoder),
        decode: slot.share(Role::Decoder),
    }
}

#[cfg(test)]
mod tests;

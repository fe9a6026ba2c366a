//! What is really going on, whatever anybody can see of it.

use std::collections::BTreeMap;
use std::time::Duration;

use gpu_culler::domain::{
    GpuId, GpuSample, Jupyter, Kernel, KernelState, Ratio, Server, ServerId, SpawnerState,
};
use gpu_culler::policy::{Limits, Session};
use jiff::{SignedDuration, Timestamp};

use crate::admin::CAP;
use crate::history::Doing;

/// How many sessions there are.
pub const SESSIONS: usize = 3;

pub fn mins(minutes: i64) -> SignedDuration {
    SignedDuration::from_mins(minutes)
}

/// A warning that its owner has, by the true time.
#[derive(Clone, Copy, Debug)]
pub struct Has {
    pub since: i64,
    pub grace: SignedDuration,
    pub stop_follows: bool,
}

/// One session as it really is. Times without a name are minutes of the true time.
#[derive(Clone, Debug)]
pub struct Truth {
    pub running: bool,
    pub started: Timestamp,
    pub cards: usize,
    pub working: [bool; 2],
    pub burst: [bool; 2],
    /// What the source still has to tell.
    pub untold: [bool; 2],
    pub busy: bool,
    /// When the cell began that runs.
    pub busy_since: i64,
    pub connected: bool,
    /// The stamps that the kernel, its server and the Hub hold.
    pub kernel_stamp: Timestamp,
    pub seen_stamp: Timestamp,
    pub cards_readable: bool,
    pub second_readable: bool,
    pub kernels_readable: bool,
    pub pending: bool,
    pub patchy: bool,
    /// Whether the last look saw only the newer part of the time.
    pub was_patchy: bool,
    pub kept_until: Timestamp,
    /// For how many minutes it says that it is needed.
    pub declares: Option<i64>,
    pub worked: i64,
    pub used: i64,
    pub present: i64,
    pub has: Option<Has>,
    pub cut_short: Option<(i64, SignedDuration)>,
}

impl Truth {
    pub fn new(now: i64, wall: Timestamp) -> Self {
        Self {
            running: true,
            // Two runs never start at the same instant, not even where the clock was set back in between.
            started: wall + SignedDuration::from_nanos(now),
            cards: 1,
            working: [false; 2],
            burst: [false; 2],
            untold: [false; 2],
            busy: false,
            busy_since: now,
            connected: false,
            kernel_stamp: wall,
            seen_stamp: wall,
            cards_readable: true,
            second_readable: true,
            kernels_readable: true,
            pending: false,
            patchy: false,
            was_patchy: false,
            kept_until: Timestamp::MIN,
            declares: None,
            worked: now,
            used: now,
            present: now,
            has: None,
            cut_short: None,
        }
    }

    pub fn happens(&mut self, doing: Doing, now: i64, wall: Timestamp) {
        match doing {
            Doing::Work(card) => self.working[card] = card < self.cards,
            Doing::Rest(card) => self.working[card] = false,
            Doing::Burst(card) => self.burst[card] = card < self.cards,
            Doing::TakeCard => self.cards = 2,
            // Of a card that comes and goes between two looks nobody can know.
            Doing::GiveCardBack if self.untold[1] => {}
            Doing::GiveCardBack => {
                self.cards = 1;
                (self.working[1], self.burst[1]) = (false, false);
            }
            Doing::KernelBusy if self.busy => {}
            Doing::KernelBusy => (self.busy, self.busy_since) = (true, now),
            Doing::KernelIdle if self.busy => self.uses(now, wall),
            Doing::KernelIdle => {}
            Doing::UseKernel => self.uses(now, wall),
            Doing::Connect => self.connected = true,
            Doing::Disconnect => self.connected = false,
            Doing::Restart => *self = Self { kept_until: self.kept_until, ..Self::new(now, wall) },
            Doing::Leave => self.running = false,
            Doing::CardsReadable(yes) => self.cards_readable = yes,
            Doing::CardReadable(yes) => self.second_readable = yes,
            Doing::KernelsReadable(yes) => self.kernels_readable = yes,
            Doing::Pending(yes) => self.pending = yes,
            Doing::Patchy => self.patchy = true,
            Doing::Declare(minutes) => self.declares = minutes,
            Doing::Keep { .. } => {}
        }
    }

    fn uses(&mut self, now: i64, wall: Timestamp) {
        self.busy = false;
        (self.used, self.kernel_stamp) = (now, wall);
        (self.present, self.seen_stamp) = (now, wall);
    }

    /// What went on up to now.
    pub fn passes(&mut self, now: i64, wall: Timestamp) {
        for card in 0..self.cards {
            if self.working[card] || self.burst[card] {
                (self.worked, self.untold[card]) = (now, true);
            }
        }
        self.burst = [false; 2];
        if self.busy {
            self.used = now;
        }
        if self.connected {
            (self.present, self.seen_stamp) = (now, wall);
        }
    }

    /// What the Hub, the server and the cards say, `minutes` after they were last asked.
    pub fn seen(&mut self, number: usize, minutes: i64) -> Session {
        let sample = |card: usize| GpuSample {
            id: GpuId(format!("GPU-{number}-{card}")),
            model: "A100".to_owned(),
            sm: if card == 1 && !self.second_readable {
                None
            } else {
                Ratio::reading(if self.untold[card] { 0.5 } else { 0.0 })
            },
            dram: Ratio::reading(0.0),
            engines: BTreeMap::new(),
            memory_used: None,
            processes: Some(1),
            covered: Duration::from_secs(60 * (minutes - if self.patchy { 2 } else { 0 }).unsigned_abs()),
            largest_gap: Duration::from_secs(1),
            unreadable: None,
            power: None,
            past: None,
        };
        let kernel = Kernel {
            id: "k".to_owned(),
            state: if self.busy { KernelState::Busy } else { KernelState::Idle },
            last_activity: Some(self.kernel_stamp),
            connections: 0,
            notebook: None,
        };
        let jupyter = Jupyter {
            last_activity: Some(self.seen_stamp),
            connections: u32::from(self.connected),
            kernels: vec![kernel],
            terminals: Vec::new(),
        };
        let gpus: Vec<GpuSample> = (0..self.cards).map(sample).collect();
        self.was_patchy = self.patchy;
        (self.untold, self.patchy) = ([false; 2], false);
        Session {
            server: Box::new(Server {
                id: id(number),
                groups: Vec::new(),
                admin: false,
                profile: None,
                labels: self
                    .declares
                    .iter()
                    .map(|m| ("expected-duration".to_owned(), format!("{m}m")))
                    .collect(),
                started: Some(self.started),
                last_activity: Some(self.seen_stamp),
                pending: self.pending.then(|| "stop".to_owned()),
                ready: true,
                contacts: Vec::new(),
                spawner: SpawnerState::default(),
                path: String::new(),
            }),
            jupyter: if self.kernels_readable { Ok(jupyter) } else { Err("refused".into()) },
            gpus: if self.cards_readable { Ok(gpus) } else { Err("down".into()) },
            holds: Vec::new(),
            cpu: Some(0.0),
        }
    }

    /// It can be read and nobody does anything any more; a last sign of work, so that earlier holes in what was
    /// watched no longer count.
    pub fn falls_asleep(&mut self, now: i64) {
        let rest = Self::new(now, self.started);
        *self = Self {
            running: self.running,
            started: self.started,
            kept_until: self.kept_until,
            declares: self.declares,
            has: self.has,
            cut_short: self.cut_short,
            used: self.used,
            present: self.present,
            cards: self.cards,
            kernel_stamp: self.kernel_stamp,
            seen_stamp: self.seen_stamp,
            burst: [true; 2],
            ..rest
        };
    }

    /// Until when what it says is to be believed.
    pub fn declared_until(&self) -> Timestamp {
        self.declares.map_or(Timestamp::MIN, |minutes| self.started + mins(minutes).min(CAP))
    }

    pub fn is_readable(&self) -> bool {
        let second = self.cards == 1 || self.second_readable;
        self.cards_readable && second && self.kernels_readable && !self.pending
    }

    /// Whether a cell really has run for so long while nothing computed, and all the time since `began`.
    pub fn is_wedged(&self, now: i64, began: i64, limits: &Limits) -> bool {
        let since = self.busy_since.max(self.worked);
        let over = |limit: SignedDuration| mins(now - since) >= limit && since <= began;
        self.busy && limits.busy_kernel_limit.is_some_and(over)
    }

    /// Whether it really was idle for as long as one of the limits says, and all the time since `began`.
    pub fn is_idle(&self, now: i64, began: i64, limits: &Limits) -> bool {
        let over = |since: i64, limit: SignedDuration| mins(now - since) >= limit && since <= began;
        let worked = self.worked.max(self.used);
        over(worked.max(self.present), limits.warn_after)
            || limits.connected_warn_after.is_some_and(|limit| over(worked, limit))
            || limits.card_unused_warn_after.is_some_and(|limit| !self.busy && over(self.worked, limit))
            || self.is_wedged(now, began, limits)
    }
}

pub fn id(number: usize) -> ServerId {
    ServerId::new(format!("u{number}"), "")
}

//! The limits and thresholds that an admin sets.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;

use super::{CpuServers, Demand, Intents, Manner, Rule, Safety, StopHours};

/// Everything the decisions depend on besides what was observed.
#[derive(Clone, Debug)]
pub struct Policy {
    /// How far the service may go.
    pub mode: Mode,
    /// The time between two looks: what a stop rests on is not older.
    pub cycle: SignedDuration,
    /// From where on a reading is activity.
    pub thresholds: Thresholds,
    /// A time without readings longer than this moves the card clock to its end.
    pub max_gap: SignedDuration,
    /// The share of the time since the card clock that must have been watched.
    pub min_coverage: f64,
    /// A session younger than this is left alone.
    pub warm_up: SignedDuration,
    /// Whether kernels can be asked at all.
    pub kernels: KernelSource,
    /// The limits where no rule says otherwise.
    pub limits: Limits,
    /// Rules, in order; the first that matches decides.
    pub rules: Vec<Rule>,
    /// What owners may choose to keep a session.
    pub keep: KeepOffer,
    /// How declared times count.
    pub intents: Intents,
    /// Other limits while somebody, or nobody, waits for a card.
    pub demand: Demand,
    /// When deadlines may fall.
    pub stop_hours: Option<StopHours>,
    /// The brakes.
    pub safety: Safety,
    /// Whether anybody can be warned at all. Without mail no card is ever taken back.
    pub can_warn: bool,
    /// What is done about servers without a card; nothing where absent.
    pub cpu_servers: Option<CpuServers>,
}

/// How far the service may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Decide, record and show; no mail, no stop.
    #[default]
    Observe,
    /// Mail, but never stop.
    Warn,
    /// Mail, and stop when the deadline has passed.
    Enforce,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Observe => "observe",
            Self::Warn => "warn",
            Self::Enforce => "enforce",
        })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        match s {
            "observe" => Ok(Self::Observe),
            "warn" => Ok(Self::Warn),
            "enforce" => Ok(Self::Enforce),
            _ => Err(format!("`{s}` is no mode: use observe, warn or enforce")),
        }
    }
}

/// From where on a reading is activity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// SM activity, a share.
    pub sm: f64,
    /// Memory-bandwidth activity, a share.
    pub dram: f64,
    /// CPU work of the session's processes, in cores.
    pub cpu_cores: f64,
}

/// Where signs of use come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelSource {
    /// Kernels and terminals are asked; not being able to is Unknown.
    Probed,
    /// They may not be asked (no scope, or switched off): the Hub's stamp counts as use.
    HubOnly,
}

/// The limits of one session. `None` means never.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Nobody and nothing for this long.
    pub warn_after: SignedDuration,
    /// From the accepted warning to the stop, at least.
    pub grace: SignedDuration,
    /// How long before the deadline to remind.
    pub remind_before: Vec<SignedDuration>,
    /// Somebody is connected, nothing is used for this long.
    pub connected_warn_after: Option<SignedDuration>,
    /// The card does nothing for this long, whatever else moves.
    pub card_unused_warn_after: Option<SignedDuration>,
    /// A kernel is busy for this long without a break while card and CPU rest.
    pub busy_kernel_limit: Option<SignedDuration>,
    /// What follows from that.
    pub busy_kernel_action: BusyKernelAction,
    /// The server is older than this. A card that works protects it all the same …
    pub max_age: Option<SignedDuration>,
    /// … unless this says that it does not.
    pub max_age_even_if_busy: bool,
    /// How it is stopped.
    pub manner: Manner,
}

/// What follows when a kernel has been busy for `busy_kernel_limit` while card and CPU rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusyKernelAction {
    /// Its owner is told, once.
    #[default]
    Notice,
    /// Its owner is warned, and the server stopped as any idle one.
    Stop,
}

/// What owners may choose to keep a session.
#[derive(Clone, Debug, PartialEq)]
pub struct KeepOffer {
    /// The durations on offer.
    pub choices: Vec<SignedDuration>,
    /// The most an owner may keep in seven days.
    pub weekly_budget: SignedDuration,
    /// Whether a reason must be given.
    pub reason: ReasonNeed,
}

/// Whether a keep needs a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasonNeed {
    /// It may be left empty.
    Optional,
    /// Without one the keep is refused.
    Required,
}

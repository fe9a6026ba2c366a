//! Decides: from what was observed and what is remembered to what should be done, and why.
//!
//! Pure: no IO, no clock (`now` is an argument), no logging. The files are listed from the bottom up.

mod audit;
mod card_clock;
mod cpu_servers;
mod cull_users;
mod demand;
mod evidence;
mod exemptions;
mod freeze;
mod idleness;
mod intent;
mod keeps;
mod ledger;
mod limits;
mod plan;
mod planner;
mod protection;
mod rules;
mod schedule;
mod snapshot;
mod target;
mod verdict;
mod waits;

pub use audit::{RuleOddity, audit};
pub use card_clock::{CardEvidence, ClockMove, GivenUp, Watch, is_active};
pub use cpu_servers::CpuServers;
pub use cull_users::{CullUsers, UserStays};
pub use demand::Demand;
pub use evidence::{Evidence, UseSign};
pub use exemptions::{Concerned, Exempted, Spared, endings, exemptions};
pub use freeze::{Freeze, FreezeChange, Lifted, Safety, StopBudget};
pub use idleness::limits_of;
pub use intent::{Declared, Intents};
pub use keeps::{Choice, Giver, Grant, Keep, KeepRefused, LONGEST_REASON, Offers, keep, offers};
pub use ledger::{Ledger, Record, Warning};
pub use limits::{BusyKernelAction, KeepOffer, KernelSource, Limits, Mode, Policy, ReasonNeed, Thresholds};
pub use plan::{Action, Decision, HeldBack, Plan};
pub use planner::plan;
pub use rules::{Exemption, Match, Overrides, Rule, pattern};
pub use schedule::{Days, StopHours};
pub use snapshot::{Session, Snapshot, Why};
pub use target::{KernelDoubt, KernelName, Manner, Target, to_interrupt, without_interrupt};
pub use verdict::{
    BusyReason, Clocks, Idle, IdleKind, Judgement, LimitKind, ProtectedReason, UnknownReason, Verdict,
};
pub use waits::{Wait, Waiting, Waits};

#[cfg(test)]
mod tests;

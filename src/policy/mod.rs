//! Decides: from what was observed and what is remembered to what should be done, and why.
//!
//! Pure: no IO, no clock (`now` is an argument), no logging. The files are listed from the bottom up.

mod cpu_servers;
mod evidence;
mod freeze;
mod idleness;
mod keeps;
mod ledger;
mod limits;
mod plan;
mod planner;
mod protection;
mod rules;
mod schedule;
mod snapshot;
mod verdict;

pub use cpu_servers::CpuServers;
pub use evidence::{CardEvidence, ClockMove, Evidence, GivenUp, UseSign, Watch, is_active};
pub use freeze::{Freeze, FreezeChange, Lifted, Safety, StopBudget};
pub use idleness::limits_of;
pub use keeps::{Choice, Giver, Grant, Keep, KeepRefused, LONGEST_REASON, Offers, keep, offers};
pub use ledger::{Ledger, Record, Warning};
pub use limits::{KeepOffer, KernelSource, Limits, Mode, Policy, ReasonNeed, Thresholds};
pub use plan::{Action, Decision, HeldBack, Plan};
pub use planner::plan;
pub use rules::{Exemption, Match, Overrides, Rule, pattern};
pub use schedule::{Days, StopHours};
pub use snapshot::{Session, Snapshot};
pub use verdict::{
    BusyReason, Clocks, Idle, IdleKind, Judgement, LimitKind, ProtectedReason, UnknownReason, Verdict,
};

#[cfg(test)]
mod tests;

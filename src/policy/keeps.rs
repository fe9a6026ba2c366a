//! Keeps: what an owner or an admin may choose now, what it takes of the owner's weekly budget, and
//! why not otherwise.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::schedule::later;
use super::{KeepOffer, Ledger, Policy, ReasonNeed};
use crate::domain::{ServerId, UserName};

/// The time that a budget is counted over.
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// The longest reason that is taken, in characters.
pub const LONGEST_REASON: usize = 500;

/// An owner's (or admin's) word that a session is still needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// Until when it protects.
    pub until: Timestamp,
    /// Who gave it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why, in the giver's words.
    pub reason: Option<String>,
    /// What it takes of the owner's budget: the time that it adds, and nothing where an admin gave it.
    #[serde(default)]
    pub cost: SignedDuration,
}

/// A keep together with the server it was given for, which may be gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// For which server.
    pub server: ServerId,
    /// What was given.
    pub keep: Keep,
}

/// Who gives a keep. Who somebody is was proven before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Giver {
    /// The server's owner, out of the weekly budget.
    Owner,
    /// An admin, without using up anybody's budget.
    Admin(UserName),
}

/// What somebody may choose for one server at this instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offers {
    /// Each duration on offer.
    pub choices: Vec<Choice>,
    /// What the owner may keep in seven days …
    pub budget: SignedDuration,
    /// … and what is left of it.
    pub left: SignedDuration,
    /// Whether a reason must be given.
    pub reason: ReasonNeed,
    /// The keep that is in force.
    pub kept: Option<Keep>,
}

/// One duration on offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// How long from now.
    pub length: SignedDuration,
    /// Until when that is.
    pub until: Timestamp,
    /// Why it cannot be chosen now.
    pub refused: Option<KeepRefused>,
}

/// Why a keep is not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepRefused {
    /// No such server is known to run.
    NotRunning,
    /// This duration is not on offer.
    NotOffered(SignedDuration),
    /// It is kept for at least as long already.
    AlreadyKept(Timestamp),
    /// The owner's budget does not hold it.
    BudgetSpent {
        /// What is left.
        left: SignedDuration,
        /// From when on enough is left again; never where the whole budget is too small.
        again: Option<Timestamp>,
    },
    /// A reason must be given.
    ReasonMissing,
    /// The reason has more than [`LONGEST_REASON`] characters.
    ReasonTooLong,
}

/// What `by` may choose for `server` now.
pub fn offers(ledger: &Ledger, policy: &Policy, server: &ServerId, by: &Giver, now: Timestamp) -> Offers {
    let KeepOffer { choices, weekly_budget, reason } = &policy.keep;
    let choice = |length: &SignedDuration| Choice {
        length: *length,
        until: later(now, *length),
        refused: cost(ledger, policy, server, by, *length, now).err(),
    };
    Offers {
        choices: choices.iter().map(choice).collect(),
        budget: *weekly_budget,
        left: left(ledger, policy, &server.user, now),
        reason: *reason,
        kept: in_force(ledger, server, now).cloned(),
    }
}

/// The keep that `by` asks for, ready to be saved, or why it is not given. It runs from now on, so it
/// never adds up with the one before, and it never shortens that.
pub fn keep(
    ledger: &Ledger,
    policy: &Policy,
    server: &ServerId,
    by: &Giver,
    length: SignedDuration,
    reason: Option<&str>,
    now: Timestamp,
) -> Result<Keep, KeepRefused> {
    let cost = cost(ledger, policy, server, by, length, now)?;
    let reason = reason.map(str::trim).filter(|text| !text.is_empty());
    match reason {
        None if policy.keep.reason == ReasonNeed::Required => return Err(KeepRefused::ReasonMissing),
        Some(text) if text.chars().count() > LONGEST_REASON => return Err(KeepRefused::ReasonTooLong),
        _ => {}
    }
    let by = match by {
        Giver::Owner => &server.user,
        Giver::Admin(name) => name,
    };
    let reason = reason.map(ToOwned::to_owned);
    Ok(Keep { until: later(now, length), by: by.to_string(), at: now, reason, cost })
}

/// What a keep of this length would take of the owner's budget, or why it is not to be had.
fn cost(
    ledger: &Ledger,
    policy: &Policy,
    server: &ServerId,
    by: &Giver,
    length: SignedDuration,
    now: Timestamp,
) -> Result<SignedDuration, KeepRefused> {
    if ledger.records.get(server).is_none_or(|record| record.stopped.is_some()) {
        return Err(KeepRefused::NotRunning);
    }
    if !policy.keep.choices.contains(&length) {
        return Err(KeepRefused::NotOffered(length));
    }
    let until = later(now, length);
    let kept = in_force(ledger, server, now).map_or(now, |keep| keep.until);
    if until <= kept {
        return Err(KeepRefused::AlreadyKept(kept));
    }
    if matches!(by, Giver::Admin(_)) {
        return Ok(SignedDuration::ZERO);
    }
    let (cost, left) = (until.duration_since(kept), left(ledger, policy, &server.user, now));
    if cost > left {
        let again = again(ledger, policy, &server.user, length, now);
        return Err(KeepRefused::BudgetSpent { left, again });
    }
    Ok(cost)
}

fn in_force<'a>(ledger: &'a Ledger, server: &ServerId, now: Timestamp) -> Option<&'a Keep> {
    ledger.records.get(server)?.keep.as_deref().filter(|keep| now < keep.until)
}

/// What an owner's keeps of the last seven days leave of the budget, however many servers they were for.
fn left(ledger: &Ledger, policy: &Policy, owner: &UserName, now: Timestamp) -> SignedDuration {
    let counts = |grant: &&Grant| now < grant.ends_to_count();
    let spent: SignedDuration = ledger.grants(owner).filter(counts).map(|grant| grant.keep.cost).sum();
    policy.keep.weekly_budget.saturating_sub(spent).max(SignedDuration::ZERO)
}

/// When enough of what was spent no longer counts for `length` to be had in full.
fn again(
    ledger: &Ledger,
    policy: &Policy,
    owner: &UserName,
    length: SignedDuration,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut ends: Vec<Timestamp> = ledger.grants(owner).map(Grant::ends_to_count).collect();
    ends.sort_unstable();
    ends.into_iter().filter(|end| now < *end).find(|end| left(ledger, policy, owner, *end) >= length)
}

impl Ledger {
    /// Somebody said that the session is still needed. A keep that is in force is never shortened.
    pub fn kept(&mut self, id: &ServerId, keep: Keep) {
        let grant = Grant { server: id.clone(), keep: keep.clone() };
        self.keeps.entry(id.user.clone()).or_default().push(grant);
        self.unsaved_keeps.insert(id.user.clone());
        self.change(id, |record| {
            let longer = record.keep.take().filter(|old| old.until > keep.until);
            record.keep = Some(longer.unwrap_or_else(|| Box::new(keep)));
        });
    }

    /// The keeps that were given for an owner's servers.
    pub fn grants(&self, owner: &UserName) -> impl Iterator<Item = &Grant> {
        self.keeps.get(owner).into_iter().flatten()
    }

    pub(super) fn forget_old_keeps(&mut self, at: Timestamp) {
        for (owner, grants) in &mut self.keeps {
            let before = grants.len();
            grants.retain(|grant| at < grant.ends_to_count());
            if grants.len() < before {
                self.unsaved_keeps.insert(owner.clone());
            }
        }
        self.keeps.retain(|_, grants| !grants.is_empty());
    }
}

impl Grant {
    /// From when on it no longer counts in its owner's week.
    pub(super) fn ends_to_count(&self) -> Timestamp {
        later(self.keep.at, WEEK)
    }
}

//! How many letters owners may get in a day, so that a fault never floods anybody. Whoever is not
//! told is not stopped.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::domain::UserName;

/// The limits within [`Allowance::WINDOW`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterLimits {
    /// To one owner.
    pub per_owner: usize,
    /// To all owners together.
    pub in_all: usize,
}

/// What is left of the limits.
pub struct Allowance {
    limits: LetterLimits,
    sent: BTreeMap<UserName, usize>,
}

impl Allowance {
    /// The time over which letters are counted.
    pub const WINDOW: SignedDuration = SignedDuration::from_hours(24);

    /// From when on letters count at `now`.
    pub fn begins(now: Timestamp) -> Timestamp {
        now.checked_sub(Self::WINDOW).unwrap_or(Timestamp::MIN)
    }

    /// What is left after the letters that each owner got.
    pub fn new(limits: LetterLimits, sent: BTreeMap<UserName, usize>) -> Self {
        Self { limits, sent }
    }

    /// One more letter, or why not.
    pub fn take(&mut self, owner: &UserName) -> Result<(), Spent> {
        if self.sent.values().sum::<usize>() >= self.limits.in_all {
            return Err(Spent::InAll(self.limits.in_all));
        }
        let sent = self.sent.entry(owner.clone()).or_default();
        if *sent >= self.limits.per_owner {
            return Err(Spent::Owner(self.limits.per_owner));
        }
        *sent += 1;
        Ok(())
    }
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// The owner's.
    #[error(
        "its owner got {0} letters within a day, the most of mail.max_per_owner; told later, not stopped until then"
    )]
    Owner(usize),
    /// The common one.
    #[error(
        "{0} letters went out within a day, the most of mail.max_in_all; told later, not stopped until then"
    )]
    InAll(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> UserName {
        UserName(name.into())
    }

    #[test]
    fn one_owner_reaches_the_limit_and_another_does_not() {
        let sent = [(owner("nora"), 1)].into();
        let mut allowance = Allowance::new(LetterLimits { per_owner: 2, in_all: 100 }, sent);
        assert_eq!(allowance.take(&owner("nora")), Ok(()));
        assert_eq!(allowance.take(&owner("nora")), Err(Spent::Owner(2)));
        assert_eq!(allowance.take(&owner("carl")), Ok(()));
    }

    #[test]
    fn all_owners_together_reach_the_common_limit() {
        let sent = [(owner("a"), 1), (owner("b"), 1)].into();
        let mut allowance = Allowance::new(LetterLimits { per_owner: 9, in_all: 3 }, sent);
        assert_eq!(allowance.take(&owner("c")), Ok(()));
        assert_eq!(allowance.take(&owner("d")), Err(Spent::InAll(3)));
    }
}

//! Users who have not been there for long: deleted only where the admin asks for what
//! jupyterhub-idle-culler does with `--cull-users`.

use jiff::{SignedDuration, Timestamp};

use super::{Keep, Ledger};
use crate::domain::Account;

/// Which users are deleted. An account's age is no reason: everybody who stays becomes old.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CullUsers {
    /// No activity for this long.
    pub inactive_after: SignedDuration,
    /// Admins, too.
    pub admins: bool,
}

/// Why a user stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserStays {
    /// An admin.
    Admin,
    /// A server of the user runs, starts or stops.
    HasServer,
    /// A server of the user is kept.
    Keeps,
    /// The user was there not long ago.
    Seen(Timestamp),
    /// The Hub does not say when the user was last there, nor when the account was made.
    Unknown,
}

impl CullUsers {
    /// Since when this user, who is to be deleted, has been away; or why the user stays.
    pub fn away_since(
        &self,
        account: &Account,
        ledger: &Ledger,
        now: Timestamp,
    ) -> Result<Timestamp, UserStays> {
        if account.admin && !self.admins {
            return Err(UserStays::Admin);
        }
        if account.active {
            return Err(UserStays::HasServer);
        }
        let lasts = |keep: &Keep| now < keep.until;
        let given = ledger.keeps.get(&account.name).into_iter().flatten().map(|grant| &grant.keep);
        let known = ledger.records.iter().filter(|(id, _)| id.user == account.name);
        if given.chain(known.filter_map(|(_, record)| record.keep.as_deref())).any(lasts) {
            return Err(UserStays::Keeps);
        }
        let seen = account.last_activity.max(account.created).ok_or(UserStays::Unknown)?;
        // A stamp from the future is negative here, and so never long ago.
        if now.duration_since(seen) < self.inactive_after {
            return Err(UserStays::Seen(seen));
        }
        Ok(seen)
    }
}

//! Users who have not been there for long: deleted only where the admin asks for what
//! jupyterhub-idle-culler does with `--cull-users`.

use jiff::{SignedDuration, Timestamp};

use super::{Ledger, Record};
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
pub enum UserSpared {
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
    ) -> Result<Timestamp, UserSpared> {
        if account.admin && !self.admins {
            return Err(UserSpared::Admin);
        }
        if account.active {
            return Err(UserSpared::HasServer);
        }
        let keeps = |record: &Record| record.keep.as_ref().is_some_and(|keep| now < keep.until);
        if ledger.records.iter().any(|(id, record)| id.user == account.name && keeps(record)) {
            return Err(UserSpared::Keeps);
        }
        let seen = account.last_activity.max(account.created).ok_or(UserSpared::Unknown)?;
        // A stamp from the future is negative here, and so never long ago.
        if now.duration_since(seen) < self.inactive_after {
            return Err(UserSpared::Seen(seen));
        }
        Ok(seen)
    }
}

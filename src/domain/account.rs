//! A user as the Hub knows them, whether or not a server runs.

use jiff::Timestamp;

use super::UserName;

/// A user's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Whose it is.
    pub name: UserName,
    /// Whether the user is an admin of the Hub.
    pub admin: bool,
    /// When the Hub last saw the user; absent for somebody who never came.
    pub last_activity: Option<Timestamp>,
    /// When it was made, where the token may see that.
    pub created: Option<Timestamp>,
    /// Whether any server of the user runs, starts or stops, or the Hub is doing something with the user.
    pub active: bool,
}

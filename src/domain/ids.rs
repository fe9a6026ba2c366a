//! Names of people and of their servers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A user's name, exactly as the Hub spells it (it may hold spaces, `@`, `/` or any script). It stands in many
/// places at once and is shared by all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserName(pub Arc<str>);

/// A server's name; empty for the user's default server.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerName(pub Arc<str>);

/// One server of one user. Written `alice/` (default) or `alice/training` (named).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerId {
    /// Whose it is.
    pub user: UserName,
    /// Which of the user's servers.
    pub name: ServerName,
}

impl ServerId {
    /// The server `name` of `user`; an empty name means the default server.
    pub fn new(user: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { user: UserName(user.into()), name: ServerName(name.into()) }
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.user, self.name)
    }
}

/// What is wrong with a written server.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` names no server: write USER for the default server or USER/SERVER for a named one")]
pub struct IdError(String);

impl FromStr for ServerId {
    type Err = IdError;

    /// `alice`, `alice/` and `alice/training`. The last slash divides, since a user's name may hold
    /// one and a server's may not.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let (user, name) = s.rsplit_once('/').unwrap_or((s, ""));
        if user.is_empty() {
            return Err(IdError(s.to_owned()));
        }
        Ok(Self::new(user, name))
    }
}

impl TryFrom<String> for ServerId {
    type Error = IdError;

    fn try_from(s: String) -> Result<Self, Self::Error> {
        s.parse()
    }
}

impl From<ServerId> for String {
    fn from(id: ServerId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_written_and_read_back_unchanged() {
        for (user, name) in
            [("alice", ""), ("alice", "training"), ("a/b", ""), ("a/b", "c"), ("élo ise@x", "n 1")]
        {
            let id = ServerId::new(user, name);
            assert_eq!(id.to_string().parse(), Ok(id));
        }
    }

    #[test]
    fn a_bare_user_means_the_default_server() {
        assert_eq!("alice".parse(), Ok(ServerId::new("alice", "")));
    }

    #[test]
    fn nobody_is_refused() {
        for s in ["", "/", "/x"] {
            assert!(s.parse::<ServerId>().is_err(), "{s}");
        }
    }
}

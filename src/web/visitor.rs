//! What somebody may see and do.

use std::collections::BTreeSet;

use crate::domain::ServerId;
use crate::hub::Holder;

/// A scope that a Hub's admin may give to people and services that are to be admins here only.
const ADMIN: &str = "custom:gpu-culler:admin";

/// Somebody who was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// The user's or service's name.
    pub name: String,
    /// Whether they may do everything here.
    pub admin: bool,
    /// The secret of this login's forms; absent for who shows a token.
    pub csrf: Option<String>,
    is_user: bool,
    scopes: BTreeSet<String>,
}

impl Visitor {
    /// Somebody who logged in through the Hub. The token of a login carries next to no scopes, so that the
    /// Hub's own word counts: its admins are admins here.
    pub fn by_login(holder: &Holder, csrf: String) -> Self {
        let admin = holder.is_user && holder.admin || holder.scopes.contains(ADMIN);
        Self { csrf: Some(csrf), admin, ..Self::by_token(holder) }
    }

    /// Somebody who shows a token: it is good for what its scopes say, and no more, whoever made it.
    pub fn by_token(holder: &Holder) -> Self {
        let admin = holder.scopes.contains(ADMIN) || holder.scopes.contains("admin:servers");
        let (name, scopes) = (holder.name.clone(), holder.scopes.clone());
        Self { name, admin, csrf: None, is_user: holder.is_user, scopes }
    }

    /// Whether this is their own server.
    pub fn owns(&self, server: &ServerId) -> bool {
        self.is_user && *self.name == *server.user.0
    }

    /// Whether they may see everybody's sessions.
    pub fn sees_all(&self) -> bool {
        self.admin || self.scopes.contains("read:servers")
    }

    /// Whether they may see this one.
    pub fn may_see(&self, server: &ServerId) -> bool {
        self.owns(server) || self.sees_all()
    }

    /// Whether they may say that it is needed.
    pub fn may_keep(&self, server: &ServerId) -> bool {
        self.owns(server) || self.admin
    }

    /// Whether they may stop it. A token must be good for that at the Hub, too.
    pub fn may_stop(&self, server: &ServerId) -> bool {
        let granted = || {
            let scopes = ["delete:servers".to_owned(), format!("delete:servers!user={}", server.user)];
            scopes.iter().any(|scope| self.scopes.contains(scope))
                || self.scopes.contains(&format!("delete:servers!server={server}"))
        };
        self.admin || self.owns(server) && (self.csrf.is_some() || granted())
    }

    /// Whether they may read the metrics.
    pub fn may_measure(&self) -> bool {
        self.admin || self.scopes.contains("read:metrics")
    }

    /// How the log names them.
    pub fn signature(&self) -> String {
        if self.is_user { self.name.clone() } else { format!("service {}", self.name) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    fn holder(admin: bool, scopes: &[&str]) -> Holder {
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        Holder { name: "alice".to_owned(), is_user: true, admin, scopes }
    }

    #[test]
    fn a_token_of_an_admin_is_good_for_its_scopes_only() {
        let weak = Visitor::by_token(&holder(true, &["access:services"]));
        assert!(!weak.admin && !weak.sees_all());
        let strong = Visitor::by_token(&holder(false, &["access:services", "admin:servers"]));
        assert!(strong.admin);
        assert!(Visitor::by_login(&holder(true, &["access:services"]), String::new()).admin);
    }

    #[test]
    fn everybody_sees_and_keeps_their_own_and_nobody_elses() {
        let alice = Visitor::by_login(&holder(false, &[]), String::new());
        for (server, own) in [("alice", true), ("alice/x", true), ("bob", false), ("alice2", false)] {
            let server = server.parse().unwrap();
            assert_eq!(alice.may_see(&server), own, "{server}");
            assert_eq!(alice.may_keep(&server), own, "{server}");
            assert_eq!(alice.may_stop(&server), own, "{server}");
        }
    }

    #[test]
    fn a_service_of_the_same_name_is_somebody_else() {
        let service = Holder { is_user: false, ..holder(false, &["read:servers"]) };
        let service = Visitor::by_token(&service);
        let server = "alice".parse().unwrap();
        assert!(service.may_see(&server), "it may read every server at the Hub, too");
        assert!(!service.may_keep(&server) && !service.may_stop(&server));
        assert_eq!(service.signature(), "service alice");
    }

    #[test]
    fn a_token_stops_only_what_it_could_stop_at_the_hub() {
        let server = "alice/x".parse().unwrap();
        for (scope, may) in [
            ("access:services", false),
            ("delete:servers!user=bob", false),
            ("delete:servers!user=alice", true),
            ("delete:servers!server=alice/x", true),
            ("delete:servers!server=alice/", false),
            ("delete:servers", true),
        ] {
            assert_eq!(Visitor::by_token(&holder(false, &[scope])).may_stop(&server), may, "{scope}");
        }
    }

    #[test]
    fn a_limited_grant_makes_nobody_an_admin() {
        let scopes = ["admin:servers!group=gpu", "read:servers!group=gpu"];
        let visitor = Visitor::by_token(&holder(false, &scopes));
        assert!(!visitor.admin && !visitor.sees_all());
    }
}

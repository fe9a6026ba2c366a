//! What the token must be allowed to do. The Hub lists a token's scopes with everything they
//! include already spelled out, so plain comparison is enough.

use std::collections::BTreeSet;

/// A scope and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeNeed {
    /// As written in a role.
    pub scope: &'static str,
    /// What is lost without it.
    pub why: &'static str,
}

const OBSERVE: [ScopeNeed; 3] = [
    ScopeNeed { scope: "list:users", why: "to see who has a server" },
    ScopeNeed { scope: "read:servers", why: "to see the servers; without it the list is silently empty" },
    ScopeNeed { scope: "admin:server_state", why: "to find a server's processes, container, pod or job" },
];
const GROUPS: ScopeNeed = ScopeNeed { scope: "read:users:groups", why: "to apply rules by group" };
const STOP: ScopeNeed = ScopeNeed { scope: "delete:servers", why: "to stop servers" };
const USERS: [ScopeNeed; 2] = [
    ScopeNeed { scope: "read:users:activity", why: "to see when users were last there" },
    ScopeNeed { scope: "delete:users", why: "to delete users who were away for long (cull_users)" },
];
const TOKENS: ScopeNeed = ScopeNeed { scope: "tokens", why: "to read kernels and terminals" };
const ACCESS: ScopeNeed = ScopeNeed { scope: "access:servers", ..TOKENS };

/// What allows asking kernels and terminals, where anything does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeGrant {
    /// `tokens`: each server is asked with a token of its own.
    PerServer,
    /// `access:servers` alone: every server gets to see the service's own token.
    Own,
}

impl ProbeGrant {
    /// The better one of those granted to any extent.
    pub fn best(granted: &BTreeSet<String>) -> Option<Self> {
        let both = [Self::PerServer, Self::Own];
        both.into_iter().find(|grant| missing(granted, &[grant.need()]).is_empty())
    }

    /// The scope that it rests on.
    pub fn need(self) -> ScopeNeed {
        match self {
            Self::PerServer => TOKENS,
            Self::Own => ACCESS,
        }
    }
}

/// What the service does besides observing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duties {
    /// It stops servers.
    pub stop: bool,
    /// It has rules that match groups.
    pub groups: bool,
    /// It deletes users.
    pub users: bool,
}

/// The scopes needed for this much. For kernels see [`ProbeGrant`].
pub fn needed(duties: Duties) -> Vec<ScopeNeed> {
    let more = [(duties.groups, GROUPS), (duties.stop, STOP)];
    let more = more.into_iter().chain(USERS.map(|need| (duties.users, need)));
    OBSERVE.into_iter().chain(more.filter_map(|(on, need)| on.then_some(need))).collect()
}

/// Those of `needs` that are not granted to any extent.
pub fn missing(granted: &BTreeSet<String>, needs: &[ScopeNeed]) -> Vec<ScopeNeed> {
    let lacks = |need: &&ScopeNeed| !granted.contains(need.scope) && filters(granted, need).is_empty();
    needs.iter().filter(lacks).cloned().collect()
}

/// Those of `needs` that are granted for some only, with the scopes that say for whom
/// (`list:users!group=gpu`).
pub fn limited(granted: &BTreeSet<String>, needs: &[ScopeNeed]) -> Vec<(ScopeNeed, Vec<String>)> {
    let for_some = |need: &ScopeNeed| {
        let filters = filters(granted, need);
        (!granted.contains(need.scope) && !filters.is_empty()).then(|| (need.clone(), filters))
    };
    needs.iter().filter_map(for_some).collect()
}

fn filters(granted: &BTreeSet<String>, need: &ScopeNeed) -> Vec<String> {
    let of_need = |scope: &&String| scope.split_once('!').is_some_and(|(name, _)| name == need.scope);
    granted.iter().filter(of_need).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(scopes: &[&str]) -> BTreeSet<String> {
        scopes.iter().map(|s| (*s).to_owned()).collect()
    }

    fn names(needs: &[ScopeNeed]) -> Vec<&str> {
        needs.iter().map(|need| need.scope).collect()
    }

    #[test]
    fn only_who_stops_needs_the_scope_for_it() {
        let observing = needed(Duties::default());
        assert_eq!(names(&observing), ["list:users", "read:servers", "admin:server_state"]);
        assert_eq!(needed(Duties { stop: true, ..Duties::default() }), [observing, vec![STOP]].concat());
    }

    #[test]
    fn a_token_per_server_is_preferred_to_showing_our_own() {
        let best = |scopes: &[&str]| ProbeGrant::best(&granted(scopes));
        assert_eq!(best(&["access:servers", "tokens"]), Some(ProbeGrant::PerServer));
        assert_eq!(best(&["access:servers", "tokens!group=gpu"]), Some(ProbeGrant::PerServer));
        assert_eq!(best(&["access:servers!group=gpu", "read:tokens"]), Some(ProbeGrant::Own));
        assert_eq!(best(&["access:services", "read:tokens", "list:users"]), None);
    }

    #[test]
    fn what_is_not_granted_is_missing() {
        let have = granted(&["list:users", "read:servers", "read:servers:x", "read:users:groups"]);
        let lacking = missing(&have, &needed(Duties { stop: true, groups: true, users: false }));
        assert_eq!(names(&lacking), ["admin:server_state", "delete:servers"]);
    }

    #[test]
    fn a_filtered_scope_is_limited_and_not_missing() {
        let have = granted(&["delete:servers!group=gpu", "delete:servers!user=bob"]);
        let need = [STOP];
        assert_eq!(missing(&have, &need), []);
        let both = ["delete:servers!group=gpu", "delete:servers!user=bob"].map(str::to_owned);
        assert_eq!(limited(&have, &need), [(STOP, both.to_vec())]);
    }

    #[test]
    fn a_full_grant_beside_a_filtered_one_is_not_limited() {
        let have = granted(&["delete:servers", "delete:servers!group=gpu"]);
        assert_eq!(limited(&have, &[STOP]), []);
    }
}

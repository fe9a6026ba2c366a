//! On which machines each running session was found, so that it is known whom a machine's silence concerns.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::domain::{Server, ServerId};

/// All sessions' machines.
#[derive(Debug, Default)]
pub(super) struct Homes(BTreeMap<ServerId, Home>);

/// One session's machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Home {
    started: Option<Timestamp>,
    /// Where a process of it was ever seen.
    pub machines: BTreeSet<String>,
    /// Whether it was looked for on every machine at the same time and found: it is on no other.
    pub settled: bool,
}

impl Homes {
    /// What is known of this run of a server.
    pub fn of(&self, server: &Server) -> Option<&Home> {
        self.0.get(&server.id).filter(|home| home.started == server.started)
    }

    /// The only machines it can be on, where that is settled.
    pub fn only(&self, server: &Server) -> Option<&BTreeSet<String>> {
        self.of(server).filter(|home| home.settled).map(|home| &home.machines)
    }

    /// Remembers where these servers were found; `whole` says that no machine was silent.
    pub fn note<'a, 's>(
        &mut self,
        servers: impl Iterator<Item = &'s Server>,
        found: impl Fn(&ServerId) -> Vec<&'a str>,
        whole: bool,
    ) {
        for server in servers {
            let places = found(&server.id);
            if places.is_empty() && !self.0.contains_key(&server.id) {
                continue; // nothing to remember, and there may be thousands
            }
            let home = self.0.entry(server.id.clone()).or_default();
            if home.started != server.started {
                *home = Home { started: server.started, ..Home::default() };
            }
            home.settled |= whole && !places.is_empty();
            home.machines.extend(places.into_iter().map(str::to_owned));
        }
    }

    /// Forgets servers that are gone.
    pub fn keep_only(&mut self, running: &[Box<Server>]) {
        let running: BTreeSet<&ServerId> = running.iter().map(|server| &server.id).collect();
        self.0.retain(|id, _| running.contains(id));
    }
}

//! A pod, in the words of Kubernetes: as much of it as tells whose cards are whose.

use std::collections::BTreeMap;
use std::fmt;

use core::net::IpAddr;
use jiff::Timestamp;

use super::ServerId;

/// A pod's name. A later pod may have the same: only the uid is unique.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodName {
    /// The namespace it is in.
    pub namespace: String,
    /// Its name there.
    pub name: String,
}

impl PodName {
    /// The pod `name` of `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has no node yet, or its containers are being made.
    Pending,
    /// A container of it runs.
    Running,
    /// All containers ended well; it holds nothing any more.
    Succeeded,
    /// All containers ended, one of them badly; it holds nothing any more.
    Failed,
    /// Its node does not answer, or the API says something else.
    Unknown,
}

/// What a pod that cannot be scheduled lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The resource of which no node has enough, as the cluster names it (`nvidia.com/gpu`).
    pub resource: String,
    /// Since when.
    pub since: Timestamp,
}

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: PodName,
    /// Its uid, which no other pod ever has.
    pub uid: String,
    /// Its labels, without those that belong to the tools that made it.
    pub labels: BTreeMap<String, String>,
    /// Its annotations, likewise.
    pub annotations: BTreeMap<String, String>,
    /// The server of the Hub that its annotations name.
    pub session: Option<ServerId>,
    /// How many of which card resource it asks for (`nvidia.com/gpu`, `nvidia.com/mig-1g.10gb`).
    pub cards: BTreeMap<String, u32>,
    /// Whether it also asks for devices by claims, of which only the claims' own objects tell what they are.
    pub claims: bool,
    /// The node it is on.
    pub node: Option<String>,
    /// Its address in the cluster.
    pub ip: Option<IpAddr>,
    /// The first port that its containers name.
    pub port: Option<u16>,
    /// Where it is in its life.
    pub phase: Phase,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// When its node took it.
    pub started: Option<Timestamp>,
    /// Its priority class.
    pub priority_class: Option<String>,
    /// What keeps it from being scheduled, where that is a card resource it asks for.
    pub wants: Option<Want>,
    /// When its grace ends, where it was told to end.
    pub deletion_timestamp: Option<Timestamp>,
}

impl Phase {
    /// Whether all containers ended, so that no card is held.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl Pod {
    /// A pod of which nothing but its name is known.
    pub fn named(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            name: PodName::new(namespace, name),
            uid: String::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            session: None,
            cards: BTreeMap::new(),
            claims: false,
            node: None,
            ip: None,
            port: None,
            phase: Phase::Unknown,
            created: None,
            started: None,
            priority_class: None,
            wants: None,
            deletion_timestamp: None,
        }
    }

    /// Whether all its containers ended, so that it holds no card.
    pub fn is_over(&self) -> bool {
        self.phase.is_over()
    }

    /// How many cards it asks for, of whatever kind.
    pub fn cards_asked(&self) -> u32 {
        self.cards.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// What it asks for: `2 nvidia.com/gpu`.
    pub fn asks_for(&self) -> String {
        let each = |(resource, count): (&String, &u32)| format!("{count} {resource}");
        self.cards.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    /// Whether its node has given it what it asks for and not taken it back.
    pub fn holds_cards(&self) -> bool {
        self.node.is_some() && !self.is_over() && self.cards_asked() > 0
    }
}

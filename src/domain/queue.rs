//! Who waits for a card.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::ServerId;

/// Everybody who waits, by what they wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// One for each kind of card; none where nobody waits.
    pub lines: Vec<QueueLine>,
}

/// Those who wait for the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueLine {
    /// How many.
    pub count: u32,
    /// For what, as the cluster names it (`nvidia.com/gpu`); absent where the source does not tell.
    pub what: Option<String>,
    /// Since when the first of them waits, where that is known.
    pub since: Option<Timestamp>,
    /// Whose cards would serve them; absent where any would.
    pub served_by: Option<BTreeSet<ServerId>>,
}

impl Queue {
    /// So many wait for any card.
    pub fn of(count: u32) -> Self {
        Self { lines: vec![QueueLine { count, ..QueueLine::default() }] }
    }

    /// How many wait for a card of this server.
    pub fn for_server(&self, server: &ServerId) -> u32 {
        count(self.lines.iter().filter(|line| line.is_served_by(server)))
    }

    /// How many wait, for whatever card.
    pub fn total(&self) -> u32 {
        count(self.lines.iter())
    }

    /// Those who wait for a card of this server, as one line.
    pub fn line_for(&self, server: &ServerId) -> QueueLine {
        let lines: Vec<&QueueLine> = self.lines.iter().filter(|line| line.is_served_by(server)).collect();
        match lines[..] {
            [only] => only.clone(),
            _ => QueueLine {
                count: self.for_server(server),
                since: lines.iter().filter_map(|line| line.since).min(),
                ..QueueLine::default()
            },
        }
    }
}

impl QueueLine {
    /// Whether a card of this server would serve them.
    pub fn is_served_by(&self, server: &ServerId) -> bool {
        self.served_by.as_ref().is_none_or(|servers| servers.contains(server))
    }
}

fn count<'a>(lines: impl Iterator<Item = &'a QueueLine>) -> u32 {
    lines.fold(0, |sum, line| sum.saturating_add(line.count))
}

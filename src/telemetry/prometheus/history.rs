//! What a device did before this service began to watch it: read once, in pieces of bounded size, for the devices
//! that sessions hold, and as much in one look as fits into a few seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::batch::{Batch, Device};
use super::client::Client;
use super::error::PromError;
use super::look::Tenant;
use super::memory::{Memory, Rules};
use super::names::Role;
use super::settings::PrometheusSettings;
use super::state::{State, rules};

/// How long one look may read history.
const BUDGET: Duration = Duration::from_secs(10);

/// About how many samples one answer should hold.
const SAMPLES: i64 = 400_000;

/// The most cards that one query names.
const CARDS: usize = 100;

/// The metrics that history is made of.
const ROLES: [Role; 10] = [
    Role::Engine,
    Role::Dram,
    Role::Sm,
    Role::Tensor,
    Role::Utilization,
    Role::MemoryUtilization,
    Role::Encoder,
    Role::Decoder,
    Role::Energy,
    Role::Power,
];

impl State {
    /// Reads history until all that is wanted is known or the time is up; the next look goes on.
    pub async fn read_history(
        &mut self,
        client: &Client,
        tenants: &[Tenant],
        now: Timestamp,
    ) -> Result<(), PromError> {
        let (settings, began) = (client.settings(), Instant::now());
        let mut wanted = self.wanted(tenants, settings, now);
        while !wanted.is_empty() && began.elapsed() < BUDGET {
            let rest = wanted.split_off(wanted.len().min(CARDS));
            self.recall(client, &wanted, now).await?;
            wanted = rest;
        }
        Ok(())
    }

    /// The devices whose holder began before they were watched, with how far back to read. Those of
    /// like length come together, so that one query fits them all.
    fn wanted(
        &self,
        tenants: &[Tenant],
        settings: &PrometheusSettings,
        now: Timestamp,
    ) -> Vec<(Device, i64)> {
        let furthest =
            now.as_millisecond() - i64::try_from(settings.history.as_millis()).unwrap_or(i64::MAX / 2);
        let begun = |tenant: &Tenant| tenant.started.map_or(furthest, |at| at.as_millisecond().max(furthest));
        let starts: BTreeMap<_, _> = tenants.iter().map(|tenant| (&tenant.workload, begun(tenant))).collect();
        let mut wanted: Vec<(Device, i64)> = Vec::new();
        for (device, memory) in &self.devices {
            let from = memory.holders.keys().filter_map(|holder| starts.get(holder)).min();
            let known = self.recalled.get(device).copied().unwrap_or(i64::MAX).min(memory.begun);
            wanted.extend(from.filter(|from| **from < known).map(|from| (device.clone(), *from)));
        }
        wanted.sort_by_key(|(_, from)| *from);
        wanted
    }

    /// Builds the memory of some devices anew, from the oldest sample on: it then is what it had been if the
    /// service had watched all the time.
    async fn recall(
        &mut self,
        client: &Client,
        wanted: &[(Device, i64)],
        now: Timestamp,
    ) -> Result<(), PromError> {
        let (settings, end) = (client.settings(), now.as_millisecond());
        let rules = rules(settings);
        let Some(oldest) = wanted.iter().map(|(_, from)| *from).min() else { return Ok(()) };
        let scrape = wanted.iter().filter_map(|(device, _)| self.devices.get(device)?.scrape).min();
        let mut piece = Piece::new(wanted.len(), scrape.unwrap_or(rules.reach), oldest, &rules);
        let mut rebuilt: BTreeMap<Device, Memory> = BTreeMap::new();
        while piece.begin < end {
            let until = (piece.begin + piece.length).min(end);
            // What lies before the piece's begin is known; the overlap tells how far each first reading speaks.
            let range = until - piece.begin + 2 * rules.reach;
            let query = query(settings, self.uuid_label.as_deref(), wanted, range);
            let at = Timestamp::from_millisecond(until).unwrap_or(now);
            match client.ranges(&query, at).await {
                Err(PromError::TooLarge { .. }) if piece.shorten(&rules) => continue,
                Err(error) => return Err(error),
                Ok(answer) => {
                    self.cost.add(answer.bytes);
                    let mut batch = Batch::new(self.renamed);
                    batch.add(answer.series, &settings.names);
                    fold(&mut rebuilt, &batch, until, &rules);
                }
            }
            piece.begin = until;
        }
        for (device, from) in wanted {
            if let (Some(new), Some(known)) = (rebuilt.remove(device), self.devices.get_mut(device)) {
                known.rebuild(new);
            }
            self.recalled.insert(device.clone(), *from);
        }
        Ok(())
    }
}

fn fold(rebuilt: &mut BTreeMap<Device, Memory>, batch: &Batch, end: i64, rules: &Rules) {
    for (device, readings) in &batch.devices {
        let Some(first) = readings.slots.keys().next() else { continue };
        let memory =
            rebuilt.entry(device.clone()).or_insert_with(|| Memory::new(*first, device.instance.is_some()));
        memory.fold(readings, batch.pulses.get(&device.uuid), end, rules);
    }
}

/// How much of the past is read at once.
struct Piece {
    begin: i64,
    length: i64,
}

impl Piece {
    fn new(cards: usize, scrape: i64, begin: i64, rules: &Rules) -> Self {
        let series = i64::try_from(cards * ROLES.len()).unwrap_or(i64::MAX).max(1);
        let length = (SAMPLES / series).saturating_mul(scrape.max(1));
        Self { begin, length: length.clamp(4 * rules.reach, 24 * 3_600_000) }
    }

    /// Whether it could be made shorter.
    fn shorten(&mut self, rules: &Rules) -> bool {
        let shorter = self.length / 2 >= rules.reach;
        self.length /= 2;
        shorter
    }
}

fn query(settings: &PrometheusSettings, label: Option<&str>, wanted: &[(Device, i64)], range: i64) -> String {
    let cards: BTreeSet<String> = wanted.iter().map(|(device, _)| escaped(&device.uuid)).collect();
    let cards: Vec<String> = cards.into_iter().collect();
    let mut matchers = settings.matchers.clone();
    matchers.push(format!("{}=~\"{}\"", label.unwrap_or("UUID"), cards.join("|")));
    settings.names.selector(&ROLES, &matchers, range)
}

/// A card's name comes from outside: nothing in it may mean anything in a query.
fn escaped(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => vec![c],
            // A dot matches any character; the answer is sorted by its exact name.
            _ => vec!['.'],
        })
        .collect()
}

#[cfg(test)]
mod tests;

//! What keeps verdicts from being possible, or poor, with the remedy: for `check`.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::look::{Cost, Look, Tenant};
use super::names::Role;
use super::state::State;
use super::{PromError, Prometheus};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern {
    /// As it should be.
    None,
    /// It works, with less.
    Some,
    /// No verdict is possible for those whom it concerns.
    Grave,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// How bad it is.
    pub concern: Concern,
    /// What it is, with the remedy.
    pub words: String,
}

/// Further apart than this, clocks are told about, in seconds.
const APART: i64 = 5;

impl Prometheus {
    /// Looks at everything that verdicts depend on.
    pub async fn examine(&self, tenants: &[Tenant], now: Timestamp) -> Result<Vec<Advice>, PromError> {
        let look = self.look(tenants, now).await?;
        let state = self.state.lock().await;
        let mut all = vec![reached(&look)];
        all.extend(look.troubles.iter().map(|words| grave(words.clone())));
        if !look.devices.is_empty() {
            all.extend(clocks(&state));
            all.extend(missing_metrics(&state));
            all.extend(intervals(&state, self.client.settings().collect_interval.as_millis()));
            all.extend(faults(&look));
            all.extend(sharing(&state, &look));
            all.push(sessions(&look, tenants, now));
        }
        Ok(all)
    }
}

fn reached(look: &Look) -> Advice {
    let hosts = look.devices.iter().filter_map(|device| device.host.as_ref());
    let hosts = hosts.collect::<std::collections::BTreeSet<_>>().len();
    let Cost { queries, bytes } = look.cost;
    let words = format!(
        "{} cards on {hosts} machines; a look takes {queries} queries and {} KiB",
        look.devices.len(),
        bytes / 1024
    );
    Advice { concern: Concern::None, words }
}

fn clocks(state: &State) -> Option<Advice> {
    let ahead = state.ahead.filter(|ahead| ahead.abs() > APART)?;
    let way = if ahead > 0 { "ahead of" } else { "behind" };
    let words = format!(
        "the server's clock is {} s {way} ours: what cards did is seen that much too late, or not at all; keep both in \
         time",
        ahead.abs()
    );
    Some(if ahead.abs() > 30 { grave(words) } else { some(words) })
}

/// The lines to add for what verdicts need, and for what makes them better.
fn missing_metrics(state: &State) -> Vec<Advice> {
    let wanted = [
        (Role::Engine, Concern::Grave),
        (Role::Dram, Concern::Grave),
        (Role::Tensor, Concern::Some),
        (Role::Sm, Concern::Some),
        (Role::Utilization, Concern::Some),
    ];
    let lack = |role: Role| {
        let lacking =
            state.devices.values().filter(|memory| memory.needs(role) && !memory.has_exported(role));
        lacking.count()
    };
    let told = |(role, concern): (Role, Concern)| {
        let without = lack(role);
        (without > 0).then(|| {
            let all = state.devices.len();
            let words = format!(
                "{without} of {all} cards have no {}: add this line to the exporter's CSV file: {}",
                role.key(),
                role.csv()
            );
            Advice { concern, words }
        })
    };
    let dead = state.devices.values().filter(|memory| !memory.has_pulse()).count();
    let pulse = (dead > 0).then(|| {
        let line = Role::Energy.csv();
        grave(format!(
            "{dead} cards tell neither energy nor power, so a hanging exporter would look like rest: {line}"
        ))
    });
    wanted.into_iter().filter_map(told).chain(pulse).collect()
}

/// Scrapes have to be as frequent as readings, or some are never seen.
fn intervals(state: &State, collect: u128) -> Vec<Advice> {
    let collect = i64::try_from(collect).unwrap_or(i64::MAX);
    let scrape = state.devices.values().filter_map(|memory| memory.scrape).max();
    let change = state.devices.values().filter_map(super::memory::Memory::pulse_step).max();
    let seconds =
        |ms: i64| format!("{:.0} s", std::time::Duration::from_millis(ms.unsigned_abs()).as_secs_f64());
    let mut all = Vec::new();
    if let Some(scrape) = scrape.filter(|scrape| *scrape > collect + collect / 10) {
        all.push(grave(format!(
            "cards are scraped every {}, but a reading speaks for {} only: scrape at least that often, or raise the \
             exporter's collect interval (and telemetry.prometheus.collect_interval with it)",
            seconds(scrape),
            seconds(collect)
        )));
    }
    if let Some(change) = change.filter(|change| *change > 2 * collect.max(scrape.unwrap_or(0))) {
        all.push(some(format!(
            "readings change only every {}: set telemetry.prometheus.collect_interval to the exporter's own",
            seconds(change)
        )));
    }
    if all.is_empty() {
        let words = scrape.map(|scrape| {
            format!("scraped every {}, each reading speaks for {}", seconds(scrape), seconds(collect))
        });
        all.extend(words.map(|words| Advice { concern: Concern::None, words }));
    }
    all
}

/// Why cards cannot be judged just now, each reason once.
fn faults(look: &Look) -> Vec<Advice> {
    let mut by_reason: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for device in &look.devices {
        if let Some(why) = &device.sample.unreadable {
            by_reason.entry(why).or_insert((0, &device.sample.id.0)).0 += 1;
        }
    }
    let told =
        |(why, (count, first)): (&str, (usize, &str))| some(format!("{count} cards ({first} …): {why}"));
    by_reason.into_iter().map(told).collect()
}

fn sharing(state: &State, look: &Look) -> Vec<Advice> {
    let shared = look.devices.iter().filter(|device| device.holders.len() > 1).count();
    let instances = state.devices.keys().filter(|device| device.instance.is_some()).count();
    let shared = (shared > 0).then(|| {
        some(format!(
            "{shared} cards are shared by several pods: each of them counts as working while one does"
        ))
    });
    let instances = (instances > 0).then(|| {
        some(format!(
            "{instances} MIG instances are judged by their engines and tensor cores, not by memory, which they share"
        ))
    });
    let strangers = (state.strangers > 0).then(|| {
        some(format!("{} series name no card: see telemetry.prometheus.labels.uuid", state.strangers))
    });
    [shared, instances, strangers].into_iter().flatten().collect()
}

fn sessions(look: &Look, tenants: &[Tenant], now: Timestamp) -> Advice {
    if !look.labels_work() {
        return grave(
            "no card says which pod or job holds it, so no session can be judged: dcgm-exporter needs \
             DCGM_EXPORTER_KUBERNETES=true (or DCGM_HPC_JOB_MAPPING_DIR), or other names in telemetry.prometheus.labels"
                .to_owned(),
        );
    }
    let (mut with, mut without, mut unknown) = (0, 0, BTreeMap::<String, usize>::new());
    for tenant in tenants {
        match look.of(tenant, now) {
            Ok(cards) if cards.is_empty() => without += 1,
            Ok(_) => with += 1,
            Err(why) => *unknown.entry(why).or_default() += 1,
        }
    }
    let lost: usize = unknown.values().sum();
    let first = unknown.keys().next().map(|why| format!(" ({why})")).unwrap_or_default();
    let words = format!(
        "of {} sessions {with} have cards, {without} have none, of {lost} it is not known{first}",
        tenants.len()
    );
    if lost > 0 { some(words) } else { Advice { concern: Concern::None, words } }
}

fn some(words: String) -> Advice {
    Advice { concern: Concern::Some, words }
}

fn grave(words: String) -> Advice {
    Advice { concern: Concern::Grave, words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_apart_are_told_with_by_how_much() {
        let told = |ahead| clocks(&State { ahead, ..State::default() });
        assert_eq!(told(None), None);
        assert_eq!(told(Some(-5)), None);
        let slow = told(Some(-20)).map(|advice| (advice.concern, advice.words.contains("20 s behind ours")));
        assert_eq!(slow, Some((Concern::Some, true)));
        let fast = told(Some(90)).map(|advice| (advice.concern, advice.words.contains("90 s ahead of ours")));
        assert_eq!(fast, Some((Concern::Grave, true)));
    }

    #[test]
    fn where_no_card_names_anybody_no_session_can_be_judged() {
        let none = sessions(&Look::default(), &[], Timestamp::UNIX_EPOCH);
        assert_eq!(none.concern, Concern::Grave);
        assert!(none.words.contains("DCGM_EXPORTER_KUBERNETES"), "{}", none.words);
    }
}

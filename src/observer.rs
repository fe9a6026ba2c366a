//! Joins what the Hub, the single-user servers and the cards say into one snapshot.

mod address;
mod cards;
mod cpu;
mod footprints;
mod kernels;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use url::Url;

use crate::domain::{GpuId, GpuSample, Holder, Jupyter, Server, ServerId, SpawnerState};
use crate::hub::{Hub, HubError, Listing};
use crate::policy::{Session, Snapshot, Thresholds, is_active};
use crate::telemetry::{
    DeviceReading, NvmlSampler, Process, ProcessTable, TelemetryError, members, process_table,
};

pub use cards::{Card, Cards};
use cpu::CpuMeter;
use footprints::Footprints;
use kernels::Asked;
pub use kernels::Kernels;

/// How long a fresh reading of the cards may take before a stop is called off.
const FRESH_WITHIN: Duration = Duration::from_secs(10);

/// The reading side of the world. It can change nothing in it.
#[derive(Debug)]
pub struct Observer {
    hub: Hub,
    kernels: Kernels,
    sampler: Arc<NvmlSampler>,
    thresholds: Thresholds,
    cpu: CpuMeter,
    /// The servers of the last look: who else may own a process.
    running: Vec<(ServerId, SpawnerState)>,
    /// Who held each card when that could last be read.
    holders: BTreeMap<GpuId, Vec<Holder>>,
    /// Which of the Hub's stamps are our own doing.
    footprints: Mutex<Footprints>,
}

/// One look at everything.
#[derive(Debug)]
pub struct Observation {
    /// What the policy judges.
    pub snapshot: Snapshot,
    /// Every card of this machine and who holds it.
    pub cards: Vec<Card>,
    /// What could not be learned, in words for the admin.
    pub troubles: Vec<String>,
}

impl Observer {
    /// Nothing is asked yet.
    pub fn new(hub: Hub, kernels: Kernels, sampler: Arc<NvmlSampler>, thresholds: Thresholds) -> Self {
        Self {
            hub,
            kernels,
            sampler,
            thresholds,
            cpu: CpuMeter::default(),
            running: Vec::new(),
            holders: BTreeMap::new(),
            footprints: Mutex::default(),
        }
    }

    /// Looks at everything once.
    pub async fn observe(&mut self, now: Timestamp) -> Observation {
        let began = Instant::now();
        let mut listing = self.hub.servers().await;
        if let Ok(listing) = &mut listing {
            self.disown_our_stamps(listing);
        }
        // What the cards did while the Hub did not answer is still wanted when it does.
        let readings = if listing.is_ok() { self.sampler.drain() } else { self.sampler.peek() };
        let readings = readings.map(|readings| self.with_holders(readings));
        let table = ProcessTable::read();
        let mut troubles = troubles(listing.as_ref(), readings.as_ref().err());
        let complete = listing.as_ref().is_ok_and(Listing::is_complete);
        let (servers, unlisted) = match listing {
            Ok(listing) => (listing.servers, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        self.running = servers.iter().map(|server| (server.id.clone(), server.spawner.clone())).collect();
        let cards = match (&readings, &table) {
            (Ok(readings), Ok(table)) => Cards::attribute(readings, &self.running, table),
            (Err(error), _) => Cards::unknown(error.to_string()),
            (_, Err(error)) => Cards::unknown(format!("the process table cannot be read: {error}")),
        };
        if let Some(trouble) = cards.trouble().filter(|trouble| !troubles.contains(trouble)) {
            troubles.push(trouble);
        }
        let table = table.ok();
        let cpu = table
            .as_ref()
            .map(|table| self.cpu.measure(&self.running, table, process_table::service_url, now))
            .unwrap_or_default();
        let mut sessions: Vec<Session> =
            servers.into_iter().map(|server| unasked(server, &cards, &cpu)).collect();
        self.ask_kernels(&mut sessions, table.as_ref(), Moment { at: now, began }).await;
        for session in
            sessions.iter_mut().filter(|session| session.gpus.as_ref().is_ok_and(|gpus| !gpus.is_empty()))
        {
            session.holds = cards.holds_of(&session.server.id, session.jupyter.as_ref().ok());
        }
        Observation {
            snapshot: Snapshot {
                at: now,
                complete,
                sessions: unlisted.map_or(Ok(sessions), Err),
                telemetry_down: readings.err().map(|error| error.to_string()),
                waiting: None,
            },
            cards: cards.devices,
            troubles,
        }
    }

    /// A card that fell off the bus lists no processes any more: whoever held it then still does.
    fn with_holders(&mut self, mut readings: Vec<DeviceReading>) -> Vec<DeviceReading> {
        for reading in &mut readings {
            match (&reading.holders, self.holders.get(&reading.sample.id)) {
                (Ok(holders), _) => {
                    self.holders.insert(reading.sample.id.clone(), holders.clone());
                }
                (Err(_), Some(holders)) => reading.holders = Ok(holders.clone()),
                (Err(_), None) => {}
            }
        }
        readings
    }

    /// Looks at one server again, just before it is stopped. `None`: the Hub knows it no longer.
    pub async fn look_again(&self, id: &ServerId, now: Timestamp) -> Result<Option<Session>, String> {
        let moment = Moment { at: now, began: Instant::now() };
        let Some(mut server) = self.hub.server(id).await.map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        self.footprints(|footprints| disown(footprints, &mut server));
        let readings = self.newest_readings().await.map_err(|error| error.to_string())?;
        let table =
            ProcessTable::read().map_err(|error| format!("the process table cannot be read: {error}"))?;
        let mut running: Vec<_> = self.running.iter().filter(|(other, _)| other != id).cloned().collect();
        running.push((id.clone(), server.spawner.clone()));
        let cards = Cards::attribute(&readings, &running, &table);
        let gpus = cards.of(&server);
        let jupyter = self.ask(&server, Some(&table), moment).await;
        let holds = cards.holds_of(id, jupyter.as_ref().ok());
        Ok(Some(Session { server, jupyter, gpus, cpu: None, holds }))
    }

    /// Asks one server, and remembers when that left a trace.
    async fn ask(
        &self,
        server: &Server,
        table: Option<&ProcessTable>,
        moment: Moment,
    ) -> Result<Jupyter, String> {
        let began = moment.now();
        let Asked { jupyter, left_trace } = self.kernels.ask(server, table).await;
        if left_trace {
            self.footprints(|footprints| footprints.left(&server.id, began, moment.now()));
        }
        jupyter
    }

    fn disown_our_stamps(&self, listing: &mut Listing) {
        self.footprints(|footprints| {
            listing.servers.iter_mut().for_each(|server| disown(footprints, server));
            if listing.is_complete() {
                footprints
                    .keep_only(|id| listing.servers.binary_search_by(|server| server.id.cmp(id)).is_ok());
            }
        });
    }

    fn footprints<T>(&self, work: impl FnOnce(&mut Footprints) -> T) -> T {
        work(&mut self.footprints.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the cards did up to this moment, not up to the last poll.
    async fn newest_readings(&self) -> Result<Vec<DeviceReading>, TelemetryError> {
        let sampler = Arc::clone(&self.sampler);
        let asked = Instant::now();
        let poll = tokio::task::spawn_blocking(move || sampler.wait_for_poll(asked, FRESH_WITHIN));
        poll.await.unwrap_or(Err(TelemetryError::Ended))?;
        self.sampler.peek()
    }

    /// The processes of a server, as they are now.
    pub fn processes(&self, id: &ServerId) -> Vec<Process> {
        let Ok(table) = ProcessTable::read() else {
            return Vec::new();
        };
        members(id, &self.running, &table).into_iter().filter_map(|pid| table.get(pid).cloned()).collect()
    }

    /// The processes of a server that are of these kernels.
    pub fn processes_of(&self, id: &ServerId, kernels: &[String]) -> Vec<Process> {
        let Ok(table) = ProcessTable::read() else {
            return Vec::new();
        };
        let of_kernel = |pid: &u32| {
            let kernel = table.ancestry(*pid).into_iter().find_map(process_table::kernel_id);
            kernel.is_some_and(|kernel| kernels.contains(&kernel))
        };
        let all = members(id, &self.running, &table).into_iter().filter(of_kernel);
        all.filter_map(|pid| table.get(pid).cloned()).collect()
    }

    /// Does something to a server at the address where its kernels are asked. What that leaves at the Hub is
    /// known as our own.
    pub async fn at_its_address<T>(
        &self,
        server: &Server,
        now: Timestamp,
        work: impl AsyncFnOnce(&Url) -> T,
    ) -> Result<T, &'static str> {
        let table = ProcessTable::read().ok();
        let address = address::of(server, table.as_ref(), self.kernels.public_url.as_ref());
        let address = address.ok_or("its own address is not known: set hub.public_url")?;
        let moment = Moment { at: now, began: Instant::now() };
        let done = work(&address.base).await;
        if address.through_proxy {
            self.footprints(|footprints| footprints.left(&server.id, now, moment.now()));
        }
        Ok(done)
    }

    /// The kernels of a server as they are now.
    pub async fn kernels(&self, server: &Server, now: Timestamp) -> Result<Jupyter, String> {
        let table = ProcessTable::read().ok();
        self.ask(server, table.as_ref(), Moment { at: now, began: Instant::now() }).await
    }

    /// The Hub's record of one server as it is now.
    pub async fn server(&self, id: &ServerId) -> Result<Option<Server>, HubError> {
        self.hub.server(id).await
    }

    /// Asks the kernels of those servers whose verdict depends on it: a working card needs no question.
    async fn ask_kernels(&self, sessions: &mut [Session], table: Option<&ProcessTable>, moment: Moment) {
        let works = |gpus: &[GpuSample]| gpus.iter().any(|gpu| is_active(gpu, &self.thresholds));
        let counts = |gpus: &[GpuSample]| !gpus.is_empty() && (self.kernels.of_working || !works(gpus));
        let to_ask = sessions.iter_mut().filter(|s| s.gpus.as_ref().is_ok_and(|gpus| counts(gpus)));
        let asked = to_ask.map(|session| async {
            session.jupyter = self.ask(&session.server, table, moment).await;
        });
        futures::stream::iter(asked)
            .for_each_concurrent(self.kernels.concurrency.max(1), |asked| asked)
            .await;
    }
}

/// A session whose kernels were not asked (yet).
fn unasked(server: Server, cards: &Cards, cpu: &BTreeMap<ServerId, f64>) -> Session {
    let gpus = cards.of(&server);
    let why = match &gpus {
        Ok(gpus) if gpus.is_empty() => "not asked: it holds no card",
        Ok(_) => "not asked: a card of it works",
        Err(_) => "not asked: its cards are not known",
    };
    let cpu = cpu.get(&server.id).copied();
    Session { server, jupyter: Err(why.to_owned()), gpus, cpu, holds: Vec::new() }
}

/// An instant, and how to tell the time since.
#[derive(Clone, Copy)]
struct Moment {
    at: Timestamp,
    began: Instant,
}

impl Moment {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.began.elapsed()).unwrap_or(SignedDuration::ZERO);
        self.at.checked_add(passed).unwrap_or(self.at)
    }
}

fn disown(footprints: &mut Footprints, server: &mut Server) {
    server.last_activity = footprints.without_ours(&server.id, server.started, server.last_activity);
}

fn troubles(listing: Result<&Listing, &HubError>, telemetry: Option<&TelemetryError>) -> Vec<String> {
    let mut troubles: Vec<String> = telemetry.map(ToString::to_string).into_iter().collect();
    match listing {
        Err(error) => troubles.push(format!("the servers cannot be listed: {error}")),
        Ok(listing) => {
            troubles.extend(
                listing.incomplete.iter().map(|part| format!("part of the list did not come: {part}")),
            );
            let skipped = listing.skipped.len();
            if skipped > 0 {
                troubles.push(format!("{skipped} entries of the Hub's list could not be read; see the log"));
            }
            if listing.hidden.state > 0 {
                troubles
                    .push("the Hub hides where servers run: grant the scope admin:server_state".to_owned());
            }
        }
    }
    troubles
}

//! Joins what the Hub, the single-user servers and the cards say into one snapshot.

mod address;
mod cards;
mod clocks;
mod cpu;
mod footprints;
mod held;
mod homes;
mod kernels;
mod one;
mod pods;
mod queue;
mod remains;
mod source;
mod told;
mod troubles;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};

use crate::domain::{GpuSample, Pod, Sentences, Server, ServerId, SpawnerState, UserName};
use crate::hub::{Hub, Listing};
use crate::policy::{Session, Snapshot, Thresholds, is_active};
use crate::telemetry::agents::Ask;
use crate::telemetry::{DemandQuery, ProcessTable};

pub use cards::{Card, Cards};
use clocks::Moment;
pub use clocks::SlowClocks;
use cpu::CpuMeters;
use footprints::Footprints;
use held::Held;
use homes::Homes;
pub use kernels::Kernels;
pub use pods::{Pods, Remnant};
pub use remains::Remains;
pub use source::{Resident, Source};
pub use told::tenant;
use told::tenants;
use troubles::troubles;

/// A running server, and what leads to its processes.
type Running = (ServerId, SpawnerState);

/// The reading side of the world. It can change nothing in it.
#[derive(Debug)]
pub struct Observer {
    hub: Hub,
    kernels: Kernels,
    source: Source,
    pods: Pods,
    /// Asked how many wait for a card, where that is set.
    demand: Option<DemandQuery>,
    thresholds: Thresholds,
    cpu: CpuMeters,
    /// The servers of the last look that may own a process of a machine whose cards are read.
    running: Vec<Running>,
    held: Held,
    homes: Homes,
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
    /// Pods that hold cards and are no server's.
    pub pods: Vec<Arc<Pod>>,
    /// Whether the cluster told anything, where one is watched.
    pub cluster_up: Option<bool>,
    /// What could not be learned, in words for the admin.
    pub troubles: Vec<String>,
    /// Whose stamps were taken for later than they say.
    pub slow: SlowClocks,
}

impl Observer {
    /// Nothing is asked yet.
    pub fn new(hub: Hub, kernels: Kernels, source: Source, thresholds: Thresholds) -> Self {
        Self {
            hub,
            kernels,
            source,
            pods: Pods::default(),
            demand: None,
            thresholds,
            cpu: CpuMeters::default(),
            running: Vec::new(),
            held: Held::default(),
            homes: Homes::default(),
            footprints: Mutex::default(),
        }
    }

    /// The same, which also asks how many wait for a card.
    pub fn asking(self, demand: Option<DemandQuery>) -> Self {
        Self { demand, ..self }
    }

    /// Asks a cluster about its pods, too.
    #[must_use]
    pub fn with_pods(self, pods: Pods) -> Self {
        Self { pods, ..self }
    }

    /// Looks at everything once.
    pub async fn observe(&mut self, now: Timestamp) -> Observation {
        let moment = Moment { at: now, began: Instant::now() };
        let (mut listing, waiting) = tokio::join!(self.hub.servers(), self.asked(now));
        let hub_behind = self.hub_behind(moment);
        if let Ok(listing) = &mut listing {
            self.disown_our_stamps(listing, hub_behind);
        }
        let mut troubles = troubles(listing.as_ref());
        let complete = listing.as_ref().is_ok_and(Listing::is_complete);
        // What the cards did while the Hub did not answer is still wanted when it does.
        let ask = if listing.is_ok() { Ask::Next } else { Ask::Again };
        let (mut servers, unlisted) = match listing {
            Ok(listing) => (listing.servers, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        servers.iter_mut().for_each(|server| self.pods.complete(server));
        let cards = self.attribute(ask, &servers, complete, moment).await;
        troubles.extend(cards.troubles());
        troubles.extend(self.pods.troubles());
        let strangers = if complete { self.pods.strangers(&servers) } else { Vec::new() };
        let table = ProcessTable::read().ok();
        let cpu = self.cpu.measure(&cards, &self.running, now);
        self.keep_running_here(&servers, &cards);
        let mut sessions = self.unasked(servers, &cards, &cpu);
        let slow = self.ask_kernels(&mut sessions, table.as_ref(), moment).await;
        let waiting = match waiting {
            None => self.pods.queue(&sessions),
            Some(asked) => asked.map_err(|trouble| troubles.push(trouble)).ok(),
        };
        troubles.extend(clocks::trouble(hub_behind));
        let holding = |session: &&mut Session| session.gpus.as_ref().is_ok_and(|gpus| !gpus.is_empty());
        for session in sessions.iter_mut().filter(holding) {
            session.holds = cards.holds_of(&session.server.id, session.jupyter.as_ref().ok());
        }
        Observation {
            snapshot: Snapshot {
                at: now,
                complete,
                sessions: unlisted.map_or(Ok(sessions), Err),
                telemetry_down: cards.down(),
                waiting,
            },
            cards: cards.devices,
            pods: strangers,
            cluster_up: self.pods.up(),
            troubles,
            slow: SlowClocks { hub: hub_behind, servers: slow },
        }
    }

    /// Looks at the cards, and finds out who holds them.
    async fn attribute(
        &mut self,
        ask: Ask,
        servers: &[Box<Server>],
        complete: bool,
        moment: Moment,
    ) -> Cards {
        self.running = servers.iter().map(|server| (server.id.clone(), server.spawner.clone())).collect();
        let tenants = tenants(servers.iter().map(Box::as_ref));
        let look = self.source.look(ask, &self.running, &tenants, Some(&mut self.held), moment.now());
        let mut cards = look.await;
        cards.devices.iter_mut().for_each(|card| card.workloads.retain(|one| !self.pods.is_gone(one)));
        cards.note(servers.iter().map(Box::as_ref), &mut self.homes);
        if complete {
            self.homes.keep_only(servers);
        }
        cards
    }

    /// Forgets the servers that run on other machines, of which there may be thousands. Those of a user who
    /// also has one here stay, since with them it may be unsure whose a process is.
    fn keep_running_here(&mut self, servers: &[Box<Server>], cards: &Cards) {
        if cards.troubles().next().is_some() {
            return;
        }
        let may_be_here = servers.iter().filter(|server| !server.ready || cards.is_here(&server.id));
        let here: BTreeSet<&UserName> = may_be_here.map(|server| &server.id.user).collect();
        self.running.retain(|(id, _)| here.contains(&id.user));
        self.running.shrink_to_fit();
    }

    /// The sessions, before their kernels are asked.
    fn unasked(
        &self,
        servers: impl IntoIterator<Item = Box<Server>>,
        cards: &Cards,
        cpu: &BTreeMap<ServerId, f64>,
    ) -> Vec<Session> {
        let mut sentences = Sentences::default();
        let session = |mut server: Box<Server>| {
            let gpus = self.cards_of(&server, cards).map_err(|why| sentences.shared(&why));
            if gpus.is_err() {
                server.contacts = Vec::new(); // nobody is written to about it, and there may be thousands
            }
            let why = match &gpus {
                Ok(gpus) if gpus.is_empty() => "not asked: it holds no card",
                Ok(_) => "not asked: a card of it works",
                Err(_) => "not asked: its cards are not known",
            };
            let cpu = cpu.get(&server.id).copied();
            Session { server, jupyter: Err(sentences.shared(why)), gpus, cpu, holds: Vec::new() }
        };
        servers.into_iter().map(session).collect()
    }

    /// The cards of one server, where everything that knows of them agrees.
    fn cards_of(&self, server: &Server, cards: &Cards) -> Result<Vec<GpuSample>, String> {
        self.pods.confirm(server, cards.of(server, &self.homes), cards.are_labelled())
    }

    fn hub_behind(&self, moment: Moment) -> SignedDuration {
        moment.behind(self.hub.dated())
    }

    fn disown_our_stamps(&self, listing: &mut Listing, behind: SignedDuration) {
        self.footprints(|footprints| {
            listing.servers.iter_mut().for_each(|server| disown(footprints, server, behind));
            if listing.is_complete() {
                footprints
                    .keep_only(|id| listing.servers.binary_search_by(|server| server.id.cmp(id)).is_ok());
            }
        });
    }

    /// The looks so far that left a trace.
    pub fn looks(&self) -> Vec<(ServerId, Timestamp, Timestamp)> {
        self.footprints(|footprints| footprints.all().collect())
    }

    /// Looks of other processes of this program.
    pub fn also_looked(&self, looks: &[(ServerId, Timestamp, Timestamp)]) {
        self.footprints(|footprints| {
            looks.iter().for_each(|(id, began, ended)| footprints.also(id, *began, *ended))
        });
    }

    fn footprints<T>(&self, work: impl FnOnce(&mut Footprints) -> T) -> T {
        work(&mut self.footprints.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for a first reading of the cards where the source has to begin with one.
    pub async fn begin(&self, patience: Duration) {
        tokio::join!(self.source.begin(patience), self.pods.begin(patience));
    }

    /// Where the cards are read.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Asks the kernels of those servers whose verdict depends on it: a working card needs no question. By how
    /// much the clocks of some run behind.
    async fn ask_kernels(
        &self,
        sessions: &mut [Session],
        table: Option<&ProcessTable>,
        moment: Moment,
    ) -> BTreeMap<ServerId, SignedDuration> {
        let works = |gpus: &[GpuSample]| gpus.iter().any(|gpu| is_active(gpu, &self.thresholds));
        let counts = |gpus: &[GpuSample]| !gpus.is_empty() && (self.kernels.of_working || !works(gpus));
        let to_ask = sessions.iter_mut().filter(|s| s.gpus.as_ref().is_ok_and(|gpus| counts(gpus)));
        let asked = to_ask.map(|session| async {
            let (jupyter, behind) = self.ask(&session.server, table, moment).await;
            session.jupyter = jupyter;
            (!behind.is_zero()).then(|| (session.server.id.clone(), behind))
        });
        let asked = futures::stream::iter(asked).buffer_unordered(self.kernels.concurrency.max(1));
        asked.filter_map(std::future::ready).collect().await
    }
}

/// The Hub's stamp in our time, and only where it is not our own doing.
fn disown(footprints: &mut Footprints, server: &mut Server, behind: SignedDuration) {
    server.last_activity = clocks::later(server.last_activity, behind);
    server.last_activity = footprints.without_ours(&server.id, server.started, server.last_activity);
}

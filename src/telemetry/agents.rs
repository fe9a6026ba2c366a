//! The cards of other machines, through the agent on each (`gpu-culler agent`).
//!
//! All are asked at the same time, each within a limit of its own. Whatever is wrong with one answer makes
//! that machine silent and no other: nothing of it is known then. What an agent tells goes on where its
//! last good answer ended, so that nothing is lost when an answer is.

mod client;
pub mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use url::Url;

use super::process_table::{boot_id, is_host_pid_namespace};
use super::{Claims, DeviceReading, Machine};
use crate::domain::{GpuId, Ratio};
use client::{Answer, Client};
use wire::{Card, Evidence, Processes, VERSION};

/// How many agents are asked at once.
const AT_ONCE: usize = 64;

/// How far an agent's clock may be from ours: an answer from farther away may be an old one, kept by
/// something in between.
const CLOCKS_APART: SignedDuration = SignedDuration::from_secs(60);

/// How long one that DNS does not name any more is remembered: for as long as it remembers us.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Where the agents are and how they are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentsSettings {
    /// Where.
    pub whom: Whom,
    /// The file with the token that all of them know.
    pub token_file: Option<PathBuf>,
    /// Own authorities; the system's where absent.
    pub ca_file: Option<PathBuf>,
    /// Limit for one answer.
    pub timeout: Duration,
}

/// Which agents there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// These.
    Nodes(Vec<Url>),
    /// One at every address of this name.
    Dns(Url),
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// All since the last answer that was taken; this one is taken.
    Next,
    /// The same, without taking it.
    Again,
    /// The same, up to this moment and not up to the last poll.
    Fresh,
}

/// Reads all agents.
#[derive(Debug)]
pub struct Agents {
    settings: AgentsSettings,
    client: Client,
    readers: Mutex<BTreeMap<String, Reader>>,
    boot: Option<String>,
}

/// What is remembered of one agent.
#[derive(Clone, Debug)]
struct Reader {
    cursor: Option<String>,
    names: BTreeSet<String>,
    listed: Instant,
}

/// One agent to be asked: what it is called, and where it is.
#[derive(Clone, Debug)]
struct Node {
    name: String,
    url: Url,
    at: Option<SocketAddr>,
}

impl Agents {
    /// Nothing is asked yet. Fails where the authorities cannot be read.
    pub fn new(settings: AgentsSettings) -> Result<Self, String> {
        let client = Client::new(&settings)?;
        let boot = boot_id().filter(|_| is_host_pid_namespace());
        Ok(Self { settings, client, readers: Mutex::default(), boot })
    }

    /// Asks all of them. A machine that has two addresses is there once.
    pub async fn look(&self, ask: Ask, now: Timestamp) -> Vec<Machine> {
        self.look_at(ask, now, |_| true).await
    }

    /// Asks some of them, by their machines' names.
    pub async fn look_at(&self, ask: Ask, now: Timestamp, wanted: impl Fn(&str) -> bool) -> Vec<Machine> {
        let began = Instant::now();
        let token = self.client.token();
        let nodes = match self.nodes().await {
            Ok(nodes) => nodes.into_iter().filter(|node| wanted(&node.name)),
            Err(silent) => return silent.into_iter().filter(|machine| wanted(&machine.name)).collect(),
        };
        let asked = nodes.map(|node| {
            let token = token.clone();
            async move {
                let cursor = self.reader(&node).cursor;
                let answer = match token {
                    Ok(token) => {
                        self.client.evidence(&node, token, cursor.as_deref(), ask == Ask::Fresh).await
                    }
                    Err(why) => Err(why),
                };
                let passed = SignedDuration::try_from(began.elapsed()).unwrap_or_default();
                let now = now.checked_add(passed).unwrap_or(now);
                (node, answer.and_then(|answer| judged(answer, now, cursor.as_deref())))
            }
        });
        let answers: Vec<_> = futures::stream::iter(asked).buffered(AT_ONCE).collect().await;
        let mut met = BTreeSet::new();
        answers.into_iter().filter_map(|(node, answer)| self.machine(node, answer, ask, &mut met)).collect()
    }

    /// The agents there are; where their name cannot be resolved, those there were, as silent.
    async fn nodes(&self) -> Result<Vec<Node>, Vec<Machine>> {
        let name = match &self.settings.whom {
            Whom::Nodes(urls) => return Ok(urls.iter().map(Node::named).collect()),
            Whom::Dns(name) => name,
        };
        let why = match addresses(name).await {
            Ok(addresses) => return Ok(addresses.into_iter().map(|at| Node::at(name, at)).collect()),
            Err(why) => why,
        };
        let known = self.lock().clone();
        if known.is_empty() {
            return Err(vec![Machine::silent(name.authority().to_owned(), BTreeSet::new(), &why)]);
        }
        Err(known.into_iter().map(|(name, reader)| Machine::silent(name, reader.names, &why)).collect())
    }

    fn reader(&self, node: &Node) -> Reader {
        let mut readers = self.lock();
        readers.retain(|_, reader| reader.listed.elapsed() < REMEMBERED);
        let new = || Reader { cursor: None, names: node.names(), listed: Instant::now() };
        let reader = readers.entry(node.name.clone()).or_insert_with(new);
        reader.listed = Instant::now();
        reader.clone()
    }

    /// What an answer tells of its machine; `None` where another address led to it already.
    fn machine(
        &self,
        node: Node,
        answer: Result<Judged, String>,
        ask: Ask,
        met: &mut BTreeSet<String>,
    ) -> Option<Machine> {
        let mut readers = self.lock();
        let reader = readers.get_mut(&node.name)?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => {
                let why = format!("{} cannot be asked: {why}", node.name);
                return Some(Machine::silent(node.name, reader.names.clone(), &why));
            }
        };
        if !met.insert(answer.run) {
            return None;
        }
        reader.names.extend(answer.names);
        if ask == Ask::Next {
            reader.cursor = Some(answer.cursor);
        }
        let on = |why: String| format!("{}: {why}", node.name);
        let devices =
            answer.devices.map(|devices| devices.into_iter().map(|d| d.of_node(&node.name)).collect());
        let (processes, claims) = match answer.processes {
            Ok((table, claims)) => (Ok(table), claims),
            Err(why) => (Err(on(why)), Claims::default()),
        };
        Some(Machine {
            names: Some(reader.names.clone()),
            ours: self.boot.as_ref() == Some(&answer.boot),
            devices: devices.map_err(on),
            processes,
            partial: None,
            claims,
            notes: answer.notes,
            name: node.name,
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Reader>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    fn named(url: &Url) -> Self {
        Self { name: url.authority().to_owned(), url: url.clone(), at: None }
    }

    fn at(url: &Url, at: SocketAddr) -> Self {
        Self { name: at.to_string(), url: url.clone(), at: Some(at) }
    }

    /// The names a spawner may know it by. A name with several addresses is nobody's.
    fn names(&self) -> BTreeSet<String> {
        match self.at {
            Some(at) => BTreeSet::from([at.ip().to_string()]),
            None => {
                self.url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned()).into_iter().collect()
            }
        }
    }
}

async fn addresses(name: &Url) -> Result<BTreeSet<SocketAddr>, String> {
    let host = name.host_str().unwrap_or_default();
    let port = name.port_or_known_default().unwrap_or_default();
    let found = tokio::net::lookup_host((host, port)).await;
    let found: BTreeSet<_> = found.map_err(|e| format!("{host} cannot be resolved: {e}"))?.collect();
    if found.is_empty() { Err(format!("{host} has no address: is there no agent?")) } else { Ok(found) }
}

/// An answer that can be used.
struct Judged {
    run: String,
    cursor: String,
    boot: String,
    names: BTreeSet<String>,
    notes: Vec<String>,
    devices: Result<Vec<DeviceReading>, String>,
    processes: Result<(super::ProcessTable, Claims), String>,
}

/// Takes an answer apart, or says why it is of no use.
fn judged(answer: Answer, now: Timestamp, asked_from: Option<&str>) -> Result<Judged, String> {
    let Answer { evidence, from } = answer;
    let Evidence {
        gpu_culler_agent: version,
        release,
        node,
        boot,
        run,
        at,
        since,
        cursor,
        notes,
        cards,
        processes,
    } = evidence;
    if version != VERSION {
        return Err(format!(
            "its agent (gpu-culler {release}) speaks version {version} of the format and we speak {VERSION}: install the same release on both"
        ));
    }
    let apart = at.duration_since(now).abs();
    if apart > CLOCKS_APART {
        return Err(format!("its clock and ours are {} s apart: set both by NTP", apart.as_secs()));
    }
    let went_on = asked_from.is_none() || since.as_deref() == asked_from;
    let doubt = |device| if went_on { device } else { doubted(device) };
    let read =
        |card: Card| card.read().map(doubt).ok_or_else(|| "it tells of a card what cannot be".to_owned());
    let devices = cards.into_result().and_then(|cards| cards.into_iter().map(read).collect());
    let processes = processes.into_result().and_then(|processes: Processes| {
        processes.read().ok_or_else(|| "its list of processes is not whole".to_owned())
    });
    let names = [Some(node), from.map(|at| at.ip().to_string())].into_iter().flatten();
    Ok(Judged {
        notes,
        run,
        cursor,
        boot,
        names: names.filter(|name| !name.is_empty()).collect(),
        devices,
        processes,
    })
}

/// A reading that does not go on where the last one ended: what it shows of work stands, its rest proves
/// nothing.
fn doubted(mut device: DeviceReading) -> DeviceReading {
    let works = |seen: &Ratio| seen.get() > 0.0;
    let sample = &mut device.sample;
    sample.sm = sample.sm.filter(works);
    sample.dram = sample.dram.filter(works);
    for seen in sample.engines.values_mut() {
        *seen = seen.filter(works);
    }
    sample.covered = Duration::ZERO;
    let why = "the agent was restarted, or not asked for long: what the card did meanwhile is not known";
    sample.unreadable.get_or_insert_with(|| why.to_owned());
    device
}

impl DeviceReading {
    /// The stand-in for a card's unknown name is the same on every machine: it is told apart by the node's.
    fn of_node(mut self, node: &str) -> Self {
        if self.sample.id.0.starts_with(super::nvml::UNKNOWN) {
            self.sample.id = GpuId(format!("{}-of-{node}", self.sample.id));
        }
        self
    }
}

#[cfg(test)]
mod tests;

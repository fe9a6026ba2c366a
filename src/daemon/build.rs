//! Wires settings into the parts of a cycle. What the mode does not need is not made.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::cycle::Cycle;
use crate::executor::{Asked, Executor, Inbox, Journal, Post, Setbacks, Users};
use crate::hub::{
    self, Duties, Hub, HubError, KernelStopper, ProbeGrant, ProbeSettings, ProbeToken, Prober, ScopeNeed,
    Stopper, TokenMinter, UserRemover,
};
use crate::notify::Mailer;
use crate::observer::{Kernels, Observer, Pods, Source};
use crate::policy::{CullUsers, KernelSource, Mode, Policy};
use crate::settings::{self, PostSettings, Settings};
use crate::store::Store;
use crate::telemetry::{Agents, DemandQuery, NvmlSampler, Prometheus};

/// How long the first reading of the cards may take before the first look goes ahead without it.
const FIRST_READING: Duration = Duration::from_secs(5);

/// The reading side, with the policy as far as the token's scopes carry it.
#[derive(Debug)]
pub struct Parts {
    /// Reads.
    pub observer: Observer,
    /// Decides.
    pub policy: Policy,
    /// What an admin should know.
    pub notes: Vec<String>,
    /// What allows asking kernels, where anything does.
    pub probing: Option<ProbeGrant>,
}

/// Makes the reading side. Fails, in words for the admin, where the Hub cannot be reached or a scope
/// is missing without which nothing can be known.
pub async fn parts(settings: &Settings) -> Result<Parts, String> {
    let hub = Hub::new(settings.hub.clone()).map_err(|error| error.to_string())?;
    let mut policy = settings.policy.clone();
    let granted = hub.identity().await.map_err(|error| error.to_string())?.scopes;
    let mut needs = hub::needed(duties(settings));
    refuse_without(&hub::missing(&granted, &needs))?;
    let probing = ProbeGrant::best(&granted).filter(|_| settings.probe_kernels);
    needs.extend(probing.map(ProbeGrant::need));
    let mut notes = limited(&hub::limited(&granted, &needs));
    notes.extend(note_on(probing));
    notes.extend(kernels_needed(&policy, probing));
    if policy.mode == Mode::Enforce && !policy.can_warn {
        notes.push("Cards are not taken back: without a [mail] section nobody can be warned.".to_owned());
    }
    if probing.is_none() {
        policy.kernels = KernelSource::HubOnly;
    }
    let prober = probing.map(|grant| prober(settings, grant));
    let prober = prober.transpose().map_err(|error| error.to_string())?;
    let kernels = Kernels {
        prober,
        public_url: settings.public_url.clone(),
        of_working: policy.needs_kernels(),
        concurrency: settings.hub.concurrency,
    };
    let observer = Observer::new(hub, kernels, source(&settings.source)?, policy.thresholds);
    let observer = observer.asking(demand(settings)?).with_pods(pods(settings).await?);
    Ok(Parts { observer, policy, notes, probing })
}

/// Begins to watch the cluster, where one is named.
pub async fn pods(settings: &Settings) -> Result<Pods, String> {
    let Some(kubernetes) = &settings.kubernetes else { return Ok(Pods::default()) };
    let cluster = Cluster::start(kubernetes.cluster.clone()).await.map_err(|error| error.to_string())?;
    Ok(Pods::new(cluster, kubernetes.direct))
}

/// Opens the source of readings.
pub fn source(settings: &settings::Source) -> Result<Source, String> {
    Ok(match settings {
        settings::Source::Nvml(nvml) => Source::Nvml(Arc::new(NvmlSampler::start(nvml.clone()))),
        settings::Source::Agents(agents) => Source::Agents(Box::new(Agents::new(agents.clone())?)),
        settings::Source::Prometheus(prometheus) => {
            let opened = Prometheus::new((**prometheus).clone()).map_err(|error| error.to_string())?;
            Source::Prometheus(Box::new(opened))
        }
    })
}

/// Whom it is asked how many wait for a card.
pub fn demand(settings: &Settings) -> Result<Option<DemandQuery>, String> {
    let query = settings
        .demand
        .as_ref()
        .map(|demand| DemandQuery::new((*demand.server).clone(), demand.promql.clone(), demand.section));
    query.transpose().map_err(|error| error.to_string())
}

/// What the settings ask of the token.
pub fn duties(settings: &Settings) -> Duties {
    let stop = settings.policy.mode == Mode::Enforce;
    Duties {
        stop,
        groups: settings.policy.rules.iter().any(|rule| rule.matches.groups.is_some()),
        users: stop && settings.cull_users.is_some(),
    }
}

/// Makes everything a cycle needs.
pub async fn cycle(settings: &Settings, inbox: Inbox) -> Result<(Cycle, Vec<String>), String> {
    let Parts { observer, policy, notes, probing } = parts(settings).await?;
    // The first look would otherwise come before the first reading.
    observer.begin(FIRST_READING).await;
    let store = Store::open(&settings.store).map_err(|error| error.to_string())?;
    let journal = Journal::open(store).map_err(|error| error.to_string())?;
    let executor = executor(settings, inbox, probing)?;
    Ok((Cycle { observer, executor, journal, policy, orphans: Vec::new() }, notes))
}

/// In `observe` nothing that writes or stops exists; in `warn` nothing that stops.
fn executor(settings: &Settings, inbox: Inbox, probing: Option<ProbeGrant>) -> Result<Executor, String> {
    let mode = settings.policy.mode;
    let post = match settings.post.as_ref().filter(|_| mode >= Mode::Warn) {
        Some(post) => Some(self::post(post, mode, settings)?),
        None => None,
    };
    let stopper = match mode {
        Mode::Enforce => Some(Stopper::new(settings.hub.clone()).map_err(|error| error.to_string())?),
        Mode::Observe | Mode::Warn => None,
    };
    let users = settings.cull_users.as_ref().filter(|_| mode == Mode::Enforce);
    let users = users.map(|cull| users_of(settings, cull)).transpose().map_err(|error| error.to_string())?;
    let kernels = probing.filter(|_| mode == Mode::Enforce && settings.policy.needs_kernels());
    let kernels = kernels.map(|grant| kernel_stopper(settings, grant)).transpose();
    let kernels = kernels.map_err(|error| error.to_string())?;
    Ok(Executor { post, stopper, kernels, inbox, users })
}

fn kernel_stopper(settings: &Settings, grant: ProbeGrant) -> Result<KernelStopper, HubError> {
    let token = match grant {
        ProbeGrant::PerServer => ProbeToken::PerServer(TokenMinter::for_stops(&settings.hub)?),
        ProbeGrant::Own => ProbeToken::Own(settings.hub.token.clone()),
    };
    let public_url = settings.public_url.clone();
    KernelStopper::new(token, ProbeSettings { public_url, ..(&settings.hub).into() })
}

fn users_of(settings: &Settings, cull: &CullUsers) -> Result<Users, HubError> {
    Ok(Users::new(Hub::new(settings.hub.clone())?, UserRemover::new(&settings.hub)?, cull.clone()))
}

fn post(settings: &PostSettings, mode: Mode, all: &Settings) -> Result<Post, String> {
    Ok(Post {
        domain: settings.mail.from.email.domain().to_owned(),
        mailer: Mailer::new(settings.mail.clone()).map_err(|error| error.to_string())?,
        wording: settings.wording.clone(),
        addresses: settings.addresses.clone(),
        admins: settings.admins.clone(),
        zone: settings.zone.clone(),
        limits: settings.limits,
        setbacks: Setbacks::new(all.cycle),
        asked: Asked::default(),
        page: all.page.as_ref().map(ToString::to_string),
        stops_follow: mode == Mode::Enforce,
    })
}

fn prober(settings: &Settings, grant: ProbeGrant) -> Result<Prober, HubError> {
    let token = match grant {
        ProbeGrant::PerServer => ProbeToken::PerServer(TokenMinter::new(&settings.hub)?),
        ProbeGrant::Own => ProbeToken::Own(settings.hub.token.clone()),
    };
    let public_url = settings.public_url.clone();
    Prober::new(token, ProbeSettings { public_url, ..(&settings.hub).into() })
}

/// What an admin should know about how kernels are asked.
pub fn note_on(probing: Option<ProbeGrant>) -> Option<String> {
    let note = match probing {
        Some(ProbeGrant::PerServer) => return None,
        Some(ProbeGrant::Own) => {
            "Kernels are asked with the service's own token, which users could read from their servers: grant the \
             scope tokens instead of access:servers, so that each server is asked with a token good for nothing else."
        }
        None => {
            "Kernels are not asked (hub.probe_kernels is off, or the scope tokens is missing): the Hub's activity \
             counts as use, so that an open tab holds its card longer."
        }
    };
    Some(note.to_owned())
}

/// What cannot be done where kernels may not be asked.
pub fn kernels_needed(policy: &Policy, probing: Option<ProbeGrant>) -> Option<String> {
    (policy.needs_kernels() && probing.is_none()).then(|| {
        "action = \"stop-kernels\" and interrupt cannot work where kernels may not be asked: set hub.probe_kernels and \
         grant the scope tokens. Until then no kernel is shut down, and nothing is interrupted before a stop."
            .to_owned()
    })
}

fn refuse_without(missing: &[ScopeNeed]) -> Result<(), String> {
    if missing.is_empty() {
        return Ok(());
    }
    let each: Vec<String> = missing.iter().map(|need| format!("{} ({})", need.scope, need.why)).collect();
    Err(format!(
        "the service's role lacks scopes: {}; add them to its role in jupyterhub_config.py",
        each.join(", ")
    ))
}

fn limited(limited: &[(ScopeNeed, Vec<String>)]) -> Vec<String> {
    let words = |(_, filters): &(ScopeNeed, Vec<String>)| {
        format!("The token is limited to some people ({}); others are not seen.", filters.join(", "))
    };
    limited.iter().map(words).collect()
}

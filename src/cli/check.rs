//! `check`: the doctor. One line for each thing the service needs, with the remedy.

mod demand;
mod cluster;
mod rules;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Format, say, say_json};
use crate::daemon;
use crate::hub::{self, Hub, Listing, ProbeGrant};
use crate::message::{Kind, Mail};
use crate::notify::{Mailer, OutgoingMail, mask};
use crate::observer;
use crate::settings::{PostSettings, Settings, Source, Sources};
use crate::store::Store;
use crate::telemetry::agents::Ask;
use crate::telemetry::prometheus::{Advice, Concern};
use crate::telemetry::{
    Agents, AgentsSettings, DeviceReading, Machine, NvmlSampler, NvmlSettings, ProcessTable, Prometheus,
    PrometheusSettings, TelemetryError,
};

/// How long the cards may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    grade: Grade,
    words: String,
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grade {
    Fine,
    /// It works, with less.
    Note,
    /// It keeps the service from working.
    Wrong,
}

/// Checks everything, and sends a sample mail where an address is given; `false` where something keeps the service from working.
pub async fn run(sources: &Sources, sample_to: Option<&str>, format: Format) -> anyhow::Result<bool> {
    let findings = match sources.load() {
        Err(error) => vec![wrong("config", error)],
        Ok(settings) => examine(&settings, sources, sample_to).await,
    };
    for finding in &findings {
        print(finding, format);
    }
    Ok(findings.iter().all(|finding| finding.grade != Grade::Wrong))
}

async fn examine(settings: &Settings, sources: &Sources, sample_to: Option<&str>) -> Vec<Finding> {
    let file =
        sources.file.as_ref().map_or_else(|| "no file; the defaults".to_owned(), |f| f.display().to_string());
    let mut findings = vec![fine("config", format!("{file}; mode {}", settings.policy.mode))];
    findings.extend(hub(settings).await);
    findings.extend(cards(settings).await);
    findings.extend(cluster::cluster(settings).await);
    findings.extend(demand::demand(settings).await);
    findings.extend(rules::rules(settings).await);
    findings.push(ledger(settings));
    findings.push(mail(settings, sample_to).await);
    findings
}

async fn hub(settings: &Settings) -> Vec<Finding> {
    let hub = match Hub::new(settings.hub.clone()) {
        Ok(hub) => hub,
        Err(error) => return vec![wrong("hub", error)],
    };
    let reached = match hub.info().await {
        Err(error) => return vec![wrong("hub", error)],
        Ok(info) => fine("hub", format!("JupyterHub {} at {}", info.version, settings.hub.api_url)),
    };
    let identity = match hub.identity().await {
        Err(error) => return vec![reached, wrong("scopes", error)],
        Ok(identity) => identity,
    };
    let mut findings = vec![reached];
    findings.extend(scopes(&identity.scopes, settings));
    findings.push(match hub.servers().await {
        Err(error) => wrong("servers", error),
        Ok(listing) => servers(&listing),
    });
    findings
}

fn scopes(granted: &BTreeSet<String>, settings: &Settings) -> Vec<Finding> {
    let needs = hub::needed(daemon::duties(settings));
    let missing = hub::missing(granted, &needs).into_iter();
    let missing = missing.map(|need| {
        wrong("scopes", format!("{} is missing: {}; add it to the service's role", need.scope, need.why))
    });
    let limited = hub::limited(granted, &needs).into_iter();
    let limited = limited.map(|(need, filters)| {
        note("scopes", format!("{} holds for some only: {}", need.scope, filters.join(", ")))
    });
    let probing = ProbeGrant::best(granted).filter(|_| settings.probe_kernels);
    let needed = daemon::kernels_needed(&settings.policy, probing).map(|words| wrong("scopes", words));
    let probing = daemon::note_on(probing).map(|words| note("scopes", words));
    let found: Vec<Finding> = missing.chain(limited).chain(needed).chain(probing).collect();
    if found.is_empty() {
        return vec![fine("scopes", format!("all that mode {} needs", settings.policy.mode))];
    }
    found
}

fn servers(listing: &Listing) -> Finding {
    let count = listing.servers.len();
    if !listing.is_complete() {
        let lost = listing.skipped.len() + listing.incomplete.len();
        return wrong("servers", format!("{count} listed, but {lost} parts of the list could not be read"));
    }
    fine("servers", format!("{count} running"))
}

async fn cards(settings: &Settings) -> Vec<Finding> {
    match &settings.source {
        Source::Nvml(nvml) => own_cards(nvml.clone()).await,
        Source::Agents(agents) => others_cards(agents.clone()).await,
        Source::Prometheus(prometheus) => labelled_cards(prometheus, settings).await,
    }
}

async fn labelled_cards(prometheus: &PrometheusSettings, settings: &Settings) -> Vec<Finding> {
    let servers = match Hub::new(settings.hub.clone()) {
        Ok(hub) => hub.servers().await.map(|listing| listing.servers).unwrap_or_default(),
        Err(_) => Vec::new(), // said of the Hub already
    };
    let tenants: Vec<_> = servers.iter().filter_map(|server| observer::tenant(server)).collect();
    let examined = match Prometheus::new(prometheus.clone()) {
        Ok(prometheus) => prometheus.examine(&tenants, daemon::now()).await,
        Err(error) => Err(error),
    };
    let finding = |advice: Advice| match advice.concern {
        Concern::None => fine("cards", advice.words),
        Concern::Some => note("cards", advice.words),
        Concern::Grave => wrong("cards", advice.words),
    };
    match examined {
        Err(error) => vec![wrong("cards", error)],
        Ok(all) => all.into_iter().map(finding).collect(),
    }
}

async fn others_cards(settings: AgentsSettings) -> Vec<Finding> {
    let machines = match Agents::new(settings) {
        Err(why) => return vec![wrong("agents", why)],
        Ok(agents) => agents.look(Ask::Next, daemon::now()).await,
    };
    machines.iter().flat_map(machine).collect()
}

fn machine(machine: &Machine) -> Vec<Finding> {
    let name = &machine.name;
    let devices = match &machine.devices {
        Err(why) => return vec![wrong("agents", why)],
        Ok(devices) => devices,
    };
    let mut findings: Vec<Finding> = devices.iter().map(card).collect();
    findings.extend(machine.notes.iter().map(|words| note("agents", format!("{name}: {words}"))));
    findings.push(match (&machine.processes, devices.is_empty()) {
        (Err(why), _) => wrong("attribution", why),
        (Ok(_), true) => {
            wrong("agents", format!("{name} answers, but has no card: is it the one with the GPUs?"))
        }
        (Ok(table), false) => fine(
            "agents",
            format!("{name}: {} cards, {} processes seen", devices.len(), table.iter().count()),
        ),
    });
    findings
}

async fn own_cards(settings: NvmlSettings) -> Vec<Finding> {
    let sampler = NvmlSampler::start(settings);
    let readings = tokio::task::spawn_blocking(move || {
        sampler.wait_for_poll(Instant::now(), PATIENCE)?;
        Ok::<_, TelemetryError>((sampler.peek()?, sampler.lacking()))
    });
    let (readings, lacking) = match readings.await {
        Ok(Ok(told)) => told,
        Ok(Err(error)) => return vec![wrong("cards", error)],
        Err(error) => return vec![wrong("cards", error)],
    };
    let mut findings: Vec<Finding> = readings.iter().map(card).collect();
    findings.extend(lacking.into_iter().map(|words| note("cards", words)));
    if readings.is_empty() {
        findings.push(wrong("cards", "NVML works, but there is no card: is this the machine with the GPUs?"));
    }
    findings.push(match ProcessTable::of_machine().map(|table| table.partial()) {
        Ok(None) => fine("attribution", "sees the machine's processes".to_owned()),
        Ok(Some(why)) | Err(why) => wrong("attribution", why),
    });
    findings
}

fn card(reading: &DeviceReading) -> Finding {
    let name = format!("{} {}", reading.sample.id, reading.sample.model);
    match (&reading.sample.unreadable, &reading.holders) {
        (Some(why), _) => {
            note("cards", format!("{name}: its activity cannot be read ({why}); never taken for idle"))
        }
        (None, Err(why)) => note("cards", format!("{name}: its processes cannot be listed: {why}")),
        (None, Ok(holders)) => fine("cards", format!("{name}: readable, {} processes", holders.len())),
    }
}

fn ledger(settings: &Settings) -> Finding {
    let path = settings.store.display();
    match Store::examine(&settings.store) {
        Err(error) => wrong("ledger", error),
        Ok(None) => fine("ledger", format!("{path} will be made at the first start")),
        Ok(Some(ledger)) => fine("ledger", format!("{path}, {} sessions", ledger.records.len())),
    }
}

async fn mail(settings: &Settings, sample_to: Option<&str>) -> Finding {
    let Some(post) = &settings.post else {
        return note("mail", "no [mail] section: only mode observe is possible");
    };
    let mailer = match Mailer::new(post.mail.clone()) {
        Err(error) => return wrong("mail", error),
        Ok(mailer) => mailer,
    };
    if let Some(to) = sample_to {
        return sample(&mailer, post, to).await;
    }
    match mailer.check().await {
        Err(error) => wrong("mail", error),
        Ok(()) => fine("mail", format!("{} accepts us; nothing was sent", post.mail.server)),
    }
}

/// Sends one mail the whole way.
async fn sample(mailer: &Mailer, post: &PostSettings, to: &str) -> Finding {
    let Mail { subject, text, html } = match post.wording.sample(Kind::Warning) {
        Err(error) => return wrong("mail", error),
        Ok(mail) => mail,
    };
    let outgoing = OutgoingMail {
        to: to.to_owned(),
        subject: format!("TEST {subject}"),
        text,
        html,
        message_id: format!("test.{}@{}", daemon::now().as_millisecond(), post.mail.from.email.domain()),
        in_reply_to: None,
    };
    match mailer.deliver(&outgoing).await {
        Err(error) => wrong("mail", error),
        Ok(receipt) => fine("mail", format!("a sample went to {}: {}", mask(to), receipt.answer)),
    }
}

fn fine(what: &'static str, words: String) -> Finding {
    Finding { what, grade: Grade::Fine, words }
}

fn note(what: &'static str, words: impl ToString) -> Finding {
    Finding { what, grade: Grade::Note, words: words.to_string() }
}

fn wrong(what: &'static str, words: impl ToString) -> Finding {
    Finding { what, grade: Grade::Wrong, words: words.to_string() }
}

fn print(finding: &Finding, format: Format) {
    let Finding { what, grade, words } = finding;
    let grade = match grade {
        Grade::Fine => "ok",
        Grade::Note => "note",
        Grade::Wrong => "wrong",
    };
    match format {
        Format::Text => say(&format!("{grade:<6} {what:<12} {words}")),
        Format::Json => say_json(&json!({ "what": what, "grade": grade, "words": words })),
    }
}

//! `check`: the doctor. One line for each thing the service needs, with the remedy.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Format, say, say_json};
use crate::daemon;
use crate::hub::{self, Hub, Listing, ProbeGrant};
use crate::notify::Mailer;
use crate::settings::{Settings, Sources};
use crate::store::Store;
use crate::telemetry::process_table::is_host_pid_namespace;
use crate::telemetry::{DeviceReading, NvmlSampler};

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

/// Checks everything; `false` where something keeps the service from working.
pub async fn run(sources: &Sources, format: Format) -> anyhow::Result<bool> {
    let findings = match sources.load() {
        Err(error) => vec![wrong("config", error)],
        Ok(settings) => examine(&settings, sources).await,
    };
    for finding in &findings {
        print(finding, format);
    }
    Ok(findings.iter().all(|finding| finding.grade != Grade::Wrong))
}

async fn examine(settings: &Settings, sources: &Sources) -> Vec<Finding> {
    let file =
        sources.file.as_ref().map_or_else(|| "no file; the defaults".to_owned(), |f| f.display().to_string());
    let mut findings = vec![fine("config", format!("{file}; mode {}", settings.policy.mode))];
    findings.extend(hub(settings).await);
    findings.extend(cards(settings).await);
    findings.push(ledger(settings));
    findings.push(mail(settings).await);
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
    let needs = hub::needed(daemon::duties(&settings.policy));
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
    let sampler = NvmlSampler::start(settings.nvml.clone());
    let readings = tokio::task::spawn_blocking(move || {
        sampler.wait_for_poll(Instant::now(), PATIENCE)?;
        sampler.peek()
    });
    let readings = match readings.await {
        Ok(Ok(readings)) => readings,
        Ok(Err(error)) => return vec![wrong("cards", error)],
        Err(error) => return vec![wrong("cards", error)],
    };
    let mut findings: Vec<Finding> = readings.iter().map(card).collect();
    if readings.is_empty() {
        findings.push(wrong("cards", "NVML works, but there is no card: is this the machine with the GPUs?"));
    }
    findings.push(if is_host_pid_namespace() {
        fine("attribution", "sees the machine's processes".to_owned())
    } else {
        wrong("attribution", "does not see the machine's processes: run it in the host's pid namespace")
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

async fn mail(settings: &Settings) -> Finding {
    let Some(post) = &settings.post else {
        return note("mail", "no [mail] section: only mode observe is possible");
    };
    let mailer = match Mailer::new(post.mail.clone()) {
        Err(error) => return wrong("mail", error),
        Ok(mailer) => mailer,
    };
    match mailer.check().await {
        Err(error) => wrong("mail", error),
        Ok(()) => fine("mail", format!("{} accepts us; nothing was sent", post.mail.server)),
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

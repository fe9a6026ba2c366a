//! Where the cards are read.

use std::time::Duration;

use url::Url;

use super::{SettingsError, raw, std};
use crate::telemetry::agents::Whom;
use crate::telemetry::{AgentsSettings, NvmlSettings};

/// The source of readings.
#[derive(Clone, Debug)]
pub enum Source {
    /// This machine's own cards.
    Nvml(NvmlSettings),
    /// Other machines' cards, through their agents.
    Agents(AgentsSettings),
}

pub(super) fn source(file: &raw::Telemetry) -> Result<Source, SettingsError> {
    match file.source {
        None | Some(raw::Source::Nvml) => Ok(Source::Nvml(nvml(&file.nvml))),
        Some(raw::Source::Agents) => agents(file.agents.as_ref()).map(Source::Agents),
        Some(raw::Source::Prometheus) => {
            Err(SettingsError::key("telemetry.source", "this version knows \"nvml\" and \"agents\" only"))
        }
    }
}

pub(super) fn nvml(file: &raw::Nvml) -> NvmlSettings {
    let default = NvmlSettings::default();
    NvmlSettings { library: file.library.clone(), poll: file.poll.map_or(default.poll, |poll| std(poll.0)) }
}

fn agents(file: Option<&raw::Agents>) -> Result<AgentsSettings, SettingsError> {
    let none = raw::Agents::default();
    let file = file.unwrap_or(&none);
    let whom = match (&file.nodes[..], &file.dns) {
        ([], None) => Err(SettingsError::key(
            "telemetry.source",
            "\"agents\" needs [telemetry.agents] with nodes = [\"https://gpu1:9410\"] or dns = \"name:port\"",
        )),
        ([_, ..], Some(_)) => Err(SettingsError::key("telemetry.agents.dns", "give nodes or dns, not both")),
        (nodes, None) => Ok(Whom::Nodes(nodes.iter().map(|node| address(node)).collect::<Result<_, _>>()?)),
        ([], Some(name)) => dns(name).map(Whom::Dns),
    }?;
    Ok(AgentsSettings {
        whom,
        token_file: file.token_file.clone(),
        ca_file: file.ca_file.clone(),
        timeout: file.timeout.map_or(Duration::from_secs(10), |time| std(time.0)),
    })
}

fn address(node: &str) -> Result<Url, SettingsError> {
    let bad = || {
        let what = format!("\"{node}\" is no address of an agent: write it like \"https://gpu1:9410\"");
        SettingsError::key("telemetry.agents.nodes", what)
    };
    let url = Url::parse(node).map_err(|_| bad())?;
    let whole = matches!(url.scheme(), "http" | "https") && url.host().is_some() && url.path() == "/";
    let bare = url.query().is_none() && url.username().is_empty() && url.password().is_none();
    if whole && bare { Ok(url) } else { Err(bad()) }
}

/// A name without a scheme is asked over TLS.
fn dns(name: &str) -> Result<Url, SettingsError> {
    let text = if name.contains("://") { name.to_owned() } else { format!("https://{name}") };
    let url = address(&text).ok().filter(|url| url.domain().is_some() && url.port().is_some());
    url.ok_or_else(|| {
        let what = format!("\"{name}\" is no name of agents: write it like \"gpu-agents.example.org:9410\"");
        SettingsError::key("telemetry.agents.dns", what)
    })
}

//! What the agent on a GPU node needs to know.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{SettingsError, Sources, raw, read, telemetry};
use crate::telemetry::NvmlSettings;

/// Only this machine can reach it, which needs no token.
const LISTEN: &str = "127.0.0.1:9410";

/// Everything the agent needs.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// Where it answers.
    pub listen: SocketAddr,
    /// The file with the token that readers must show.
    pub token_file: Option<PathBuf>,
    /// Certificate and key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The cards.
    pub nvml: NvmlSettings,
}

/// What the command line says; wins over the file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AgentFlags {
    /// Where to answer (default 127.0.0.1:9410)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// The file with the token that readers must show
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The certificate chain, in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_cert_file: Option<PathBuf>,
    /// The certificate's key, in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_key_file: Option<PathBuf>,
}

impl Sources {
    /// Reads and checks what the agent needs; of the rest of the file only its keys.
    pub fn load_agent(&self, flags: &AgentFlags) -> Result<AgentSettings, SettingsError> {
        let (file, text) = read(self.file.as_deref())?;
        settings(&file, flags).map_err(|error| match &self.file {
            Some(path) if error.file.is_none() => error.locate(&text).in_file(path),
            _ => error,
        })
    }
}

fn settings(file: &raw::File, flags: &AgentFlags) -> Result<AgentSettings, SettingsError> {
    let raw = &file.agent;
    let listen = flags.listen.as_ref().or(raw.listen.as_ref()).map_or(LISTEN, String::as_str);
    let listen: SocketAddr = listen.parse().map_err(|_| {
        let what = format!("\"{listen}\" is no address to listen on: write it like \"0.0.0.0:9410\"");
        SettingsError::key("agent.listen", what)
    })?;
    let token_file = flags.token_file.as_ref().or(raw.token_file.as_ref()).cloned();
    if token_file.is_none() && !listen.ip().is_loopback() {
        let what = "others can reach this address: set agent.token_file to a file with a long random token";
        return Err(SettingsError::key("agent.listen", what));
    }
    let cert = flags.tls_cert_file.as_ref().or(raw.tls_cert_file.as_ref());
    let key = flags.tls_key_file.as_ref().or(raw.tls_key_file.as_ref());
    let tls = match (cert, key) {
        (None, None) => None,
        (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
        (Some(_), None) => {
            return Err(SettingsError::key("agent.tls_cert_file", "needs agent.tls_key_file, too"));
        }
        (None, Some(_)) => {
            return Err(SettingsError::key("agent.tls_key_file", "needs agent.tls_cert_file, too"));
        }
    };
    Ok(AgentSettings { listen, token_file, tls, nvml: telemetry::nvml(&file.telemetry.nvml) })
}

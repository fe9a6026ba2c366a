//! The agent's process: starts the sampler and the answering, and hears signals.

use std::net::SocketAddr;

use anyhow::anyhow;
use axum_server::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{now, release};
use crate::agent::{self, Agent, Identity, Token};
use crate::settings::{AgentFlags, Sources};
use crate::telemetry::NvmlSampler;

/// Runs until it is told to end.
pub async fn agent(sources: &Sources, flags: &AgentFlags) -> anyhow::Result<()> {
    let settings = sources.load_agent(flags)?;
    let token = settings.token_file.map(Token::open).transpose().map_err(|problem| anyhow!(problem))?;
    if settings.tls.is_none() && !settings.listen.ip().is_loopback() {
        tracing::warn!("answers go out in plain text: set agent.tls_cert_file and agent.tls_key_file");
    }
    let signals = Signals::new()?;
    let identity = settings.tls.map(|(cert_file, key_file)| Identity { cert_file, key_file });
    let agent = Agent::new(NvmlSampler::start(settings.nvml), token, now)?;
    let handle = Handle::<SocketAddr>::new();
    let hearing = tokio::spawn(signals.hear(agent.clone(), handle.clone()));
    let served = agent::serve(agent, settings.listen, identity, handle).await;
    hearing.abort();
    served
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    release: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            release: signal(SignalKind::user_defined1())?,
        })
    }

    /// Ends the answering at the signals to end, and lets NVML go at SIGUSR1.
    async fn hear(mut self, agent: Agent, handle: Handle<SocketAddr>) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => break,
                _ = self.terminate.recv() => break,
                _ = self.release.recv() => release::toggle(&agent.sampler),
            }
        }
        tracing::info!("ended");
        agent::end(&handle);
    }
}

//! TLS towards the Hub and its proxy, where `internal_ssl` is on and the service's `url` says https.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::serve::Listener;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::hub::TlsFiles;

/// How long a visitor may take to say hello.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// Visitors in the middle of their hello, at most.
const WAITING: usize = 64;

/// Accepts those connections whose other end shows a certificate of the Hub's own authorities.
#[derive(Debug)]
pub struct TlsListener {
    address: SocketAddr,
    greeted: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    _greeter: JoinSet<()>,
}

impl TlsListener {
    /// Takes over a bound listener.
    pub fn new(listener: TcpListener, files: &TlsFiles) -> io::Result<Self> {
        let acceptor = TlsAcceptor::from(Arc::new(config(files).map_err(io::Error::other)?));
        let address = listener.local_addr()?;
        let (sender, greeted) = mpsc::channel(WAITING);
        let mut greeter = JoinSet::new();
        greeter.spawn(greet(listener, acceptor, sender));
        Ok(Self { address, greeted, _greeter: greeter })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.greeted.recv().await {
            Some(visitor) => visitor,
            None => std::future::pending().await, // the greeter never ends before us
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// Each hello in a task of its own, so that a visitor who stays silent keeps nobody waiting.
async fn greet(
    mut listener: TcpListener,
    acceptor: TlsAcceptor,
    sender: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let mut hellos = JoinSet::new();
    loop {
        let (stream, from) = Listener::accept(&mut listener).await;
        while hellos.len() >= WAITING {
            hellos.join_next().await;
        }
        while hellos.try_join_next().is_some() {}
        let (acceptor, sender) = (acceptor.clone(), sender.clone());
        hellos.spawn(async move {
            match tokio::time::timeout(HELLO_WITHIN, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => {
                    let _ = sender.send((stream, from)).await;
                }
                Ok(Err(error)) => tracing::debug!(%from, %error, "no TLS connection"),
                Err(_) => tracing::debug!(%from, "no TLS connection: it stayed silent"),
            }
        });
    }
}

fn config(files: &TlsFiles) -> Result<ServerConfig, String> {
    let (Some(identity), Some(ca_file)) = (&files.identity, &files.ca_file) else {
        return Err(
            "the service's `url` is https, but there is no certificate: switch internal_ssl on, or write http"
                .to_owned(),
        );
    };
    let mut authorities = RootCertStore::empty();
    let (_, refused) = authorities.add_parsable_certificates(certificates(ca_file)?);
    if refused > 0 || authorities.is_empty() {
        return Err(format!("{} holds certificates that cannot be used", ca_file.display()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let visitors =
        WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&provider)).build();
    let key = PrivateKeyDer::from_pem_file(&identity.key_file)
        .map_err(|why| unreadable(&identity.key_file, &why))?;
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(visitors.map_err(|error| error.to_string())?)
        .with_single_cert(certificates(&identity.cert_file)?, key)
        .map_err(|error| format!("{} does not fit its key: {error}", identity.cert_file.display()))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    all.map_err(|why| unreadable(file, &why))
}

fn unreadable(file: &Path, why: &rustls::pki_types::pem::Error) -> String {
    format!(
        "cannot read {}: {why}. JupyterHub names these files relative to its own folder: \
         a service with another `cwd` or `user` may not reach them",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    #[tokio::test]
    async fn https_without_certificates_says_what_to_do() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let error = TlsListener::new(listener, &TlsFiles::default()).unwrap_err();
        assert!(error.to_string().contains("switch internal_ssl on, or write http"), "{error}");
    }
}

//! Connections, with an end to everybody's patience.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::{Pages, router};

/// Connections at once, at most. The proxy opens one for each request on its way.
const AT_ONCE: usize = 512;

/// How long visitors may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// To send the head of a request.
    pub head: Duration,
    /// To send the body of a request.
    pub body: Duration,
    /// To take the whole of one exchange, our own answer included.
    pub exchange: Duration,
    /// For the loop to see to a wish.
    pub answer: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            exchange: Duration::from_secs(120),
            answer: Duration::from_secs(45),
        }
    }
}

/// Answers requests until the process ends.
pub async fn serve(listener: TcpListener, pages: &Pages) -> std::io::Result<()> {
    let router = router(pages);
    let patience = pages.0.patience;
    let room = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let permit = Arc::clone(&room).acquire_owned().await.ok(); // never closed
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // No file left, or the visitor went away: neither ends the service.
                tracing::debug!(%error, "a connection could not be taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let router = router.clone();
        tokio::spawn(async move {
            let _permit = permit;
            let _ = tokio::time::timeout(patience.exchange, connection(stream, router, patience)).await;
        });
    }
}

async fn connection(stream: TcpStream, router: Router, patience: Patience) {
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.head)
        .max_buf_size(64 << 10)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection ended early");
    }
}

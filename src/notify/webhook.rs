//! Announces what happened to a chat (Slack, Mattermost, Teams bridges) or any other HTTP endpoint.
//! Nobody counts as warned by it.

use std::path::PathBuf;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use reqwest::{Certificate, StatusCode, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::mpsc;
use url::Url;

use super::{DeliveryError, NotifyError};

/// Announcements that may wait for an endpoint in trouble. Older news helps nobody.
const WAITING: usize = 64;

/// Where announcements go.
#[derive(Clone, Debug)]
pub struct WebhookSettings {
    /// The endpoint. Whoever knows it may write there, so it is shown nowhere.
    pub url: SecretString,
    /// Certificates to trust besides those of the system (PEM).
    pub ca_file: Option<PathBuf>,
    /// The longest wait for an answer.
    pub timeout: Duration,
}

/// One endpoint.
pub struct Webhook {
    client: reqwest::Client,
    url: Url,
}

impl Webhook {
    /// Checks the settings; connects to nothing yet.
    pub fn new(settings: &WebhookSettings) -> Result<Self, NotifyError> {
        let url = Url::parse(settings.url.expose_secret())
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or(NotifyError::WebhookUrl)?;
        // Whoever installed one first has the same one: only ring is compiled in.
        rustls::crypto::ring::default_provider().install_default().ok();
        let failed = |reason: String| NotifyError::Tls { server: host(&url), reason };
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("gpu-culler/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .timeout(settings.timeout);
        if let Some(path) = &settings.ca_file {
            let pem =
                std::fs::read(path).map_err(|source| NotifyError::CaFile { path: path.clone(), source })?;
            let authorities = Certificate::from_pem_bundle(&pem).map_err(|e| failed(cause(e)))?;
            builder = builder.tls_certs_merge(authorities);
        }
        let client = builder.build().map_err(|e| failed(cause(e)))?;
        Ok(Self { client, url })
    }

    /// Posts one announcement as JSON. Tries once.
    pub async fn post(&self, body: &Value) -> Result<(), DeliveryError> {
        let asked = self.client.post(self.url.clone()).json(body).send().await;
        let status = asked.map_err(|e| DeliveryError::Retryable(self.tell(&cause(e))))?.status();
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Err(DeliveryError::Retryable(self.tell(&format!("it answered {status}"))))
            }
            status if status.is_client_error() || status.is_redirection() => {
                let what = format!("it answered {status}; check [webhook] url_file");
                Err(DeliveryError::Permanent(self.tell(&what)))
            }
            status => Err(DeliveryError::Retryable(self.tell(&format!("it answered {status}")))),
        }
    }

    fn tell(&self, what: &str) -> String {
        format!("webhook at {}: {what}", host(&self.url))
    }
}

/// What may be shown of a URL.
fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// The innermost cause, which names no URL.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Posts in the background, so that a slow endpoint delays nobody.
#[derive(Debug)]
pub struct Announcer {
    queue: mpsc::Sender<Value>,
}

impl Announcer {
    /// Begins to post what is announced, one after the other, each tried a few times.
    pub fn start(webhook: Webhook) -> Self {
        let (queue, mut announced) = mpsc::channel::<Value>(WAITING);
        tokio::spawn(async move {
            while let Some(body) = announced.recv().await {
                let posted = (|| webhook.post(&body))
                    .retry(
                        ExponentialBuilder::default()
                            .with_min_delay(Duration::from_secs(1))
                            .with_max_times(4),
                    )
                    .when(|error| matches!(error, DeliveryError::Retryable(_)))
                    .await;
                if let Err(error) = posted {
                    tracing::warn!("an announcement is lost: {error}");
                }
            }
        });
        Self { queue }
    }

    /// Queues an announcement.
    pub fn announce(&self, body: Value) {
        if self.queue.try_send(body).is_err() {
            tracing::warn!("an announcement is lost: {WAITING} others still wait for the webhook");
        }
    }
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("host", &host(&self.url)).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use serde_json::json;
    use wiremock::matchers::{body_json, header, method, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    fn settings(url: &str) -> WebhookSettings {
        WebhookSettings { url: url.to_owned().into(), ca_file: None, timeout: Duration::from_secs(5) }
    }

    fn webhook(server: &MockServer) -> Webhook {
        Webhook::new(&settings(&format!("{}/services/T0/secret", server.uri()))).unwrap()
    }

    async fn answering(status: u16) -> MockServer {
        let server = MockServer::start().await;
        let answer = ResponseTemplate::new(status).insert_header("location", "http://127.0.0.1:9/");
        Mock::given(method("POST")).respond_with(answer).mount(&server).await;
        server
    }

    #[tokio::test]
    async fn an_announcement_arrives_as_json() {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .and(path("/services/T0/secret"))
            .and(header("content-type", "application/json"))
            .and(body_json(json!({ "text": "hello" })))
            .respond_with(ResponseTemplate::new(200))
            .expect(1)
            .mount(&server)
            .await;
        webhook(&server).post(&json!({ "text": "hello" })).await.unwrap();
    }

    #[tokio::test]
    async fn trouble_is_tried_again_a_refusal_is_not_and_neither_names_the_secret() {
        for (status, again) in
            [(429, true), (500, true), (503, true), (400, false), (404, false), (302, false)]
        {
            let error = webhook(&answering(status).await).post(&json!({})).await.unwrap_err();
            assert_eq!(matches!(error, DeliveryError::Retryable(_)), again, "{status}");
            let text = format!("{error}");
            assert!(text.contains(&status.to_string()) && text.contains("127.0.0.1"), "{text}");
            assert!(!text.contains("secret"), "{text}");
        }
    }

    #[tokio::test]
    async fn nobody_there_is_trouble_without_the_secret() {
        let nobody = Webhook::new(&settings("http://127.0.0.1:9/services/secret")).unwrap();
        let error = nobody.post(&json!({})).await.unwrap_err();
        assert!(matches!(error, DeliveryError::Retryable(_)));
        assert!(!format!("{error} {nobody:?}").contains("secret"), "{error}");
    }

    #[tokio::test]
    async fn what_is_announced_is_tried_until_it_is_taken() {
        let server = answering(200).await;
        let first = Mock::given(method("POST")).respond_with(ResponseTemplate::new(503));
        first.up_to_n_times(1).with_priority(1).expect(1).mount(&server).await;
        let announcer = Announcer::start(webhook(&server));
        announcer.announce(json!({ "text": "stopped" }));
        let taken = async {
            while server.received_requests().await.unwrap().len() < 2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), taken).await.unwrap();
    }

    #[test]
    fn what_is_no_address_is_refused_and_not_repeated() {
        for url in ["", "hooks.example.org/secret", "ftp://hooks.example.org/secret", "https:///"] {
            let text = Webhook::new(&settings(url)).unwrap_err().to_string();
            assert!(text.contains("[webhook] url_file") && !text.contains("secret"), "{text}");
        }
    }
}

//! The way to the API server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, Config};
use tower::util::MapResponseLayer;

use super::error::innermost;
use super::wire::Trimmed;
use super::{ClusterError, ClusterSettings, Namespaces};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// No server is waited for longer, whatever it asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// A client, and what the server told it to do.
#[derive(Clone)]
pub struct Connection {
    client: Client,
    wait: Arc<Mutex<Option<Duration>>>,
}

impl Connection {
    /// Reads the configuration anew, since what it names may have been renewed, and makes a client of it.
    pub async fn open(settings: &ClusterSettings) -> Result<Self, ClusterError> {
        // Whoever comes first chooses the provider; all of this program choose the same.
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut config = config(settings).await?;
        config.connect_timeout = Some(CONNECT);
        config.default_retry = false; // what fails is told, and tried again by whoever asked
        let wait = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&wait);
        let note = MapResponseLayer::new(move |response: hyper::Response<_>| {
            let after = response.headers().get(hyper::header::RETRY_AFTER);
            let seconds = after.and_then(|after| after.to_str().ok()?.parse().ok());
            let told = seconds.map(|seconds| Duration::from_secs(seconds).min(LONGEST_WAIT));
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = told;
            response
        });
        // A credential plugin is a program that is waited for.
        let made = tokio::task::spawn_blocking(move || {
            ClientBuilder::try_from(config).map(|builder| builder.with_layer(&note).build())
        });
        let client = made.await.map_err(|error| ClusterError::BadConfig(error.to_string()))?;
        Ok(Self { client: client.map_err(|error| ClusterError::BadConfig(innermost(&error)))?, wait })
    }

    /// The pods of one namespace, or of all.
    pub(super) fn pods(&self, namespace: Option<&str>) -> Api<Trimmed> {
        let pods = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &pods),
            None => Api::all_with(self.client.clone(), &pods),
        }
    }

    /// The client, for other questions.
    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    /// How long the last answer asked us to wait, if it did.
    pub(super) fn told_to_wait(&self) -> Option<Duration> {
        self.wait.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The namespaces to watch; `None` stands for all.
pub(super) async fn namespaces(settings: &ClusterSettings) -> Result<Vec<Option<String>>, ClusterError> {
    let own = config(settings).await?.default_namespace;
    Ok(match &settings.namespaces {
        Namespaces::Own => vec![Some(own)],
        Namespaces::Named(named) => named.iter().cloned().map(Some).collect(),
        Namespaces::All => vec![None],
    })
}

/// What is told explicitly, else the service account of the pod we run in, else the usual kubeconfig.
async fn config(settings: &ClusterSettings) -> Result<Config, ClusterError> {
    let options = KubeConfigOptions { context: settings.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &settings.kubeconfig {
        let bad = |error: kube::config::KubeconfigError| {
            ClusterError::BadConfig(format!("{}: {}", path.display(), innermost(&error)))
        };
        let file = Kubeconfig::read_from(path).map_err(bad)?;
        return Config::from_custom_kubeconfig(file, &options).await.map_err(bad);
    }
    let in_pod = match &settings.context {
        Some(_) => None,
        None => Config::incluster().ok(),
    };
    match in_pod {
        Some(config) => Ok(config),
        None => {
            let none = |error: kube::config::KubeconfigError| ClusterError::NoConfig(innermost(&error));
            Config::from_kubeconfig(&options).await.map_err(none)
        }
    }
}

//! The pods of a cluster, through the Kubernetes API: whose they are, what cards they ask for, where they run.
//!
//! Each namespace is listed once and then watched (`watch.rs`). Of a pod only what tells about cards is kept, and
//! pods that have nothing to do with any are forgotten at once (`wire.rs`). A namespace of which nothing was heard
//! for a while is unknown and says why; it is never an empty one (`seen.rs`).

mod connection;
mod doctor;
mod error;
mod seen;
mod settings;
mod watch;
mod wire;

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub use connection::Connection;
pub use doctor::{Advice, examine};
pub use error::ClusterError;
pub use settings::{ClusterSettings, Namespaces};

use crate::domain::{Pod, PodName};
use seen::Seen;
use watch::Watch;

/// The pods of the namespaces that are watched.
#[derive(Debug)]
pub struct Cluster {
    places: Vec<Place>,
    /// Told whenever something was heard of one of them.
    news: Arc<Notify>,
}

/// One namespace, or all of them.
#[derive(Debug)]
struct Place {
    /// `None`: all.
    namespace: Option<String>,
    seen: Arc<Mutex<Seen>>,
    watching: JoinHandle<()>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Cluster {
    /// Begins to watch. Only a configuration that cannot be read is an error: whatever is wrong with the server
    /// is said by the pods that are not known.
    pub async fn start(settings: ClusterSettings) -> Result<Self, ClusterError> {
        let namespaces = connection::namespaces(&settings).await?;
        let settings = Arc::new(settings);
        let news = Arc::new(Notify::new());
        let place = |namespace: Option<String>| {
            let seen = Seen::new(namespace.as_deref(), settings.patience, Arc::clone(&news));
            let seen = Arc::new(Mutex::new(seen));
            let watch = Watch::new(namespace.clone(), Arc::clone(&settings), Arc::clone(&seen));
            Place { namespace, seen, watching: tokio::spawn(watch.follow()) }
        };
        let places = namespaces.into_iter().map(place).collect();
        Ok(Self { places, news })
    }

    /// Waits until every namespace is listed, or the patience ends. That one is not is shown by what follows.
    pub async fn begin(&self, patience: Duration) {
        let listed = async {
            loop {
                let mut heard = pin!(self.news.notified());
                heard.as_mut().enable(); // what comes while it is looked counts
                if self.places.iter().all(|place| place.look(|seen| seen.known().is_ok())) {
                    return;
                }
                heard.await;
            }
        };
        let _ = tokio::time::timeout(patience, listed).await;
    }

    /// A pod as it is now; `Ok(None)`: there is certainly none that matters. `Err` says why that is not known.
    pub fn pod(&self, name: &PodName) -> Result<Option<Arc<Pod>>, String> {
        let watched = |place: &&Place| place.namespace.as_ref().is_none_or(|own| *own == name.namespace);
        let place = self.places.iter().find(watched).ok_or_else(|| {
            format!(
                "the namespace {} is not watched: add it to [kubernetes] namespaces, and grant list and watch on pods \
                 there",
                name.namespace
            )
        })?;
        place.look(|seen| Ok(seen.known()?.get(name).map(|found| found.0.clone())))
    }

    /// Every pod that matters, of the namespaces that are known just now.
    pub fn pods(&self) -> Vec<Arc<Pod>> {
        let all = |seen: &Seen| -> Vec<_> {
            seen.known().into_iter().flatten().map(|found| found.0.clone()).collect()
        };
        self.places.iter().flat_map(|place| place.look(all)).collect()
    }

    /// The pods that wait for a card, or why that is not known.
    pub fn waiting(&self) -> Result<Vec<Arc<Pod>>, String> {
        match self.troubles().into_iter().next() {
            Some(why) => Err(why),
            None => Ok(self.pods().into_iter().filter(|pod| pod.wants.is_some()).collect()),
        }
    }

    /// Why namespaces are not known, in words for the admin.
    pub fn troubles(&self) -> Vec<String> {
        self.places.iter().filter_map(|place| place.look(|seen| seen.known().err())).collect()
    }
}

impl Place {
    fn look<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&seen::locked(&self.seen))
    }
}

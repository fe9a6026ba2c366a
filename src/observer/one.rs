//! A closer look at one server: before it is stopped, while it is, and after.

use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use url::Url;

use super::clocks::{Moment, corrected};
use super::kernels::Asked;
use super::source::Resident;
use super::told::tenants;
use super::{Observer, address, disown};
use crate::domain::{Jupyter, Server, ServerId};
use crate::hub::HubError;
use crate::policy::{Session, Why};
use crate::telemetry::ProcessTable;
use crate::telemetry::agents::Ask;

impl Observer {
    /// Looks at one server again, just before it is stopped. `None`: the Hub knows it no longer.
    pub async fn look_again(&self, id: &ServerId, now: Timestamp) -> Result<Option<Session>, String> {
        let moment = Moment { at: now, began: Instant::now() };
        let Some(mut server) = self.hub.server(id).await.map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        self.pods.complete(&mut server);
        let behind = self.hub_behind(moment);
        self.footprints(|footprints| disown(footprints, &mut server, behind));
        let mut running: Vec<_> = self.running.iter().filter(|(other, _)| other != id).cloned().collect();
        running.push((id.clone(), server.spawner.clone()));
        let (tenants, only) = (tenants([&server].into_iter()), self.homes.only(&server));
        let cards = self.source.look_fresh(&running, &tenants, only, moment.now()).await;
        let gpus = self.cards_of(&server, &cards).map_err(Why::from);
        let table = ProcessTable::read().ok();
        let (jupyter, _) = self.ask(&server, table.as_ref(), moment).await;
        let holds = cards.holds_of(id, jupyter.as_ref().ok());
        Ok(Some(Session { server: Box::new(server), jupyter, gpus, cpu: None, holds }))
    }

    /// Asks one server, and remembers when that left a trace.
    pub(super) async fn ask(
        &self,
        server: &Server,
        table: Option<&ProcessTable>,
        moment: Moment,
    ) -> (Result<Jupyter, Why>, SignedDuration) {
        let began = moment.now();
        let Asked { jupyter, left_trace, dated } = self.kernels.ask(server, table, &self.pods).await;
        if left_trace {
            self.footprints(|footprints| footprints.left(server, began, moment.now()));
        }
        let behind = moment.behind(dated);
        (jupyter.map(|jupyter| corrected(jupyter, behind)).map_err(Why::from), behind)
    }

    /// The processes of a server, wherever they are, as they are now.
    pub async fn processes(&self, id: &ServerId, now: Timestamp) -> Vec<Resident> {
        self.source.look(Ask::Again, &self.running, &[], None, now).await.processes_of(id, &self.running)
    }

    /// Those of these processes that still run.
    pub async fn still_running(&self, before: &[Resident], now: Timestamp) -> Vec<Resident> {
        if before.is_empty() { Vec::new() } else { self.source.still_running(before, now).await }
    }

    /// The processes of these kernels of a server that are on a card, as they are now.
    pub async fn on_cards(&self, id: &ServerId, kernels: &[String], now: Timestamp) -> Vec<Resident> {
        self.source.look(Ask::Again, &self.running, &[], None, now).await.on_cards(id, kernels, &self.running)
    }

    /// Does something to a server at the address where its kernels are asked. What that leaves at the Hub is
    /// known as our own.
    pub async fn at_its_address<T>(
        &self,
        server: &Server,
        now: Timestamp,
        work: impl AsyncFnOnce(&Url) -> T,
    ) -> Result<T, &'static str> {
        let table = ProcessTable::read().ok();
        let address = address::of(server, table.as_ref(), &self.pods, self.kernels.public_url.as_ref());
        let address = address.ok_or("its own address is not known: set hub.public_url")?;
        let moment = Moment { at: now, began: Instant::now() };
        let done = work(&address.base).await;
        if address.through_proxy {
            self.footprints(|footprints| footprints.left(server, now, moment.now()));
        }
        Ok(done)
    }

    /// The kernels of a server as they are now.
    pub async fn kernels(&self, server: &Server, now: Timestamp) -> Result<Jupyter, Why> {
        let table = ProcessTable::read().ok();
        self.ask(server, table.as_ref(), Moment { at: now, began: Instant::now() }).await.0
    }

    /// The Hub's record of one server as it is now.
    pub async fn server(&self, id: &ServerId) -> Result<Option<Server>, HubError> {
        self.hub.server(id).await
    }
}

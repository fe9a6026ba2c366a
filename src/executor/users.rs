//! Deletes users who were away for long: lists them, asks about each again just before, and looks whether
//! the Hub has done it.

use std::time::Instant;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};

use super::{Clock, Happening};
use crate::domain::{Account, ServerId, ServerName, UserName};
use crate::hub::{Hub, HubError, UserRemover};
use crate::message::reasons;
use crate::policy::{Action, CullUsers, Ledger, Plan, Safety, UserStays};

/// Users deleted at once. The Hub only waits for its spawner meanwhile.
const AT_ONCE: usize = 10;
/// The list of everybody is long, and nobody is away for long within a minute.
const LOOK_EVERY: SignedDuration = SignedDuration::from_hours(1);

/// The one part that deletes users. It is made only in the mode `enforce`, and only where somebody asks.
#[derive(Debug)]
pub struct Users {
    hub: Hub,
    remover: UserRemover,
    cull: CullUsers,
    next: Option<Timestamp>,
}

impl Users {
    /// Nothing is asked yet.
    pub fn new(hub: Hub, remover: UserRemover, cull: CullUsers) -> Self {
        Self { hub, remover, cull, next: None }
    }

    /// Deletes as many as the brakes allow; what came of it, and what an admin has to mend.
    pub async fn remove_absent(
        &mut self,
        plan: &Plan,
        ledger: &Ledger,
        safety: &Safety,
        clock: Clock,
    ) -> (Vec<Happening>, Vec<String>) {
        let now = clock();
        let ready = ledger.began.and_then(|began| began.checked_add(safety.min_uptime).ok());
        if plan.freeze.is_frozen() || ready.max(self.next).is_some_and(|next| now < next) {
            return (Vec::new(), Vec::new());
        }
        let hubs_now = self.hub_time(now);
        let away = |account: &Account| self.cull.away_since(account, ledger, hubs_now).is_ok();
        let listed = match self.hub.inactive_users(away).await {
            Ok(listed) => listed,
            Err(error) => return (Vec::new(), vec![format!("the users cannot be listed: {error}")]),
        };
        let stops = plan.decisions.iter().filter(|d| d.action == Some(Action::Stop)).count();
        let budget = safety.max_stops.of(listed.seen).saturating_sub(stops);
        let all_done = listed.wanted.len() <= budget;
        let removals = listed.wanted.into_iter().take(budget).map(|account| account.name);
        let removals = removals.map(|name| self.remove(name, ledger, clock));
        let happened = futures::stream::iter(removals).buffer_unordered(AT_ONCE).collect().await;
        // The rest has its turn in the next cycle.
        self.next = all_done.then(|| self.look_again_at(now));
        (happened, listed.troubles)
    }

    fn look_again_at(&self, now: Timestamp) -> Timestamp {
        let pause = (self.cull.inactive_after / 2).min(LOOK_EVERY);
        now.checked_add(pause).unwrap_or(now)
    }

    /// The Hub's time where its clock runs behind ours: by ours its users would have been away for longer.
    fn hub_time(&self, now: Timestamp) -> Timestamp {
        let behind = self.hub.dated().map(|dated| dated.behind(now, Instant::now()));
        now.checked_sub(behind.unwrap_or_default()).unwrap_or(now)
    }

    async fn remove(&self, name: UserName, ledger: &Ledger, clock: Clock) -> Happening {
        let outcome = self.try_to_remove(&name, ledger, clock).await;
        let id = ServerId { user: name, name: ServerName::default() };
        let held_back =
            |why| Happening::to(&id, clock(), "held-back", format!("the user is not deleted: {why}"));
        match outcome {
            Ok(since) => Happening::to(
                &id,
                clock(),
                "user-deleted",
                format!("not there since {}", reasons::time(since)),
            ),
            Err(Stays::Spared(why)) => held_back(format!("just before, {}", reasons::user_stays(why))),
            Err(Stays::Failed(why)) => held_back(why)
                .because_of(Some("a user could not be deleted; the log says which and why".to_owned())),
        }
    }

    async fn try_to_remove(
        &self,
        name: &UserName,
        ledger: &Ledger,
        clock: Clock,
    ) -> Result<Timestamp, Stays> {
        let account = self.hub.account(name).await?;
        let account = account.ok_or_else(|| Stays::Failed("the Hub knows the user no longer".to_owned()))?;
        let since = self.cull.away_since(&account, ledger, self.hub_time(clock())).map_err(Stays::Spared)?;
        self.remover.remove(name).await?;
        match self.hub.account(name).await? {
            None => Ok(since),
            Some(_) => Err(Stays::Failed("the Hub said yes, but still has the user".to_owned())),
        }
    }
}

/// Why a user was not deleted, or not for certain.
enum Stays {
    Spared(UserStays),
    Failed(String),
}

impl From<HubError> for Stays {
    fn from(error: HubError) -> Self {
        Self::Failed(error.to_string())
    }
}

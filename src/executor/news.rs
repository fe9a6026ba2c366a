//! Mails that nothing depends on: that a warning was taken back, that a kernel has waited for long.
//!
//! Each is sent once: it is saved as told before it goes, and put back only where the mail server was in
//! trouble. Whoever had a letter in the same cycle hears in the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use futures::StreamExt;
use jiff::Timestamp;

use super::letter::{letters, session_of};
use super::post::trouble;
use super::{Clock, Happening, Journal, Post};
use crate::domain::{Server, ServerId, UserName};
use crate::message::{Mail, WaitingKernel, WaitingNotice, WithdrawnNotice, WithdrawnSession, WordingError};
use crate::notify::{DeliveryError, mask};
use crate::observer::Observer;
use crate::policy::{Action, Decision, Plan, Snapshot, Verdict, Waiting, Warning};
use crate::store::StoreError;

/// Mails on their way at the same time.
const AT_ONCE: usize = 8;

/// One mail of one kind to one owner.
pub struct News {
    owner: Box<Server>,
    /// What it says of each server.
    pub items: Vec<Item>,
}

/// What it says of one server.
pub struct Item {
    /// Which server.
    pub server: ServerId,
    verdict: Verdict,
    about: About,
}

enum About {
    /// This warning was taken back.
    Withdrawn(Warning),
    /// These kernels wait.
    Waits(Vec<Waiting>),
}

impl Post {
    /// Sends the news of a plan: at most one mail per owner.
    pub async fn deliver_news(
        &self,
        plan: &Plan,
        seen: &Snapshot,
        journal: &mut Journal,
        observer: &Observer,
        clock: Clock,
        happened: &mut Vec<Happening>,
    ) -> Result<(), StoreError> {
        let mut due = Vec::new();
        for news in news(plan, seen, journal) {
            news.begins(journal, clock())?;
            match self.address(&news.owner, observer, clock()).await {
                Some(to) => due.push((to, news)),
                None => happened.extend(news.items.iter().map(|item| item.untold(clock()))),
            }
        }
        let sent = due.into_iter().map(|(to, news)| async move {
            let answer = self.send_news(&to, &news, clock()).await;
            (to, news, answer)
        });
        let mut sent = futures::stream::iter(sent).buffer_unordered(AT_ONCE);
        while let Some((to, news, answer)) = sent.next().await {
            happened.extend(news.ends(&to, answer, journal, clock())?);
        }
        Ok(())
    }

    async fn send_news(&self, to: &str, news: &News, now: Timestamp) -> Result<(), DeliveryError> {
        let mail = self.written(news, now).map_err(|error| DeliveryError::Retryable(error.to_string()))?;
        let first = news.items.iter().find_map(Item::warning).map(|warning| warning.message_id.clone());
        let message_id = match &first {
            Some(warning) => format!("withdrawn.{warning}"),
            None => self.id(&news.name()),
        };
        self.deliver(to, mail, message_id, first).await
    }

    fn written(&self, news: &News, now: Timestamp) -> Result<Mail, WordingError> {
        let (owner, zone, page) = (news.owner.id.user.clone(), self.zone_of(&news.owner), self.page.clone());
        let withdrawn: Vec<WithdrawnSession> = news.items.iter().filter_map(Item::withdrawn).collect();
        if withdrawn.is_empty() {
            let kernels = news.items.iter().flat_map(Item::kernels).collect();
            self.wording.waiting(&WaitingNotice { owner, kernels, zone, page, now })
        } else {
            self.wording.withdrawn(&WithdrawnNotice { owner, sessions: withdrawn, zone, page })
        }
    }
}

/// One for each owner who gets no letter in this cycle. A warning that was taken back goes first.
pub fn news(plan: &Plan, seen: &Snapshot, journal: &Journal) -> Vec<News> {
    let busy: BTreeSet<UserName> =
        letters(plan, seen, journal).into_iter().map(|letter| letter.owner.id.user).collect();
    let mut by_owner: BTreeMap<UserName, News> = BTreeMap::new();
    for decision in plan.decisions.iter().filter(|d| !busy.contains(&d.server.user)) {
        let Some(about) = about(decision, journal) else { continue };
        let Some(session) = session_of(seen, &decision.server) else { continue };
        let news = by_owner
            .entry(decision.server.user.clone())
            .or_insert_with(|| News { owner: session.server.clone(), items: Vec::new() });
        let (server, verdict) = (decision.server.clone(), decision.judgement.verdict.clone());
        news.items.push(Item { server, verdict, about });
    }
    for news in by_owner.values_mut() {
        if news.items.iter().any(|item| item.warning().is_some()) {
            news.items.retain(|item| item.warning().is_some());
        }
    }
    by_owner.into_values().collect()
}

fn about(decision: &Decision, journal: &Journal) -> Option<About> {
    match &decision.action {
        Some(Action::Withdraw) => {
            journal.record(&decision.server)?.taken_back.as_deref().cloned().map(About::Withdrawn)
        }
        Some(Action::Notice(waits)) => Some(About::Waits(waits.clone())),
        Some(Action::Warn { .. } | Action::Remind { .. } | Action::Stop | Action::Unmark) | None => None,
    }
}

impl News {
    /// The same news has the same name however often it is tried, so that a mail server can tell.
    fn name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        for kernel in self.items.iter().flat_map(Item::kernels) {
            (&kernel.server, &kernel.kernel, kernel.since).hash(&mut hasher);
        }
        format!("waiting.{:016x}", hasher.finish())
    }

    /// Saved as told.
    fn begins(&self, journal: &mut Journal, at: Timestamp) -> Result<(), StoreError> {
        self.items.iter().try_for_each(|item| match &item.about {
            About::Withdrawn(_) => journal.withdrawn(&item.server, None).map(|_| ()),
            About::Waits(waits) => journal.noticed(&item.server, waits, Some(at)),
        })
    }

    fn ends(
        &self,
        to: &str,
        answer: Result<(), DeliveryError>,
        journal: &mut Journal,
        at: Timestamp,
    ) -> Result<Vec<Happening>, StoreError> {
        if let Err(DeliveryError::Retryable(_)) = answer {
            for item in &self.items {
                item.put_back(journal)?;
            }
        }
        Ok(self.items.iter().map(|item| item.told(to, &answer, at)).collect())
    }
}

impl Item {
    fn put_back(&self, journal: &mut Journal) -> Result<(), StoreError> {
        match &self.about {
            About::Withdrawn(warning) => journal.withdrawn(&self.server, Some(warning.clone())).map(|_| ()),
            About::Waits(waits) => journal.noticed(&self.server, waits, None),
        }
    }

    fn told(&self, to: &str, answer: &Result<(), DeliveryError>, at: Timestamp) -> Happening {
        let to = mask(to);
        let (event, what) = match self.about {
            About::Withdrawn(_) => ("withdrawn", "that the warning was taken back"),
            About::Waits(_) => ("noticed", "that a kernel has waited for long"),
        };
        match answer {
            Ok(()) => Happening::to(&self.server, at, event, format!("{to} was told {what}")),
            Err(error) => {
                let reason = format!("{to} could not be told {what}: {error}");
                Happening::to(&self.server, at, "note", reason).because_of(trouble(error))
            }
        }
    }

    fn untold(&self, at: Timestamp) -> Happening {
        Happening::to(&self.server, at, "note", "its owner has no address to be told")
    }

    fn warning(&self) -> Option<&Warning> {
        match &self.about {
            About::Withdrawn(warning) => Some(warning),
            About::Waits(_) => None,
        }
    }

    fn withdrawn(&self) -> Option<WithdrawnSession> {
        let deadline = self.warning()?.deadline;
        Some(WithdrawnSession { server: self.server.clone(), deadline, why: (&self.verdict).into() })
    }

    fn kernels(&self) -> Vec<WaitingKernel> {
        let About::Waits(waits) = &self.about else { return Vec::new() };
        let kernel = |wait: &Waiting| WaitingKernel {
            server: self.server.clone(),
            kernel: wait.kernel.clone(),
            notebook: wait.notebook.clone(),
            since: wait.since,
        };
        waits.iter().map(kernel).collect()
    }
}

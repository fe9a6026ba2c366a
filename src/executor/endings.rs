//! The mails a week before an exemption ends: one to who answers for it, one to the admins.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;

use super::{Happening, Journal, Post};
use crate::message::{EndingNotice, reasons};
use crate::notify::{DeliveryError, mask};
use crate::observer::Observer;
use crate::policy::{Concerned, Exempted, Plan, Policy, Snapshot, endings, exemptions};
use crate::store::StoreError;

/// One mail about one end.
struct Ending {
    rule: String,
    end: Timestamp,
    whom: Concerned,
    /// The owner's address, where one is known.
    owner: Option<String>,
    notice: EndingNotice,
}

impl Post {
    /// Tells of every exemption that ends within a week, once each.
    pub async fn tell_of_endings(
        &self,
        plan: &Plan,
        seen: &Snapshot,
        policy: &Policy,
        journal: &mut Journal,
        observer: &Observer,
        at: Timestamp,
    ) -> Result<Vec<Happening>, StoreError> {
        let mut due = Vec::new();
        for (exempted, end, concerned) in endings(&exemptions(policy, journal.ledger(), plan), at) {
            let owner = self.owner_of(&exempted, seen, observer, at).await;
            let notice = self.ending_notice(&exempted, end, owner.is_some(), at);
            due.extend(concerned.into_iter().map(|whom| Ending {
                rule: exempted.rule.to_owned(),
                end,
                whom,
                owner: owner.clone(),
                notice: notice.clone(),
            }));
        }
        let mut happened = Vec::new();
        for ending in due {
            // Told from here on: one mail that is lost is better than two of the same.
            journal.ending_told(&ending.rule, ending.whom, Some(ending.end))?;
            match self.tell_of(&ending).await {
                Ok(None) => {}
                Ok(Some(whom)) => happened.push(ending.told(at, format!("{whom} told"))),
                Err(error) => {
                    journal.ending_told(&ending.rule, ending.whom, None)?;
                    happened.push(ending.told(at, format!("nobody could be told yet: {error}")));
                }
            }
        }
        Ok(happened)
    }

    /// Whom the mail reached; nobody where there is none to tell, or who is told anyway.
    async fn tell_of(&self, ending: &Ending) -> Result<Option<String>, DeliveryError> {
        let mail = self
            .wording
            .exemption_ends(&ending.notice)
            .map_err(|error| DeliveryError::Retryable(error.to_string()))?;
        match (ending.whom, &ending.owner) {
            (Concerned::Owner, Some(to)) if !self.admins.contains(to) => {
                self.deliver(to, mail, self.id(&ending.name()), None).await?;
                Ok(Some(format!("its owner {} was", mask(to))))
            }
            (Concerned::Admins, _) if !self.admins.is_empty() => {
                self.tell_admins(mail, self.id(&ending.name())).await?;
                Ok(Some("the admins were".to_owned()))
            }
            (Concerned::Owner | Concerned::Admins, _) => Ok(None),
        }
    }

    /// The owner may be an address, a user with a server, or a name that the address sources know.
    async fn owner_of(
        &self,
        exempted: &Exempted<'_>,
        seen: &Snapshot,
        observer: &Observer,
        now: Timestamp,
    ) -> Option<String> {
        let name = &exempted.exemption.owner;
        let servers = seen.sessions.iter().flatten().map(|session| &session.server);
        match servers.into_iter().find(|server| *server.id.user.0 == **name) {
            Some(server) => self.address(server, observer, now).await,
            None => self.addresses.of_name(name),
        }
    }

    fn ending_notice(
        &self,
        exempted: &Exempted<'_>,
        end: Timestamp,
        owner_known: bool,
        now: Timestamp,
    ) -> EndingNotice {
        EndingNotice {
            rule: exempted.rule.to_owned(),
            owner: exempted.exemption.owner.clone(),
            owner_known,
            reason: exempted.exemption.reason.clone(),
            servers: exempted.servers.iter().map(|id| (*id).clone()).collect(),
            idle: exempted.idle(),
            counted_since: exempted.spared.map(|spared| spared.since),
            end,
            zone: self.zone.clone(),
            page: self.page.clone(),
            now,
        }
    }
}

impl Ending {
    /// The same mail has the same name however often it is tried.
    fn name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.rule, self.end).hash(&mut hasher);
        let whom = match self.whom {
            Concerned::Owner => "owner",
            Concerned::Admins => "admins",
        };
        format!("exemption-{whom}.{:016x}", hasher.finish())
    }

    fn told(&self, at: Timestamp, what: String) -> Happening {
        let end = reasons::time(self.end);
        Happening::to_all(at, "note", format!("exemption \"{}\" ends at {end}: {what}", self.rule))
    }
}

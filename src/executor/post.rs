//! Writes to owners and admins, and remembers what was accepted before it counts.

use futures::StreamExt;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::addresses::zone_of;
use super::allowance::{Allowance, LetterLimits};
use super::letter::{Letter, Rung, letters};
use super::{AddressBook, Asked, Clock, Happening, Journal, Setbacks};
use crate::domain::Server;
use crate::message::{Mail, OwnerNotice, SessionNotice, StoppedNotice, Unreachable, Wording, reasons};
use crate::notify::{DeliveryError, Mailer, OutgoingMail, mask};
use crate::observer::Observer;
use crate::policy::{Plan, Snapshot, Warning};
use crate::store::StoreError;

/// Letters on their way at the same time. A slow mail server then delays only itself.
const AT_ONCE: usize = 8;

/// Who writes, to whom and how.
#[derive(Debug)]
pub struct Post {
    /// Delivers.
    pub mailer: Mailer,
    /// Writes.
    pub wording: Wording,
    /// Owners' addresses.
    pub addresses: AddressBook,
    /// Addresses that had to be asked for.
    pub asked: Asked,
    /// The admins' addresses.
    pub admins: Vec<String>,
    /// The part of Message-IDs after the `@`.
    pub domain: String,
    /// The zone in which instants are written, where the owner's own is not known.
    pub zone: TimeZone,
    /// Absolute address of the service's page.
    pub page: Option<String>,
    /// Whose mail was not accepted, and when it is tried again.
    pub setbacks: Setbacks,
    /// How many letters may go out.
    pub limits: LetterLimits,
    /// Whether a stop follows, or (mode `warn`) only mail.
    pub stops_follow: bool,
}

impl Post {
    /// Sends every warning and reminder of a plan. One letter per owner and rung; a letter counts
    /// once the mail server accepted it and that is saved.
    pub async fn deliver_all(
        &self,
        plan: &Plan,
        seen: &Snapshot,
        journal: &mut Journal,
        observer: &Observer,
        clock: Clock,
        happened: &mut Vec<Happening>,
    ) -> Result<(), StoreError> {
        let begins = Allowance::begins(clock());
        let mut allowance = Allowance::new(self.limits, journal.letters_since(begins)?);
        let mut due = Vec::new();
        for letter in letters(plan, seen, journal) {
            let Some(to) = self.address(&letter.owner, observer, clock()).await else {
                let why = Unreachable::NoAddress(self.addresses.tried());
                happened.extend(self.nobody_to_tell(&letter, why, journal, clock).await?);
                continue;
            };
            let again = self.setbacks.wait(&to, clock()).map(|again| {
                format!("mail to {} was not accepted; tried again at {}", mask(&to), reasons::time(again))
            });
            let spent = || allowance.take(&letter.owner.id.user).err().map(|spent| spent.to_string());
            match again.or_else(spent) {
                None => due.push((to, letter)),
                Some(why) => happened.extend(letter.held_back(&why, clock())),
            }
        }
        while !due.is_empty() {
            let batch: Vec<_> = due.drain(..due.len().min(AT_ONCE)).collect();
            if self.deliver_batch(batch, journal, clock, happened).await? == MailServer::InTrouble {
                // One that hangs costs a cycle its time-out once, not once for each owner.
                let why = "the mail server is in trouble; tried again in the next cycle";
                happened.extend(due.drain(..).flat_map(|(_, letter)| letter.held_back(why, clock())));
            }
        }
        Ok(())
    }

    async fn deliver_batch(
        &self,
        batch: Vec<(String, Letter)>,
        journal: &mut Journal,
        clock: Clock,
        happened: &mut Vec<Happening>,
    ) -> Result<MailServer, StoreError> {
        let (mut warnings, mut reminders) = (Vec::new(), Vec::new());
        for due in batch.iter().flat_map(|(_, letter)| &letter.sessions) {
            let id = due.notice.server.clone();
            match due.rung {
                Rung::Warning => warnings.push(id),
                Rung::Reminder(before) => reminders.push((id, before)),
            }
        }
        journal.letters_begin(&warnings, &reminders, clock())?;
        let sent = batch.into_iter().map(|(to, letter)| async move {
            let answer = self.send(&to, &letter, clock()).await;
            (to, letter, answer)
        });
        let mut sent = futures::stream::iter(sent).buffer_unordered(AT_ONCE);
        let (mut accepted, mut in_trouble) = (false, false);
        while let Some((to, letter, answer)) = sent.next().await {
            accepted |= answer.is_ok();
            in_trouble |= matches!(answer, Err(DeliveryError::Retryable(_)));
            self.setbacks.ended(&to, answer.as_ref().map(|_| ()), clock());
            let refused = match &answer {
                Err(DeliveryError::Permanent(why)) => Some(Unreachable::Refused(why.clone())),
                Ok(_) | Err(DeliveryError::Retryable(_)) => None,
            };
            happened.extend(record(&to, &letter, answer, journal, clock())?);
            if let Some(why) = refused {
                happened.extend(self.nobody_to_tell(&letter, why, journal, clock).await?);
            }
        }
        Ok(if in_trouble && !accepted { MailServer::InTrouble } else { MailServer::Works })
    }

    async fn send(&self, to: &str, letter: &Letter, now: Timestamp) -> Result<String, DeliveryError> {
        let notice = OwnerNotice {
            owner: letter.owner.id.user.clone(),
            sessions: letter.sessions.iter().map(|due| due.notice.clone()).collect(),
            zone: self.zone_of(&letter.owner),
            page: self.page.clone(),
            now,
            stops_follow: self.stops_follow,
        };
        let written = match letter.rung {
            Rung::Warning => self.wording.warning(&notice),
            Rung::Reminder(_) => self.wording.reminder(&notice),
        };
        let mail = written.map_err(|error| DeliveryError::Retryable(error.to_string()))?;
        let message_id = self.id(&letter.name());
        let follows = letter.sessions.iter().find_map(|due| due.warned.clone());
        self.deliver(to, mail, message_id.clone(), follows).await?;
        Ok(message_id)
    }

    /// Tells an owner that a server was stopped. Nothing depends on it, so a failure is only reported.
    pub async fn stopped(
        &self,
        server: &Server,
        notice: SessionNotice,
        warning: &Warning,
        at: Timestamp,
    ) -> Happening {
        let id = notice.server.clone();
        let told = StoppedNotice {
            owner: id.user.clone(),
            session: notice,
            warned_at: warning.accepted,
            stopped_at: at,
            zone: self.zone_of(server),
            page: self.page.clone(),
        };
        let Some(to) = self.addresses.find(server) else {
            return Happening::to(&id, at, "note", "its owner has no address to be told of the stop");
        };
        let message_id = format!("stopped.{}", warning.message_id);
        let sent = match self.wording.stopped(&told) {
            Ok(mail) => self.deliver(&to, mail, message_id, Some(warning.message_id.clone())).await,
            Err(error) => Err(DeliveryError::Retryable(error.to_string())),
        };
        let to = mask(&to);
        match sent {
            Ok(()) => Happening::to(&id, at, "note", format!("{to} was told of the stop")),
            Err(error) => {
                Happening::to(&id, at, "note", format!("{to} could not be told of the stop: {error}"))
            }
        }
    }

    /// Tells the admins something; without admins nobody is told, which is no error. One who was told
    /// is enough: trying again would tell that one twice.
    pub async fn tell_admins(&self, mail: Mail, message_id: String) -> Result<(), DeliveryError> {
        let (mut told, mut outcome) = (false, Ok(()));
        for admin in &self.admins {
            let sent = self.deliver(admin, mail.clone(), message_id.clone(), None).await;
            told |= sent.is_ok();
            outcome = outcome.and(sent);
        }
        if told { Ok(()) } else { outcome }
    }

    /// The zone in which an owner reads times.
    pub(super) fn zone_of(&self, owner: &Server) -> TimeZone {
        zone_of(owner).unwrap_or_else(|| self.zone.clone())
    }

    /// A Message-ID of this service.
    pub fn id(&self, name: &str) -> String {
        format!("{name}@{}", self.domain)
    }

    pub(super) async fn deliver(
        &self,
        to: &str,
        mail: Mail,
        message_id: String,
        in_reply_to: Option<String>,
    ) -> Result<(), DeliveryError> {
        let Mail { subject, text, html } = mail;
        let to = to.to_owned();
        let outgoing = OutgoingMail { to, subject, text, html, message_id, in_reply_to };
        self.mailer.deliver(&outgoing).await.map(|_| ())
    }

    /// On a Hub that shows addresses only user by user, this user is asked for.
    pub(super) async fn address(
        &self,
        owner: &Server,
        observer: &Observer,
        now: Timestamp,
    ) -> Option<String> {
        if let Some(found) = self.addresses.find(owner) {
            return Some(found);
        }
        if !self.addresses.needs_auth_state() {
            return None;
        }
        if let Some(answer) = self.asked.recall(&owner.id.user, now) {
            return answer;
        }
        let asked = observer.server(&owner.id).await.ok().flatten()?;
        let answer = self.addresses.find(&asked);
        self.asked.remember(&owner.id.user, answer.clone(), now);
        answer
    }
}

/// What a batch of letters tells of the mail server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MailServer {
    Works,
    /// It accepted nothing, and not because of the recipients.
    InTrouble,
}

/// Saves what became of a letter.
fn record(
    to: &str,
    letter: &Letter,
    answer: Result<String, DeliveryError>,
    journal: &mut Journal,
    at: Timestamp,
) -> Result<Vec<Happening>, StoreError> {
    let mut happened = Vec::new();
    for due in &letter.sessions {
        let id = &due.notice.server;
        happened.push(match (&answer, due.rung) {
            (Ok(message_id), Rung::Warning) => {
                let warning = due.accepted(message_id, at);
                let deadline = warning.deadline;
                journal.warned(id, warning)?;
                let deadline = reasons::time(deadline);
                Happening::to(id, at, "warned", format!("{} was warned; deadline {deadline}", mask(to)))
            }
            (Ok(_), Rung::Reminder(_)) => {
                Happening::to(id, at, "reminded", format!("{} was reminded", mask(to)))
            }
            (Err(error), rung) => {
                match rung {
                    Rung::Warning => journal.warning_failed(id)?,
                    Rung::Reminder(before) => journal.reminder_failed(id, before)?,
                }
                let what = format!("{} could not be told: {error}", mask(to));
                Happening::to(id, at, "held-back", what).because_of(trouble(error))
            }
        });
    }
    Ok(happened)
}

/// A mail server in trouble keeps everybody's warnings; one that refuses a recipient does not.
pub(super) fn trouble(error: &DeliveryError) -> Option<String> {
    match error {
        DeliveryError::Retryable(_) => {
            Some(format!("mail does not go out, and nobody is stopped unwarned: {error}"))
        }
        DeliveryError::Permanent(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_server_in_trouble_is_shown_and_a_refused_recipient_is_not() {
        let down = DeliveryError::Retryable("mail server m:25, connecting: refused".to_owned());
        let shown = trouble(&down).unwrap_or_default();
        assert!(shown.contains("mail server m:25") && shown.contains("nobody is stopped"), "{shown}");
        assert_eq!(trouble(&DeliveryError::Permanent("no such mailbox".to_owned())), None);
    }
}

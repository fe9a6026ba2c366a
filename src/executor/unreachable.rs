//! An owner who gets no mail: without an address, or with one that the mail server refuses.

use super::letter::Letter;
use super::post::trouble;
use super::{Clock, Happening, Journal, Post};
use crate::domain::ServerId;
use crate::message::{Unreachable, UnreachableNotice};
use crate::notify::DeliveryError;
use crate::store::StoreError;

impl Post {
    /// Nobody can be warned, so nothing is stopped; the admins are told once.
    pub(super) async fn nobody_to_tell(
        &self,
        letter: &Letter,
        why: Unreachable,
        journal: &mut Journal,
        clock: Clock,
    ) -> Result<Vec<Happening>, StoreError> {
        let at = clock();
        let told = |id: &ServerId| journal.record(id).is_some_and(|record| record.admins_told.is_some());
        if letter.servers().iter().all(told) {
            return Ok(Vec::new());
        }
        journal.admins_told(&letter.servers(), at)?;
        let notice = UnreachableNotice {
            sessions: letter.sessions.iter().map(|due| due.notice.clone()).collect(),
            why: why.clone(),
            zone: self.zone.clone(),
            page: self.page.clone(),
            now: at,
        };
        let sent = match self.wording.unreachable(&notice) {
            Ok(mail) => self.tell_admins(mail, self.id(&letter.name())).await,
            Err(error) => Err(DeliveryError::Retryable(error.to_string())),
        };
        let owner = match why {
            Unreachable::NoAddress(_) => "its owner has no known mail address",
            Unreachable::Refused(_) => "its owner's address is refused by the mail server",
        };
        let outcome = match &sent {
            Ok(()) => format!("{owner}; the admins were told, it is left alone"),
            Err(error) => format!("{owner}, and the admins could not be told: {error}"),
        };
        if sent.is_err() {
            journal.admins_not_told(&letter.servers())?;
        }
        let trouble = sent.as_ref().err().and_then(trouble);
        let held = |id| Happening::to(id, at, "held-back", outcome.clone()).because_of(trouble.clone());
        Ok(letter.servers().iter().map(held).collect())
    }
}

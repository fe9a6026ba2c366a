//! The one mail to the admins about a freeze.

use jiff::Timestamp;

use super::{Happening, Journal, Post};
use crate::message::FrozenNotice;
use crate::notify::DeliveryError;
use crate::policy::{Freeze, FreezeChange, HeldBack, Mode, Plan, Policy};
use crate::store::StoreError;

impl Post {
    /// Tells the admins once that stops are frozen, also where that began while nothing was stopped anyway,
    /// and tries again where the mail was not accepted.
    pub async fn tell_of_freeze(
        &self,
        plan: &Plan,
        policy: &Policy,
        journal: &mut Journal,
        at: Timestamp,
    ) -> Result<Option<Happening>, StoreError> {
        let (FreezeChange::Begins(freeze) | FreezeChange::Holds(freeze)) = &plan.freeze else {
            return Ok(None);
        };
        if freeze.told.is_some() || policy.mode != Mode::Enforce || self.admins.is_empty() {
            return Ok(None);
        }
        // Told from here on: one mail that is lost is better than two of the same.
        journal.freeze_told(Some(at))?;
        let id = self.id(&format!("frozen.{}", freeze.since.as_second()));
        let told = match self.wording.frozen(&self.frozen_notice(freeze, plan, policy)) {
            Ok(mail) => self.tell_admins(mail, id).await,
            Err(error) => Err(DeliveryError::Retryable(error.to_string())),
        };
        let Err(error) = told else {
            let what = "the admins were told that stops are frozen";
            return Ok(Some(Happening::to_all(at, "note", what)));
        };
        journal.freeze_told(None)?;
        let what = format!("the admins could not be told that stops are frozen: {error}");
        Ok(Some(Happening::to_all(at, "note", what.clone()).because_of(Some(what))))
    }

    fn frozen_notice(&self, freeze: &Freeze, plan: &Plan, policy: &Policy) -> FrozenNotice {
        let held = plan.decisions.iter().filter(|d| matches!(d.held_back, Some(HeldBack::Frozen(_))));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share between 0 and 1 in percent"
        )]
        let limit_percent = (policy.safety.freeze_share * 100.0) as u8;
        FrozenNotice {
            turned_idle: freeze.flipped.len(),
            watched: plan.decisions.iter().filter(|decision| decision.may_hold_cards).count(),
            limit_percent,
            held_back: held.map(|d| d.server.clone()).collect(),
            since: freeze.since,
            zone: self.zone.clone(),
            page: self.page.clone(),
        }
    }
}

//! The ledger together with its file: a step counts only once it is saved.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::Happening;
use crate::domain::{ServerId, UserName};
use crate::message::reasons;
use crate::policy::{Concerned, Keep, Ledger, Plan, Policy, Record, Snapshot, Waiting, Warning};
use crate::store::looks::Look;
use crate::store::{Entry, Store, StoreError};

/// What is remembered, and where it is kept.
///
/// Where the file cannot be written, clocks go on in memory until it can. What a mail promises does not:
/// a letter that could not be noted before is not sent, and one that could not be noted after it was
/// accepted does not count, as if the process had died there.
#[derive(Debug)]
pub struct Journal {
    ledger: Ledger,
    store: Store,
    /// What happened and is not in the file's log yet.
    unlogged: Vec<Entry>,
}

/// Far more than a day of trouble brings.
const UNLOGGED: usize = 10_000;

impl Journal {
    /// What the file holds.
    pub fn open(mut store: Store) -> Result<Self, StoreError> {
        Ok(Self { ledger: store.load()?, store, unlogged: Vec::new() })
    }

    /// What is remembered.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What is remembered of one server.
    pub fn record(&self, id: &ServerId) -> Option<&Record> {
        self.ledger.records.get(id)
    }

    /// Folds a snapshot in.
    pub fn observe(&mut self, snapshot: &Snapshot, policy: &Policy) {
        self.ledger.watches(snapshot.at);
        self.ledger.observe(snapshot, policy);
    }

    /// Takes over what a plan concluded, and saves everything that changed.
    pub fn settled(&mut self, plan: &Plan) -> Result<(), StoreError> {
        self.ledger.settled(plan);
        self.save()
    }

    /// Letters are about to be sent: warnings, and reminders with their time before the deadline.
    /// A reminder counts from here on, since one that is lost is better than two of the same.
    pub fn letters_begin(
        &mut self,
        warnings: &[ServerId],
        reminders: &[(ServerId, SignedDuration)],
        at: Timestamp,
    ) -> Result<(), StoreError> {
        for id in warnings {
            self.ledger.warning_began(id, at);
        }
        for (id, before) in reminders {
            self.ledger.reminded(id, *before);
        }
        let saved = self.save();
        if saved.is_err() {
            warnings.iter().for_each(|id| self.ledger.warning_failed(id));
            reminders.iter().for_each(|(id, before)| self.ledger.reminder_failed(id, *before));
        }
        saved
    }

    /// A warning was not accepted.
    pub fn warning_failed(&mut self, id: &ServerId) -> Result<(), StoreError> {
        self.ledger.warning_failed(id);
        self.save()
    }

    /// A warning was accepted. Unless this returns without an error it does not count.
    pub fn warned(&mut self, id: &ServerId, warning: Warning) -> Result<(), StoreError> {
        let began = warning.accepted;
        self.ledger.warned(id, warning);
        let saved = self.save();
        if saved.is_err() {
            self.ledger.warning_in_doubt(id, began);
        }
        saved
    }

    /// A reminder was not accepted.
    pub fn reminder_failed(&mut self, id: &ServerId, before: SignedDuration) -> Result<(), StoreError> {
        self.ledger.reminder_failed(id, before);
        self.save()
    }

    /// The admins are about to be told that the owners have no address.
    pub fn admins_told(&mut self, ids: &[ServerId], at: Timestamp) -> Result<(), StoreError> {
        ids.iter().for_each(|id| self.ledger.admins_told(id, Some(at)));
        let saved = self.save();
        if saved.is_err() {
            ids.iter().for_each(|id| self.ledger.admins_told(id, None));
        }
        saved
    }

    /// They could not be told.
    pub fn admins_not_told(&mut self, ids: &[ServerId]) -> Result<(), StoreError> {
        ids.iter().for_each(|id| self.ledger.admins_told(id, None));
        self.save()
    }

    /// A warning is taken back.
    pub fn unmarked(&mut self, id: &ServerId) -> Result<(), StoreError> {
        self.ledger.unmarked(id);
        self.save()
    }

    /// The owner is about to be told that a warning was taken back; returns which.
    pub fn withdrawn(
        &mut self,
        id: &ServerId,
        or_not: Option<Warning>,
    ) -> Result<Option<Warning>, StoreError> {
        let warning = self.ledger.withdrawn(id, or_not);
        self.save()?;
        Ok(warning)
    }

    /// The owner is about to be told of kernels that wait; or was, after all, not.
    pub fn noticed(
        &mut self,
        id: &ServerId,
        kernels: &[Waiting],
        at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.ledger.noticed(id, kernels.iter(), at);
        self.save()
    }

    /// Somebody keeps a session. Returned is what to log of it.
    pub fn kept(&mut self, id: &ServerId, keep: Keep) -> Result<Happening, StoreError> {
        let kept = Happening::to(id, keep.at, "kept", reasons::kept(&keep));
        self.ledger.kept(id, keep);
        self.save()?;
        Ok(kept)
    }

    /// The admins are about to be told that stops are frozen; or (`None`) could not be told.
    pub fn freeze_told(&mut self, at: Option<Timestamp>) -> Result<(), StoreError> {
        self.ledger.freeze_told(at);
        self.save()
    }

    /// Somebody is about to be told of an exemption's end; or (`None`) could not be told.
    pub fn ending_told(
        &mut self,
        rule: &str,
        whom: Concerned,
        end: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.ledger.ending_told(rule, whom, end);
        self.save()
    }

    /// An admin lifts the freeze. Returned is what to log of it; nothing where there is none.
    pub fn lift_freeze(&mut self, by: &str, at: Timestamp) -> Result<Option<Happening>, StoreError> {
        let Some(lifted) = self.ledger.lift_freeze(by, at) else {
            return Ok(None);
        };
        let lifted = Happening::to_all(at, "lifted", reasons::lifted(lifted));
        self.save()?;
        Ok(Some(lifted))
    }

    /// Kernels of a server were shut down, and it stays.
    pub fn kernels_stopped(&mut self, id: &ServerId) -> Result<(), StoreError> {
        self.ledger.kernels_stopped(id);
        self.save()
    }

    /// A server was stopped.
    pub fn stopped(&mut self, id: &ServerId, at: Timestamp) -> Result<(), StoreError> {
        self.ledger.stopped(id, at);
        self.save()
    }

    /// The looks of `plan` and `explain` since they were last asked for.
    pub fn take_looks(&mut self) -> Result<Vec<Look>, StoreError> {
        self.store.take_looks()
    }

    /// How many warnings and reminders each owner got since `begins`.
    pub fn letters_since(&mut self, begins: Timestamp) -> Result<BTreeMap<UserName, usize>, StoreError> {
        self.store.moments_of(&["warned", "reminded"], begins)
    }

    /// Appends to the log, now or as soon as it can be written.
    pub fn log(&mut self, happenings: &[Happening]) -> Result<(), StoreError> {
        let entry = |h: &Happening| Entry {
            at: h.at,
            server: h.server.clone(),
            event: h.event.to_owned(),
            reason: h.reason.clone(),
        };
        self.unlogged.extend(happenings.iter().map(entry));
        let saved = self.store.log(&self.unlogged);
        if saved.is_ok() || self.unlogged.len() > UNLOGGED {
            self.unlogged.clear();
        }
        saved
    }

    fn save(&mut self) -> Result<(), StoreError> {
        self.store.save(&self.ledger)?;
        self.ledger.unsaved.clear();
        self.ledger.unsaved_keeps.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;

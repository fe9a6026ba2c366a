//! Every word a person gets: the reasons of decisions, and mails (plain values in, subject and bodies out).
//!
//! Sentences that depend on a rule are in `sentences`, measures in `measures`, everything else in
//! the templates; those of the pages are in `pages`. How a mail travels is none of this module's business.

mod foreign;
mod measures;
mod notice;
pub mod pages;
pub mod reasons;
mod render;
pub mod said;
mod sentences;
mod view;

use serde::Serialize;

pub use measures::{bytes_in_words, duration_in_words, instant_in_words};
pub use notice::{CardNotice, FrozenNotice, NoAddressNotice, OwnerNotice, SessionNotice, StoppedNotice};

use view::{FrozenView, NoAddressView, OwnerView, StoppedView};

/// A mail, written and not yet addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// One line, without control characters.
    pub subject: String,
    /// The body for readers of plain text.
    pub text: String,
    /// The same body as a page: one column, no images, no scripts.
    pub html: String,
}

/// A mail could not be written. It then does not exist, so it cannot count as a warning.
#[derive(Debug, thiserror::Error)]
#[error("`{template}` could not be written; please report this as a bug")]
pub struct MessageError {
    template: &'static str,
    source: minijinja::Error,
}

/// Tells an owner which of their sessions are idle and when they will be stopped.
pub fn warning(notice: &OwnerNotice) -> Result<Mail, MessageError> {
    mail("warning", &OwnerView::of(notice))
}

/// Tells an owner once more, shortly before the time comes.
pub fn reminder(notice: &OwnerNotice) -> Result<Mail, MessageError> {
    mail("reminder", &OwnerView::of(notice))
}

/// Tells an owner that a server was stopped, why, and what is left of it.
pub fn stopped(notice: &StoppedNotice) -> Result<Mail, MessageError> {
    mail("stopped", &StoppedView::of(notice))
}

/// Tells the admins whom nobody can warn, and that their servers are therefore left alone.
pub fn no_address(notice: &NoAddressNotice) -> Result<Mail, MessageError> {
    mail("admin_no_address", &NoAddressView::of(notice))
}

/// Tells the admins that an improbable share of sessions turned idle and stops are held back.
pub fn frozen(notice: &FrozenNotice) -> Result<Mail, MessageError> {
    mail("admin_frozen", &FrozenView::of(notice))
}

fn mail(template: &'static str, view: &impl Serialize) -> Result<Mail, MessageError> {
    render::mail(template, view).map_err(|source| MessageError { template, source })
}

#[cfg(test)]
mod tests;

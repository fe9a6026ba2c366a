//! Every word a person gets: the reasons of decisions, and mails (plain values in, subject and bodies out).
//!
//! Sentences that depend on a rule are in `sentences`, measures in `measures`, everything else in
//! the templates, which an admin may replace ([`Wording`]); those of the pages are in `pages`. How a mail travels
//! is none of this module's business.

mod announcement;
mod ending;
mod foreign;
pub mod intent;
mod measures;
mod news;
mod notice;
pub mod pages;
pub mod reasons;
mod render;
pub mod said;
mod samples;
mod sentences;
mod view;
mod wording;

pub use announcement::{Event, announcement};
pub use ending::EndingNotice;
pub use measures::{bytes_in_words, duration_in_words, instant_in_words, power};
pub use news::{Recovery, WaitingKernel, WaitingNotice, WithdrawnNotice, WithdrawnSession};
pub use notice::{
    CardNotice, FrozenNotice, OwnerNotice, SessionNotice, StoppedNotice, Unreachable, UnreachableNotice,
};
pub use samples::Kind;
pub use wording::{Wording, WordingError};

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

#[cfg(test)]
pub(crate) mod as_read;
#[cfg(test)]
pub(crate) mod reader_cases;
#[cfg(test)]
mod tests;

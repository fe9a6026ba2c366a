//! The mails, in our words or in the admin's.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ending::EndingView;
use super::news::{WaitingView, WithdrawnView};
use super::view::{FrozenView, OwnerView, StoppedView, UnreachableView};
use super::{
    EndingNotice, FrozenNotice, Kind, Mail, OwnerNotice, StoppedNotice, UnreachableNotice, WaitingNotice,
    WithdrawnNotice, render,
};

/// Writes mails. The default has our own words.
#[derive(Clone, Debug, Default)]
pub struct Wording {
    /// The admin's templates by name, in place of ours.
    replaced: BTreeMap<String, String>,
}

/// A mail that cannot be written does not exist, so it cannot count as a warning.
#[derive(Debug, thiserror::Error)]
pub enum WordingError {
    /// A template of the admin's has no counterpart.
    #[error("`{name}` replaces no template: the names are {}", known.join(", "))]
    Unknown {
        /// Its name.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// A template does not work.
    #[error("the mail `{mail}` cannot be written: {}", said(source))]
    Template {
        /// Which mail.
        mail: &'static str,
        /// What is wrong, and where.
        source: minijinja::Error,
    },
    /// A subject is part of every mail.
    #[error("the mail `{mail}` has an empty {part}")]
    Empty {
        /// Which mail.
        mail: &'static str,
        /// Which part.
        part: &'static str,
    },
}

/// Message, template and line on one line.
fn said(error: &minijinja::Error) -> String {
    let place = error.name().map(|name| format!(" in {name}")).unwrap_or_default();
    let line = error.line().map(|line| format!(", line {line}")).unwrap_or_default();
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{}{detail}{place}{line}", error.kind())
}

impl Wording {
    /// Takes the admin's templates by their names. Every mail is written once with made-up data, so that
    /// a mistake shows now and not when somebody has to be warned.
    pub fn new(replaced: BTreeMap<String, String>) -> Result<Self, WordingError> {
        if let Some(name) = replaced.keys().find(|name| !render::names().any(|known| known == name.as_str()))
        {
            return Err(WordingError::Unknown { name: name.clone(), known: render::names().collect() });
        }
        let wording = Self { replaced };
        for kind in Kind::ALL {
            wording.sample(kind)?;
        }
        Ok(wording)
    }

    /// Tells an owner which of their sessions are idle and when they will be stopped.
    pub fn warning(&self, notice: &OwnerNotice) -> Result<Mail, WordingError> {
        self.mail("warning", &OwnerView::of(notice))
    }

    /// Tells an owner once more, shortly before the time comes.
    pub fn reminder(&self, notice: &OwnerNotice) -> Result<Mail, WordingError> {
        self.mail("reminder", &OwnerView::of(notice))
    }

    /// Tells an owner that a server was stopped, why, and what is left of it.
    pub fn stopped(&self, notice: &StoppedNotice) -> Result<Mail, WordingError> {
        self.mail("stopped", &StoppedView::of(notice))
    }

    /// Tells an owner that a warning was taken back: there is nothing left to do.
    pub fn withdrawn(&self, notice: &WithdrawnNotice) -> Result<Mail, WordingError> {
        self.mail("withdrawn", &WithdrawnView::of(notice))
    }

    /// Tells an owner, once, that a cell has been running for long while card and CPU rest.
    pub fn waiting(&self, notice: &WaitingNotice) -> Result<Mail, WordingError> {
        self.mail("waiting", &WaitingView::of(notice))
    }

    /// Tells the admins whom nobody can warn, and that their servers are therefore left alone.
    pub fn unreachable(&self, notice: &UnreachableNotice) -> Result<Mail, WordingError> {
        self.mail("admin_unreachable", &UnreachableView::of(notice))
    }

    /// Tells the admins that an improbable share of sessions turned idle and stops are held back.
    pub fn frozen(&self, notice: &FrozenNotice) -> Result<Mail, WordingError> {
        self.mail("admin_frozen", &FrozenView::of(notice))
    }

    /// Tells who answers for an exemption, and the admins, that it ends soon.
    pub fn exemption_ends(&self, notice: &EndingNotice) -> Result<Mail, WordingError> {
        self.mail("exemption_ends", &EndingView::of(notice))
    }

    fn mail(&self, name: &'static str, view: &impl Serialize) -> Result<Mail, WordingError> {
        let mail = render::mail(name, view, &self.replaced)
            .map_err(|source| WordingError::Template { mail: name, source })?;
        let parts = [("subject", &mail.subject), ("text", &mail.text), ("HTML part", &mail.html)];
        match parts.iter().find(|(_, written)| written.trim().is_empty()) {
            Some((part, _)) => Err(WordingError::Empty { mail: name, part }),
            None => Ok(mail),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]

    use super::*;

    fn with(name: &str, source: &str) -> Result<Wording, WordingError> {
        Wording::new([(name.to_owned(), source.to_owned())].into())
    }

    #[test]
    fn an_admins_template_takes_the_place_of_ours_and_only_of_that() {
        let ours = Wording::default().sample(Kind::Warning).unwrap();
        let theirs = with("warning.subject.txt", "[HPC] {{ subject_name }}\n").unwrap();
        let mail = theirs.sample(Kind::Warning).unwrap();
        assert_eq!(mail.subject, "[HPC] nora/training");
        assert_eq!((mail.text, mail.html), (ours.text, ours.html));
    }

    #[test]
    fn a_mistake_shows_at_once_with_its_place() {
        for (name, source, part) in [
            ("warning.txt", "Hello {{ ownr }}", "`ownr` is undefined in warning.txt, line 1"),
            ("reminder.html", "\n{% if %}", "in reminder.html, line 2"),
            ("stopped.subject.txt", " ", "the mail `stopped` has an empty subject"),
            ("warnings.txt", "x", "`warnings.txt` replaces no template"),
        ] {
            let error = with(name, source).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn foreign_text_is_escaped_in_an_admins_html_too() {
        let wording = with("warning.html", "<p>{{ subject_name }} {{ \"<b>\" }}</p>").unwrap();
        assert!(wording.sample(Kind::Warning).unwrap().html.contains("&lt;b&gt;"));
    }
}

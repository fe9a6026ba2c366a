//! `mail-preview`: the mails as owners and admins get them, with made-up data.

use anyhow::Context;
use serde_json::json;

use super::{Format, say, say_json};
use crate::message::{Kind, Mail};
use crate::settings::{Sources, wording_of};

/// Prints one mail, or all of them.
pub fn run(sources: &Sources, kind: Option<Kind>, html: bool, format: Format) -> anyhow::Result<bool> {
    let wording = wording_of(sources.file.as_deref())?;
    let kinds = kind.map_or_else(|| Kind::ALL.to_vec(), |kind| vec![kind]);
    for kind in kinds {
        let mail = wording.sample(kind).context("a built-in mail cannot be written; please report this")?;
        print(kind, &mail, html, format);
    }
    Ok(true)
}

fn print(kind: Kind, mail: &Mail, html: bool, format: Format) {
    let Mail { subject, text, html: page } = mail;
    match format {
        Format::Json => {
            let kind = kind.to_string();
            say_json(&json!({ "mail": kind, "subject": subject, "text": text, "html": page }));
        }
        Format::Text if html => say(page),
        Format::Text => say(&format!("Subject: {subject}\n\n{text}")),
    }
}

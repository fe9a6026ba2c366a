//! Fills the templates in. They are part of the binary; an admin's take their place.

use std::collections::BTreeMap;

use minijinja::{AutoEscape, Environment, UndefinedBehavior, syntax::SyntaxConfig, value::Serde};
use serde::Serialize;

use super::Mail;

const TEMPLATES: &[(&str, &str)] = &[
    ("page.html", include_str!("templates/page.html")),
    ("owner.txt", include_str!("templates/owner.txt")),
    ("owner.html", include_str!("templates/owner.html")),
    ("rows.html", include_str!("templates/rows.html")),
    ("session.txt", include_str!("templates/session.txt")),
    ("session.html", include_str!("templates/session.html")),
    ("warning.subject.txt", include_str!("templates/warning.subject.txt")),
    ("warning.txt", include_str!("templates/warning.txt")),
    ("warning.html", include_str!("templates/warning.html")),
    ("reminder.subject.txt", include_str!("templates/reminder.subject.txt")),
    ("reminder.txt", include_str!("templates/reminder.txt")),
    ("reminder.html", include_str!("templates/reminder.html")),
    ("stopped.subject.txt", include_str!("templates/stopped.subject.txt")),
    ("stopped.txt", include_str!("templates/stopped.txt")),
    ("stopped.html", include_str!("templates/stopped.html")),
    ("withdrawn.subject.txt", include_str!("templates/withdrawn.subject.txt")),
    ("withdrawn.txt", include_str!("templates/withdrawn.txt")),
    ("withdrawn.html", include_str!("templates/withdrawn.html")),
    ("waiting.subject.txt", include_str!("templates/waiting.subject.txt")),
    ("waiting.txt", include_str!("templates/waiting.txt")),
    ("waiting.html", include_str!("templates/waiting.html")),
    ("admin_unreachable.subject.txt", include_str!("templates/admin_unreachable.subject.txt")),
    ("admin_unreachable.txt", include_str!("templates/admin_unreachable.txt")),
    ("admin_unreachable.html", include_str!("templates/admin_unreachable.html")),
    ("admin_frozen.subject.txt", include_str!("templates/admin_frozen.subject.txt")),
    ("admin_frozen.txt", include_str!("templates/admin_frozen.txt")),
    ("admin_frozen.html", include_str!("templates/admin_frozen.html")),
    ("exemption_ends.subject.txt", include_str!("templates/exemption_ends.subject.txt")),
    ("exemption_ends.txt", include_str!("templates/exemption_ends.txt")),
    ("exemption_ends.html", include_str!("templates/exemption_ends.html")),
];

/// The names of all templates.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TEMPLATES.iter().map(|(name, _)| *name)
}

/// Writes the mail called `name`.
pub(super) fn mail(
    name: &str,
    view: &impl Serialize,
    replaced: &BTreeMap<String, String>,
) -> Result<Mail, minijinja::Error> {
    let templates = environment(replaced)?;
    let part = |suffix: &str| {
        let template = templates.get_template(&format!("{name}.{suffix}"))?;
        template.render(Serde(view))
    };
    Ok(Mail { subject: part("subject.txt")?.trim().to_owned(), text: part("txt")?, html: part("html")? })
}

/// Built for each mail: a few mails an hour do not deserve a global.
fn environment(replaced: &BTreeMap<String, String>) -> Result<Environment<'_>, minijinja::Error> {
    let mut templates = Environment::new();
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax =
        SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()?;
    templates.set_syntax(syntax);
    templates.set_auto_escape_callback(|name| {
        if name.ends_with(".html") { AutoEscape::Html } else { AutoEscape::None }
    });
    for (name, source) in TEMPLATES {
        templates.add_template(name, replaced.get(*name).map_or(*source, String::as_str))?;
    }
    Ok(templates)
}

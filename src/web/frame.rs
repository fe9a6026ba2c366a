//! What stands around every page: who looks, where else to go, and what does not work.

use serde::Serialize;

use super::status::Status;
use super::visitor::Visitor;
use super::{App, SCRIPT, STYLE};
use crate::message::pages;

/// What stands around every page.
#[derive(Clone, Debug, Serialize)]
pub struct Frame {
    /// The service's own address, with a slash at its end.
    base: String,
    /// The Hub's home page.
    hub_home: String,
    hub_logout: String,
    /// Changes with style and script, so that no old copy is shown.
    version: String,
    /// Who looks; nobody on the pages for those outside.
    user: Option<String>,
    admin: bool,
    csrf: Option<String>,
    mode: Option<String>,
    /// For admins: why not everything works.
    troubles: Vec<String>,
    /// For admins.
    notes: Vec<String>,
    frozen: Option<String>,
    /// When the last look was.
    looked: Option<String>,
    flash: Option<String>,
}

impl Frame {
    /// Around a page for somebody outside.
    pub fn outside(app: &App) -> Self {
        Self {
            base: format!("{}/", app.base),
            hub_home: format!("{}hub/home", app.hub_pages),
            hub_logout: format!("{}hub/logout", app.hub_pages),
            version: format!("{}.{}", env!("CARGO_PKG_VERSION"), STYLE.len() + SCRIPT.len()),
            user: None,
            admin: false,
            csrf: None,
            mode: None,
            troubles: Vec::new(),
            notes: Vec::new(),
            frozen: None,
            looked: None,
            flash: None,
        }
    }

    /// Around a page for a visitor.
    pub fn of(app: &App, visitor: &Visitor, status: &Status, flash: Option<String>) -> Self {
        let zone = status.zone();
        let now = app.now();
        let all = |lines: Vec<&str>| lines.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let troubles = all(status.troubles());
        let frozen = status.last.as_ref().and_then(|last| last.freeze.as_ref());
        Self {
            user: Some(pages::name(&visitor.name)),
            admin: visitor.sees_all(),
            csrf: visitor.csrf.clone(),
            mode: status.policy.as_ref().map(|policy| policy.mode.to_string()),
            notes: status
                .shown
                .as_ref()
                .filter(|_| visitor.sees_all())
                .map(|shown| shown.notes.clone())
                .unwrap_or_default(),
            troubles: match (visitor.sees_all(), troubles.is_empty()) {
                (true, _) => troubles,
                (false, true) => Vec::new(),
                (false, false) => vec!["Not everything works just now. The admins can see why.".to_owned()],
            },
            frozen: frozen.map(|freeze| {
                format!(
                    "Stops are frozen since {}: {} sessions turned idle at once.",
                    pages::instant(freeze.since, &zone),
                    freeze.flipped.len()
                )
            }),
            looked: status.last.as_ref().map(|last| pages::moment(last.at, now, &zone)),
            flash,
            ..Self::outside(app)
        }
    }
}

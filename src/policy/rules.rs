//! Rules: who gets which limits. First match wins; every field given must match.

use std::collections::BTreeMap;

use globset::{Glob, GlobMatcher};
use jiff::{SignedDuration, Timestamp};

use super::{BusyKernelAction, Limits, Manner, Policy, Session};

/// One `[[rule]]`.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What the admin calls it.
    pub name: String,
    /// Whom it concerns.
    pub matches: Match,
    /// That it protects altogether.
    pub exempt: Option<Exemption>,
    /// The limits it changes.
    pub overrides: Overrides,
}

/// The conditions of a rule; an absent one is always met. An empty `Match` meets everybody.
#[derive(Clone, Debug, Default)]
pub struct Match {
    /// User names.
    pub users: Option<Vec<GlobMatcher>>,
    /// Groups of the owner; one is enough.
    pub groups: Option<Vec<GlobMatcher>>,
    /// Server names (the default server's is empty).
    pub servers: Option<Vec<GlobMatcher>>,
    /// Profiles.
    pub profiles: Option<Vec<GlobMatcher>>,
    /// Card models; one matching card of the session is enough.
    pub gpu_models: Option<Vec<GlobMatcher>>,
    /// Labels; each named one must be there and match.
    pub labels: Option<BTreeMap<String, GlobMatcher>>,
    /// Whether the owner is an admin.
    pub admin: Option<bool>,
}

/// A pattern as rules use them (`*`, `?`, `[…]`, `{a,b}`), or what is wrong with it.
pub fn pattern(text: &str) -> Result<GlobMatcher, String> {
    Glob::new(text)
        .map(|glob| glob.compile_matcher())
        .map_err(|e| format!("`{text}` is no pattern: {}", e.kind()))
}

/// A protection with a reason, somebody who answers for it, and an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exemption {
    /// When it ends; `None` never.
    pub until: Option<Timestamp>,
    /// Why.
    pub reason: String,
    /// Who answers for it.
    pub owner: String,
}

impl Exemption {
    /// Whether it still protects.
    pub fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|end| now < end)
    }
}

/// The limits that a rule changes; an inner `None` means never.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// See [`Limits::warn_after`].
    pub warn_after: Option<SignedDuration>,
    /// See [`Limits::grace`].
    pub grace: Option<SignedDuration>,
    /// See [`Limits::remind_before`].
    pub remind_before: Option<Vec<SignedDuration>>,
    /// See [`Limits::connected_warn_after`].
    pub connected_warn_after: Option<Option<SignedDuration>>,
    /// See [`Limits::card_unused_warn_after`].
    pub card_unused_warn_after: Option<Option<SignedDuration>>,
    /// See [`Limits::busy_kernel_limit`].
    pub busy_kernel_limit: Option<Option<SignedDuration>>,
    /// See [`Limits::busy_kernel_action`].
    pub busy_kernel_action: Option<BusyKernelAction>,
    /// See [`Limits::max_age`].
    pub max_age: Option<Option<SignedDuration>>,
    /// See [`Limits::max_age_even_if_busy`].
    pub max_age_even_if_busy: Option<bool>,
    /// See [`Manner::kernels_only`].
    pub kernels_only: Option<bool>,
    /// See [`Manner::interrupt`].
    pub interrupt: Option<bool>,
    /// See [`Manner::save_wait`].
    pub save_wait: Option<SignedDuration>,
}

impl Overrides {
    /// `base` with what this changes.
    pub fn over(&self, base: &Limits) -> Limits {
        Limits {
            warn_after: self.warn_after.unwrap_or(base.warn_after),
            grace: self.grace.unwrap_or(base.grace),
            remind_before: self.remind_before.clone().unwrap_or_else(|| base.remind_before.clone()),
            connected_warn_after: self.connected_warn_after.unwrap_or(base.connected_warn_after),
            card_unused_warn_after: self.card_unused_warn_after.unwrap_or(base.card_unused_warn_after),
            busy_kernel_limit: self.busy_kernel_limit.unwrap_or(base.busy_kernel_limit),
            busy_kernel_action: self.busy_kernel_action.unwrap_or(base.busy_kernel_action),
            max_age: self.max_age.unwrap_or(base.max_age),
            max_age_even_if_busy: self.max_age_even_if_busy.unwrap_or(base.max_age_even_if_busy),
            manner: self.manner_over(base.manner),
        }
    }

    /// `base` with what this changes of how sessions are stopped.
    pub fn manner_over(&self, base: Manner) -> Manner {
        Manner {
            kernels_only: self.kernels_only.unwrap_or(base.kernels_only),
            interrupt: self.interrupt.unwrap_or(base.interrupt),
            save_wait: self.save_wait.unwrap_or(base.save_wait),
        }
    }
}

impl Policy {
    /// The rule that decides about a session: the first that matches.
    pub fn rule_for(&self, session: &Session) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.matches.meets(session))
    }
}

impl Match {
    /// Whether every condition given is met by `session`.
    pub fn meets(&self, session: &Session) -> bool {
        let server = &session.server;
        let models = || session.gpus.iter().flatten().map(|gpu| gpu.model.as_str());
        any(self.users.as_deref(), [&*server.id.user.0])
            && any(self.groups.as_deref(), server.groups.iter().map(String::as_str))
            && any(self.servers.as_deref(), [&*server.id.name.0])
            && any(self.profiles.as_deref(), server.profile.as_deref())
            && any(self.gpu_models.as_deref(), models())
            && self.labels.as_ref().is_none_or(|wanted| {
                wanted.iter().all(|(key, glob)| {
                    server.labelled(key).first().is_some_and(|(_, value)| glob.is_match(value))
                })
            })
            && self.admin.is_none_or(|admin| admin == server.admin)
    }
}

fn any<'a>(patterns: Option<&[GlobMatcher]>, values: impl IntoIterator<Item = &'a str>) -> bool {
    patterns.is_none_or(|globs| values.into_iter().any(|value| globs.iter().any(|glob| glob.is_match(value))))
}

//! Mails that ask nothing, or little: a warning that was taken back, a cell that has waited for long.

use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use super::{foreign, measures, view};
use crate::domain::{ServerId, UserName};
use crate::policy::{ProtectedReason, Verdict};

/// Warnings that were taken back, for one mail to their owner.
#[derive(Clone, Debug)]
pub struct WithdrawnNotice {
    /// Who is told.
    pub owner: UserName,
    /// The sessions, at least one.
    pub sessions: Vec<WithdrawnSession>,
    /// The zone in which instants are written.
    pub zone: TimeZone,
    /// Absolute address of the service's page.
    pub page: Option<String>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct WithdrawnSession {
    /// Which server.
    pub server: ServerId,
    /// When it would have been stopped.
    pub deadline: Timestamp,
    /// What became of it.
    pub why: Recovery,
}

/// Why a warning was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// It is used again, or its limits are longer now.
    Used,
    /// Somebody keeps it.
    Kept {
        /// Who said so.
        by: String,
        /// Until when.
        until: Timestamp,
    },
    /// It was declared to be needed until then.
    Declared(Timestamp),
    /// It is left alone whatever it does.
    Exempt,
    /// It can no longer be said for certain that it is unused.
    Uncertain,
}

impl From<&Verdict> for Recovery {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Busy(_) => Self::Used,
            Verdict::Protected(ProtectedReason::Kept { until, by }) => {
                Self::Kept { by: by.clone(), until: *until }
            }
            Verdict::Protected(ProtectedReason::Declared { declared, .. }) => Self::Declared(declared.until),
            Verdict::Protected(ProtectedReason::Exempt { .. } | ProtectedReason::NoCard) => Self::Exempt,
            Verdict::Unknown(_) | Verdict::Idle(_) => Self::Uncertain,
        }
    }
}

/// Kernels that have been busy for long while card and CPU rest, for one mail to their owner.
#[derive(Clone, Debug)]
pub struct WaitingNotice {
    /// Who is told.
    pub owner: UserName,
    /// The kernels, at least one.
    pub kernels: Vec<WaitingKernel>,
    /// The zone in which instants are written.
    pub zone: TimeZone,
    /// Absolute address of the service's page.
    pub page: Option<String>,
    /// When the mail is written.
    pub now: Timestamp,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct WaitingKernel {
    /// In which server.
    pub server: ServerId,
    /// Its id.
    pub kernel: String,
    /// Its notebook, where that is known.
    pub notebook: Option<String>,
    /// Since when.
    pub since: Timestamp,
}

/// For `withdrawn`.
#[derive(Serialize)]
pub(super) struct WithdrawnView {
    owner: String,
    subject_name: String,
    sessions: Vec<Withdrawn>,
    page: Option<String>,
}

#[derive(Serialize)]
struct Withdrawn {
    name: String,
    stops: String,
    why: String,
}

/// For `waiting`.
#[derive(Serialize)]
pub(super) struct WaitingView {
    owner: String,
    subject_name: String,
    longest: String,
    kernels: Vec<WaitingCell>,
    page: Option<String>,
}

#[derive(Serialize)]
struct WaitingCell {
    server: String,
    notebook: String,
    lasted: String,
    since: String,
}

impl WithdrawnView {
    pub(super) fn of(notice: &WithdrawnNotice) -> Self {
        let session = |session: &WithdrawnSession| Withdrawn {
            name: foreign::name(&session.server.name.0),
            stops: measures::deadline_in_words(session.deadline, &notice.zone),
            why: why(&session.why, &notice.owner, &notice.zone),
        };
        Self {
            owner: foreign::name(&notice.owner.0),
            subject_name: subject(&notice.owner, notice.sessions.iter().map(|session| &session.server)),
            sessions: notice.sessions.iter().map(session).collect(),
            page: view::page(notice.page.as_deref()),
        }
    }
}

fn why(recovery: &Recovery, owner: &UserName, zone: &TimeZone) -> String {
    match recovery {
        Recovery::Used => "It is in use again, or may rest for longer than before.".to_owned(),
        Recovery::Kept { by, until } => {
            let who =
                if **by == *owner.0 { "You keep".to_owned() } else { format!("{} keeps", foreign::name(by)) };
            format!("{who} it until {}.", measures::instant_in_words(*until, zone))
        }
        Recovery::Declared(until) => {
            format!("It was declared to be needed until {}.", measures::instant_in_words(*until, zone))
        }
        Recovery::Exempt => "It is left alone now.".to_owned(),
        Recovery::Uncertain => {
            "It could not be watched for a while, so it is no longer certain that it is unused.".to_owned()
        }
    }
}

impl WaitingView {
    pub(super) fn of(notice: &WaitingNotice) -> Self {
        let lasted = |since| measures::duration_in_words(measures::age(since, notice.now));
        let cell = |kernel: &WaitingKernel| WaitingCell {
            server: foreign::name(&kernel.server.name.0),
            notebook: match &kernel.notebook {
                Some(notebook) => foreign::name(notebook),
                None => format!("kernel {}", foreign::name(&kernel.kernel)),
            },
            lasted: lasted(kernel.since),
            since: measures::instant_in_words(kernel.since, &notice.zone),
        };
        let longest = notice.kernels.iter().map(|kernel| kernel.since).min().unwrap_or(notice.now);
        Self {
            owner: foreign::name(&notice.owner.0),
            subject_name: subject(&notice.owner, notice.kernels.iter().map(|kernel| &kernel.server)),
            longest: lasted(longest),
            kernels: notice.kernels.iter().map(cell).collect(),
            page: view::page(notice.page.as_deref()),
        }
    }
}

/// The server where it is one, else its owner.
fn subject<'a>(owner: &UserName, servers: impl Iterator<Item = &'a ServerId>) -> String {
    let mut servers: Vec<&ServerId> = servers.collect();
    servers.dedup();
    match servers.as_slice() {
        [only] => foreign::subject_server(only),
        _ => foreign::subject_name(&owner.0),
    }
}

//! Every mail with made-up data: to look at, to send to oneself, and to try templates with.

use std::fmt;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::{
    CardNotice, EndingNotice, FrozenNotice, Mail, OwnerNotice, Recovery, SessionNotice, StoppedNotice,
    Unreachable, UnreachableNotice, WaitingKernel, WaitingNotice, WithdrawnNotice, WithdrawnSession, Wording,
    WordingError,
};
use crate::domain::{GpuId, Hold, ServerId};
use crate::policy::{IdleKind, LimitKind, UseSign};

/// The mails there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first one to an owner, before a stop.
    Warning,
    /// The one to an owner in the mode `warn`, which no stop follows.
    Notice,
    /// Shortly before the stop.
    Reminder,
    /// After it.
    Stopped,
    /// A warning was taken back.
    Withdrawn,
    /// A cell runs, but nothing computes.
    Waiting,
    /// To who answers for an exemption, and the admins: it ends soon.
    Exemption,
    /// To the admins: an owner gets no mail.
    Unreachable,
    /// To the admins: stops are frozen.
    Frozen,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Warning,
        Self::Notice,
        Self::Reminder,
        Self::Stopped,
        Self::Withdrawn,
        Self::Waiting,
        Self::Exemption,
        Self::Unreachable,
        Self::Frozen,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Reminder => "reminder",
            Self::Stopped => "stopped",
            Self::Withdrawn => "withdrawn",
            Self::Waiting => "waiting",
            Self::Exemption => "exemption",
            Self::Unreachable => "unreachable",
            Self::Frozen => "frozen",
        })
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.to_string() == text).ok_or_else(|| {
            format!(
                "there is no mail `{text}`: use one of {}",
                Self::ALL.map(|kind| kind.to_string()).join(", ")
            )
        })
    }
}

impl Wording {
    /// One mail with made-up data.
    pub fn sample(&self, kind: Kind) -> Result<Mail, WordingError> {
        match kind {
            Kind::Warning => self.warning(&owner(true)),
            Kind::Notice => self.warning(&owner(false)),
            Kind::Reminder => self.reminder(&owner(true)),
            Kind::Stopped => self.stopped(&StoppedNotice {
                owner: server().user,
                session: session(),
                warned_at: minutes(0),
                stopped_at: minutes(61),
                zone: TimeZone::UTC,
                page: page(),
            }),
            Kind::Withdrawn => self.withdrawn(&WithdrawnNotice {
                owner: server().user,
                sessions: vec![WithdrawnSession {
                    server: server(),
                    deadline: minutes(60),
                    why: Recovery::Used,
                }],
                zone: TimeZone::UTC,
                page: page(),
            }),
            Kind::Waiting => self.waiting(&WaitingNotice {
                owner: server().user,
                kernels: vec![WaitingKernel {
                    server: server(),
                    kernel: "5e1f".to_owned(),
                    notebook: Some("work/analysis.ipynb".to_owned()),
                    since: minutes(-540),
                }],
                zone: TimeZone::UTC,
                page: page(),
                now: minutes(0),
            }),
            Kind::Exemption => self.exemption_ends(&EndingNotice {
                rule: "standby batch".to_owned(),
                owner: "mlops".to_owned(),
                owner_known: true,
                reason: "nightly scoring".to_owned(),
                servers: vec![server()],
                idle: SignedDuration::from_hours(41),
                counted_since: Some(minutes(-30 * 24 * 60)),
                end: minutes(7 * 24 * 60),
                zone: TimeZone::UTC,
                page: page(),
                now: minutes(0),
            }),
            Kind::Unreachable => self.unreachable(&UnreachableNotice {
                sessions: vec![session()],
                why: Unreachable::NoAddress(vec!["user_info.email".to_owned()]),
                zone: TimeZone::UTC,
                page: page(),
                now: minutes(0),
            }),
            Kind::Frozen => self.frozen(&FrozenNotice {
                turned_idle: 14,
                watched: 20,
                limit_percent: 50,
                held_back: vec![server()],
                since: minutes(0),
                zone: TimeZone::UTC,
                page: page(),
            }),
        }
    }
}

/// So long after a Tuesday morning in winter.
fn minutes(minutes: i64) -> Timestamp {
    const BEGIN: i64 = 1_796_119_200;
    let begin = Timestamp::from_second(BEGIN).unwrap_or_default();
    begin.checked_add(SignedDuration::from_mins(minutes)).unwrap_or(begin)
}

fn server() -> ServerId {
    ServerId::new("nora", "training")
}

fn page() -> Option<String> {
    Some("https://hub.example.org/services/gpu-culler/".to_owned())
}

fn owner(stops_follow: bool) -> OwnerNotice {
    OwnerNotice {
        owner: server().user,
        sessions: vec![session()],
        zone: TimeZone::UTC,
        page: page(),
        now: minutes(0),
        stops_follow,
    }
}

fn session() -> SessionNotice {
    let gpu = "GPU-5d1f0a2b-77aa-4f2b-9c01-000000000001".to_owned();
    let notebook = "work/analysis.ipynb".to_owned();
    SessionNotice {
        server: server(),
        cards: vec![CardNotice {
            model: "NVIDIA A100-SXM4-80GB".to_owned(),
            memory_used: Some(41_000_000_000),
            id: gpu.clone(),
        }],
        holds: vec![Hold {
            gpu: GpuId(gpu),
            memory_used: Some(40_800_000_000),
            kernel: Some("5e1f".to_owned()),
            notebook: Some(notebook.clone()),
        }],
        notebooks: vec![notebook.clone()],
        idle_since: minutes(-65),
        card_active: Some(minutes(-120)),
        used: Some(minutes(-65)),
        used_by: Some(UseSign::Kernel(notebook)),
        present: Some(minutes(-65)),
        started: Some(minutes(-300)),
        kind: IdleKind::Held,
        limit: LimitKind::Nobody,
        deadline: minutes(60),
        waiting: None,
        intent: None,
        declared: None,
        kernels: None,
        save_wait: None,
    }
}

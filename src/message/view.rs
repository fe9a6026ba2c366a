//! Notices as the templates read them: every value is already in words and safe to show.

use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use super::{
    CardNotice, FrozenNotice, OwnerNotice, SessionNotice, StoppedNotice, Unreachable, UnreachableNotice,
    foreign, intent, measures, pages, reasons, sentences,
};
use crate::domain::Hold;
use crate::policy::LimitKind;

/// How many notebooks or servers are named before the rest is counted.
const NAMED: usize = 5;

/// For `warning` and `reminder`.
#[derive(Serialize)]
pub(super) struct OwnerView {
    owner: String,
    subject_name: String,
    brief: String,
    first_stop: String,
    stops_follow: bool,
    /// Whether every server stays, and only kernels of it are shut down.
    kernels_only: bool,
    sessions: Vec<SessionView>,
    page: Option<String>,
}

/// For `stopped`.
#[derive(Serialize)]
pub(super) struct StoppedView {
    owner: String,
    subject_name: String,
    brief: &'static str,
    session: SessionView,
    warned: String,
    stopped: String,
    page: Option<String>,
}

/// For `admin_unreachable`.
#[derive(Serialize)]
pub(super) struct UnreachableView {
    subject_name: String,
    sessions: Vec<SessionView>,
    /// Where an address was looked for, if none was found.
    tried: Option<String>,
    /// Why the mail server refused it, if one was found.
    refused: Option<String>,
    page: Option<String>,
}

/// For `admin_frozen`.
#[derive(Serialize)]
pub(super) struct FrozenView {
    turned_idle: usize,
    watched: usize,
    limit_percent: u8,
    held_back: Vec<String>,
    since: String,
    page: Option<String>,
}

#[derive(Serialize)]
struct SessionView {
    /// `alice/training`
    id: String,
    /// Empty for the default server.
    name: String,
    stops: String,
    remedy: &'static str,
    why: String,
    /// `3 others wait for a GPU, …`, where that is why the limit is so short.
    demand: Option<String>,
    /// The kernels that are shut down instead of the server.
    kernels: Option<String>,
    /// What happens to running cells before.
    interrupt: Option<String>,
    /// `Unused for 1 hour 5 minutes, since …`
    since: String,
    rows: Vec<Row>,
}

/// One line of evidence.
#[derive(Serialize)]
struct Row {
    label: &'static str,
    value: String,
}

impl OwnerView {
    pub(super) fn of(notice: &OwnerNotice) -> Self {
        let mut sessions = notice.sessions.clone();
        sessions.sort_by_key(|session| session.deadline);
        let brief = match sessions.as_slice() {
            [only] => sentences::in_brief(only.limit, only.cards.len()).to_owned(),
            several => format!("{} idle servers", several.len()),
        };
        let first_stop = sessions.first().map_or(notice.now, |s| s.deadline);
        let name = match sessions.as_slice() {
            [only] => foreign::subject_server(&only.server),
            _ => foreign::subject_name(&notice.owner.0),
        };
        Self {
            owner: foreign::name(&notice.owner.0),
            subject_name: name,
            brief,
            first_stop: measures::instant_in_subject(first_stop, &notice.zone),
            stops_follow: notice.stops_follow,
            kernels_only: sessions.iter().all(|session| session.kernels.is_some()),
            sessions: sessions.iter().map(|s| SessionView::of(s, notice.now, &notice.zone)).collect(),
            page: page_of(notice.page.as_deref(), &sessions),
        }
    }
}

impl StoppedView {
    pub(super) fn of(notice: &StoppedNotice) -> Self {
        let StoppedNotice { session, zone, .. } = notice;
        Self {
            owner: foreign::name(&notice.owner.0),
            subject_name: foreign::subject_server(&session.server),
            brief: sentences::in_brief(session.limit, session.cards.len()),
            session: SessionView::of(session, notice.stopped_at, zone),
            warned: measures::instant_in_words(notice.warned_at, zone),
            stopped: measures::instant_in_words(notice.stopped_at, zone),
            page: page(notice.page.as_deref()),
        }
    }
}

impl UnreachableView {
    pub(super) fn of(notice: &UnreachableNotice) -> Self {
        let name = match notice.sessions.as_slice() {
            [only] => foreign::subject_server(&only.server),
            several => format!("{} servers", several.len()),
        };
        let (tried, refused) = match &notice.why {
            Unreachable::NoAddress(tried) => (Some(tried.join(", ")), None),
            Unreachable::Refused(answer) => (None, Some(foreign::line(answer))),
        };
        Self {
            subject_name: name,
            sessions: notice.sessions.iter().map(|s| SessionView::of(s, notice.now, &notice.zone)).collect(),
            tried,
            refused,
            page: page(notice.page.as_deref()),
        }
    }
}

impl FrozenView {
    pub(super) fn of(notice: &FrozenNotice) -> Self {
        Self {
            turned_idle: notice.turned_idle,
            watched: notice.watched,
            limit_percent: notice.limit_percent,
            held_back: notice.held_back.iter().map(foreign::server).collect(),
            since: measures::instant_in_words(notice.since, &notice.zone),
            page: page(notice.page.as_deref()),
        }
    }
}

impl SessionView {
    fn of(session: &SessionNotice, now: Timestamp, zone: &TimeZone) -> Self {
        let lasted = measures::duration_in_words(measures::age(session.idle_since, now));
        let since = measures::instant_in_words(session.idle_since, zone);
        let state = match session.limit {
            LimitKind::MaxAge => "Running",
            LimitKind::CardUnused => "GPU unused",
            LimitKind::BusyKernel => "Waiting",
            LimitKind::Nobody | LimitKind::Connected | LimitKind::Inactive => "Unused",
        };
        Self {
            id: foreign::server(&session.server),
            name: foreign::name(&session.server.name.0),
            stops: measures::deadline_in_words(session.deadline, zone),
            remedy: sentences::remedy(session.limit),
            why: sentences::why(session.kind, session.limit, session.cards.len()),
            demand: session.waiting.as_ref().map(|line| sentences::demand(line, zone)),
            kernels: session.kernels.as_ref().map(|names| first_few(names)),
            interrupt: session.save_wait.map(|wait| sentences::interrupt(wait.unsigned_abs())),
            since: format!("{state} for {lasted}, since {since}."),
            rows: rows(session, now, zone),
        }
    }
}

/// What is held, and the three clocks.
fn rows(session: &SessionNotice, now: Timestamp, zone: &TimeZone) -> Vec<Row> {
    let row = |label, value| Row { label, value };
    let clock = |clock: Option<Timestamp>| match (clock, session.started) {
        (Some(at), _) => measures::moment(at, now, zone),
        (None, Some(started)) => {
            format!("never since the server started, {}", measures::instant_in_words(started, zone))
        }
        (None, None) => "never since the server started".to_owned(),
    };
    let mut rows = Vec::new();
    if !session.notebooks.is_empty() {
        rows.push(row("Open notebooks", first_few(&session.notebooks)));
    }
    if !session.cards.is_empty() {
        rows.push(row("GPU", cards(&session.cards)));
        if let Some(held) = held(&session.holds) {
            rows.push(row("Held by", held));
        }
        rows.push(row("GPU last computed", clock(session.card_active)));
    }
    let used = match session.used.and(session.used_by.as_ref()) {
        Some(sign) => format!("{}, {}", clock(session.used), reasons::use_sign(Some(sign))),
        None => clock(session.used),
    };
    rows.push(row("Kernel or terminal last used", used));
    rows.push(row("Last sign of anybody", clock(session.present)));
    let declared = intent::rows(session.intent.as_deref(), session.declared, now, zone);
    rows.extend(declared.into_iter().map(|(label, value)| row(label, value)));
    rows
}

/// `work/analysis.ipynb holds 35.4 GiB on GPU-5d1f0a2b`, of each kernel that is known.
fn held(holds: &[Hold]) -> Option<String> {
    let named: Vec<String> = holds.iter().filter_map(reasons::hold).collect();
    (!named.is_empty()).then(|| named.join("; "))
}

/// `2 × NVIDIA A100 (GPU-5d1f0a2b, GPU-77aa01ef), 76.4 GiB of memory held`
fn cards(cards: &[CardNotice]) -> String {
    let mut models: Vec<&str> = cards.iter().map(|card| card.model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    let groups = models.iter().map(|model| {
        let group: Vec<_> = cards.iter().filter(|card| card.model == *model).collect();
        let ids: Vec<_> = group.iter().map(|card| foreign::card(&card.id)).collect();
        let held: Option<u64> = group.iter().map(|card| card.memory_used).sum();
        let count = match group.len() {
            1 => String::new(),
            n => format!("{n} × "),
        };
        format!("{count}{} ({}), {}", foreign::name(model), ids.join(", "), memory(held))
    });
    groups.collect::<Vec<_>>().join("; ")
}

fn memory(held: Option<u64>) -> String {
    match held {
        None => "memory held not known".to_owned(),
        Some(0) => "no memory held".to_owned(),
        Some(bytes) => format!("{} of memory held", measures::bytes_in_words(bytes)),
    }
}

fn first_few(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(NAMED).map(|name| foreign::name(name)).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The page of exactly this session; of several, the one that shows them all.
fn page_of(base: Option<&str>, sessions: &[SessionNotice]) -> Option<String> {
    let base = page(base)?;
    Some(match sessions {
        [only] => format!("{}/{}", base.trim_end_matches('/'), pages::session_path(&only.server)),
        _ => base,
    })
}

/// Only an address that a browser opens may become a link.
pub(super) fn page(page: Option<&str>) -> Option<String> {
    page.filter(|url| url.starts_with("https://") || url.starts_with("http://")).map(ToOwned::to_owned)
}

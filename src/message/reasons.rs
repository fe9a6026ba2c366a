//! Why something is done or not done, in a sentence part each.

mod kernels;

use jiff::{SignedDuration, Timestamp};

use super::measures::age;
use super::{bytes_in_words, duration_in_words, foreign, intent, sentences};
use crate::domain::{Hold, Queue, QueueLine};
use crate::policy::{
    Action, BusyReason, Decision, HeldBack, Idle, IdleKind, Keep, Lifted, LimitKind, ProtectedReason,
    RuleOddity, UnknownReason, UseSign, UserStays, Verdict, Waiting,
};

use kernels::kernel_doubt;
pub use kernels::{kernel_name, shut_down};

/// The word for a verdict, as in metrics and tables.
pub fn verdict_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Busy(_) => "busy",
        Verdict::Idle(_) => "idle",
        Verdict::Unknown(_) => "unknown",
        Verdict::Protected(_) => "protected",
    }
}

/// Why a session is taken for what it is taken for.
pub fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Busy(reason) => busy(reason),
        Verdict::Idle(found) => idle(found),
        Verdict::Unknown(reason) => unknown(reason),
        Verdict::Protected(reason) => protected(reason),
    }
}

/// Why a user is not deleted.
pub fn user_stays(why: UserStays) -> String {
    match why {
        UserStays::Admin => "the user is an admin".to_owned(),
        UserStays::HasServer => "a server of the user runs".to_owned(),
        UserStays::Keeps => "the user keeps a session".to_owned(),
        UserStays::Seen(at) => format!("the user was there at {}", time(at)),
        UserStays::Unknown => "the Hub does not say when the user was last there".to_owned(),
    }
}

fn busy(reason: &BusyReason) -> String {
    match reason {
        BusyReason::Card(at) => format!("a card worked at {}", time(*at)),
        BusyReason::Kernel => "a kernel is computing".to_owned(),
        BusyReason::Waiting(all) => all.first().map_or_else(String::new, |longest| {
            format!("{} is busy since {}, while card and CPU rest", waiting(longest), time(longest.since))
        }),
        BusyReason::Cpu(cores) => format!("its processes use {cores:.1} CPU cores"),
        BusyReason::Used(at, sign) => match sign {
            Some(UseSign::Hub) => format!("the Hub noted activity at {}", time(*at)),
            Some(UseSign::Cpu) => format!("its processes computed until {}", time(*at)),
            sign => format!("{} was used at {}", use_sign(sign.as_ref()), time(*at)),
        },
        BusyReason::Present(at) => format!("somebody was there at {}", time(*at)),
    }
}

/// A name that a user chose, as one line without control characters.
pub fn name(text: &str) -> String {
    foreign::name(text)
}

/// What moved the use clock.
pub fn use_sign(sign: Option<&UseSign>) -> String {
    match sign {
        Some(UseSign::Kernel(name)) => format!("kernel {}", foreign::name(name)),
        Some(UseSign::Terminal(name)) => format!("terminal {}", foreign::name(name)),
        Some(UseSign::Cpu) => "CPU work of its processes".to_owned(),
        Some(UseSign::Hub) => "the Hub's stamp".to_owned(),
        None => "a kernel or terminal".to_owned(),
    }
}

/// Which kernel waits.
pub fn waiting(waiting: &Waiting) -> String {
    format!("kernel {}", foreign::name(waiting.notebook.as_ref().unwrap_or(&waiting.kernel)))
}

/// `work/analysis.ipynb holds 35.4 GiB on GPU-5d1f0a2b`; nothing where it is no kernel.
pub fn hold(hold: &Hold) -> Option<String> {
    let name = match (&hold.notebook, &hold.kernel) {
        (Some(notebook), _) => foreign::name(notebook),
        (None, Some(kernel)) => format!("kernel {}", foreign::name(kernel)),
        (None, None) => return None,
    };
    let memory = hold.memory_used.map_or_else(|| "memory".to_owned(), bytes_in_words);
    Some(format!("{name} holds {memory} on {}", foreign::card(&hold.gpu.0)))
}

fn idle(idle: &Idle) -> String {
    let kind = match idle.kind {
        IdleKind::NeverUsed => "its cards have not computed since they were first seen",
        IdleKind::Held => "it holds card memory and computes nothing",
        IdleKind::Reserved => "it has cards allocated and no process on them",
        IdleKind::NoCard => "it holds no card",
        IdleKind::AtWork => "it is at work",
    };
    let limit = match idle.limit {
        LimitKind::Nobody => "no card, kernel, terminal or person has been active",
        LimitKind::Connected => "somebody is connected, but no card, kernel or terminal has been active",
        LimitKind::CardUnused => "whatever else moves, the cards have done nothing",
        LimitKind::Inactive => "the Hub has seen no activity",
        LimitKind::BusyKernel => "a kernel is busy while card and CPU rest, and nothing else has been used",
        LimitKind::MaxAge if idle.kind == IdleKind::AtWork => "the server is older than `max_age`; it runs",
        LimitKind::MaxAge => "the server is older than `max_age` and its cards rest; it runs",
    };
    format!("{limit} since {}; {kind}", time(idle.since))
}

fn unknown(reason: &UnknownReason) -> String {
    match reason {
        UnknownReason::HubRecord(field) => format!("the Hub's record has no usable `{field}`"),
        UnknownReason::Pending(what) => format!("the Hub is busy with it ({what})"),
        UnknownReason::Cards(why) => format!("its cards are not known: {why}"),
        UnknownReason::Card(id, why) => format!("card {id} cannot be read: {why}"),
        UnknownReason::Kernels(why) => format!("its kernels could not be asked: {why}"),
        UnknownReason::KernelState(state) => format!("a kernel's state tells nothing ({state})"),
        UnknownReason::WarmUp(until) => format!("it is too young to judge before {}", time(*until)),
        UnknownReason::Gap(until) => format!("its cards could not be watched until {}", time(*until)),
        UnknownReason::WatchedSince(at) => format!("its cards are watched only since {}", time(*at)),
        UnknownReason::Coverage(share) => {
            format!("only {:.0} % of the time since the card clock was watched", share * 100.0)
        }
    }
}

fn protected(reason: &ProtectedReason) -> String {
    match reason {
        ProtectedReason::NoCard => "it holds no card".to_owned(),
        ProtectedReason::Exempt { rule, until, reason } => {
            let end = until.map_or_else(|| "without end".to_owned(), |end| format!("until {}", time(end)));
            format!("rule \"{rule}\" exempts it {end}: {reason}")
        }
        ProtectedReason::Kept { until, by } => {
            format!("{} keeps it until {}", foreign::name(by), time(*until))
        }
        ProtectedReason::Declared { idle, declared, seen } => {
            let lasted = duration_in_words(age(idle.since, *seen));
            let left = duration_in_words(age(*seen, declared.until));
            format!("idle for {lasted}; {}, {left} left: {}", intent::declared(*declared), self::idle(idle))
        }
    }
}

/// Who waits for cards, in a sentence part: `3 wait for a GPU since …`.
pub fn queue(queue: &Queue) -> String {
    let line = |line: &QueueLine| {
        let since = line.since.map(|since| format!(" since {}", time(since))).unwrap_or_default();
        let (count, what) = (line.count, sentences::queued_for(line));
        format!("{count} {} for {what}{since}", if count == 1 { "waits" } else { "wait" })
    };
    match queue.total() {
        0 => "nobody waits for a GPU".to_owned(),
        _ => queue.lines.iter().filter(|line| line.count > 0).map(line).collect::<Vec<_>>().join(", "),
    }
}

/// Why an idle or warned session is left alone for now.
pub fn held_back(why: &HeldBack) -> String {
    match why {
        HeldBack::Mode(mode, action) => format!("mode \"{mode}\" does not {}", action_words(action)),
        HeldBack::Warned(deadline) => format!("its owner was promised the time until {}", time(*deadline)),
        HeldBack::Kernels(doubt) => format!("no kernel is shut down: {}", kernel_doubt(doubt)),
        HeldBack::Unknown => "it cannot be judged just now".to_owned(),
        HeldBack::Frozen(since) => {
            format!("stops are frozen since {}: too many sessions turned idle at once", time(*since))
        }
        HeldBack::JustStarted(ready) => {
            format!("this service has only just started; nothing is stopped before {}", time(*ready))
        }
        HeldBack::Stale(age) => {
            format!("the newest reading of its cards may be {} old, more than a cycle", length(*age))
        }
        HeldBack::Budget(allowed) => format!("this cycle has stopped {allowed}, the most it may"),
        HeldBack::Hours(opening) => format!("nothing is stopped before {}", time(*opening)),
        HeldBack::NoMail => "its owner cannot be warned: there is no [mail] section".to_owned(),
        HeldBack::EnoughForDemand(waiting) => {
            format!("others have been idle for longer, and only {waiting} wait for a card")
        }
        HeldBack::Interrupted(again) => {
            format!(
                "sending its warning was cut short and may have succeeded; not again before {}",
                time(*again)
            )
        }
    }
}

/// Who keeps a session, until when and why.
pub fn kept(keep: &Keep) -> String {
    let kept = format!("{} keeps it until {}", foreign::name(&keep.by), time(keep.until));
    match &keep.reason {
        Some(why) => format!("{kept}: {}", foreign::name(why)),
        None => kept,
    }
}

/// Why a freeze ended by itself.
pub const THAWED: &str = "enough of the sessions that turned idle at once are in use again, or gone";

/// Who lifted a freeze.
pub fn lifted(lifted: &Lifted) -> String {
    format!(
        "{} lifted the freeze that began at {}, when {} sessions turned idle at once",
        foreign::name(&lifted.by),
        time(lifted.since),
        lifted.flipped
    )
}

/// What is odd about a rule, and what follows from it.
pub fn rule_oddity(rule: &str, oddity: &RuleOddity) -> String {
    let why = match oddity {
        RuleOddity::Shadowed(earlier) => {
            format!("can never match: \"{earlier}\" before it takes every session that it would")
        }
        RuleOddity::EmptyCondition(field) => format!("can never match: `{field}` lists nothing"),
        RuleOddity::ExemptionEnded(end) => {
            format!("exempts nobody: its `until` passed at {}, so it protects no longer", time(*end))
        }
        RuleOddity::NothingMatches(field, pattern) => {
            format!("`{pattern}` in `{field}` matches nothing there is now")
        }
    };
    format!("\"{rule}\" {why}")
}

/// What is done about a session, or why nothing is.
pub fn would_do(decision: &Decision) -> String {
    match (&decision.action, &decision.held_back) {
        (Some(action), _) => action_words(action).to_owned(),
        (None, Some(why)) => format!("nothing: {}", held_back(why)),
        (None, None) => "nothing".to_owned(),
    }
}

/// What an action does, after "will" or "does not".
pub fn action_words(action: &Action) -> &'static str {
    match action {
        Action::Warn { .. } => "warn its owner",
        Action::Remind { .. } => "remind its owner",
        Action::Stop => "stop it",
        Action::Unmark => "take its warning back",
        Action::Withdraw => "tell its owner that the warning was taken back",
        Action::Notice(_) => "tell its owner that a kernel has waited for long",
    }
}

/// An instant, to the second, in UTC.
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// A length of time as config files write it, to the second.
pub fn length(duration: SignedDuration) -> String {
    let seconds = duration.as_secs().unsigned_abs();
    humantime::format_duration(std::time::Duration::from_secs(seconds)).to_string()
}

/// Time of cards in hours, to a tenth: `41.5`.
pub fn gpu_hours(time: SignedDuration) -> String {
    format!("{:.1}", time.as_secs_f64() / 3600.0)
}

//! The sentences that depend on how a session is idle. They hold no foreign text.

use std::time::Duration;

use jiff::tz::TimeZone;

use super::{duration_in_words, foreign, measures};
use crate::domain::QueueLine;
use crate::policy::{IdleKind, LimitKind};

/// Why this session is meant. `cards` is how many it holds.
pub(super) fn why(kind: IdleKind, limit: LimitKind, cards: usize) -> String {
    let old = "The server has run for as long as a server may run here.";
    match (limit, kind) {
        (LimitKind::MaxAge, IdleKind::AtWork) => {
            return format!("{old} Work is running on it now, and ends with it.");
        }
        (LimitKind::MaxAge, _) => return old.to_owned(),
        (LimitKind::BusyKernel, _) => {
            return "A cell is still running, but neither the GPU nor the CPU does anything for it: it may be waiting for an answer, for a file, or for another program.".to_owned();
        }
        _ => {}
    }
    let somebody = match limit {
        LimitKind::Nobody | LimitKind::Inactive => "Nobody has used the server.",
        LimitKind::Connected => {
            "Somebody is still connected, but an open browser tab alone does not count as use."
        }
        LimitKind::CardUnused => {
            "After this long only the GPU counts: open tabs, and code that does not use the GPU, do not."
        }
        LimitKind::BusyKernel | LimitKind::MaxAge => "",
    };
    match card(kind, cards) {
        Some(card) => format!("{card} {somebody}"),
        None => somebody.to_owned(),
    }
}

fn card(kind: IdleKind, cards: usize) -> Option<String> {
    let gpu = match cards {
        0 => return None,
        1 => "GPU",
        _ => "GPUs",
    };
    Some(match kind {
        IdleKind::NeverUsed => {
            format!("Nothing has been computed on the {gpu} since the server started.")
        }
        IdleKind::Held => format!("Memory is held on the {gpu}, but nothing is being computed."),
        IdleKind::Reserved if cards == 1 => {
            "The GPU is reserved for this server, but no program uses it.".to_owned()
        }
        IdleKind::NoCard | IdleKind::AtWork => return None,
        IdleKind::Reserved => "The GPUs are reserved for this server, but no program uses them.".to_owned(),
    })
}

/// What the owner can do.
pub(super) fn remedy(limit: LimitKind) -> &'static str {
    match limit {
        LimitKind::Nobody | LimitKind::Inactive => "run a cell, any cell. Nothing else is needed.",
        LimitKind::Connected => {
            "run a cell, any cell. Having the notebook open in a browser tab is not enough."
        }
        LimitKind::CardUnused => {
            "run something on the GPU. Opening the notebook is not enough, and neither is code that does not use the GPU. If you do not need a GPU, please move to a server without one."
        }
        LimitKind::BusyKernel => {
            "answer what the cell asks for, or interrupt it (Kernel, then Interrupt). Opening the notebook is not enough."
        }
        LimitKind::MaxAge => {
            "save your work, then stop the server and start it anew when it suits you. Using it does not change the time."
        }
    }
}

/// What a subject calls it.
pub(super) fn in_brief(limit: LimitKind, cards: usize) -> &'static str {
    match (limit, cards) {
        (LimitKind::MaxAge, _) => "time limit reached",
        (LimitKind::BusyKernel, _) => "a cell has waited for long",
        (_, 0) => "idle server",
        (_, 1) => "idle GPU",
        _ => "idle GPUs",
    }
}

/// Why the time was shorter than usual.
pub(super) fn demand(line: &QueueLine, zone: &TimeZone) -> String {
    let what = queued_for(line);
    let since = line.since.map(|since| measures::instant_in_words(since, zone));
    let (who, since) = match (line.count, since) {
        (1, since) => ("Somebody is".to_owned(), since.map(|since| format!(", since {since}"))),
        (n, since) => {
            (format!("{n} others are"), since.map(|since| format!(", the first of them since {since}")))
        }
    };
    let since = since.unwrap_or_default();
    format!("{who} waiting for {what}{since}, so the time is shorter than usual.")
}

/// What people wait for: `a GPU`, or `a GPU (nvidia.com/mig-1g.10gb)` where that says more.
pub(super) fn queued_for(line: &QueueLine) -> String {
    match line.what.as_deref() {
        None | Some("nvidia.com/gpu") => "a GPU".to_owned(),
        Some(what) => format!("a GPU ({})", foreign::name(what)),
    }
}

/// What happens to running cells before a stop.
pub(super) fn interrupt(save_wait: Duration) -> String {
    let wait = duration_in_words(save_wait);
    format!(
        "running cells are interrupted, as with the stop button, and get up to {wait} to save what they have."
    )
}

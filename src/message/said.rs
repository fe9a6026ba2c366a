//! What people are told on the pages about what they asked for.

use jiff::{Timestamp, tz::TimeZone};

use super::{foreign, measures, reasons};
use crate::policy::{KeepRefused, LONGEST_REASON, Mode};

/// A session is kept.
pub fn kept(until: Timestamp, zone: &TimeZone) -> String {
    format!(
        "Kept until {}. Whatever it does or does not do, it is left alone until then.",
        measures::instant_in_words(until, zone)
    )
}

/// A server is gone.
pub const STOPPED: &str = "The server is stopped, and its cards are free. Thank you.";
/// The Hub has not finished.
pub const STILL_STOPPING: &str =
    "The Hub is stopping the server. This page will no longer show it when it is gone.";
/// Processes live on.
pub const ORPHANED: &str =
    "The Hub has stopped the server, but some of its processes live on. The admins can see which.";
/// Stops are allowed again.
pub const LIFTED: &str = "The freeze is lifted. What is due may be stopped again from the next look on.";
/// No such server.
pub const NO_SERVER: &str = "There is no such server any more, so there was nothing to do.";
/// Another run of it.
pub const RESTARTED: &str =
    "The server was started anew after this page was shown. Nothing was changed; please look again.";
/// A reason is needed.
pub const NEEDS_REASON: &str = "Please give a reason: it is written down for everybody who asks later.";
/// Nothing is frozen.
pub const NOT_FROZEN: &str = "Stops are not frozen, so there was nothing to lift.";
/// Too late.
pub const TOO_LATE: &str = "The server is being stopped at this very moment, so it can no longer be kept. You can start it again; files are not lost.";
/// Too many at once.
pub const BUSY: &str = "Too many requests are waiting. Nothing was changed; please try again in a minute.";
/// No settings in force.
pub const NOT_WORKING: &str =
    "The service does no work at present, so nothing is stopped either. The admins can see why.";
/// No answer yet.
pub const WAITING: &str = "Your wish is noted: it already protects against a stop, and it is carried out as soon as the look that is under way has ended. Please look again in a minute.";
/// No answer yet to a stop.
pub const WAITING_FOR_STOP: &str = "Your wish is noted and is carried out as soon as the look that is under way has ended. Please look again in a minute.";
/// A length of time that does not parse.
pub const NO_LENGTH: &str = "The time to keep it was not understood: write it like “8h”.";

/// Why a keep is not given.
pub fn keep_refused(why: &KeepRefused, zone: &TimeZone) -> String {
    let time = |at| measures::instant_in_words(at, zone);
    match why {
        KeepRefused::NotRunning => "the server is not running, so there is nothing to keep".to_owned(),
        KeepRefused::NotOffered(length) => format!("{} is not on offer", reasons::length(*length)),
        KeepRefused::AlreadyKept(until) => format!("it is kept until {} already", time(*until)),
        KeepRefused::BudgetSpent { left, again } => {
            let left = format!("{} of the weekly budget are left", reasons::length(*left));
            match again {
                Some(at) => format!("{left}; this much can be had again from {}", time(*at)),
                None => format!("{left}; this is more than a week's budget"),
            }
        }
        KeepRefused::ReasonMissing => "a reason must be given".to_owned(),
        KeepRefused::ReasonTooLong => format!("the reason is longer than {LONGEST_REASON} characters"),
    }
}

/// It is not kept.
pub fn not_kept(why: &KeepRefused, zone: &TimeZone) -> String {
    match why {
        KeepRefused::ReasonMissing => NEEDS_REASON.to_owned(),
        why => format!("Nothing was changed: {}.", keep_refused(why, zone)),
    }
}

/// It computes.
pub fn computes(what: &str) -> String {
    format!("Nothing was stopped, because {what}. If you stop the server now, that work is lost.")
}

/// In this mode nothing is stopped from here.
pub fn no_stopper(mode: Mode) -> String {
    format!("In mode “{mode}” this service stops nothing. Please stop the server on the Hub’s home page.")
}

/// It did not work.
pub fn failed(why: &str) -> String {
    format!("That did not work: {}", foreign::name(why))
}

/// Why a page or an answer is refused.
pub mod refused {
    /// Somebody else's session, or none at all: both read the same.
    pub const NOT_YOURS: &str = "This address is about a session that is not yours. If a mail brought you here, please log in at the Hub as the person it was sent to.";
    /// Only for admins.
    pub const NOT_ADMIN: &str = "This page is for the people who run this JupyterHub.";
    /// The Hub does not let them in.
    pub const NO_ACCESS: &str =
        "Your account may not use this service. The people who run this JupyterHub can change that.";
    /// Not logged in.
    pub const NO_LOGIN: &str =
        "You are not logged in, or no longer. Nothing was shown and nothing was changed.";
    /// The form did not come from here.
    pub const FORGED: &str = "Nothing was changed: the form did not come from this page, or your login has been renewed since. Please load the page again.";
    /// The login that came back was not begun here.
    pub const STRANGE_LOGIN: &str = "This login was not begun in this browser, or it is too old. Nothing is wrong; please begin it again.";
    /// The Hub cannot be asked.
    pub const HUB_SILENT: &str =
        "The Hub cannot be asked just now whether you may see this. Please try again in a minute.";
    /// Login is not set up.
    pub const NO_DOOR: &str =
        "Nobody can log in, because the Hub did not tell this service how. Its log says what is missing.";
    /// A request that was not understood.
    pub const NOT_UNDERSTOOD: &str = "The request was not understood. Nothing was changed.";
    /// Nothing there.
    pub const NOT_FOUND: &str = "There is nothing at this address.";
    /// A bug.
    pub const BROKEN: &str = "This page could not be written; the service’s log says why. Its work goes on.";
    /// The log cannot be read.
    pub const NO_LOG: &str = "The log of what happened could not be read; the service’s log says why.";
}

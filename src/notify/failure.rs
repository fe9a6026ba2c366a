//! What a failed step means: try again, or give this mail up.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use lettre::transport::smtp::Error;
use lettre::transport::smtp::response::Response;

use super::DeliveryError;
use super::mask::mask_all;
use super::smtp::Relay;

/// How far a delivery came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Connect,
    Encrypt,
    SignIn,
    Sender,
    Recipient,
    Content,
    Check,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Encrypt => "encrypting the connection",
            Self::SignIn => "signing in",
            Self::Sender => "naming the sender",
            Self::Recipient => "naming the recipient",
            Self::Content => "handing over the mail",
            Self::Check => "asking whether it is there",
        })
    }
}

/// A refusal of this recipient or this mail is final. Everything else is trouble of the mail server
/// or of our settings, which is not the recipient's fault and may be gone next time.
pub(super) fn judge(relay: &Relay, step: Step, error: &Error) -> DeliveryError {
    let code = error.status().map(u16::from);
    let about_us = matches!(code, Some(530 | 534 | 535 | 538));
    let text = tell(relay, step, &came_back(error), remedy(step, error, about_us));
    let final_step = matches!(step, Step::Recipient | Step::Content);
    if error.is_permanent() && final_step && !about_us {
        DeliveryError::Permanent(text)
    } else {
        DeliveryError::Retryable(text)
    }
}

/// The server said nothing in time.
pub(super) fn late(relay: &Relay, step: Step, limit: Duration) -> DeliveryError {
    let what = format!("no answer within {}", humantime::format_duration(limit));
    DeliveryError::Retryable(tell(relay, step, &what, None))
}

/// The server said something that does not fit.
pub(super) fn odd(relay: &Relay, step: Step, what: &str) -> DeliveryError {
    let remedy = match step {
        Step::Encrypt => Some(
            "use smtps:// if it speaks TLS from the start, or, on a network you trust, smtp://…?tls=none",
        ),
        _ => None,
    };
    DeliveryError::Retryable(tell(relay, step, what, remedy))
}

/// An answer on one line, without addresses: `250 2.0.0 queued as 7`.
pub(super) fn shown(answer: &Response) -> String {
    let text = answer.message().collect::<Vec<_>>().join(" ");
    mask_all(&format!("{} {text}", answer.code()))
}

fn tell(relay: &Relay, step: Step, what: &str, remedy: Option<&str>) -> String {
    let remedy = remedy.map(|r| format!("; {r}")).unwrap_or_default();
    format!("mail server {relay}, {step}: {what}{remedy}")
}

fn came_back(error: &Error) -> String {
    let text = match (error.status(), error.source()) {
        (Some(code), Some(text)) => format!("{code} {text}"),
        // The library's word for an end of the stream where an answer was due.
        (None, Some(source)) if source.to_string() == "incomplete response" => {
            "the connection was lost".to_owned()
        }
        (None, Some(source)) => source.to_string(),
        (_, None) => error.to_string(),
    };
    mask_all(&text)
}

fn remedy(step: Step, error: &Error, about_us: bool) -> Option<&'static str> {
    let untrusted = error.source().is_some_and(|source| {
        let text = source.to_string();
        text.contains("certificate")
    });
    if about_us || step == Step::SignIn {
        Some("check [mail] username and password_file")
    } else if untrusted {
        Some(
            "the name in [mail] server must be one of the certificate's, and [mail] ca_file must hold its CA unless the system trusts it",
        )
    } else if step == Step::Sender && error.is_permanent() {
        Some("check [mail] from: this mail server must accept it as a sender")
    } else {
        None
    }
}

//! Turns a mail into the bytes that travel.

use lettre::Address;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message, MultiPart};

use super::{DeliveryError, OutgoingMail, mask};

/// A mail ready to travel.
pub(super) struct Letter {
    pub(super) from: Address,
    pub(super) to: Address,
    /// Headers and body, ASCII only.
    pub(super) content: Vec<u8>,
}

/// Composes `mail`. What cannot be composed now can never be: those errors are permanent.
pub(super) fn letter(from: &Mailbox, mail: &OutgoingMail) -> Result<Letter, DeliveryError> {
    let to: Address = mail.to.trim().parse().map_err(|reason| {
        let shown = mask(&mail.to);
        DeliveryError::Permanent(format!("{shown} is no mail address: {reason}"))
    })?;
    let id = angled(&mail.message_id)?;
    let mut message = Message::builder()
        .from(from.clone())
        .to(Mailbox::new(None, to.clone()))
        .subject(one_line(&mail.subject))
        .date_now()
        .message_id(Some(id))
        .raw_header(header("Auto-Submitted", "auto-generated"));
    let domain = from.email.domain();
    if domain.is_ascii() {
        message = message.raw_header(header("List-Id", &format!("<gpu-culler.{domain}>")));
    }
    if let Some(earlier) = &mail.in_reply_to {
        let earlier = angled(earlier)?;
        message = message.in_reply_to(earlier.clone()).references(earlier);
    }
    let both = MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone());
    let message = message
        .multipart(both)
        .map_err(|reason| DeliveryError::Permanent(format!("the mail could not be composed: {reason}")))?;
    Ok(Letter { from: from.email.clone(), to, content: message.formatted() })
}

fn header(name: &'static str, value: &str) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), value.to_owned())
}

/// A message id in its angle brackets. Only characters that are safe in a header pass.
fn angled(id: &str) -> Result<String, DeliveryError> {
    let bare = id.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(id);
    let safe = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || ".-_+=$".contains(c))
    };
    match bare.split_once('@') {
        Some((local, domain)) if safe(local) && safe(domain) => Ok(format!("<{bare}>")),
        _ => Err(DeliveryError::Permanent(format!(
            "a message id must look like name@domain, in plain letters and digits; got `{}`",
            one_line(id)
        ))),
    }
}

/// A header is one line, whatever a caller forgot to clean.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop at once")]
    use super::*;

    fn mail() -> OutgoingMail {
        OutgoingMail {
            to: "alice@example.org".to_owned(),
            subject: "idle GPU".to_owned(),
            text: "Hello\n".to_owned(),
            html: "<p>Hello</p>\n".to_owned(),
            message_id: "w1.alice@gpu-culler.example.org".to_owned(),
            in_reply_to: None,
        }
    }

    fn composed(mail: &OutgoingMail) -> String {
        let from = "GPU culler <gpu-culler@example.org>".parse().unwrap();
        let letter = letter(&from, mail).map_err(|e| e.to_string()).unwrap();
        String::from_utf8(letter.content).unwrap()
    }

    fn headers(mail: &OutgoingMail) -> Vec<String> {
        let all = composed(mail);
        let (headers, _) = all.split_once("\r\n\r\n").unwrap();
        headers.replace("\r\n ", " ").split("\r\n").map(ToOwned::to_owned).collect()
    }

    fn refusal(mail: &OutgoingMail) -> DeliveryError {
        let from = "gpu-culler@example.org".parse().unwrap();
        letter(&from, mail).err().unwrap()
    }

    #[test]
    fn the_headers_name_the_machine_and_the_thread() {
        let reminder =
            OutgoingMail { in_reply_to: Some("<w0.alice@gpu-culler.example.org>".to_owned()), ..mail() };
        let headers = headers(&reminder);
        for expected in [
            "From: \"GPU culler\" <gpu-culler@example.org>",
            "To: alice@example.org",
            "Subject: idle GPU",
            "Message-ID: <w1.alice@gpu-culler.example.org>",
            "In-Reply-To: <w0.alice@gpu-culler.example.org>",
            "References: <w0.alice@gpu-culler.example.org>",
            "Auto-Submitted: auto-generated",
            "List-Id: <gpu-culler.example.org>",
            "MIME-Version: 1.0",
        ] {
            assert!(headers.iter().any(|h| h == expected), "{expected}: {headers:#?}");
        }
        assert!(headers.iter().any(|h| h.starts_with("Date: ")));
        assert!(headers.iter().any(|h| h.starts_with("Content-Type: multipart/alternative;")));
    }

    #[test]
    fn foreign_text_adds_no_header() {
        let hostile =
            OutgoingMail { subject: "x\r\nBcc: everybody@example.org\r\n\r\nbody".to_owned(), ..mail() };
        let headers = headers(&hostile);
        assert!(!headers.iter().any(|h| h.starts_with("Bcc")), "{headers:#?}");
        assert!(headers.contains(&"Subject: x  Bcc: everybody@example.org    body".to_owned()));
    }

    #[test]
    fn every_script_travels_as_ascii() {
        let foreign = OutgoingMail {
            subject: "שרה – idle".to_owned(),
            text: "שרה 2 × GPU\n".to_owned(),
            html: "<p>שרה</p>\n".to_owned(),
            ..mail()
        };
        assert!(composed(&foreign).is_ascii());
    }

    #[test]
    fn a_wrong_address_is_permanent_and_masked() {
        for address in ["", "alice", "alice@", "alice@example.org\r\nRCPT TO:<eve@example.org>", "a b@c d"] {
            let wrong = OutgoingMail { to: address.to_owned(), ..mail() };
            let DeliveryError::Permanent(text) = refusal(&wrong) else {
                panic!("{address:?} was not refused for good")
            };
            assert!(!text.contains("alice") && !text.contains("eve"), "{text}");
        }
    }

    #[test]
    fn a_message_id_that_breaks_a_header_is_refused() {
        for id in ["", "x", "x@", "a b@c", "x@y\r\nBcc: z@y", "x@y>", "../x@y/z"] {
            let wrong = OutgoingMail { message_id: id.to_owned(), ..mail() };
            assert!(matches!(refusal(&wrong), DeliveryError::Permanent(_)), "{id:?}");
        }
    }
}

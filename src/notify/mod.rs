//! Delivers mails: to a mail server by SMTP, to the local sendmail, or into a directory.
//!
//! A delivery ends in a [`Receipt`], which exists only once the other side took the responsibility
//! for the mail (the mail server's final 250, sendmail's exit code 0), or in a [`DeliveryError`] that says whether trying again can help.
//! What the mails say and who gets one is decided elsewhere.

mod compose;
mod directory;
mod failure;
mod mask;
mod sendmail;
mod server;
mod smtp;
mod webhook;

use std::path::PathBuf;
use std::time::Duration;

pub use lettre::message::Mailbox;
use secrecy::SecretString;

pub use mask::mask;
pub use server::{MailServer, ServerError, Tls};
pub use webhook::{Announcer, Webhook, WebhookSettings};

/// How mails leave.
#[derive(Clone, Debug)]
pub struct MailSettings {
    /// The sender, `GPU culler <gpu-culler@example.org>`.
    pub from: Mailbox,
    /// Where mails go.
    pub server: MailServer,
    /// Who signs in to the mail server.
    pub username: Option<String>,
    /// With which password.
    pub password: Option<SecretString>,
    /// Certificates to trust besides those of the system (PEM).
    pub ca_file: Option<PathBuf>,
    /// The longest wait for one answer of the mail server.
    pub timeout: Duration,
}

/// One mail to one recipient.
#[derive(Clone, Debug)]
pub struct OutgoingMail {
    /// The recipient's address.
    pub to: String,
    /// One line.
    pub subject: String,
    /// The body as plain text.
    pub text: String,
    /// The body as HTML.
    pub html: String,
    /// `name@domain`. Give the same one when a delivery is tried again: should the first have
    /// arrived after all, the recipient's mail server can tell that it is the same mail.
    pub message_id: String,
    /// The id of the mail that this one follows.
    pub in_reply_to: Option<String>,
}

/// Proof that a mail was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The mail server's final answer (`250 2.0.0 queued as 7`), sendmail's, or the file written.
    pub answer: String,
}

/// Why a mail was not accepted. The text is for the admin and holds no whole address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// The same mail may be accepted later, perhaps once a setting is corrected.
    #[error("{0}")]
    Retryable(String),
    /// This mail to this recipient will not be accepted.
    #[error("{0}")]
    Permanent(String),
}

/// Settings with which no mail can leave.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// `ca_file` cannot be read.
    #[error("cannot read the certificates in {path} (ca_file)")]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// `ca_file` is not what it should be.
    #[error("{path} ([mail] ca_file) holds no certificate: it must be PEM, with BEGIN CERTIFICATE lines")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The webhook's address is none. It is not repeated, since it is a secret.
    #[error("[webhook] url_file must hold an address like https://hooks.example.org/services/...")]
    WebhookUrl,
    /// TLS cannot be set up.
    #[error("cannot set up TLS for {server}: {reason}")]
    Tls {
        /// The mail server or the webhook's host.
        server: String,
        /// What the TLS library said.
        reason: String,
    },
    /// One of user name and password is missing.
    #[error("[mail] username and password_file go together: {missing} is missing")]
    HalfCredentials {
        /// The missing one.
        missing: &'static str,
    },
    /// A password would travel readable for everybody.
    #[error("the password for {server} would be sent unencrypted: remove ?tls=none, or the username")]
    PasswordInClear {
        /// The mail server.
        server: String,
    },
}

/// Delivers mails as the settings say.
pub struct Mailer {
    from: Mailbox,
    route: Route,
}

enum Route {
    Smtp(smtp::Relay),
    Directory(PathBuf),
    Sendmail(sendmail::Program),
}

impl Mailer {
    /// Checks the settings; connects to nothing yet.
    pub fn new(settings: MailSettings) -> Result<Self, NotifyError> {
        let route = match &settings.server {
            MailServer::Smtp { host, port, tls } => {
                Route::Smtp(smtp::Relay::new(host, *port, *tls, &settings)?)
            }
            MailServer::Directory(directory) => Route::Directory(directory.clone()),
            MailServer::Sendmail(path) => {
                Route::Sendmail(sendmail::Program { path: path.clone(), timeout: settings.timeout })
            }
        };
        Ok(Self { from: settings.from, route })
    }

    /// Delivers one mail. Tries once: when to try again is the caller's decision.
    pub async fn deliver(&self, mail: &OutgoingMail) -> Result<Receipt, DeliveryError> {
        let letter = compose::letter(&self.from, mail)?;
        match &self.route {
            Route::Smtp(relay) => relay.deliver(&letter).await,
            Route::Directory(directory) => {
                directory::write(directory, &mail.message_id, letter.content).await
            }
            Route::Sendmail(program) => program.deliver(&letter).await,
        }
    }

    /// Goes the whole way of a mail (connect, encrypt, sign in) and sends none.
    pub async fn check(&self) -> Result<(), DeliveryError> {
        match &self.route {
            Route::Smtp(relay) => relay.check().await,
            Route::Directory(directory) => directory::check(directory).await,
            Route::Sendmail(program) => program.check(),
        }
    }
}

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let route = match &self.route {
            Route::Smtp(relay) => relay.to_string(),
            Route::Directory(directory) => directory.display().to_string(),
            Route::Sendmail(program) => program.path.display().to_string(),
        };
        f.debug_struct("Mailer").field("route", &route).finish()
    }
}

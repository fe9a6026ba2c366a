//! Delivers by SMTP, one connection a mail, and says at which step it failed and whose fault it is.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, Certificate, TlsParameters, TlsParametersBuilder,
};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailParameter};
use lettre::transport::smtp::response::Response;
use secrecy::ExposeSecret;

use super::compose::Letter;
use super::{DeliveryError, MailServer, MailSettings, NotifyError, Receipt, Tls, failure};
use failure::{Step, judge, late, odd};

/// How long to wait for an answer to goodbye: the outcome is known by then.
const GOODBYE: Duration = Duration::from_secs(1);

/// A mail server and how to talk to it.
pub(super) struct Relay {
    host: String,
    port: u16,
    security: Security,
    credentials: Option<Credentials>,
    timeout: Duration,
}

enum Security {
    None,
    StartTls(TlsParameters),
    Implicit(TlsParameters),
}

impl Relay {
    pub(super) fn new(host: &str, port: u16, tls: Tls, settings: &MailSettings) -> Result<Self, NotifyError> {
        let credentials = credentials(settings)?;
        if credentials.is_some() && tls == Tls::None && !MailServer::is_loopback(host) {
            return Err(NotifyError::PasswordInClear { server: settings.server.to_string() });
        }
        let parameters = || tls_parameters(host, settings);
        Ok(Self {
            host: host.to_owned(),
            port,
            security: match tls {
                Tls::None => Security::None,
                Tls::StartTlsRequired => Security::StartTls(parameters()?),
                Tls::Implicit => Security::Implicit(parameters()?),
            },
            credentials,
            timeout: settings.timeout,
        })
    }

    pub(super) async fn deliver(&self, letter: &Letter) -> Result<Receipt, DeliveryError> {
        let mut connection = self.connect().await?;
        let outcome = self.send(&mut connection, letter).await;
        goodbye(connection).await;
        outcome
    }

    pub(super) async fn check(&self) -> Result<(), DeliveryError> {
        let mut connection = self.connect().await?;
        let alive = tokio::time::timeout(self.timeout, connection.test_connected()).await;
        goodbye(connection).await;
        match alive {
            Ok(true) => Ok(()),
            Ok(false) => Err(odd(self, Step::Check, "no answer to NOOP")),
            Err(_) => Err(late(self, Step::Check, self.timeout)),
        }
    }

    /// Connects, encrypts and signs in.
    async fn connect(&self) -> Result<AsyncSmtpConnection, DeliveryError> {
        let name = ClientId::default();
        let tls = match &self.security {
            Security::Implicit(tls) => Some(tls.clone()),
            _ => None,
        };
        let address = (self.host.as_str(), self.port);
        let opened = AsyncSmtpConnection::connect_tokio1(address, Some(self.timeout), &name, tls, None);
        let mut connection = self.step(Step::Connect, opened).await?;
        if let Security::StartTls(tls) = &self.security {
            if !connection.can_starttls() {
                return Err(odd(self, Step::Encrypt, "it offers no STARTTLS"));
            }
            let upgraded = connection.starttls(tls.clone(), &name);
            self.step(Step::Encrypt, upgraded).await?;
        }
        if let Some(credentials) = &self.credentials {
            let signed_in = connection.auth(&[Mechanism::Plain, Mechanism::Login], credentials);
            let answer = self.step(Step::SignIn, signed_in).await?;
            self.expect(Step::SignIn, 235, &answer)?;
        }
        Ok(connection)
    }

    /// The exact codes matter: an answer to another question, slipped in before the encryption
    /// began, must not pass for the final acceptance.
    async fn send(
        &self,
        connection: &mut AsyncSmtpConnection,
        letter: &Letter,
    ) -> Result<Receipt, DeliveryError> {
        let parameters = self.addressing(connection, letter)?;
        let mail = Mail::new(Some(letter.from.clone()), parameters);
        let answer = self.step(Step::Sender, connection.command(mail)).await?;
        self.expect(Step::Sender, 250, &answer)?;
        let recipient = Rcpt::new(letter.to.clone(), Vec::new());
        let answer = self.step(Step::Recipient, connection.command(recipient)).await?;
        if !answer.has_code(251) {
            self.expect(Step::Recipient, 250, &answer)?;
        }
        let answer = self.step(Step::Content, connection.command(Data)).await?;
        self.expect(Step::Content, 354, &answer)?;
        let sent = connection.message(&letter.content);
        let answer = self.step(Step::Content, sent).await?;
        self.expect(Step::Content, 250, &answer)?;
        Ok(Receipt { answer: failure::shown(&answer) })
    }

    /// What has to be said for addresses outside ASCII, where the server takes them at all.
    fn addressing(
        &self,
        connection: &AsyncSmtpConnection,
        letter: &Letter,
    ) -> Result<Vec<MailParameter>, DeliveryError> {
        let ascii = |address: &Address| AsRef::<str>::as_ref(address).is_ascii();
        if ascii(&letter.from) && ascii(&letter.to) {
            Ok(Vec::new())
        } else if connection.server_info().supports_feature(Extension::SmtpUtfEight) {
            Ok(vec![MailParameter::SmtpUtfEight])
        } else if ascii(&letter.to) {
            Err(odd(self, Step::Sender, "it takes only plain ASCII addresses; check [mail] from"))
        } else {
            Err(DeliveryError::Permanent(format!("mail server {self} takes only plain ASCII addresses")))
        }
    }

    /// Waits for one answer; the SMTP library's own limit covers the connect only.
    async fn step<T>(
        &self,
        step: Step,
        work: impl Future<Output = Result<T, lettre::transport::smtp::Error>>,
    ) -> Result<T, DeliveryError> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(judge(self, step, &error)),
            Err(_) => Err(late(self, step, self.timeout)),
        }
    }

    fn expect(&self, step: Step, code: u16, answer: &Response) -> Result<(), DeliveryError> {
        if answer.has_code(code) {
            return Ok(());
        }
        let came = failure::shown(answer);
        Err(odd(self, step, &format!("expected {code}, got {came}")))
    }
}

impl fmt::Display for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

async fn goodbye(mut connection: AsyncSmtpConnection) {
    // Whether the server says goodbye, too, changes nothing.
    let _ = tokio::time::timeout(GOODBYE, connection.abort()).await;
}

fn credentials(settings: &MailSettings) -> Result<Option<Credentials>, NotifyError> {
    match (&settings.username, &settings.password) {
        (None, None) => Ok(None),
        (Some(name), Some(password)) => {
            Ok(Some(Credentials::new(name.clone(), password.expose_secret().to_owned())))
        }
        (None, Some(_)) => Err(NotifyError::HalfCredentials { missing: "username" }),
        (Some(_), None) => Err(NotifyError::HalfCredentials { missing: "password_file" }),
    }
}

/// The system's certificates, and those of `ca_file` besides.
fn tls_parameters(host: &str, settings: &MailSettings) -> Result<TlsParameters, NotifyError> {
    // Whoever installed one first has the same one: only ring is compiled in.
    rustls::crypto::ring::default_provider().install_default().ok();
    let trouble = |error: lettre::transport::smtp::Error| NotifyError::Tls {
        server: settings.server.to_string(),
        reason: error.to_string(),
    };
    let mut builder = TlsParametersBuilder::new(host.to_owned());
    if let Some(path) = &settings.ca_file {
        let certificate = Certificate::from_pem(&pem(path)?).map_err(trouble)?;
        builder = builder.add_root_certificate(certificate);
    }
    builder.build().map_err(trouble)
}

fn pem(path: &Path) -> Result<Vec<u8>, NotifyError> {
    let pem = fs::read(path).map_err(|source| NotifyError::CaFile { path: path.to_owned(), source })?;
    let marker = b"-----BEGIN CERTIFICATE-----";
    if pem.windows(marker.len()).any(|window| window == marker) {
        Ok(pem)
    } else {
        Err(NotifyError::NoCertificate { path: path.to_owned() })
    }
}

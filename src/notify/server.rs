//! Where mails go, as the config writes it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use url::Url;

/// Where mails go: `smtp://host:587`, `smtps://host:465`, `sendmail` or `file:///directory`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailServer {
    /// A mail server.
    Smtp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
        /// How the connection is encrypted.
        tls: Tls,
    },
    /// A directory into which each mail is written as a file.
    Directory(PathBuf),
    /// A program that takes a mail on its standard input, as sendmail does.
    Sendmail(PathBuf),
}

/// How a connection to a mail server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Begins readable and must turn to TLS before anything is said (`smtp://`).
    StartTlsRequired,
    /// TLS from the first byte (`smtps://`).
    Implicit,
    /// Not at all, which has to be spelled out (`smtp://host?tls=none`).
    None,
}

impl MailServer {
    /// Where sendmail and its replacements (Postfix, Exim, msmtp, nullmailer) are found.
    const SENDMAIL: &str = "/usr/sbin/sendmail";

    /// Whether what is sent stays on this machine.
    pub(super) fn is_loopback(host: &str) -> bool {
        host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// What is wrong with a written mail server. Nothing that could be a password is repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// Not a URL.
    #[error(
        "the mail server is no URL: write smtp://mail.example.org:587, smtps://mail.example.org:465, sendmail or file:///var/spool/gpu-culler"
    )]
    NoUrl,
    /// An unknown scheme.
    #[error(
        "a mail server cannot begin with `{0}:`: use smtp:// (STARTTLS), smtps:// (TLS), sendmail or file:/// (a directory)"
    )]
    Scheme(String),
    /// A user name or password inside the URL.
    #[error(
        "the mail server's URL must not hold a user name or password: use [mail] username and password_file"
    )]
    Credentials,
    /// No host.
    #[error("the mail server's URL names no host: write smtp://mail.example.org:587")]
    NoHost,
    /// A path after the host.
    #[error("nothing may follow the mail server's host and port, except ?tls=none; found `{0}`")]
    Trailing(String),
    /// `tls=none` together with TLS.
    #[error("smtps:// is always encrypted; for no encryption at all write smtp://…?tls=none")]
    TlsWithoutTls,
    /// A directory that is not absolute.
    #[error(
        "a directory for mails is written with three slashes and an absolute path: file:///var/spool/gpu-culler"
    )]
    Directory,
    /// A program that is not absolute.
    #[error("sendmail's path must be absolute: sendmail:/usr/sbin/sendmail")]
    Sendmail,
}

impl FromStr for MailServer {
    type Err = ServerError;

    fn from_str(written: &str) -> Result<Self, ServerError> {
        if written == "sendmail" {
            return Ok(Self::Sendmail(Self::SENDMAIL.into()));
        }
        let (scheme, rest) = written.split_once(':').ok_or(ServerError::NoUrl)?;
        match scheme {
            "smtp" | "smtps" if rest.contains('@') => Err(ServerError::Credentials),
            "smtp" | "smtps" => smtp(&Url::parse(written).map_err(|_| ServerError::NoUrl)?),
            "file" if !written.starts_with("file:///") => Err(ServerError::Directory),
            "file" => {
                let url = Url::parse(written).map_err(|_| ServerError::Directory)?;
                let path = url.to_file_path().map_err(|()| ServerError::Directory)?;
                Ok(Self::Directory(path))
            }
            "sendmail" if rest.starts_with('/') => Ok(Self::Sendmail(rest.into())),
            "sendmail" => Err(ServerError::Sendmail),
            // A scheme is short and plain; anything else may be the beginning of a secret.
            other if other.len() <= 10 && !rest.contains('@') => Err(ServerError::Scheme(other.to_owned())),
            _ => Err(ServerError::NoUrl),
        }
    }
}

fn smtp(url: &Url) -> Result<MailServer, ServerError> {
    let host = match url.host() {
        Some(url::Host::Ipv6(ip)) => ip.to_string(), // without the brackets of the URL
        Some(host) => host.to_string(),
        None => return Err(ServerError::NoHost),
    };
    if !matches!(url.path(), "" | "/") {
        return Err(ServerError::Trailing(url.path().to_owned()));
    }
    let implicit = url.scheme() == "smtps";
    let (tls, usual_port) = match (url.query(), url.fragment()) {
        (None, None) if implicit => (Tls::Implicit, 465),
        (None, None) => (Tls::StartTlsRequired, 587),
        (Some("tls=none"), None) if implicit => return Err(ServerError::TlsWithoutTls),
        (Some("tls=none"), None) => (Tls::None, 25),
        (query, fragment) => {
            let found = query.or(fragment).unwrap_or_default();
            return Err(ServerError::Trailing(found.to_owned()));
        }
    };
    Ok(MailServer::Smtp { host, port: url.port().unwrap_or(usual_port), tls })
}

impl fmt::Display for MailServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => write!(f, "file://{}", directory.display()),
            Self::Sendmail(program) => write!(f, "sendmail:{}", program.display()),
            Self::Smtp { host, port, tls } => {
                let scheme = if *tls == Tls::Implicit { "smtps" } else { "smtp" };
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                let query = if *tls == Tls::None { "?tls=none" } else { "" };
                write!(f, "{scheme}://{open}{host}{close}:{port}{query}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn smtp(host: &str, port: u16, tls: Tls) -> MailServer {
        let host = host.to_owned();
        MailServer::Smtp { host, port, tls }
    }

    #[test]
    fn what_is_written_is_understood_and_written_back() {
        for (written, server, canonical) in [
            (
                "smtp://mail.example.org",
                smtp("mail.example.org", 587, Tls::StartTlsRequired),
                "smtp://mail.example.org:587",
            ),
            (
                "smtp://mail.example.org:25/",
                smtp("mail.example.org", 25, Tls::StartTlsRequired),
                "smtp://mail.example.org:25",
            ),
            (
                "smtps://mail.example.org",
                smtp("mail.example.org", 465, Tls::Implicit),
                "smtps://mail.example.org:465",
            ),
            ("smtp://127.0.0.1?tls=none", smtp("127.0.0.1", 25, Tls::None), "smtp://127.0.0.1:25?tls=none"),
            ("smtp://relay:2525?tls=none", smtp("relay", 2525, Tls::None), "smtp://relay:2525?tls=none"),
            ("smtp://[::1]:25?tls=none", smtp("::1", 25, Tls::None), "smtp://[::1]:25?tls=none"),
            ("sendmail", MailServer::Sendmail("/usr/sbin/sendmail".into()), "sendmail:/usr/sbin/sendmail"),
            ("sendmail:/opt/msmtp", MailServer::Sendmail("/opt/msmtp".into()), "sendmail:/opt/msmtp"),
            ("file:///var/spool/x", MailServer::Directory("/var/spool/x".into()), "file:///var/spool/x"),
        ] {
            assert_eq!(written.parse(), Ok(server.clone()), "{written}");
            assert_eq!(server.to_string(), canonical);
        }
    }

    #[test]
    fn a_wrong_server_is_refused_with_its_remedy() {
        for (written, part) in [
            ("", "is no URL"),
            ("mail.example.org", "is no URL"),
            ("http://mail.example.org", "begin with `http:`"),
            ("sendmail:", "must be absolute"),
            ("sendmail:msmtp", "must be absolute"),
            ("smtp://", "names no host"),
            ("smtp:mail.example.org", "names no host"),
            ("smtp://mail.example.org/inbox", "found `/inbox`"),
            ("smtp://mail.example.org?tls=no", "found `tls=no`"),
            ("smtps://mail.example.org?tls=none", "always encrypted"),
            ("smtp://mail.example.org:99999", "is no URL"),
            ("file://var/spool", "three slashes"),
            ("file:spool", "three slashes"),
        ] {
            let refusal = written.parse::<MailServer>().map_err(|e| e.to_string());
            assert!(refusal.as_ref().is_err_and(|text| text.contains(part)), "{written}: {refusal:?}");
        }
    }

    #[test]
    fn a_password_in_the_url_is_refused_and_not_repeated() {
        for written in [
            "smtp://culler:hunter2@mail.example.org",
            "smtps://culler:hunter2@mail.example.org:465",
            "smtp:culler:hunter2@mail.example.org",
            "smpt://culler:hunter2@mail.example.org",
            "culler:hunter2@mail.example.org",
        ] {
            let text = match written.parse::<MailServer>() {
                Err(error) => format!("{error} {error:?}"),
                Ok(server) => format!("accepted: {server}"),
            };
            assert!(!text.contains("hunter2"), "{written}: {text}");
            assert!(!text.contains("accepted"), "{written}: {text}");
        }
        let refused = "smtp://culler:hunter2@mail.example.org".parse::<MailServer>();
        assert_eq!(refused, Err(ServerError::Credentials));
    }
}

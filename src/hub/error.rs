//! What can go wrong with the Hub and with single-user servers, in words for the admin.

use std::time::Duration;

use super::http::Failure;

/// A request to the Hub that gave no usable answer. Never holds the token.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum HubError {
    /// The client could not even be built.
    #[error("cannot set up the connection to the Hub: {0}")]
    Setup(String),
    /// A name that has no address of its own.
    #[error("`{0}` cannot be part of an address; the Hub cannot be asked about it")]
    BadName(String),
    /// No connection, or it broke.
    #[error("{what}: no connection ({why}). Is the Hub restarting, and is JUPYTERHUB_API_URL right?")]
    Unreachable {
        /// Method and path.
        what: String,
        /// The cause.
        why: String,
    },
    /// No complete answer in time.
    #[error("{what}: no answer within {}. The Hub is overloaded, or hub.request_timeout is short", humantime::format_duration(*after))]
    TimedOut {
        /// Method and path.
        what: String,
        /// The limit.
        after: Duration,
    },
    /// The Hub refused or failed.
    #[error("{what}: {status}{}. {remedy}", quoted(said.as_deref()))]
    Status {
        /// Method and path.
        what: String,
        /// HTTP status.
        status: u16,
        /// The Hub's own words, which may be empty; absent where the answer was not the Hub's (a proxy's page).
        said: Option<String>,
        /// What to do.
        remedy: String,
    },
    /// A redirect, which is never followed: it would carry the token elsewhere.
    #[error(
        "{what}: {status}, a redirect, which is not followed. JUPYTERHUB_API_URL must be the Hub's own API address (http://127.0.0.1:8081/hub/api)"
    )]
    Redirected {
        /// Method and path.
        what: String,
        /// HTTP status.
        status: u16,
    },
    /// An answer that is not the Hub's API.
    #[error("{what}: the answer is not what a Hub gives: {why}. Does JUPYTERHUB_API_URL end in /hub/api?")]
    Unparsable {
        /// Method and path.
        what: String,
        /// What was wrong.
        why: String,
    },
    /// A name that no scope can hold.
    #[error("no scope can name the server `{0}`, so that no token can be made that is good for it alone")]
    NoScope(String),
    /// An answer beyond any sensible size.
    #[error("{what}: the answer is larger than {limit} bytes and was dropped. Set a smaller hub.page_size")]
    TooLarge {
        /// Method and path.
        what: String,
        /// The limit.
        limit: usize,
    },
}

impl HubError {
    /// Whether asking again soon may help.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => true,
            Self::Status { status, .. } => *status == 429 || *status >= 500,
            _ => false,
        }
    }

    /// Whether the Hub understood and said "not allowed".
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Status { status: 403, .. })
    }

    pub(super) fn failed(what: String, failure: Failure, after: Duration) -> Self {
        match failure {
            Failure::Unreachable(why) => Self::Unreachable { what, why },
            Failure::TimedOut => Self::TimedOut { what, after },
            Failure::TooLarge(limit) => Self::TooLarge { what, limit },
        }
    }
}

/// Why a server could not be read. It is then unknown, which is not idle.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProbeError {
    /// The base is no address to ask.
    #[error("`{0}` is not an http or https address of a Jupyter server")]
    BadAddress(String),
    /// No connection, or it broke.
    #[error(
        "{what}: no connection ({why}). The server may just have stopped, or its port is not open to this host"
    )]
    Unreachable {
        /// Method and path.
        what: String,
        /// The cause.
        why: String,
    },
    /// No complete answer in time.
    #[error("{what}: no answer within {}. The server hangs or its host is overloaded", humantime::format_duration(*after))]
    TimedOut {
        /// Method and path.
        what: String,
        /// The limit.
        after: Duration,
    },
    /// The Hub gave no token for this server.
    #[error("no token to ask it with: {0}")]
    NoToken(HubError),
    /// The service's own token must not go there.
    #[error(
        "`{0}` is neither on this host nor hub.public_url, so the service's own token is not sent there. Grant the scope tokens instead of access:servers"
    )]
    Foreign(String),
    /// The token is not accepted there.
    #[error(
        "{what}: 403, the token was not accepted. A revoked one is replaced within ten minutes; if this stays, the scopes tokens or access:servers are limited to others, or the server takes no token (then set hub.probe_kernels = false)"
    )]
    Forbidden {
        /// Method and path.
        what: String,
    },
    /// A redirect, usually to a login page; never followed.
    #[error(
        "{what}: {status}, a redirect, which is not followed. The server takes no token (then set hub.probe_kernels = false), or the address is not its own"
    )]
    Redirected {
        /// Method and path.
        what: String,
        /// HTTP status.
        status: u16,
    },
    /// Another status.
    #[error("{what}: {status}. The server is starting, stopping or broken, or it is no Jupyter server")]
    Status {
        /// Method and path.
        what: String,
        /// HTTP status.
        status: u16,
    },
    /// An answer beyond any sensible size.
    #[error(
        "{what}: the answer is larger than {limit} bytes and was dropped. A Jupyter server does not answer so"
    )]
    TooLarge {
        /// Method and path.
        what: String,
        /// The limit.
        limit: usize,
    },
    /// Not what a Jupyter server says.
    #[error(
        "{what}: the answer is not a Jupyter server's: {why}. An application of another kind has no kernels to read"
    )]
    Unparsable {
        /// Method and path.
        what: String,
        /// What was wrong.
        why: String,
    },
}

impl ProbeError {
    pub(super) fn refused(what: String, status: u16) -> Self {
        match status {
            401 | 403 => Self::Forbidden { what },
            300..=399 => Self::Redirected { what, status },
            _ => Self::Status { what, status },
        }
    }

    pub(super) fn failed(what: String, failure: Failure, after: Duration) -> Self {
        match failure {
            Failure::Unreachable(why) => Self::Unreachable { what, why },
            Failure::TimedOut => Self::TimedOut { what, after },
            Failure::TooLarge(limit) => Self::TooLarge { what, limit },
        }
    }
}

/// What to do about a status, given what the Hub `said`; `scopes` are what the request needs.
pub(super) fn remedy(status: u16, said: Option<&str>, scopes: &str) -> String {
    // For the Hub an unknown token is a 403 like any other.
    let unknown_token = scopes.is_empty() || said.is_some_and(|s| s.contains("invalid credentials"));
    match status {
        401 | 403 if unknown_token => {
            "The Hub does not know the token: is JUPYTERHUB_API_TOKEN this Hub's?".to_owned()
        }
        401 | 403 => {
            format!("Give the service's role the scopes {scopes} (c.JupyterHub.load_roles)")
        }
        404 => "The Hub has nothing there: it is gone, the token's scopes are limited to others, or JUPYTERHUB_API_URL is wrong".to_owned(),
        429 | 500.. => "The Hub is restarting or in trouble; its log says more".to_owned(),
        _ => "See the Hub's log".to_owned(),
    }
}

fn quoted(said: Option<&str>) -> String {
    match said {
        Some(said) if !said.is_empty() => format!(" ({said})"),
        _ => String::new(),
    }
}

//! Why a query brought nothing that may be used.

/// As much of a server's own words as a log line can bear.
const WORDS: usize = 300;

/// What is wrong, with the remedy. Each of these means Unknown for what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromError {
    /// No answer.
    #[error(
        "Prometheus at {host} cannot be reached: {why}; check [telemetry.prometheus] url, and for https ca_file (whom \
         we trust) and cert_file with key_file (where it lets in only those it knows)"
    )]
    Unreachable {
        /// Which server.
        host: String,
        /// The innermost cause.
        why: String,
    },
    /// No answer in time.
    #[error("Prometheus did not answer `{query}` within {seconds} s; see [telemetry.prometheus] timeout")]
    TimedOut {
        /// What was asked.
        query: String,
        /// The limit.
        seconds: u64,
    },
    /// It does not know us.
    #[error(
        "Prometheus at {host} refuses us ({status}); check the token or password of [telemetry.prometheus]: {words}"
    )]
    Denied {
        /// Which server.
        host: String,
        /// 401 or 403.
        status: u16,
        /// What it says.
        words: String,
    },
    /// It sends us elsewhere.
    #[error(
        "Prometheus at {host} redirects to {to}, which is not followed so that no secret leaves: set [telemetry.prometheus] url to where it really is (a login page means that it wants a token)"
    )]
    Redirected {
        /// Which server.
        host: String,
        /// The other origin, without path.
        to: String,
    },
    /// It answered that the query failed.
    #[error("Prometheus refuses `{query}`: {kind}: {words}")]
    Refused {
        /// What was asked.
        query: String,
        /// Its `errorType`.
        kind: String,
        /// Its `error`.
        words: String,
    },
    /// An answer of something else than its API.
    #[error(
        "no Prometheus API answers at {host} (status {status}, {what}); check [telemetry.prometheus] url and its path"
    )]
    NoApi {
        /// Which server.
        host: String,
        /// The HTTP status.
        status: u16,
        /// What came.
        what: String,
    },
    /// Part of the data did not come.
    #[error("the answer to `{query}` is not whole: {words}")]
    Partial {
        /// What was asked.
        query: String,
        /// Its warnings.
        words: String,
    },
    /// Not the kind of value that was asked for.
    #[error("`{query}` gives {kind}, not {wanted}")]
    WrongKind {
        /// What was asked.
        query: String,
        /// What it is.
        kind: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// More than may be held in memory.
    #[error(
        "the answer to `{query}` is larger than {limit}; narrow it with [telemetry.prometheus] matchers, or raise max_series"
    )]
    TooLarge {
        /// What was asked.
        query: String,
        /// In words.
        limit: String,
    },
    /// A file of the settings.
    #[error("{path}: {why}")]
    File {
        /// Which.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Foreign words as one line of bounded length.
pub(super) fn words(text: &str) -> String {
    let mut line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS).collect();
    if text.chars().nth(WORDS).is_some() {
        line.push('…');
    }
    line.trim().to_owned()
}

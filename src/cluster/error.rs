//! Why the API does not tell.

use kube::core::Status;

/// As much of the server's own words as a log line can bear.
const WORDS: usize = 300;

/// What is wrong, with the remedy. Each of these makes what was asked for unknown.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// There is no way to the cluster.
    #[error(
        "no way to a cluster is known: {0}; run in a pod with a service account, or set [kubernetes] kubeconfig"
    )]
    NoConfig(String),
    /// A client cannot be made of the configuration.
    #[error("the kubeconfig or service account cannot be used: {0}")]
    BadConfig(String),
    /// 403.
    #[error(
        "the service account may not {verb} pods in {place}: grant it list and watch on pods there ({words})"
    )]
    Forbidden {
        /// `list` or `watch`.
        verb: &'static str,
        /// The namespace.
        place: String,
        /// What the server says.
        words: String,
    },
    /// 401.
    #[error(
        "the Kubernetes API does not know us (401 {0}): the token is no longer valid; where it comes from a file, see \
         that the file is renewed"
    )]
    Unauthorized(String),
    /// 429.
    #[error("the Kubernetes API is overloaded and asks us to wait ({0})")]
    Busy(String),
    /// What was known is no longer kept.
    #[error("the Kubernetes API has forgotten what came since ({0})")]
    Gone(String),
    /// Another refusal.
    #[error("the Kubernetes API answers {code} ({words})")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// What the server says.
        words: String,
    },
    /// No answer.
    #[error("the Kubernetes API cannot be reached: {0}")]
    Unreachable(String),
    /// No answer in time.
    #[error("the Kubernetes API does not answer within {0} s")]
    TimedOut(u64),
    /// An answer of something else.
    #[error("no Kubernetes API answers there: {0}")]
    NoApi(String),
}

impl ClusterError {
    /// What came of a request to `verb` the pods of `place`.
    pub(super) fn of(error: kube::Error, verb: &'static str, place: &str) -> Self {
        match error {
            kube::Error::Api(status) => Self::refused(&status, verb, place),
            kube::Error::Auth(error) => Self::BadConfig(innermost(&error)),
            kube::Error::SerdeError(error) => Self::NoApi(innermost(&error)),
            error => Self::Unreachable(innermost(&error)),
        }
    }

    /// A refusal, which may come in the middle of a watch.
    pub(super) fn refused(status: &Status, verb: &'static str, place: &str) -> Self {
        let said = words(if status.message.is_empty() { &status.reason } else { &status.message });
        match status.code {
            401 => Self::Unauthorized(said),
            403 => Self::Forbidden { verb, place: place.to_owned(), words: said },
            410 => Self::Gone(said),
            429 => Self::Busy(said),
            code => Self::Refused { code, words: said },
        }
    }
}

/// What lies at the bottom of an error: the outer layers only say that something failed.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    words(&error.to_string())
}

/// Foreign words as one line of bounded length.
fn words(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(WORDS).collect();
    line.trim().to_owned()
}

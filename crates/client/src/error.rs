//! The one error of the client.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use tourbillon_wire::Problem;

/// Why a call failed.
#[derive(Debug)]
pub struct ClientError(Box<Kind>);

#[derive(Debug)]
enum Kind {
    /// The server answered with a problem.
    Problem { problem: Problem, retry_after: Option<Duration> },
    /// No answer came: no connection, a broken one, or too slow.
    Transport { what: String, timeout: bool, source: Box<dyn StdError + Send + Sync> },
    /// An answer came that is not what the API says.
    Reply { what: String, source: Option<Box<dyn StdError + Send + Sync>> },
    /// The client is set up wrongly.
    Setup { what: String },
}

impl ClientError {
    pub(crate) fn from_problem(problem: Problem, retry_after: Option<Duration>) -> ClientError {
        ClientError(Box::new(Kind::Problem { problem, retry_after }))
    }

    pub(crate) fn transport(url: &str, error: reqwest::Error) -> ClientError {
        let what = if error.is_connect() {
            format!("cannot connect to {url}")
        } else if error.is_timeout() {
            format!("{url} did not answer in time")
        } else {
            format!("the connection to {url} failed")
        };
        let timeout = error.is_timeout();
        ClientError(Box::new(Kind::Transport {
            what,
            timeout,
            source: Box::new(error.without_url()),
        }))
    }

    pub(crate) fn reply(
        what: impl Into<String>,
        source: Option<Box<dyn StdError + Send + Sync>>,
    ) -> ClientError {
        ClientError(Box::new(Kind::Reply { what: what.into(), source }))
    }

    pub(crate) fn setup(what: impl Into<String>) -> ClientError {
        ClientError(Box::new(Kind::Setup { what: what.into() }))
    }

    /// The problem document, when the server answered with one.
    pub fn problem(&self) -> Option<&Problem> {
        match &*self.0 {
            Kind::Problem { problem, .. } => Some(problem),
            _ => None,
        }
    }

    /// The status of the answer, when there was one with a problem.
    pub fn status(&self) -> Option<u16> {
        self.problem().map(|p| p.status)
    }

    /// There is no such thing.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// Something is in the way: the key is taken, the id reused, the state wrong.
    pub fn is_conflict(&self) -> bool {
        self.status() == Some(409)
    }

    /// The token is missing or wrong, or does not allow it.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self.status(), Some(401 | 403))
    }

    /// The same call may succeed later: the server is busy or could not be reached.
    pub fn is_retryable(&self) -> bool {
        match &*self.0 {
            Kind::Problem { problem, .. } => matches!(problem.status, 429 | 502 | 503 | 504),
            Kind::Transport { .. } => true,
            Kind::Reply { .. } | Kind::Setup { .. } => false,
        }
    }

    /// No connection, or a broken one; the call may or may not have had its effect.
    pub fn is_transport(&self) -> bool {
        matches!(&*self.0, Kind::Transport { .. })
    }

    /// The answer took too long.
    pub fn is_timeout(&self) -> bool {
        matches!(&*self.0, Kind::Transport { timeout: true, .. })
    }

    /// How long the server asked to wait before trying again.
    pub fn retry_after(&self) -> Option<Duration> {
        match &*self.0 {
            Kind::Problem { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Problem { problem, .. } => problem.fmt(f),
            Kind::Transport { what, source, .. } => {
                // The innermost cause is the one that says something ("connection refused").
                let mut cause: &dyn StdError = &**source;
                while let Some(next) = cause.source() {
                    cause = next;
                }
                write!(f, "{what}: {cause}")
            }
            Kind::Reply { what, source: Some(source) } => write!(f, "{what}: {source}"),
            Kind::Reply { what, source: None } | Kind::Setup { what } => f.write_str(what),
        }
    }
}

impl StdError for ClientError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &*self.0 {
            Kind::Problem { problem, .. } => Some(problem),
            Kind::Transport { source, .. } => Some(&**source),
            Kind::Reply { source, .. } => source.as_deref().map(|s| s as _),
            Kind::Setup { .. } => None,
        }
    }
}

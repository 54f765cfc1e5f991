//! How an attempt is made: the targets that a node runs itself.
//!
//! - [`http`]: one request, its redirects and its bounded answer.
//! - [`command`]: one process group and its bounded output.
//! - [`secret`]: values that are referred to by name and never shown.
//!
//! The types here are plain values: what to do ([`HttpTarget`], [`CommandTarget`]), for whom
//! ([`AttemptContext`]) and how it ended ([`AttemptEnd`]).
//!
//! What always holds: an attempt ends by its timeout plus a stated bound whatever the other side
//! does, uses bounded memory, stops soon after it is cancelled, and every way of going wrong is
//! an [`AttemptEnd`] with a one-line cause, not an error of this code. What is deliberately
//! absent: retries, backoff, storing anything, knowledge of the engine.

use std::fmt;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

mod address;
#[cfg(unix)]
pub mod command;
pub mod http;
mod output;
#[cfg(unix)]
mod process_group;
pub mod secret;

pub use address::{AddressClass, classify};
pub use output::{Chunk, Follower, Output, OutputBuffer, OutputLimits};

/// A request to make.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpTarget {
    /// The method, as `POST`.
    pub method: String,
    /// An `http` or `https` URL.
    pub url: String,
    /// Names and values. A value `secret:NAME` stands for a secret, see [`secret::Secrets`].
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for HttpTarget {
    /// Header values and the URL's query may hold credentials and are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpTarget")
            .field("method", &self.method)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// A command to run, without a shell.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandTarget {
    /// The program, looked up in `PATH` when it has no `/`, and its arguments.
    pub argv: Vec<String>,
    /// Environment variables, over the inherited ones.
    pub env: Vec<(String, String)>,
    /// The working folder; the node's own when `None`.
    pub cwd: Option<String>,
    /// Text for standard input; empty input when `None`.
    pub stdin: Option<String>,
}

impl fmt::Debug for CommandTarget {
    /// Values of the environment and standard input may hold credentials and are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("CommandTarget")
            .field("argv", &self.argv)
            .field("env", &names)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// For whom an attempt is made, and its bounds.
#[derive(Clone, Debug)]
pub struct AttemptContext {
    /// The task's id, a UUID: the idempotency key, the same for all attempts of the task.
    pub task_id: String,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The fence number: grows with every attempt of the task.
    pub fence: u64,
    /// The task's kind.
    pub kind: String,
    /// The task's queue.
    pub queue: String,
    /// The task's namespace.
    pub namespace: String,
    /// The task's key, when it has one.
    pub key: Option<String>,
    /// When the task was due, RFC 3339.
    pub due_at: Option<String>,
    /// The name of the schedule that created the task.
    pub schedule: Option<String>,
    /// The occurrence's logical time, RFC 3339.
    pub logical_time: Option<String>,
    /// The attempt ends as timed out after this.
    pub timeout: Duration,
    /// The task's payload, as JSON text.
    pub payload: Option<String>,
    /// Cancelling it ends the attempt as cancelled.
    pub cancel: CancellationToken,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptOutcome {
    /// The work was done.
    Succeeded,
    /// The work was not done, or that is not known.
    Failed,
    /// The timeout passed first.
    TimedOut,
    /// It was stopped because its task was cancelled.
    Cancelled,
}

/// The end of an attempt and what there is to know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// The target wants no further attempt of this task.
    pub reject: bool,
    /// The target wants the next attempt after this long.
    pub retry_after: Option<Duration>,
    /// The cause in one line, when it did not succeed.
    pub error: Option<String>,
    /// The last status that an HTTP target answered.
    pub http_status: Option<u16>,
    /// The exit code of a command whose leader exited, rather than being killed by a signal.
    pub exit_code: Option<i32>,
    /// What it answered or printed.
    pub output: Output,
}

impl AttemptEnd {
    /// A success without anything besides.
    pub fn succeeded() -> Self {
        Self {
            outcome: AttemptOutcome::Succeeded,
            reject: false,
            retry_after: None,
            error: None,
            http_status: None,
            exit_code: None,
            output: Output::default(),
        }
    }

    /// A failure with its cause in one line.
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            outcome: AttemptOutcome::Failed,
            error: Some(one_line(&error.into())),
            ..Self::succeeded()
        }
    }

    /// A failure that no further attempt can mend, because the task itself is wrong.
    pub fn rejected(error: impl Into<String>) -> Self {
        Self { reject: true, ..Self::failed(error) }
    }

    /// The timeout passed.
    pub fn timed_out(timeout: Duration) -> Self {
        Self {
            outcome: AttemptOutcome::TimedOut,
            ..Self::failed(format!("timed out after {timeout:?}"))
        }
    }

    /// The attempt was cancelled.
    pub fn cancelled() -> Self {
        Self { outcome: AttemptOutcome::Cancelled, ..Self::failed("cancelled") }
    }
}

/// Longest cause kept, in bytes.
const ERROR_MAX_BYTES: usize = 500;

/// `text` with control characters as spaces, cut to [`ERROR_MAX_BYTES`] at a character.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(ERROR_MAX_BYTES));
    for c in text.chars() {
        let c = if c.is_control() { ' ' } else { c };
        if line.len() + c.len_utf8() > ERROR_MAX_BYTES {
            break;
        }
        line.push(c);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_one_bounded_line() {
        let end = AttemptEnd::failed(format!("a\nb\r\n{}", "é".repeat(1_000)));
        let error = end.error.unwrap();
        assert!(error.starts_with("a b  é"));
        assert!(error.len() <= ERROR_MAX_BYTES && error.len() > ERROR_MAX_BYTES - 2);
    }

    #[test]
    fn debug_output_has_no_values() {
        let http = HttpTarget {
            method: "GET".into(),
            url: "http://user:hush@host/?t=hush".into(),
            headers: vec![("X-Api-Key".into(), "hush".into())],
        };
        let command = CommandTarget {
            argv: vec!["env".into()],
            env: vec![("TOKEN".into(), "hush".into())],
            cwd: None,
            stdin: Some("hush".into()),
        };
        let shown = format!("{http:?} {command:?}");
        assert!(shown.contains("X-Api-Key") && shown.contains("TOKEN"));
        assert!(!shown.contains("hush"), "{shown}");
    }
}

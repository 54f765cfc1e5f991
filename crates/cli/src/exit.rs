//! How a command ends: its exit status and the one line that says why.

use std::fmt;
use std::io::ErrorKind;
use std::process::ExitCode;

use tourbillon_client::ClientError;

/// How a command that did not fail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Done.
    Done,
    /// There was nothing to show or to do, or not everything could be done; that has been said.
    Nothing,
}

impl Status {
    /// Done when there was something.
    pub(crate) fn of(something: bool) -> Status {
        if something { Status::Done } else { Status::Nothing }
    }
}

/// The command was used wrongly: exit status 2, as for what clap refuses.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error of wrong use.
pub(crate) fn usage(text: impl fmt::Display) -> anyhow::Error {
    Usage(text.to_string()).into()
}

/// Says what went wrong, if anything did, and gives the exit status.
pub(crate) fn code(result: anyhow::Result<Status>) -> ExitCode {
    let error = match result {
        Ok(Status::Done) => return ExitCode::SUCCESS,
        Ok(Status::Nothing) => return ExitCode::FAILURE,
        Err(error) => error,
    };
    let broken_pipe = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe);
    if broken_pipe {
        // Whoever read our output has seen enough.
        return ExitCode::SUCCESS;
    }
    eprintln!("error: {}", one_line(&error));
    if error.downcast_ref::<ClientError>().is_some_and(ClientError::is_unauthorized) {
        eprintln!(
            "hint: the token comes from TOURBILLON_TOKEN, else from the local data folder; see `tourbillon config show`"
        );
    }
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The error with its causes, each once. A client's error names its own cause already.
fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let part = cause.to_string();
        if !text.contains(&part) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&part);
        }
        if cause.is::<ClientError>() {
            break;
        }
    }
    text
}

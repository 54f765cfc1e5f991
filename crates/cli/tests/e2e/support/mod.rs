//! What the end-to-end tests share: the real server as a process, a receiver of webhooks, waiting.
//!
//! Always holds: no fixed ports; nothing sleeps to wait for something, it polls with a deadline;
//! whatever a test started is gone when it ends, also when it fails. Deliberately absent: anything
//! that knows the product's crates. The tests see what a user sees.

pub(crate) mod command;
pub(crate) mod receiver;
pub(crate) mod server;
pub(crate) mod wait;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) use command::{Run, run};
pub(crate) use receiver::{Call, Receiver};
pub(crate) use server::{Exit, Server};
pub(crate) use wait::eventually;

/// The binary under test: the one that `TOURBILLON_BIN` names, else the one built with the tests.
pub(crate) fn binary() -> PathBuf {
    std::env::var_os("TOURBILLON_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_tourbillon").into(), PathBuf::from)
}

/// Whether the full sizes are asked for (`TOURBILLON_FULL=1`) and not those of every run.
pub(crate) fn is_full() -> bool {
    std::env::var_os("TOURBILLON_FULL").is_some_and(|value| value == "1")
}

/// A program that a test needs: named by a variable, else looked for by its usual name.
pub(crate) fn program(variable: &str, usual: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| usual.into(), PathBuf::from)
}

/// Now, in microseconds since the Unix epoch.
pub(crate) fn now() -> i64 {
    micros(SystemTime::now())
}

fn micros(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    i64::try_from(since.as_micros()).expect("the clock is before the year 294,000")
}

/// One second, in microseconds.
pub(crate) const SECOND: i64 = 1_000_000;

/// An instant as documents have it, with whole milliseconds.
pub(crate) fn instant(micros: i64) -> String {
    let at = jiff::Timestamp::from_microsecond(micros).expect("an instant in range");
    format!("{at:.3}")
}

/// The microseconds since the Unix epoch of an instant in a document.
pub(crate) fn parse(instant: &str) -> i64 {
    instant.parse::<jiff::Timestamp>().expect("an instant").as_microsecond()
}

/// The same, of a field of a document.
pub(crate) fn time_of(document: &serde_json::Value, field: &str) -> i64 {
    parse(document[field].as_str().unwrap_or_else(|| panic!("{field} in {document}")))
}

/// A folder that is removed in the end.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        let made = tempfile::Builder::new().prefix("tourbillon-e2e-").tempdir();
        Folder(made.expect("a folder for the test"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in it, as text for a script.
    pub(crate) fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// The lines of a file in it; none when it is not there.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).expect("a file of the test");
    }

    /// A command that writes its fence number to the file `started` and then runs until the file
    /// `end` is there, or its folder is gone because the test is over.
    pub(crate) fn long_command(&self) -> serde_json::Value {
        let dir = self.file("");
        let script = format!(
            "cd '{dir}' && echo $TOURBILLON_FENCE >> started && \
             while [ -e '{dir}' ] && ! [ -e end ]; do sleep 0.02; done; echo ended"
        );
        serde_json::json!({"command": {"argv": ["sh", "-c", script]}})
    }
}

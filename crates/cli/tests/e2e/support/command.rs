//! Running a program to its end.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Its lines of JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        let lines = self.out.lines();
        lines.map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
    }

    /// The run, which must have ended with this status.
    #[track_caller]
    pub(crate) fn ended(self, status: i32) -> Run {
        assert_eq!(self.status, Some(status), "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }
}

/// Runs it in a process group of its own, all of which is ended when it is not done in time.
pub(crate) async fn run(mut command: Command, seconds: u64) -> Run {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let child = command.spawn().unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
    let group = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
    let ended = tokio::time::timeout(Duration::from_secs(seconds), child.wait_with_output()).await;
    if let (Err(_), Some(group)) = (&ended, group) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let output = ended.unwrap_or_else(|_| panic!("{command:?} did not end within {seconds} s"));
    let output = output.expect("its end can be waited for");
    Run {
        status: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

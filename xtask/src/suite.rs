//! All tests: what they need, the release binary, unit and integration tests, doc tests.
//!
//! Always holds: every test of the workspace runs or the chore fails; one that is ignored or
//! filtered out fails it too, unless the caller narrowed the run. The runners' output is passed on
//! line by line while it is read for its counts.
//!
//! End-to-end tests run the release binary that was built here, named by `TOURBILLON_BIN`.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::cargo;
use crate::counts::{Counts, Runner};
use crate::needs;
use crate::report::Reported;

/// The variable that carries the release binary's path to tests.
const BINARY_VARIABLE: &str = "TOURBILLON_BIN";

/// How long after a runner's end its output may stay open: a process that a test left behind holds
/// it, and would hold the gate.
const OUTPUT_GRACE: Duration = Duration::from_secs(5);

/// Runs the tests and closes with the counts. With `narrow`, only what these arguments of the
/// runner select, and no separate run of the doc tests.
pub(crate) fn run(narrow: &[String]) -> Result<()> {
    let (counts, result) = all(narrow);
    let result = result.map_err(|error| {
        println!("error: {error:#}");
        Reported.into()
    });
    counts.print();
    result
}

/// Runs the tests; the counts are valid also when it fails.
pub(crate) fn all(narrow: &[String]) -> (Counts, Result<()>) {
    let mut counts = Counts::default();
    let result = stages(narrow, &mut counts);
    (counts, result)
}

fn stages(narrow: &[String], counts: &mut Counts) -> Result<()> {
    let mut variables = needs::ensure()?;
    variables.push((BINARY_VARIABLE, release_binary()?));
    for args in runs(has_nextest(), narrow) {
        let runner = if args[0] == "nextest" { Runner::Nextest } else { Runner::CargoTest };
        let mut command = cargo::command(&args);
        needs::export(&mut command, &variables);
        let shown = cargo::shown(&command);
        println!("{shown}");
        let (status, found) =
            counted(command, runner).with_context(|| format!("cannot run `{shown}`"))?;
        let left_out = found.left_out;
        counts.add(found);
        if !status.success() {
            bail!("`{shown}` failed ({status})");
        }
        if left_out > 0 && narrow.is_empty() {
            bail!(
                "`{shown}` left out {left_out} tests: a test runs, or it goes (doc examples: `text` or `no_run`)"
            );
        }
    }
    if counts.passed == 0 {
        bail!("no test was run");
    }
    Ok(())
}

/// The arguments of each run of cargo. nextest runs no doc tests, so they get a run of their own.
fn runs(nextest: bool, narrow: &[String]) -> Vec<Vec<&str>> {
    let runner: &[&str] = if nextest {
        &["nextest", "run", "--locked", "--no-fail-fast"]
    } else {
        &["test", "--locked", "--no-fail-fast"]
    };
    if !narrow.is_empty() {
        return vec![runner.iter().copied().chain(narrow.iter().map(String::as_str)).collect()];
    }
    let mut runs = vec![[runner, &["--workspace"]].concat()];
    if nextest {
        runs.push(vec!["test", "--locked", "--no-fail-fast", "--workspace", "--doc"]);
    }
    runs
}

fn has_nextest() -> bool {
    let mut command = cargo::command(&["nextest", "--version"]);
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Builds the release binary and gives its path, as cargo reports it: target folders can be moved.
fn release_binary() -> Result<PathBuf> {
    let mut command = cargo::command(&[
        "build",
        "--release",
        "--locked",
        "-p",
        "tourbillon-cli",
        "--message-format=json-render-diagnostics",
    ]);
    let shown = cargo::shown(&command);
    println!("{shown}");
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed ({})", output.status);
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact")
        .filter(|message| message.target.as_ref().is_some_and(|target| target.name == "tourbillon"))
        .find_map(|message| message.executable)
        .with_context(|| format!("`{shown}` built no executable named `tourbillon`"))
}

/// Runs a command, passes its output on line by line, and counts.
fn counted(mut command: Command, runner: Runner) -> Result<(ExitStatus, Counts)> {
    // One pipe for both streams, so that lines keep the order in which they were written.
    let (reader, writer) = std::io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command holds copies of the pipe's end; while it lives, the output has no end.
    drop(command);

    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            line.clear();
            if sender.send(text).is_err() {
                break;
            }
        }
    });

    let mut counts = Counts::default();
    let mut ended: Option<Instant> = None;
    loop {
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(line) => {
                println!("{line}");
                counts.read(runner, &line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if ended.is_none() && child.try_wait()?.is_some() {
            ended = Some(Instant::now());
        }
        // What the runner itself wrote is in the pipe by now and is read within the grace.
        if ended.is_some_and(|end| end.elapsed() > OUTPUT_GRACE) {
            println!("the tests ended, but a process they started still holds their output");
            break;
        }
    }
    Ok((child.wait()?, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn both_streams_are_counted_and_the_status_is_kept() {
        let script = "echo 'Summary [ 0.1s] 2 tests run: 2 passed, 0 skipped'; \
                      echo '  Summary [ 0.1s] 3 tests run: 1 passed, 2 failed, 4 skipped' >&2; exit 3";
        let (status, counts) = counted(shell(script), Runner::Nextest).expect("sh runs");
        assert_eq!(status.code(), Some(3));
        assert_eq!((counts.passed, counts.failed, counts.left_out), (3, 2, 4));
        assert_eq!(counts.summaries.len(), 2);
    }

    #[test]
    fn a_process_left_behind_does_not_hold_the_run() {
        // The sleeper inherits the output and outlives the shell; its number ends it afterwards.
        let start = Instant::now();
        let folder = std::env::temp_dir().join(format!("xtask-suite-{}", std::process::id()));
        let script = format!("sleep 300 & echo $! > '{}'", folder.display());
        let (status, _) = counted(shell(&script), Runner::Nextest).expect("sh runs");
        let pid = std::fs::read_to_string(&folder).expect("the sleeper's number");
        std::fs::remove_file(&folder).ok();
        let ended = shell(&format!("kill {pid}")).status().expect("kill runs");
        assert!(ended.success(), "the sleeper was still there");
        assert!(status.success());
        assert!(start.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn all_tests_means_all_tests_with_either_runner() {
        for nextest in [false, true] {
            let runs = runs(nextest, &[]);
            assert!(runs.iter().all(|args| args.contains(&"--workspace")));
            assert_eq!(
                runs.iter().any(|args| args.contains(&"--doc")),
                nextest,
                "cargo test runs doc tests by itself"
            );
        }
        let narrow = ["-p".to_owned(), "tourbillon-wheel".to_owned()];
        for args in runs(true, &narrow) {
            assert!(args.ends_with(&["-p", "tourbillon-wheel"]) && !args.contains(&"--workspace"));
        }
    }
}

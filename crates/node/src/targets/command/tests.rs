//! Commands as real processes. Groups are watched through `/proc`, so some tests are for Linux.

use std::collections::BTreeSet;
use std::future::Future;
use std::time::Instant as StdInstant;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::targets::OutputLimits;

fn sh(script: &str) -> CommandTarget {
    argv(&["/bin/sh", "-c", script])
}

fn argv(argv: &[&str]) -> CommandTarget {
    CommandTarget {
        argv: argv.iter().map(|s| (*s).to_owned()).collect(),
        env: Vec::new(),
        cwd: None,
        stdin: None,
    }
}

fn context() -> AttemptContext {
    AttemptContext {
        task_id: "01890a5d-ac96-774b-bcce-b302099a8057".into(),
        attempt: 3,
        fence: u64::MAX,
        kind: "report".into(),
        queue: "nightly".into(),
        namespace: "default".into(),
        key: None,
        due_at: None,
        schedule: None,
        logical_time: Some("2026-12-01T09:00:00Z".into()),
        timeout: Duration::from_secs(60),
        payload: None,
        cancel: CancellationToken::new(),
    }
}

fn runner() -> CommandRunner {
    CommandRunner::new(CommandLimits {
        grace: Duration::from_millis(200),
        linger: Duration::from_millis(200),
    })
}

async fn run(target: CommandTarget) -> AttemptEnd {
    runner().run(target, context(), &OutputBuffer::default()).await
}

fn text(end: &AttemptEnd) -> String {
    end.output.to_text_lossy()
}

#[track_caller]
fn assert_failed(end: &AttemptEnd, cause: &str) {
    assert_eq!(end.outcome, AttemptOutcome::Failed, "{end:?}");
    let error = end.error.as_deref().unwrap();
    assert!(error.contains(cause), "{error:?} has no {cause:?}");
}

/// The living processes of a group; a zombie has ended.
#[cfg(target_os = "linux")]
fn living(group: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // After the name, which may have anything in it: state, parent, group.
        let Some((_, rest)) = stat.rsplit_once(')') else {
            continue;
        };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        if fields[2] == group.to_string() && fields[0] != "Z" && fields[0] != "X" {
            found.insert(pid);
        }
    }
    found
}

/// A killed process may take a moment to become a zombie.
#[cfg(target_os = "linux")]
async fn assert_gone(group: i32) {
    let deadline = StdInstant::now() + Duration::from_secs(20);
    loop {
        let left = living(group);
        if left.is_empty() {
            return;
        }
        assert!(StdInstant::now() < deadline, "still there: {left:?}");
        tokio::task::yield_now().await;
    }
}

/// Starts `script` and waits until its group has `processes` living processes. Gives the group's
/// number and the end of the attempt.
#[cfg(target_os = "linux")]
async fn started(
    script: &str,
    ctx: AttemptContext,
    processes: usize,
) -> (i32, impl Future<Output = AttemptEnd> + use<>) {
    let output = OutputBuffer::default();
    let mut follower = output.subscribe();
    let target = sh(&format!("echo $$; {script}"));
    let attempt = tokio::spawn(async move { runner().run(target, ctx, &output).await });
    let mut line = Vec::new();
    while !line.contains(&b'\n') {
        line.extend(follower.next().await.expect("the first line").bytes);
    }
    let end = line.iter().position(|b| *b == b'\n').unwrap();
    let group = String::from_utf8_lossy(&line[..end]).parse().unwrap();
    let deadline = StdInstant::now() + Duration::from_secs(20);
    // With a timeout so short that a busy machine has it pass first, the end counts as well.
    while living(group).len() < processes && !attempt.is_finished() {
        assert!(StdInstant::now() < deadline, "{:?}", living(group));
        tokio::task::yield_now().await;
    }
    (group, async move { attempt.await.unwrap() })
}

#[tokio::test]
async fn exit_codes_and_signals() {
    let end = run(sh("echo done")).await;
    assert_eq!(end.outcome, AttemptOutcome::Succeeded);
    assert_eq!((end.exit_code, text(&end).as_str()), (Some(0), "done\n"));
    assert_eq!(end.error, None);
    let end = run(sh("echo bad >&2; exit 7")).await;
    assert_failed(&end, "exit code 7");
    assert_eq!((end.exit_code, text(&end).as_str()), (Some(7), "bad\n"));
    let end = run(sh("kill -9 $$")).await;
    assert_failed(&end, "ended by signal 9 (SIGKILL)");
    assert_eq!(end.exit_code, None);
    let end = run(sh("kill -SEGV $$")).await;
    assert_failed(&end, "ended by signal 11 (SIGSEGV)");
}

#[tokio::test]
async fn the_environment_is_small_and_says_whose_it_is() {
    let target = CommandTarget {
        env: vec![
            ("GREETING".into(), "hello world".into()),
            ("TOURBILLON_FENCE".into(), "0".into()),
            ("TOURBILLON_KEY".into(), "forged".into()),
            ("LANG".into(), "eo".into()),
        ],
        ..argv(&["env"])
    };
    let end = run(target).await;
    let printed = text(&end);
    let lines: BTreeSet<&str> = printed.lines().collect();
    for line in [
        "GREETING=hello world",
        "LANG=eo",
        "TOURBILLON_TASK=01890a5d-ac96-774b-bcce-b302099a8057",
        "TOURBILLON_ATTEMPT=3",
        "TOURBILLON_FENCE=18446744073709551615",
        "TOURBILLON_KIND=report",
        "TOURBILLON_QUEUE=nightly",
        "TOURBILLON_NAMESPACE=default",
        "TOURBILLON_LOGICAL_TIME=2026-12-01T09:00:00Z",
    ] {
        assert!(lines.contains(line), "{line} in {printed}");
    }
    // Cargo sets CARGO_PKG_NAME for this process; commands do not see it.
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    for line in &lines {
        let name = line.split('=').next().unwrap();
        assert!(
            INHERITED.contains(&name) || name.starts_with("TOURBILLON_") || name == "GREETING",
            "{line}"
        );
    }
    assert!(!printed.contains("forged"));
}

#[tokio::test]
async fn folder_and_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let target = CommandTarget {
        cwd: Some(path.to_str().unwrap().into()),
        stdin: Some("some text".into()),
        ..sh("pwd; cat; cat")
    };
    let end = run(target).await;
    assert_eq!(text(&end), format!("{}\nsome text", path.display()));
    // No input is empty input, not the node's.
    let end = run(sh("cat; echo over")).await;
    assert_eq!(text(&end), "over\n");
    // Input that nobody reads, more than a pipe holds.
    let target = CommandTarget { stdin: Some("x".repeat(1_000_000)), ..sh("exit 0") };
    assert_eq!(run(target).await.outcome, AttemptOutcome::Succeeded);
    // Input that is written back, more than both pipes hold.
    let target = CommandTarget { stdin: Some("x".repeat(1_000_000)), ..argv(&["cat"]) };
    assert_eq!(run(target).await.output.total_bytes, 1_000_000);
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    let plain = plain.to_str().unwrap();
    let in_folder = |cwd: &str| CommandTarget { cwd: Some(cwd.into()), ..sh("true") };
    for (target, cause) in [
        (argv(&["no-such-program-here"]), "argv: no program no-such-program-here in PATH"),
        (argv(&["/no/such/program"]), "argv: the program /no/such/program does not exist"),
        (argv(&[plain]), "may not be executed"),
        (argv(&["a\0b"]), "NUL is not allowed"),
        (in_folder("/no/such/folder"), "cwd: /no/such/folder does not exist"),
        (in_folder(plain), "is not a folder"),
    ] {
        assert_failed(&run(target).await, cause);
    }
    let end = run(argv(&[])).await;
    assert_failed(&end, "argv: it is empty");
    assert!(end.reject);
    let target = CommandTarget { env: vec![("A=B".into(), "c".into())], ..sh("true") };
    let end = run(target).await;
    assert_failed(&end, "env: \"A=B\" is not a name");
    assert!(end.reject);
}

#[tokio::test]
async fn output_and_errors_keep_their_order() {
    let end = run(sh("for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done")).await;
    assert_eq!(text(&end), "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
}

#[tokio::test]
async fn a_hundred_megabytes_are_bounded() {
    let end = run(sh("echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo last")).await;
    assert_eq!(end.outcome, AttemptOutcome::Succeeded);
    assert_eq!(end.output.total_bytes, 100_000_011);
    assert_eq!(end.output.head.len(), 64 * 1024);
    assert_eq!(end.output.tail.len(), 64 * 1024);
    assert!(end.output.head.starts_with(b"first\nxxx"));
    assert!(end.output.tail.ends_with(b"xxxlast\n"));
}

#[tokio::test]
async fn output_can_be_followed_live() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let made = std::process::Command::new("mkfifo").arg(&gate).status();
    assert!(made.unwrap().success());
    let output = OutputBuffer::new(OutputLimits::default());
    let mut follower = output.subscribe();
    let target = sh(&format!("echo before; read word < '{}'; echo $word", gate.display()));
    let attempt = tokio::spawn({
        let output = output.clone();
        async move { runner().run(target, context(), &output).await }
    });
    // Printed and seen while the command still runs: it waits for the gate.
    let chunk = follower.next().await.unwrap();
    assert_eq!((chunk.offset, chunk.bytes.as_slice()), (0, &b"before\n"[..]));
    assert!(!attempt.is_finished() && !output.is_closed());
    // Opening it waits for the other side.
    let opened = tokio::task::spawn_blocking(move || fs::write(gate, "opened\n"));
    opened.await.unwrap().unwrap();
    let chunk = follower.next().await.unwrap();
    assert_eq!((chunk.offset, chunk.bytes.as_slice()), (7, &b"opened\n"[..]));
    assert_eq!(follower.next().await, None);
    assert_eq!(attempt.await.unwrap().outcome, AttemptOutcome::Succeeded);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_timeout_asks_first() {
    let ctx = AttemptContext { timeout: Duration::from_millis(500), ..context() };
    let (group, end) = started("trap 'echo bye; exit 3' TERM; sleep 1000 & wait", ctx, 2).await;
    let end = end.await;
    assert_eq!(end.outcome, AttemptOutcome::TimedOut);
    assert_eq!(end.error.as_deref(), Some("timed out after 500ms"));
    assert_eq!(end.exit_code, Some(3));
    assert!(text(&end).ends_with("bye\n"), "{}", text(&end));
    assert_gone(group).await;
}

/// Fault: a command that forks children and ignores SIGTERM outlived its timeout, or its leader
/// died and the children stayed. The whole group is gone.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_group_that_ignores_sigterm_is_gone_after_its_timeout() {
    for (script, processes) in [
        ("trap '' TERM; sleep 1000 & sleep 1000", 3),
        ("trap '' TERM; (trap '' TERM; (sleep 1000; sleep 1000) & sleep 1000) & sleep 1000", 6),
        // The leader goes, the children stay.
        ("(trap '' TERM; sleep 1000; sleep 1000) & sleep 1000", 4),
        // Stopped processes cannot handle SIGTERM until they are continued.
        ("kill -STOP $$; sleep 1000", 1),
        // Children without the output.
        ("(trap '' TERM; exec >/dev/null 2>&1; sleep 1000; sleep 1000) & sleep 1000", 4),
    ] {
        let ctx = AttemptContext { timeout: Duration::from_millis(500), ..context() };
        let (group, end) = started(script, ctx, processes).await;
        let end = end.await;
        assert_eq!(end.outcome, AttemptOutcome::TimedOut, "{script}: {end:?}");
        assert_gone(group).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn cancelling_works_like_the_timeout() {
    let ctx = context();
    let cancel = ctx.cancel.clone();
    let (group, end) = started("trap '' TERM; sleep 1000 & sleep 1000", ctx, 3).await;
    cancel.cancel();
    let end = end.await;
    assert_eq!(end.outcome, AttemptOutcome::Cancelled);
    assert_eq!(end.error.as_deref(), Some("cancelled"));
    assert_gone(group).await;

    let ctx = context();
    ctx.cancel.cancel();
    let output = OutputBuffer::default();
    let end = runner().run(sh("echo ran"), ctx, &output).await;
    assert_eq!(end.outcome, AttemptOutcome::Cancelled);
    assert!(output.is_closed());
    assert_eq!(output.snapshot().total_bytes, 0);
}

/// Fault: a command that leaves a child behind which holds the output open kept its attempt
/// running for as long as the child lived.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn children_left_behind_do_not_hold_the_attempt() {
    // One that holds the output, one that does not.
    for script in ["sleep 1000 & exit 0", "sleep 1000 >/dev/null 2>&1 & exit 0"] {
        let end = run(sh(&format!("echo $$; {script}"))).await;
        assert_eq!(end.outcome, AttemptOutcome::Succeeded, "{end:?}");
        let group = text(&end).trim().parse().unwrap();
        assert_gone(group).await;
    }
    // What a child prints soon after the leader has ended is kept.
    let patient = CommandRunner::new(CommandLimits {
        linger: Duration::from_secs(30),
        ..CommandLimits::default()
    });
    let target = sh("(sleep 0.05; echo late) & exit 0");
    let end = patient.run(target, context(), &OutputBuffer::default()).await;
    assert_eq!(text(&end), "late\n");
}

/// A process that left the group and holds the output, even printing for ever, does not hold the
/// attempt either.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let target = CommandTarget {
        cwd: Some(folder.path().to_str().unwrap().into()),
        ..sh("setsid sh -c 'echo $$; touch out; exec yes' & until [ -e out ]; do :; done")
    };
    let end = run(target).await;
    assert_eq!(end.outcome, AttemptOutcome::Succeeded, "{end:?}");
    let printed = text(&end);
    let pid: i32 = printed.lines().next().unwrap().parse().unwrap();
    // It ends by itself, since nobody reads what it prints.
    assert_gone(pid).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropping_the_attempt_kills_the_group() {
    let output = OutputBuffer::default();
    let mut follower = output.subscribe();
    let attempt = tokio::spawn({
        let output = output.clone();
        async move {
            let target = sh("trap '' TERM; echo $$; sleep 1000 & sleep 1000");
            runner().run(target, context(), &output).await
        }
    });
    let line = follower.next().await.unwrap().bytes;
    let group = String::from_utf8_lossy(&line).trim().parse().unwrap();
    assert!(!living(group).is_empty());
    attempt.abort();
    assert!(attempt.await.unwrap_err().is_cancelled());
    assert!(output.is_closed());
    assert_gone(group).await;
}

#[tokio::test]
async fn a_flood_does_not_hold_back_the_timeout() {
    let ctx = AttemptContext { timeout: Duration::from_millis(300), ..context() };
    let started = StdInstant::now();
    let end = runner().run(argv(&["yes"]), ctx, &OutputBuffer::default()).await;
    assert_eq!(end.outcome, AttemptOutcome::TimedOut);
    assert!(end.output.is_truncated());
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn many_at_once() {
    let attempts: Vec<_> =
        (0..50).map(|i| tokio::spawn(run(sh(&format!("echo {i}; exit {}", i % 2))))).collect();
    for (i, attempt) in attempts.into_iter().enumerate() {
        let end = attempt.await.unwrap();
        assert_eq!(text(&end), format!("{i}\n"));
        assert_eq!(end.exit_code, Some(i as i32 % 2));
    }
}

//! What is acknowledged is on the disk: counted in system calls.

use serde_json::json;
use tokio::process::Command;

use crate::support::server::serve;
use crate::support::{Folder, Server, program};

/// Tasks created one after the other.
const TASKS: usize = 20;

/// Faults, 42, and many a scheduler that "persists" to a file it never flushes: a test that kills the
/// process cannot see the difference, since the kernel keeps what was written. So the system calls
/// are counted: between a request and its success the disk was told to keep it, and there are at
/// least as many such calls as commits.
#[tokio::test(flavor = "multi_thread")]
async fn each_acknowledged_commit_was_flushed_to_the_disk() {
    let folder = Folder::new();
    let trace = folder.file("trace");
    let serve = serve(&folder.path().join("data"));
    let mut command = Command::new(program("TOURBILLON_STRACE", "strace"));
    command.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", &trace, "--"]);
    command.arg(serve.as_std().get_program()).args(serve.as_std().get_args());
    let server = Server::start_by(&folder, command).await;
    let flushed = || {
        // A call that was interrupted by another thread's takes two lines; its first counts.
        let lines = folder.lines("trace");
        lines.iter().filter(|l| l.contains("sync(")).count()
    };
    // The first task brings its queue into being.
    server.create(&json!({"target": {"worker": {}}, "delay": "1h"})).await;
    let commits_before = server.metric("tourbillon_store_commits_total").await;
    let flushed_before = flushed();
    assert!(flushed_before > 0, "the trace works");
    let mut before = flushed_before;
    for n in 0..TASKS {
        server.create(&json!({"target": {"worker": {}}, "delay": "1h", "payload": n})).await;
        let after = flushed();
        assert!(after > before, "task {n} was acknowledged before the disk had it");
        before = after;
    }
    let commits = server.metric("tourbillon_store_commits_total").await - commits_before;
    assert!(commits >= TASKS as f64, "{commits} commits for {TASKS} tasks one by one");
    let flushes = flushed() - flushed_before;
    assert!(flushes as f64 >= commits, "{flushes} flushes for {commits} commits");
}

//! Starting and ending: one server a folder, an orderly end, a forced one.

use reqwest::Method;
use serde_json::json;

use crate::support::server::{answer, serve, try_answer};
use crate::support::{Folder, Server, eventually};

/// Faults, 30: two servers on one folder would both run everything and spoil each other's writes.
/// The second refuses, says why, and the first goes on undisturbed.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_a_folder_refuses() {
    let folder = Folder::new();
    let data = folder.path().join("data");
    let first = Server::start(&folder).await;
    let id = first.create(&json!({"target": {"worker": {}}, "delay": "1h"})).await;
    let token = first.token();

    let Err(exit) = Server::spawn(&folder, serve(&data)).await else {
        panic!("two servers run on one folder")
    };
    assert_eq!(exit.status.code(), Some(1), "{exit:?}");
    let why = exit.err.trim_end();
    assert!(why.contains(data.to_str().unwrap()) && why.contains("another"), "the reason: {why}");
    assert!(!why.contains("panicked"), "{why}");

    assert_eq!(first.token(), token, "the second did not touch the folder");
    assert_eq!(first.task(&id).await["state"], "scheduled");
    first.kill().await;
    let next = Server::start(&folder).await;
    assert_eq!(next.task(&id).await["state"], "scheduled");
}

/// A server that is asked to end (an update, a reboot) lets what runs come to its end, and starts
/// nothing more; nothing is lost and nothing is repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_asked_to_end_lets_attempts_end() {
    let folder = Folder::new();
    let mut server = Server::start(&folder).await;
    let running = server.create(&json!({"target": folder.long_command()})).await;
    let later = json!({"target": {"command": {"argv": ["echo", "later"]}}, "delay": "2s"});
    let later = server.create(&later).await;
    server.until_task(&running, "it runs", 30, |_| folder.lines("started").len() == 1).await;
    server.terminate();
    until_it_takes_no_work(&server).await;
    assert!(!server.has_ended(), "it waits for what runs");
    folder.write("end", "");
    let exit = server.exit(30).await;
    assert_eq!(exit.status.code(), Some(0), "{exit:?}");

    let server = Server::start(&folder).await;
    let task = server.until_state(&running, "succeeded", 5).await;
    assert_eq!(task["attempts"].as_array().map(Vec::len), Some(1), "{task}");
    let output = server.get(&format!("/v1/tasks/{running}/attempts/1/output")).await.is(200);
    assert_eq!(output.text, "ended\n", "what it printed while the server was ending is kept");
    server.until_state(&later, "succeeded", 30).await;
    assert_eq!(folder.lines("started").len(), 1);
}

/// Who asks twice does not want to wait: the server stops what runs, which counts as lost and is made
/// again after the next start.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_asked_twice_ends_at_once() {
    let folder = Folder::new();
    let mut server = Server::start(&folder).await;
    let id = server.create(&json!({"target": folder.long_command()})).await;
    server.until_task(&id, "it runs", 30, |_| folder.lines("started").len() == 1).await;
    server.terminate();
    until_it_takes_no_work(&server).await;
    server.terminate();
    // Less than the 30 s that attempts would be given.
    let exit = server.exit(15).await;
    assert!(!exit.err.contains("panicked"), "{exit:?}");
    eventually("nothing of the command is left", 5, async || {
        (!is_running(&folder.file(""))).then_some(())
    })
    .await;

    let server = Server::start(&folder).await;
    eventually("it is made again", 30, async || (folder.lines("started").len() == 2).then_some(()))
        .await;
    folder.write("end", "");
    let task = server.until_state(&id, "succeeded", 30).await;
    assert_eq!(task["lost"], 1, "{task}");
    assert_eq!(task["attempts"][0]["outcome"], "lost", "{task}");
}

/// A mistake in the command line or in a path is one line that names it, and no half-started server.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_cannot_be_used_is_an_error_in_one_line() {
    let folder = Folder::new();
    folder.write("file", "not a folder");
    for wrong in ["file", "file/below"] {
        let command = serve(&folder.path().join(wrong));
        let Err(exit) = Server::spawn(&folder, command).await else { panic!("it runs on {wrong}") };
        assert_eq!(exit.status.code(), Some(1), "{exit:?}");
        assert!(exit.err.contains(&folder.file(wrong)), "names the folder: {}", exit.err);
        assert!(!exit.err.contains("panicked"), "{}", exit.err);
    }
    let mut command = serve(&folder.path().join("data"));
    command.args(["--listen", "nonsense"]);
    let Err(exit) = Server::spawn(&folder, command).await else { panic!("it listens on nonsense") };
    assert_eq!(exit.status.code(), Some(2), "wrong use: {exit:?}");
}

/// The port is taken: an error that names the address, not a server that nobody can reach.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_taken_is_an_error() {
    let (folder, other) = (Folder::new(), Folder::new());
    let server = Server::start(&folder).await;
    let address = server.url.strip_prefix("http://").unwrap();
    let mut command = tokio::process::Command::new(crate::support::binary());
    command.args(["serve", "--listen", address, "--data"]).arg(other.path().join("data"));
    let Err(exit) = Server::spawn(&other, command).await else { panic!("both listen") };
    assert_eq!(exit.status.code(), Some(1), "{exit:?}");
    assert!(exit.err.contains(address), "{}", exit.err);
    answer(server.stranger(Method::GET, "/healthz")).await.is(200);
}

/// Whether there is a process in whose command line this text is, other than a server.
fn is_running(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut lines = processes.filter_map(|p| std::fs::read(p.path().join("cmdline")).ok());
    lines.any(|line| {
        let line = String::from_utf8_lossy(&line);
        line.starts_with("sh\0") && line.contains(text)
    })
}

/// Waits until a server that was asked to end takes no more work in.
async fn until_it_takes_no_work(server: &Server) {
    eventually("it takes no more work", 30, async || {
        match try_answer(server.stranger(Method::GET, "/readyz")).await {
            Ok(answer) if answer.status == 200 => None,
            _ => Some(()),
        }
    })
    .await;
}

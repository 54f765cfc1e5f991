//! `kill -9` between the start of an attempt and its end; cancelling against the clock.

use std::collections::HashSet;

use serde_json::json;

use crate::support::{Exit, Folder, Receiver, SECOND, Server, eventually, instant, now, server};

/// beanstalkd#62 and others: a server that dies in the middle of a run must not forget it. The run
/// is lost, and it is made again under a higher fence number.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_lost_with_its_server_is_made_again() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let id = server.create(&json!({"target": folder.long_command()})).await;
    started(&folder, 1).await;
    server.until_state(&id, "running", 30).await;
    server.kill().await;

    let server = Server::start(&folder).await;
    let fences = started(&folder, 2).await;
    assert!(fences[1] > fences[0], "{fences:?}");
    folder.write("end", "");
    let task = server.until_state(&id, "succeeded", 30).await;
    assert_eq!(task["lost"], 1);
    let outcomes: Vec<_> = task["attempts"].as_array().unwrap().iter().collect();
    assert_eq!(outcomes.len(), 2, "{task}");
    for (attempt, (outcome, fence)) in
        outcomes.iter().zip([("lost", fences[0]), ("succeeded", fences[1])])
    {
        assert_eq!(attempt["outcome"], outcome);
        assert_eq!(attempt["fence"], fence.to_string());
    }
    assert_eq!(outcomes.iter().map(|a| a["n"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert_eq!(folder.lines("started").len(), 2);
}

/// The same for a webhook whose answer the server did not live to read: the receiver sees the same key
/// again, and can tell by the fence number which of the two is the later.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_lost_with_its_server_is_made_again() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start(&folder).await;
    let id = server.create(&json!({"target": receiver.target("/hold"), "payload": {"a": 1}})).await;
    receiver.until("it is called", 30, |calls| calls.len() == 1).await;
    server.until_state(&id, "running", 30).await;
    server.kill().await;

    let server = Server::start(&folder).await;
    let calls = receiver.until("it is called again", 30, |calls| calls.len() == 2).await;
    receiver.release();
    let task = server.until_state(&id, "succeeded", 30).await;
    assert_eq!((&calls[0].key, &calls[1].key), (&id, &id));
    assert_eq!((calls[0].attempt, calls[1].attempt), (1, 2));
    assert!(calls[1].fence > calls[0].fence, "{calls:?}");
    assert!(calls.iter().all(|c| c.body == r#"{"a":1}"#), "{calls:?}");
    assert_eq!((&task["lost"], receiver.calls().len()), (&json!(1), 2));
}

/// Work that must not be done twice (a payment, a letter) asks for at most one attempt: when that is
/// lost, nobody knows whether it was done, and it is not made again.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_may_be_made_once_is_not_made_again() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let task = json!({"target": folder.long_command(), "at_most_once": true});
    let id = server.create(&task).await;
    started(&folder, 1).await;
    server.kill().await;

    let server = Server::start(&folder).await;
    let task = server.until_state(&id, "failed", 30).await;
    assert_eq!(task["attempts"].as_array().map(Vec::len), Some(1), "its start was durable: {task}");
    assert_eq!(task["attempts"][0]["outcome"], "lost");
    assert_eq!(folder.lines("started").len(), 1, "it ran once");
}

/// Faults, 39: a task that takes its server down with it would do so at every restart, for ever. It
/// is `failed` after `max_lost` attempts.
#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_kills_its_server_is_given_up() {
    let folder = Folder::new();
    let fences = folder.file("started");
    let script = format!("echo $TOURBILLON_FENCE >> '{fences}'; kill -9 $PPID");
    let target = json!({"command": {"argv": ["sh", "-c", script]}});
    let task = json!({"id": uuid::Uuid::now_v7(), "target": target, "retry": {"max_lost": 3}});
    // The task may start, and the server be gone, before the answer to its creation is read.
    let mut server = Server::start(&folder).await;
    let request = server.request(reqwest::Method::POST, "/v1/tasks").json(&task);
    if let Ok(answer) = server::try_answer(request).await {
        answer.is(201);
    }
    let path = format!("/v1/tasks/{}", task["id"].as_str().unwrap());
    let mut deaths = 0;
    let shown = loop {
        let state = eventually("it dies or gives the task up", 30, async || {
            if server.has_ended() {
                return Some(None);
            }
            let request = server.request(reqwest::Method::GET, &path);
            let shown = server::try_answer(request).await.ok().filter(|a| a.status == 200)?.json();
            (shown["state"] == "failed").then_some(Some(shown))
        })
        .await;
        match state {
            Some(shown) => break shown,
            None => deaths += 1,
        }
        assert!(deaths <= 4, "it kills its server for ever");
        server = loop {
            let command = server::serve(&folder.path().join("data"));
            match Server::spawn(&folder, command).await {
                Ok(server) => break server,
                Err(Exit { .. }) => deaths += 1,
            }
            assert!(deaths <= 4, "it kills its server for ever");
        };
    };
    assert_eq!(shown["lost"], 3, "{shown}");
    let fences: Vec<u64> = folder.lines("started").iter().map(|f| f.parse().unwrap()).collect();
    // The start of the very first attempt is the only one that need not be durable.
    assert!((3..=4).contains(&fences.len()), "{fences:?}");
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

/// PowerJob#828: a job that was cancelled ran all the same. Cancelling is exact: whoever was told
/// `cancelled` will not see it start, however close its due time was; and who was told otherwise
/// finds that it had.
#[tokio::test(flavor = "multi_thread")]
async fn cancelling_races_with_starting_and_one_of_them_wins() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start(&folder).await;
    let start = now() + SECOND;
    let mut ids = Vec::new();
    for n in 0..100 {
        let due = instant(start + n * SECOND / 200);
        let task = json!({"target": receiver.target("/race"), "due_at": due});
        ids.push(server.create(&task).await);
    }
    // In the order of their due times and at about that time, so that either may come first.
    let mut cancelled = HashSet::new();
    for (n, id) in ids.iter().enumerate() {
        let due = start + n as i64 * SECOND / 200;
        eventually("its due time is near", 30, async || (now() >= due - 12_000).then_some(()))
            .await;
        match server.delete(&format!("/v1/tasks/{id}")).await.status {
            200 => cancelled.extend([id.clone()]),
            202 | 409 => {}
            other => panic!("status {other}"),
        }
    }
    for id in &ids {
        server.until_task(id, "it is over", 30, |t| t["finished_at"].is_string()).await;
    }
    let called: HashSet<String> = receiver.calls().into_iter().map(|call| call.key).collect();
    assert!(called.is_disjoint(&cancelled), "started after it was cancelled");
    for id in &ids {
        let attempts = server.task(id).await["attempts"].as_array().map_or(0, Vec::len);
        assert_eq!(attempts == 0, cancelled.contains(id), "what was answered is what happened");
    }
}

/// Waits until the long command was started this often, and gives its fence numbers.
async fn started(folder: &Folder, times: usize) -> Vec<u64> {
    eventually("the command starts", 30, async || {
        let lines = folder.lines("started");
        (lines.len() >= times).then(|| lines.iter().map(|f| f.parse().unwrap()).collect())
    })
    .await
}

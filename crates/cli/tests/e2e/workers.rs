//! Workers that pull tasks over HTTP.

use serde_json::{Value, json};

use crate::support::{Folder, Server, eventually};

async fn claim(server: &Server, queue: &str, ask: Value) -> Vec<Value> {
    let answer = server.post(&format!("/v1/queues/{queue}/claim"), &ask).await.is(200).json();
    answer["tasks"].as_array().expect("tasks").clone()
}

/// Waits until there is a task to claim, and claims it.
async fn claim_one(server: &Server, queue: &str) -> Value {
    eventually("a task can be claimed", 30, async || {
        claim(server, queue, json!({"worker": "w", "wait": "1s"})).await.pop()
    })
    .await
}

/// What became of one token.
async fn tell(server: &Server, what: &str, item: Value) -> String {
    let answer = server.post(&format!("/v1/attempts/{what}"), &json!([item])).await.is(200).json();
    assert_eq!(answer[0]["token"], item["token"]);
    answer[0]["status"].as_str().expect("a status").to_owned()
}

/// A worker waits for work, gets it when it comes, reports progress and log, and hands in a result.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_claims_reports_and_completes() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let task = json!({"queue": "work", "kind": "sum", "key": "order-42", "target": {"worker": {}},
        "payload": {"n": [1, 2]}, "tags": {"order": "42"}, "delay": "300ms"});
    let id = server.create(&task).await;
    let other_kind = json!({"worker": "w1", "kinds": ["other"]});
    assert!(claim(&server, "work", other_kind).await.is_empty());
    // The claim comes before the task is due, and is answered when it is.
    let ask = json!({"worker": "w1", "max": 10, "wait": "20s", "kinds": ["sum", "other"]});
    let claimed = claim(&server, "work", ask).await;
    assert_eq!(claimed.len(), 1);
    let (claimed, token) = (&claimed[0], &claimed[0]["token"]);
    for (field, expected) in [
        ("id", json!(id)),
        ("attempt", json!(1)),
        ("queue", json!("work")),
        ("kind", json!("sum")),
        ("key", json!("order-42")),
        ("payload", json!({"n": [1, 2]})),
        ("tags", json!({"order": "42"})),
    ] {
        assert_eq!(claimed[field], expected, "{field}");
    }
    let running = server.task(&id).await;
    assert_eq!(
        (&running["state"], &running["attempts"][0]["worker"]),
        (&json!("running"), &json!("w1"))
    );
    assert_eq!(running["attempts"][0]["fence"], claimed["fence"]);
    let beat = json!({"token": token, "progress": {"done": 1}, "log": "half way\n"});
    assert_eq!(tell(&server, "heartbeat", beat).await, "yours");
    let end = json!({"token": token, "outcome": "succeeded", "result": {"sum": 3}});
    assert_eq!(tell(&server, "complete", end.clone()).await, "yours");
    let done = server.task(&id).await;
    assert_eq!((&done["state"], &done["result"]), (&json!("succeeded"), &json!({"sum": 3})));
    assert_eq!(done["progress"], json!({"done": 1}));
    let output = server.get(&format!("/v1/tasks/{id}/attempts/1/output")).await.is(200);
    assert_eq!(output.text, "half way\n");
    // Saying it again changes nothing, and neither does a token that was never given.
    let wrong = json!({"token": token, "outcome": "failed"});
    assert_eq!(tell(&server, "complete", wrong).await, "gone");
    assert_eq!(server.task(&id).await["state"], "succeeded");
}

/// What a worker can say besides success: try again later, never again, not mine.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_retries_rejects_and_releases() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let task = json!({"queue": "work", "target": {"worker": {}}});
    let id = server.create(&task).await;
    let first = claim_one(&server, "work").await;
    let end =
        json!({"token": first["token"], "outcome": "retry", "retry_in": "100ms", "error": "busy"});
    assert_eq!(tell(&server, "complete", end).await, "yours");
    let second = claim_one(&server, "work").await;
    assert_eq!((&second["id"], &second["attempt"]), (&json!(id), &json!(2)));
    assert!(number(&second["fence"]) > number(&first["fence"]));
    let end = json!({"token": second["token"], "outcome": "release"});
    assert_eq!(tell(&server, "complete", end).await, "yours");
    let third = claim_one(&server, "work").await;
    assert_eq!(third["id"], json!(id));
    let end = json!({"token": third["token"], "outcome": "reject", "error": "no such order"});
    assert_eq!(tell(&server, "complete", end).await, "yours");
    let over = server.task(&id).await;
    assert_eq!(over["state"], "failed");
    let outcomes: Vec<_> =
        over["attempts"].as_array().unwrap().iter().map(|a| a["outcome"].clone()).collect();
    assert_eq!(outcomes, ["failed", "released", "failed"], "{over}");
    assert_eq!(over["attempts"][0]["error"], "busy");
}

/// apalis#530: a task that ran longer than a default was handed to a second worker while the first
/// was at it. river#347: a worker that vanished was never noticed. Here a claim holds as long as
/// heartbeats come, and runs out when they do not.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_holds_by_heartbeats_and_runs_out_without() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let task = |queue: &str| json!({"queue": queue, "target": {"worker": {}}, "timeout": "1s"});
    let kept = server.create(&task("kept")).await;
    let left = server.create(&task("left")).await;
    let mine = claim_one(&server, "kept").await;
    let vanished = claim_one(&server, "left").await;
    // The one is kept alive until the other, claimed later, has run out and gone to a second worker.
    let second = eventually("the claim that nobody extends runs out", 30, async || {
        let beat = json!({"token": mine["token"]});
        assert_eq!(tell(&server, "heartbeat", beat).await, "yours");
        claim(&server, "left", json!({"worker": "w2", "wait": "200ms"})).await.pop()
    })
    .await;
    assert_eq!((&second["id"], &second["attempt"]), (&json!(left), &json!(2)));
    assert!(number(&second["fence"]) > number(&vanished["fence"]));
    assert!(claim(&server, "kept", json!({"worker": "w2"})).await.is_empty(), "it is held");

    // Who vanished comes back: too late.
    let end = json!({"token": vanished["token"], "outcome": "succeeded"});
    assert_eq!(tell(&server, "complete", end).await, "gone");
    assert_eq!(tell(&server, "heartbeat", json!({"token": vanished["token"]})).await, "gone");
    for (id, token) in [(&kept, &mine["token"]), (&left, &second["token"])] {
        let end = json!({"token": token, "outcome": "succeeded"});
        assert_eq!(tell(&server, "complete", end).await, "yours");
        assert_eq!(server.task(id).await["state"], "succeeded");
    }
    assert_eq!(server.task(&kept).await["attempt"], 1);
}

/// Faults, 40: a worker that finished while its server was being restarted had worked for nothing, and
/// the task was done twice. Its result counts, by its token, whoever owns the task by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_counts_after_a_restart() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let task = json!({"queue": "work", "target": {"worker": {}}});
    let (done, beaten) = (server.create(&task).await, server.create(&task).await);
    let claimed = [claim_one(&server, "work").await, claim_one(&server, "work").await];
    server.kill().await;

    let server = Server::start(&folder).await;
    assert!(claim(&server, "work", json!({"worker": "w2"})).await.is_empty(), "both are held");
    let of = |id: &str| claimed.iter().find(|c| c["id"] == id).unwrap()["token"].clone();
    let end = json!({"token": of(&done), "outcome": "succeeded", "result": 1});
    assert_eq!(tell(&server, "complete", end).await, "yours");
    assert_eq!(tell(&server, "heartbeat", json!({"token": of(&beaten)})).await, "yours");
    let shown = server.task(&done).await;
    assert_eq!(
        (&shown["state"], &shown["attempt"], &shown["lost"]),
        (&json!("succeeded"), &json!(1), &json!(0))
    );
    // A worker learns by its heartbeat that its task was cancelled, and the end it tells counts.
    server.delete(&format!("/v1/tasks/{beaten}")).await.is(202);
    let beat = json!({"token": of(&beaten)});
    assert_eq!(tell(&server, "heartbeat", beat).await, "cancelled");
    let end = json!({"token": of(&beaten), "outcome": "failed", "error": "stopped"});
    tell(&server, "complete", end).await;
    server.until_state(&beaten, "cancelled", 30).await;
}

fn number(text: &Value) -> u64 {
    text.as_str().expect("text").parse().expect("a number")
}

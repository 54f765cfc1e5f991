//! Claim, heartbeat, complete.

use serde_json::json;

use crate::common::{Server, later, until, with, work};

#[tokio::test]
async fn a_worker_claims_and_completes() {
    let server = Server::start().await;
    let task = with(
        work(),
        json!({"queue": "w", "kind": "a", "payload": {"x": [1, 2]}, "key": "k",
        "tags": {"t": "1"}}),
    );
    let id = server.create(task).await;
    let claimed = server.claim("w").await;
    assert_eq!(claimed["id"], id.as_str());
    assert_eq!(claimed["payload"], json!({"x": [1, 2]}));
    assert_eq!((&claimed["kind"], &claimed["key"]), (&json!("a"), &json!("k")));
    assert_eq!(claimed["tags"], json!({"t": "1"}));
    assert_eq!(claimed["claim_period"], "1m");
    assert!(claimed["fence"].as_str().unwrap().parse::<u64>().unwrap() > 1 << 32);
    assert_eq!(server.when(&id, "running").await["attempts"][0]["worker"], "w");

    let beat = json!([{"token": claimed["token"], "progress": {"pc": 50}, "log": "half way\n"}]);
    let held = server.post("/v1/attempts/heartbeat", beat).await.expect(200).json();
    assert_eq!(held, json!([{"token": claimed["token"], "status": "yours"}]));
    until("its progress shows", async || {
        server.get(&format!("/v1/tasks/{id}")).await.json()["progress"] == json!({"pc": 50})
    })
    .await;
    let workers = server.get("/v1/workers").await.expect(200).json();
    assert_eq!(workers["items"][0]["worker"], "w");
    assert_eq!(workers["items"][0]["running"], 1);

    let done = json!([{"token": claimed["token"], "outcome": "succeeded", "result": {"ok": true}}]);
    let held = server.post("/v1/attempts/complete", done.clone()).await.expect(200).json();
    assert_eq!(held[0]["status"], "yours");
    let task = server.when(&id, "succeeded").await;
    assert_eq!(task["result"], json!({"ok": true}));
    let printed = server.get(&format!("/v1/tasks/{id}/attempts/1/output")).await.expect(200);
    assert_eq!(printed.text, "half way\n");
    let workers = server.get("/v1/workers").await.json();
    assert_eq!(workers["items"][0]["running"], 0);
    assert_eq!(workers["items"][0]["completed"], 1);
    // What is over is nobody's.
    let held = server.post("/v1/attempts/complete", done).await.expect(200).json();
    assert_eq!(held[0]["status"], "gone");
}

#[tokio::test]
async fn a_claim_waits_for_the_first_task() {
    let server = Server::start().await;
    let none = server.post("/v1/queues/w/claim", json!({})).await.expect(200).json();
    assert_eq!(none, json!({"tasks": []}));
    // An empty body is a claim for one task, without waiting.
    server.act("/v1/queues/w/claim").await.expect(200);
    let (claimed, id) = tokio::join!(server.claim("w"), async {
        until("a claim waits", async || server.node.status().waiting_claims > 0).await;
        server.create(with(work(), json!({"queue": "w"}))).await
    });
    assert_eq!(claimed["id"], id.as_str());
}

#[tokio::test]
async fn outcomes_of_attempts() {
    let server = Server::start().await;
    let retry = json!({"queue": "w", "retry": {"max_attempts": 3,
        "backoff": {"fixed": {"delay": "1h"}}}});
    for (end, state, attempt) in [
        (json!({"outcome": "failed", "error": "a\nb"}), "scheduled", "failed"),
        (json!({"outcome": "retry", "retry_in": "2h"}), "scheduled", "failed"),
        (json!({"outcome": "reject"}), "failed", "failed"),
        (json!({"outcome": "release"}), "ready", "released"),
    ] {
        let id = server.create(with(work(), retry.clone())).await;
        let claimed = server.claim("w").await;
        assert_eq!(claimed["id"], id.as_str());
        let item = with(end.clone(), json!({"token": claimed["token"]}));
        server.post("/v1/attempts/complete", json!([item])).await.expect(200);
        let task = server.when(&id, state).await;
        assert_eq!(task["attempts"][0]["outcome"], attempt, "{end}");
        server.delete(&format!("/v1/tasks/{id}")).await;
    }
}

#[tokio::test]
async fn kinds_select_what_a_worker_gets() {
    let server = Server::start().await;
    server.create(with(work(), json!({"queue": "w", "kind": "a"}))).await;
    let b = server.create(with(work(), json!({"queue": "w", "kind": "b"}))).await;
    let ask = json!({"max": 10, "wait": "20s", "kinds": ["b"]});
    let reply = server.post("/v1/queues/w/claim", ask).await.expect(200).json();
    assert_eq!(reply["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(reply["tasks"][0]["id"], b.as_str());
}

#[tokio::test]
async fn what_workers_may_not_say() {
    let server = Server::start().await;
    server.create(with(later(), json!({"queue": "w"}))).await;
    for (path, body, expected) in [
        ("/v1/queues/w/claim", json!({"max": 0}), (422, "invalid", "max")),
        ("/v1/queues/w/claim", json!({"max": 1001}), (422, "invalid", "max")),
        ("/v1/queues/w/claim", json!({"wait": "2m"}), (422, "invalid", "wait")),
        ("/v1/queues/w/claim", json!({"worker": "a/b"}), (422, "invalid", "worker")),
        ("/v1/queues/w/claim", json!({"kinds": ["a", ""]}), (422, "invalid", "kinds[1]")),
        ("/v1/queues/a%2Fb/claim", json!({}), (422, "invalid", "queue")),
        ("/v1/attempts/complete", json!({}), (422, "invalid", "")),
        (
            "/v1/attempts/complete",
            json!([{"token": "x", "outcome": "succeeded"}]),
            (422, "invalid", "token"),
        ),
        (
            "/v1/attempts/complete",
            json!([{"token": "0-1-1-1", "outcome": "failed", "retry_in": "1s"}]),
            (422, "invalid", "retry_in"),
        ),
        (
            "/v1/attempts/heartbeat",
            json!([{"token": "0-1-1-1", "log": "x".repeat(70_000)}]),
            (413, "too_large", "log"),
        ),
    ] {
        let reply = server.post(path, body).await;
        let (status, code, field) = reply.problem();
        assert_eq!((status, code.as_str(), field.as_str()), expected, "{}", reply.text);
    }
    let unknown = json!([{"token": "00-1-1-0000000000000001", "outcome": "succeeded"}]);
    let held = server.post("/v1/attempts/complete", unknown).await.expect(200).json();
    assert_eq!(held[0]["status"], "gone");
    server.post("/v1/attempts/complete", json!([])).await.expect(200);
}

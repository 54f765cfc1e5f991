//! Queues.

use serde_json::json;

use crate::common::{Server, later, with, work};

#[tokio::test]
async fn a_queue_is_configured_and_shown() {
    let server = Server::start().await;
    server.get("/v1/queues/mail").await.expect(404);
    let given = json!({"concurrency": 5, "rate": {"per": "1s", "count": 100}, "partitions": 4,
        "per_key_concurrency": 1, "defaults": {"timeout": "10s", "retry": {"max_attempts": 2}}});
    let shown = server.put("/v1/queues/mail", given.clone()).await.expect(200).json();
    for (field, value) in [
        ("name", json!("mail")),
        ("concurrency", json!(5)),
        ("rate", json!({"per": "1s", "count": 100, "burst": 100})),
        ("partitions", json!(4)),
        ("per_key_concurrency", json!(1)),
        ("paused", json!(false)),
        ("defaults", json!({"timeout": "10s", "retry": {"max_attempts": 2}})),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    // What is left out takes its default; whether it is paused stays.
    server.act("/v1/queues/mail/pause").await.expect(200);
    let shown = server.put("/v1/queues/mail", json!({"name": "mail"})).await.expect(200).json();
    assert_eq!((&shown["concurrency"], &shown["paused"]), (&json!(64), &json!(true)));
    assert!(shown.get("rate").is_none());
    server.put("/v1/queues/audit", json!({})).await.expect(200);
    let list = server.get("/v1/queues?limit=1").await.expect(200).json();
    assert_eq!(list["items"][0]["name"], "audit");
    let cursor = list["next_cursor"].as_str().unwrap();
    let rest = server.get(&format!("/v1/queues?cursor={cursor}")).await.expect(200).json();
    assert_eq!(rest["items"][0]["name"], "mail");
}

#[tokio::test]
async fn a_paused_queue_starts_nothing() {
    let server = Server::start().await;
    let id = server.create(with(work(), json!({"queue": "w"}))).await;
    let paused = server.act("/v1/queues/w/pause").await.expect(200).json();
    assert_eq!(paused["paused"], true);
    let none = server.post("/v1/queues/w/claim", json!({})).await.expect(200).json();
    assert_eq!(none["tasks"], json!([]));
    server.act("/v1/queues/w/resume").await.expect(200);
    assert_eq!(server.claim("w").await["id"], id.as_str());
    assert_eq!(server.act("/v1/queues/none/pause").await.problem().0, 404);
}

#[tokio::test]
async fn purging_cancels_what_has_not_started() {
    let server = Server::start().await;
    for _ in 0..3 {
        server.create(with(later(), json!({"queue": "p"}))).await;
    }
    server.create(with(work(), json!({"queue": "p"}))).await;
    let running = server.claim("p").await["id"].clone();
    let reply = server.act("/v1/queues/p/purge").await.expect(200).json();
    assert_eq!(reply, json!({"cancelled": 3, "more": false}));
    server.when(running.as_str().unwrap(), "running").await;
    assert_eq!(server.act("/v1/queues/none/purge").await.problem().0, 404);
}

#[tokio::test]
async fn what_a_queue_may_not_be() {
    let server = Server::start().await;
    for (path, body, field) in [
        ("/v1/queues/q", json!({"concurrency": 0}), "concurrency"),
        ("/v1/queues/q", json!({"partitions": 0}), "partitions"),
        ("/v1/queues/q", json!({"partitions": 100_000}), "partitions"),
        ("/v1/queues/q", json!({"rate": {"per": "0s", "count": 1}}), "rate.per"),
        ("/v1/queues/q", json!({"rate": {"per": "1s", "count": 0}}), "rate.count"),
        ("/v1/queues/q", json!({"rate": {"per": "1s"}}), "rate.count"),
        ("/v1/queues/q", json!({"per_key_concurrency": 0}), "per_key_concurrency"),
        ("/v1/queues/q", json!({"name": "other"}), "name"),
        ("/v1/queues/q", json!({"color": 1}), "color"),
        ("/v1/queues/q", json!({"defaults": {"timeout": "0s"}}), "defaults.timeout"),
        (
            "/v1/queues/q",
            json!({"defaults": {"retry": {"backoff": {"exponential": {"factor": 0.5}}}}}),
            "defaults.retry.backoff.exponential.factor",
        ),
        ("/v1/queues/a%2Fb", json!({}), "name"),
        ("/v1/queues/..%2F", json!({}), "name"),
        ("/v1/queues/%0a", json!({}), "name"),
    ] {
        let reply = server.put(path, body.clone()).await;
        let (status, _, named) = reply.problem();
        assert_eq!((status, named.as_str()), (422, field), "{path} {body} {}", reply.text);
    }
}

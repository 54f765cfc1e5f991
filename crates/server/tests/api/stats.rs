//! Counts, figures, metrics, nodes, the wheel, pruning, health.

use serde_json::json;

use crate::common::{Server, later, until, with, work};

#[tokio::test]
async fn counts_and_figures() {
    let server = Server::start().await;
    let empty = server.get("/v1/stats").await.expect(200).json();
    assert_eq!(empty["counts"]["scheduled"], 0);
    for _ in 0..3 {
        server.create(with(work(), json!({"queue": "w", "kind": "a"}))).await;
        let claimed = server.claim("w").await;
        let done = json!([{"token": claimed["token"], "outcome": "succeeded"}]);
        server.post("/v1/attempts/complete", done).await.expect(200);
    }
    server.create(with(later(), json!({"queue": "w", "kind": "b"}))).await;
    until("the figures are written", async || {
        server.get("/v1/stats").await.json()["kinds"][0]["succeeded"] == 3
    })
    .await;
    let stats = server.get("/v1/stats?span=2h").await.expect(200).json();
    assert_eq!(stats["counts"]["succeeded"], 3);
    assert_eq!(stats["counts"]["scheduled"], 1);
    assert_eq!(stats["started"], 3);
    assert_eq!(stats["queues"][0]["queue"], "w");
    assert_eq!(stats["queues"][0]["succeeded"], 3);
    assert_eq!(
        (&stats["kinds"][0]["kind"], &stats["kinds"][0]["started"]),
        (&json!("a"), &json!(3))
    );
    assert_eq!(stats["lateness_ms"]["count"], 3);
    // Another namespace has its own.
    assert_eq!(server.get("/v1/stats?namespace=other").await.json()["counts"]["succeeded"], 0);

    let sum = |series: &serde_json::Value, field: &str| {
        let points = series["points"].as_array().unwrap().iter();
        points.map(|p| p[field].as_u64().unwrap()).sum::<u64>()
    };
    // Figures of one batch are written with the next.
    server.create(with(later(), json!({"queue": "other"}))).await;
    until("creations are counted", async || {
        sum(&server.get("/v1/stats/series").await.json(), "created") >= 4
    })
    .await;
    let series = server.get("/v1/stats/series").await.expect(200).json();
    assert_eq!(series["step_secs"], 60);
    let points = series["points"].as_array().unwrap();
    assert!((60..=62).contains(&points.len()), "{}", points.len());
    assert_eq!((sum(&series, "succeeded"), sum(&series, "started")), (3, 3));
    let none = server.get("/v1/stats/series?queue=none").await.expect(200).json();
    assert!(none["points"].as_array().unwrap().iter().all(|p| p["created"] == 0));
    let coarse = server.get("/v1/stats/series?step=30m").await.expect(200).json();
    assert_eq!(coarse["step_secs"], 1_800);
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let server = Server::start().await;
    server.create(with(later(), json!({"queue": "we\"ird"}))).await;
    server.get("/v1/nothing").await;
    let reply = server.get("/metrics").await.expect(200);
    assert!(reply.header("content-type").starts_with("text/plain; version=0.0.4"));
    for line in [
        "tourbillon_ready 1",
        "tourbillon_tasks{namespace=\"default\",queue=\"we\\\"ird\",state=\"scheduled\"} 1",
        "tourbillon_http_responses_total{class=\"4xx\"} 1",
    ] {
        assert!(reply.text.lines().any(|l| l == line), "{line} in\n{}", reply.text);
    }
    for line in reply.text.lines().filter(|l| !l.starts_with('#')) {
        let value = line.rsplit_once(' ').unwrap().1;
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn nodes_and_the_wheel() {
    let server = Server::start().await;
    let nodes = server.get("/v1/nodes").await.expect(200).json();
    let node = &nodes["items"][0];
    assert_eq!(
        (&node["this"], &node["shards"], &node["store"]),
        (&json!(true), &json!(256), &json!("memory"))
    );
    assert_eq!(nodes["items"].as_array().unwrap().len(), 1);
    server.create(with(work(), json!({"delay": "5m"}))).await;
    until("the wheel holds it", async || {
        server.get("/v1/wheel").await.expect(200).json()["wheels"][0]["len"] == 1
    })
    .await;
    let wheel = server.get("/v1/wheel").await.json()["wheels"][0].clone();
    assert_eq!(wheel["tick"], "1ms");
    let levels = wheel["levels"].as_array().unwrap();
    let level = levels.iter().find(|level| level["len"] == 1).unwrap();
    // Empty levels below are told too.
    assert_eq!(
        (&levels[0]["slot_span"], &levels[1]["slot_span"]),
        (&json!("1ms"), &json!("256ms"))
    );
    assert_eq!(level["len"], 1);
    assert_eq!(level["occupied"][0]["count"], 1);
    assert!(level["current_slot"].as_u64().unwrap() < level["slots"].as_u64().unwrap());
}

#[tokio::test]
async fn pruning_counts_and_deletes() {
    let server = Server::start().await;
    let id = server.create(later()).await;
    server.delete(&format!("/v1/tasks/{id}")).await.expect(200);
    for body in [json!({}), json!({"dry_run": true})] {
        let reply = server.post("/v1/prune", body.clone()).await.expect(200).json();
        assert_eq!((&reply["succeeded"], &reply["other"]), (&json!(0), &json!(0)), "{body}");
    }
    // Without a body it prunes.
    server.act("/v1/prune").await.expect(200);
    // What is not old enough stays.
    server.get(&format!("/v1/tasks/{id}")).await.expect(200);
}

#[tokio::test]
async fn health() {
    let server = Server::start().await;
    assert_eq!(server.get("/healthz").await.expect(200).text, "ok\n");
    assert_eq!(server.get("/readyz").await.expect(200).text, "ready\n");
    server.node.shutdown(std::time::Duration::ZERO).await;
    server.get("/healthz").await.expect(200);
    let reply = server.get("/readyz").await;
    assert_eq!(reply.problem().0, 503);
    assert!(!reply.header("retry-after").is_empty());
    // What cannot be done now says so, and when to come again.
    let reply = server.post("/v1/tasks", later()).await;
    assert_eq!(reply.problem().0, 503);
    assert!(!reply.header("retry-after").is_empty());
}

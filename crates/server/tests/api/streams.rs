//! Replies that go on: events, followed output; and how they end.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tourbillon_server::{Limits, ServeOptions};

use crate::common::{Reply, Server, TOKEN, later, until, with, work};

/// Reads a reply piece by piece until `enough` of its text.
async fn read(response: &mut Response, text: &mut String, enough: impl Fn(&str) -> bool) {
    while !enough(text) {
        let piece = tokio::time::timeout(Duration::from_secs(30), response.chunk());
        match piece.await.expect("nothing came in 30 s").unwrap() {
            Some(piece) => text.push_str(&String::from_utf8_lossy(&piece)),
            None => panic!("it ended: {text}"),
        }
    }
}

fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|l| l.strip_prefix("data: "));
    data.filter_map(|d| serde_json::from_str(d).ok()).collect()
}

async fn watch(server: &Server, query: &str) -> Response {
    let path = format!("/v1/events{query}");
    let response = server.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    response
}

#[tokio::test]
async fn events_tell_a_tasks_life() {
    let server = Server::start().await;
    let mut all = watch(&server, "").await;
    let mut other = watch(&server, "?queue=other").await;
    let id = server.create(with(work(), json!({"queue": "w", "kind": "a"}))).await;
    let claimed = server.claim("w").await;
    let done = json!([{"token": claimed["token"], "outcome": "succeeded"}]);
    server.post("/v1/attempts/complete", done).await.expect(200);
    let mut text = String::new();
    read(&mut all, &mut text, |t| t.contains("task.finished")).await;
    let seen = events(&text);
    let kinds: Vec<&str> = seen.iter().map(|e| e["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["task.created", "attempt.started", "task.finished"]);
    for (event, state) in seen.iter().zip(["scheduled", "running", "succeeded"]) {
        assert_eq!(event["task_id"], id.as_str());
        assert_eq!((&event["queue"], &event["task_kind"]), (&json!("w"), &json!("a")));
        assert_eq!((&event["state"], &event["namespace"]), (&json!(state), &json!("default")));
    }
    let numbers: Vec<u64> = seen.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert!(numbers.windows(2).all(|w| w[1] == w[0] + 1), "{numbers:?}");
    // A filter lets only its own through.
    let there = server.create(with(later(), json!({"queue": "other"}))).await;
    let mut text = String::new();
    read(&mut other, &mut text, |t| t.contains("task.created")).await;
    assert_eq!(events(&text)[0]["task_id"], there.as_str());
    assert_eq!(events(&text).len(), 1);
}

/// What callers ask for is told too, with who asked.
#[tokio::test]
async fn events_tell_who_asked() {
    let server = Server::start().await;
    let id = server.create(with(later(), json!({"queue": "w"}))).await;
    let mut of_queue = watch(&server, "?queue=w").await;
    let mut of_task = watch(&server, &format!("?task={id}")).await;
    server.act("/v1/queues/w/pause").await.expect(200);
    server.act("/v1/queues/none/pause").await.expect(404);
    let request = server.request(Method::DELETE, &format!("/v1/tasks/{id}")).bearer_auth(TOKEN);
    Reply::read(request.send().await.unwrap()).await.expect(200);
    let mut text = String::new();
    read(&mut of_queue, &mut text, |t| t.contains("task.finished")).await;
    let seen = events(&text);
    let told: Vec<(&str, &str)> =
        seen.iter().map(|e| (e["kind"].as_str().unwrap(), e["actor"].as_str().unwrap())).collect();
    assert_eq!(told, [("queue.changed", "127.0.0.1"), ("task.finished", "127.0.0.1 (token)")]);
    assert_eq!((&seen[1]["state"], &seen[1]["task_id"]), (&json!("cancelled"), &json!(id)));
    let mut text = String::new();
    read(&mut of_task, &mut text, |t| t.contains("task.finished")).await;
    assert_eq!(events(&text).len(), 1);
}

#[tokio::test]
async fn an_output_is_followed_until_the_attempt_ends() {
    let server = Server::start().await;
    // The command waits on a pipe that the test writes to: no time is involved.
    let folder = std::env::temp_dir().join(format!("tourbillon-server-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join("go");
    let _ = std::fs::remove_file(&pipe);
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let script = format!("echo first; read x < '{}'; echo got $x", pipe.display());
    let task = json!({"target": {"command": {"argv": ["sh", "-c", script]}}});
    let request = server.request(Method::POST, "/v1/tasks").bearer_auth(TOKEN);
    let request = request.header("content-type", "application/json").body(task.to_string());
    let created = Reply::read(request.send().await.unwrap()).await.expect(201).json();
    let id = created["id"].as_str().unwrap();
    let path = format!("/v1/tasks/{id}/attempts/1/output");
    until("it has begun", async || server.get(&path).await.text == "first\n").await;
    let url = format!("{path}?follow=true");
    let mut followed = server.request(Method::GET, &url).send().await.unwrap();
    let mut text = String::new();
    read(&mut followed, &mut text, |t| t.contains("first\n")).await;
    tokio::task::spawn_blocking(move || std::fs::write(pipe, "it\n").unwrap()).await.unwrap();
    read(&mut followed, &mut text, |t| t.contains("got it\n")).await;
    // The reply ends with the attempt.
    let end = tokio::time::timeout(Duration::from_secs(30), followed.chunk()).await.unwrap();
    assert_eq!(end.unwrap(), None);
    assert_eq!(text, "first\ngot it\n");
    server.when(id, "succeeded").await;
    assert_eq!(server.get(&path).await.text, text);
    assert_eq!(server.get(&url).await.text, text);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn watchers_are_bounded() {
    let limits = Limits { streams: 1, ..Limits::default() };
    let server = Server::with(ServeOptions { limits, ..ServeOptions::default() }).await;
    let first = watch(&server, "").await;
    let reply = server.get("/v1/events").await;
    assert_eq!(reply.problem().0, 503);
    assert_eq!(reply.header("retry-after"), "5");
    drop(first);
    until("there is room again", async || {
        let response = server.request(Method::GET, "/v1/events").send().await.unwrap();
        response.status() == 200
    })
    .await;
}

/// A watcher or a waiting claim must not hold up a shutdown.
#[tokio::test]
async fn shutting_down_ends_what_would_go_on() {
    let server = Server::start().await;
    let mut watching = watch(&server, "").await;
    let url = format!("http://{}/v1/queues/w/claim", server.address);
    let claim = crate::common::client()
        .post(url)
        .header("content-type", "application/json")
        .body(json!({"wait": "60s"}).to_string())
        .send();
    let claim = tokio::spawn(claim);
    until("a claim waits", async || server.node.status().waiting_claims > 0).await;
    let running = server.stop();
    let ended = tokio::time::timeout(Duration::from_secs(9), running).await;
    ended.expect("before the time to drain is over").unwrap().unwrap();
    let reply = Reply::read(claim.await.unwrap().unwrap()).await.expect(200);
    assert_eq!(reply.json(), json!({"tasks": []}));
    while let Ok(Some(_)) = watching.chunk().await {}
}

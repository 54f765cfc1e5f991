//! Who may come in, and with what.

use reqwest::Method;
use serde_json::json;

use crate::support::server::{answer, serve};
use crate::support::{Folder, Receiver, Server};

/// xxl-job and others ran any command for whoever could reach their port. On loopback a program of
/// this machine may schedule calls; what runs commands takes the token, also through a schedule.
#[tokio::test(flavor = "multi_thread")]
async fn commands_need_the_token_and_calls_on_loopback_do_not() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start(&folder).await;
    let command = json!({"command": {"argv": ["touch", folder.file("touched")]}});
    let call = json!({"target": receiver.target("/call")});
    let post = |path: &str, body| server.stranger(Method::POST, path).json(body);
    let put = |path: &str, body| server.stranger(Method::PUT, path).json(body);

    answer(post("/v1/tasks", &call)).await.is(201);
    receiver.until("the call comes", 30, |calls| calls.len() == 1).await;
    let task = json!({"target": command});
    let schedule = json!({"every": "1s", "task": {"target": command}});
    let batch = json!([call, task]);
    for refused in [
        post("/v1/tasks", &task),
        post("/v1/tasks/batch", &batch),
        put("/v1/schedules/s", &schedule),
        post("/v1/tasks", &task).bearer_auth("wrong"),
        post("/v1/tasks", &call).bearer_auth("wrong"),
        post("/v1/tasks", &task).basic_auth("x", Some(server.token())),
    ] {
        let refused = answer(refused).await;
        assert!(matches!(refused.status, 401 | 403), "{refused:?}");
        assert_eq!(refused.headers["content-type"], "application/problem+json");
        assert!(!refused.text.contains(&server.token()), "the token is not told");
    }
    assert_eq!(server.list("").await.len(), 1, "nothing of it was accepted");

    let id = server.create(&task).await;
    server.until_state(&id, "succeeded", 30).await;
    assert!(folder.path().join("touched").exists());
    // Nor can a command be hidden in an edit of what was accepted without the token.
    let waiting = json!({"target": receiver.target("/call"), "delay": "1h"});
    let waiting = answer(post("/v1/tasks", &waiting)).await.is(201).json();
    let path = format!("/v1/tasks/{}", waiting["id"].as_str().unwrap());
    let edit = server.stranger(Method::PATCH, &path).json(&json!({"target": command}));
    let edited = answer(edit).await.status;
    assert!((400..500).contains(&edited), "{edited}");
}

/// The token file is for its owner only, made once, and kept.
#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_made_once_and_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let data = folder.path().join("data");
    let server = Server::start(&folder).await;
    let token = server.token();
    assert!(token.len() >= 32, "it cannot be guessed: {} characters", token.len());
    for (path, expected) in [(data.join("token"), 0o600), (data.clone(), 0o700)] {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{}: {mode:o}", path.display());
    }
    server.kill().await;
    assert_eq!(Server::start(&folder).await.token(), token);
}

/// A page of another site must not reach a scheduler on the visitor's own machine, neither by a name
/// that it points at this address (DNS rebinding) nor by a form that a browser sends without asking.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_hosts_origins_and_content_types_are_refused() {
    let folder = Folder::new();
    let mut command = serve(&folder.path().join("data"));
    command.args(["--allow-host", "tasks.example"]);
    let server = Server::start_by(&folder, command).await;
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let port = address.rsplit(':').next().unwrap();
    for (host, status) in [
        (address.clone(), 200),
        (format!("localhost:{port}"), 200),
        ("tasks.example".to_owned(), 200),
        ("evil.example".to_owned(), 403),
        (format!("evil.example:{port}"), 403),
        ("127.0.0.1.evil.example".to_owned(), 403),
        ("192.0.2.1".to_owned(), 403),
    ] {
        for path in ["/v1/tasks", "/"] {
            let got = answer(server.stranger(Method::GET, path).header("host", &host)).await;
            assert_eq!(got.status, status, "Host: {host} {path}");
        }
    }
    let task = json!({"target": {"worker": {}}});
    for (origin, status) in [
        (server.url.clone(), 201),
        ("https://evil.example".to_owned(), 403),
        ("http://127.0.0.1:1".to_owned(), 403),
        ("null".to_owned(), 403),
    ] {
        let post = server.stranger(Method::POST, "/v1/tasks").json(&task);
        let got = answer(post.header("origin", &origin)).await;
        assert_eq!(got.status, status, "Origin: {origin}");
    }
    for (content_type, status) in [
        (Some("application/json"), 201),
        (Some("application/json; charset=utf-8"), 201),
        (Some("text/plain"), 415),
        (Some("application/x-www-form-urlencoded"), 415),
        (Some("multipart/form-data; boundary=x"), 415),
        (Some("application/x-ndjson"), 415),
        (None, 415),
    ] {
        let mut post = server.stranger(Method::POST, "/v1/tasks").body(task.to_string());
        if let Some(content_type) = content_type {
            post = post.header("content-type", content_type);
        }
        let got = answer(post).await;
        assert_eq!(got.status, status, "Content-Type: {content_type:?}");
    }
    let lines = format!("{task}\n{task}\n");
    let batch = server.stranger(Method::POST, "/v1/tasks/batch").body(lines);
    answer(batch.header("content-type", "application/x-ndjson")).await.is(201);
}

/// Beyond loopback everything needs the token, except what a load balancer asks.
#[tokio::test(flavor = "multi_thread")]
async fn beyond_loopback_every_call_needs_the_token() {
    let folder = Folder::new();
    let mut command = tokio::process::Command::new(crate::support::binary());
    command.args(["serve", "--listen", "0.0.0.0:0", "--data"]).arg(folder.path().join("data"));
    let mut server = Server::spawn(&folder, command).await.expect("it runs");
    server.url = server.url.replace("0.0.0.0", "127.0.0.1");
    server.ready().await;
    for path in ["/healthz", "/readyz"] {
        answer(server.stranger(Method::GET, path)).await.is(200);
    }
    for path in ["/v1/tasks", "/v1/stats", "/metrics", "/v1/events", "/openapi.json"] {
        answer(server.stranger(Method::GET, path)).await.is(401);
    }
    let task = json!({"target": {"worker": {}}});
    answer(server.stranger(Method::POST, "/v1/tasks").json(&task)).await.is(401);
    server.get("/v1/tasks").await.is(200);
    server.create(&task).await;
    // Private addresses are no targets of a server that others can reach.
    let receiver = Receiver::start().await;
    let id = server
        .create(&json!({"target": receiver.target("/call"), "retry": {"max_attempts": 1}}))
        .await;
    server.until_state(&id, "failed", 30).await;
    assert!(receiver.calls().is_empty());
}

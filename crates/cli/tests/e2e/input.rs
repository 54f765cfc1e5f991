//! Bad input over HTTP: a clear answer, and a server that goes on.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::server::{answer, try_answer};
use crate::support::{Folder, Server};

fn with(fields: Value) -> String {
    let mut task = json!({"target": {"worker": {}}, "delay": "1h"});
    for (name, value) in fields.as_object().expect("fields") {
        task[name] = value.clone();
    }
    task.to_string()
}

/// A task whose payload is this text, JSON or not.
fn payload(text: &str) -> String {
    format!(r#"{{"target": {{"worker": {{}}}}, "delay": "1h", "payload": {text}}}"#)
}

/// Faults, 34: payloads nested a hundred thousand deep, numbers that other programs cannot read, NUL,
/// lone surrogates, names with slashes or control characters or of 10 kB. Each is a clear refusal
/// that names the field, never a 500, a crash or a task that cannot be found any more.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_tasks_are_refused_with_the_field() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let long = "x".repeat(10_000);
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    let cases: Vec<(String, u16, &str)> = vec![
        (String::new(), 400, ""),
        ("{".into(), 400, ""),
        ("nonsense".into(), 400, ""),
        (r#"{"target": {"worker": {}}} {}"#.into(), 400, ""),
        ("[]".into(), 422, ""),
        ("{}".into(), 422, "target"),
        (with(json!({"targets": {}})), 422, "targets"),
        (with(json!({"target": {}})), 422, "target"),
        (
            with(json!({"target": {"worker": {}, "http": {"url": "http://a.example"}}})),
            422,
            "target",
        ),
        (with(json!({"target": {"http": {"url": "ftp://a.example"}}})), 422, "target.http.url"),
        (with(json!({"target": {"http": {"url": "nonsense"}}})), 422, "target.http.url"),
        (with(json!({"target": {"command": {"argv": []}}})), 422, "target.command.argv"),
        (with(json!({"target": {"command": {"argv": ["a\u{0}b"]}}})), 422, "target.command.argv"),
        (with(json!({"queue": ""})), 422, "queue"),
        (with(json!({"queue": long})), 422, "queue"),
        (with(json!({"queue": "a/b"})), 422, "queue"),
        (with(json!({"queue": ".."})), 422, "queue"),
        (with(json!({"queue": "a\nb"})), 422, "queue"),
        (with(json!({"kind": "a/b"})), 422, "kind"),
        (with(json!({"kind": long})), 422, "kind"),
        (with(json!({"key": long})), 422, "key"),
        (with(json!({"key": "a\u{0}b"})), 422, "key"),
        (with(json!({"id": "not-a-uuid"})), 422, "id"),
        (with(json!({"priority": 8})), 422, "priority"),
        (with(json!({"priority": 1.5})), 422, "priority"),
        (with(json!({"priority": 1e300})), 422, "priority"),
        (with(json!({"delay": "soon"})), 422, "delay"),
        (with(json!({"delay": -1})), 422, "delay"),
        (with(json!({"delay": "200000d"})), 422, "delay"),
        (with(json!({"delay": "1h", "due_at": "2030-01-01T00:00:00Z"})), 422, ""),
        (with(json!({"delay": null, "due_at": "tomorrow"})), 422, "due_at"),
        (with(json!({"timeout": "0s"})), 422, "timeout"),
        (with(json!({"retry": {"max_attempts": 0}})), 422, "retry.max_attempts"),
        (
            with(json!({"at_most_once": true, "retry": {"max_attempts": 2}})),
            422,
            "retry.max_attempts",
        ),
        (with(json!({"tags": {"a": long}})), 422, "tags"),
        (with(json!({"on_conflict": "explode"})), 422, "on_conflict"),
        (payload(&deep(65)), 422, "payload"),
        (payload(&deep(100_000)), 400, ""),
        (payload(&format!("1{}", "0".repeat(400))), 422, "payload"),
        (payload("1e999999"), 422, "payload"),
        (payload(r#""a\ud800b""#), 422, "payload"),
        (payload(r#""a\u0000b""#), 422, "payload"),
        (payload(&format!("\"{}\"", "x".repeat(300 << 10))), 413, "payload"),
        (payload(&format!("\"{}\"", "x".repeat(17 << 20))), 413, ""),
    ];
    for (body, status, field) in &cases {
        let post = server.request(Method::POST, "/v1/tasks").body(body.clone());
        let got = answer(post.header("content-type", "application/json")).await;
        let shown: String = body.chars().take(120).collect();
        // Both say what is wrong; which of them a limit inside of the text is, the parser decides.
        let malformed_or = [400, 422].contains(status) && [400, 422].contains(&got.status);
        let as_expected = got.status == *status
            || (body.contains("[[[") && malformed_or)
            || (body.contains(r"\ud800") && malformed_or);
        assert!(as_expected, "{shown}: {} instead of {status}: {}", got.status, got.text);
        let problem = got.json();
        assert_eq!(got.headers["content-type"], "application/problem+json", "{shown}");
        assert_eq!(problem["status"], got.status);
        assert!(problem["code"].as_str().is_some_and(|c| !c.is_empty()), "{shown}: {problem}");
        assert!(problem["detail"].as_str().is_some_and(|d| !d.is_empty()), "{shown}: {problem}");
        assert!(got.text.len() < 2_000, "{shown}: an answer is not an echo: {} B", got.text.len());
        if got.status == *status {
            let told = problem["field"].as_str().unwrap_or("");
            assert!(told.starts_with(field), "{shown}: names `{told}` instead of `{field}`");
        }
    }
    assert!(server.list("").await.is_empty(), "nothing of it was accepted");

    // What looks odd and is right comes back as it was given.
    let odd = [
        payload(&deep(64)),
        payload("12345678901234567890.000000000000000001"),
        payload(r#"{"b": 1, "a": "é\u00e9\n\ud83d\ude00"}"#),
        payload("null"),
        with(json!({"key": "orders/42/../é"})),
        with(json!({"queue": "名前", "kind": "a b"})),
        with(json!({"key": "x".repeat(200)})),
        with(json!({"delay": "36500d"})),
        with(json!({"delay": null, "due_at": "1990-01-01T00:00:00Z"})),
    ];
    for body in odd {
        let post = server.request(Method::POST, "/v1/tasks").body(body.clone());
        let made = answer(post.header("content-type", "application/json")).await.is(201).json();
        let shown =
            server.get(&format!("/v1/tasks/{}", made["id"].as_str().unwrap())).await.is(200);
        let given: Value = serde_json::from_str(&body).unwrap();
        for field in ["key", "queue", "kind", "payload"] {
            if let Some(value) = given.get(field) {
                assert_eq!(shown.json().get(field), Some(value), "{body}");
            }
        }
    }
}

/// The same for everything else that takes a document or a query, and for paths.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_are_refused() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let long = "x".repeat(10_000);
    let task = json!({"target": {"worker": {}}});
    let no_id = "/v1/tasks/0193e1f0-0000-7000-8000-000000000001";
    let cases: Vec<(&str, String, Option<Value>, u16)> = vec![
        ("GET", "/v1/nothing".into(), None, 404),
        ("GET", "/v1/tasks/not-an-id".into(), None, 404),
        ("GET", no_id.into(), None, 404),
        ("DELETE", no_id.into(), None, 404),
        ("POST", format!("{no_id}/retry"), None, 404),
        ("PATCH", no_id.into(), Some(json!({"priority": 1})), 404),
        ("PUT", "/v1/tasks".into(), Some(task.clone()), 405),
        ("GET", format!("{no_id}/attempts/1/output"), None, 404),
        ("GET", "/v1/tasks?nonsense=1".into(), None, 422),
        ("GET", "/v1/tasks?limit=x".into(), None, 400),
        ("GET", "/v1/tasks?limit=0".into(), None, 422),
        ("GET", "/v1/tasks?state=done".into(), None, 400),
        ("GET", "/v1/tasks?namespace=a/b".into(), None, 422),
        ("GET", "/v1/schedules/none".into(), None, 404),
        ("PUT", "/v1/schedules/..%2f..".into(), Some(json!({"every": "1s", "task": task})), 422),
        ("PUT", format!("/v1/schedules/{long}"), Some(json!({"every": "1s", "task": task})), 422),
        ("PUT", "/v1/schedules/s".into(), Some(json!({"task": task})), 422),
        ("PUT", "/v1/schedules/s".into(), Some(json!({"every": "0s", "task": task})), 422),
        ("PUT", "/v1/schedules/s".into(), Some(json!({"cron": "61 * * * *", "task": task})), 422),
        (
            "PUT",
            "/v1/schedules/s".into(),
            Some(json!({"cron": "* * * * *", "tz": "Mars", "task": task})),
            422,
        ),
        (
            "PUT",
            "/v1/schedules/s".into(),
            Some(json!({"cron": "* * * * *", "every": "1s", "task": task})),
            422,
        ),
        (
            "PUT",
            "/v1/schedules/s".into(),
            Some(json!({"every": "1s", "exclude": ["none"], "task": task})),
            422,
        ),
        ("POST", "/v1/schedules/none/trigger".into(), Some(json!({})), 404),
        ("PUT", "/v1/queues/q".into(), Some(json!({"concurrency": 0, "x": 1})), 422),
        ("PUT", "/v1/queues/q".into(), Some(json!({"rate": {"per": "0s", "count": 1}})), 422),
        ("POST", "/v1/queues/q/claim".into(), Some(json!({"max": 0})), 422),
        ("POST", "/v1/queues/q/claim".into(), Some(json!({"wait": "1d"})), 422),
        (
            "POST",
            "/v1/attempts/complete".into(),
            Some(json!([{"token": "x", "outcome": "succeeded"}])),
            422,
        ),
        ("POST", "/v1/attempts/heartbeat".into(), Some(json!({})), 422),
        ("POST", "/v1/tasks/cancel".into(), Some(json!({"filter": {}})), 422),
        ("POST", "/v1/tasks/batch".into(), Some(json!([task, {"queue": "q"}])), 422),
        ("POST", "/v1/tasks/batch".into(), Some(json!({})), 422),
        (
            "POST",
            "/v1/tasks/batch".into(),
            Some((0..10_001).map(|_| json!({"target": {"worker": {}}})).collect()),
            413,
        ),
    ];
    for (method, path, body, status) in cases {
        let shown: String = format!("{method} {path} {body:?}").chars().take(160).collect();
        let mut request = server.request(method.parse().unwrap(), &path);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let got = answer(request).await;
        assert_eq!(got.status, status, "{shown}: {}", got.text);
        assert_eq!(got.headers["content-type"], "application/problem+json", "{shown}");
        assert!(got.json()["code"].is_string(), "{shown}");
    }
    assert!(server.list("").await.is_empty());
    server.create(&task).await;
    server.get("/v1/tasks?cursor=%00nonsense").await.is(422);
    // Bytes that are no text at all, and a head that is too long.
    let post = server.request(Method::POST, "/v1/tasks").body(vec![0xff, 0xfe, b'{', 0]);
    answer(post.header("content-type", "application/json")).await.is(400);
    let get = server.request(Method::GET, "/v1/tasks").header("x-long", "x".repeat(1 << 20));
    if let Ok(got) = try_answer(get).await {
        assert_eq!(got.status, 431);
    }
    answer(server.stranger(Method::GET, "/readyz")).await.is(200);
}

/// Ids and keys: asking twice is safe, and a name is held by one task at a time.
#[tokio::test(flavor = "multi_thread")]
async fn ids_and_keys_keep_their_promises() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let id = "0193e1f0-0000-7000-8000-000000000001";
    let task =
        json!({"id": id, "key": "k", "target": {"worker": {}}, "delay": "1h", "payload": {"a": 1}});
    server.post("/v1/tasks", &task).await.is(201);
    let again = server.post("/v1/tasks", &task).await.is(200).json();
    assert_eq!(again["id"], id);
    let mut other = task.clone();
    other["payload"] = json!({"a": 2});
    assert_eq!(server.post("/v1/tasks", &other).await.is(409).json()["code"], "id_reused");

    let same_key = json!({"key": "k", "target": {"worker": {}}, "delay": "2h"});
    let refused = server.post("/v1/tasks", &same_key).await.is(409).json();
    assert_eq!((&refused["code"], &refused["existing"]), (&json!("key_taken"), &json!(id)));
    let mut keep = same_key.clone();
    keep["on_conflict"] = json!("keep");
    assert_eq!(server.post("/v1/tasks", &keep).await.is(200).json()["id"], id);
    let mut replace = same_key.clone();
    replace["on_conflict"] = json!("replace");
    let new = server.post("/v1/tasks", &replace).await.is(201).json();
    assert_eq!(server.task(id).await["state"], "cancelled");
    assert_eq!(server.task(new["id"].as_str().unwrap()).await["state"], "scheduled");
    let batch = json!([{"target": {"worker": {}}}, same_key]);
    let refused = server.post("/v1/tasks/batch", &batch).await.is(409).json();
    assert_eq!(refused["index"], 1, "{refused}");
    assert_eq!(server.list("").await.len(), 2, "a batch is whole or not at all");
    // The key is free again when its task is over.
    server.delete(&format!("/v1/tasks/{}", new["id"].as_str().unwrap())).await.is(200);
    server.post("/v1/tasks", &same_key).await.is(201);
}

//! What is refused, with which status, code and field.

use reqwest::Method;
use serde_json::{Value, json};

use crate::common::{Reply, Server, TOKEN, later, with, work};

/// Payloads with deep nesting, huge numbers, unknown fields, NUL and lone surrogates, and names with
/// slashes, dots, control characters or 10 kB have broken schedulers of this kind: they were stored and
/// could not be shown, or took the server down. Each is a clear 4xx.
#[tokio::test]
async fn hostile_texts_are_a_clear_4xx() {
    let server = Server::start().await;
    let long = "x".repeat(10_000);
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    let payload = |text: &str| format!(r#"{{"target":{{"worker":{{}}}},"payload":{text}}}"#);
    let field = |name: &str, value: &str| {
        let value = serde_json::to_string(value).unwrap();
        format!(r#"{{"target":{{"worker":{{}}}},"{name}":{value}}}"#)
    };
    let big = format!("\"{}\"", "y".repeat(256 << 10));
    for (body, status, code, named) in [
        (payload(&deep(65)), 422, "too_deep", "payload"),
        (payload(&deep(10_000)), 422, "too_deep", "payload"),
        (payload("1e400"), 422, "bad_number", "payload"),
        (payload(&"9".repeat(1_000)), 422, "bad_number", "payload"),
        (payload(r#""\u0000""#), 422, "bad_character", "payload"),
        (payload(r#"{"\u0000":1}"#), 422, "bad_character", "payload"),
        (payload(r#""\ud800""#), 422, "bad_character", "payload"),
        (payload(r#""\udc00\ud800""#), 422, "bad_character", "payload"),
        (payload(&big), 413, "too_large", "payload"),
        (field("colour", "red"), 422, "unknown_field", "colour"),
        (payload("{\"a\":}"), 400, "malformed", "payload"),
        (payload("01"), 400, "malformed", "payload"),
        (payload("NaN"), 400, "malformed", "payload"),
        (field("queue", "a/b"), 422, "invalid", "queue"),
        (field("queue", ".."), 422, "invalid", "queue"),
        (field("queue", "."), 422, "invalid", "queue"),
        (field("queue", ""), 422, "invalid", "queue"),
        (field("queue", &long), 422, "invalid", "queue"),
        (field("queue", "a\u{7}b"), 422, "invalid", "queue"),
        (field("kind", "a/b"), 422, "invalid", "kind"),
        (field("kind", ".."), 422, "invalid", "kind"),
        (field("kind", &long), 422, "invalid", "kind"),
        (field("kind", "\0"), 422, "invalid", "kind"),
        (field("namespace", "a/b"), 422, "invalid", "namespace"),
        (field("key", "a\nb"), 422, "invalid", "key"),
        (field("key", &long), 422, "invalid", "key"),
        (field("key", ""), 422, "invalid", "key"),
        (field("concurrency_key", "\u{1b}"), 422, "invalid", "concurrency_key"),
        (r#"{"target":{"worker":{}},"key":"\ud800"}"#.to_owned(), 422, "invalid", "key"),
    ] {
        let reply = server.send(Method::POST, "/v1/tasks", &body).await;
        let shown = &body[..body.len().min(100)];
        let problem = reply.problem();
        assert_eq!(problem, (status, code.to_owned(), named.to_owned()), "{shown} {}", reply.text);
        assert!(reply.text.len() < 1_000, "a long text is not quoted whole: {}", reply.text);
        assert!(reply.json()["expected"].is_string(), "{}", reply.text);
    }
    // A body that is not UTF-8 is not JSON.
    let request =
        server.request(Method::POST, "/v1/tasks").header("content-type", "application/json");
    let bytes = b"{\"target\":{\"worker\":{}},\"payload\":\"\xff\"}".to_vec();
    let reply = Reply::read(request.body(bytes).send().await.unwrap()).await;
    assert_eq!(reply.problem().0, 400);
    // Keys may have slashes, and payloads may be as deep and large as the bounds.
    server.send(Method::POST, "/v1/tasks", &field("key", "a/../b")).await.expect(201);
    server.send(Method::POST, "/v1/tasks", &payload(&deep(64))).await.expect(201);
    server.send(Method::POST, "/v1/tasks", &payload(r#""\ud83d\ude00""#)).await.expect(201);
}

#[tokio::test]
async fn fields_of_a_task_have_bounds() {
    let server = Server::start().await;
    let http = |fields: Value| json!({"target": {"http": with(json!({"url": "http://a.example/"}), fields)}});
    let tags: Value =
        (0..33).map(|n| (format!("t{n}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    for (task, field) in [
        (json!({}), "target"),
        (json!({"target": {}}), "target"),
        (json!({"target": {"ftp": {}}}), "target.ftp"),
        (json!({"target": {"worker": {"x": 1}}}), "target.worker.x"),
        (json!({"target": {"http": {}}}), "target.http.url"),
        (http(json!({"url": "ftp://a.example/"})), "target.http.url"),
        (http(json!({"url": "/relative"})), "target.http.url"),
        (http(json!({"url": "http://"})), "target.http.url"),
        (http(json!({"url": "http://a.example/\n"})), "target.http.url"),
        (
            http(json!({"url": format!("http://a.example/{}", "x".repeat(9_000))})),
            "target.http.url",
        ),
        (http(json!({"method": "PO ST"})), "target.http.method"),
        (http(json!({"method": ""})), "target.http.method"),
        (http(json!({"method": "CONNECT"})), "target.http.method"),
        (http(json!({"headers": {"a b": "c"}})), "target.http.headers.a b"),
        (http(json!({"headers": {"a": "c\r\nd: e"}})), "target.http.headers.a"),
        (http(json!({"headers": {"Content-Length": "5"}})), "target.http.headers.Content-Length"),
        (http(json!({"headers": {"Idempotency-Key": "5"}})), "target.http.headers.Idempotency-Key"),
        (with(work(), json!({"delay": "101 years"})), "delay"),
        (with(work(), json!({"delay": "40000d"})), "delay"),
        (with(work(), json!({"delay": "1h", "due_at": "2030-01-01T00:00:00Z"})), "due_at"),
        (with(work(), json!({"due_at": "9998-01-01T00:00:00Z"})), "due_at"),
        (with(work(), json!({"due_at": "0000-01-01T00:00:00Z"})), "due_at"),
        (with(work(), json!({"due_at": "2030-13-01T00:00:00Z"})), "due_at"),
        (with(work(), json!({"expires_at": "+999999-01-01T00:00:00Z"})), "expires_at"),
        (with(work(), json!({"priority": 8})), "priority"),
        (with(work(), json!({"priority": -9})), "priority"),
        (with(work(), json!({"priority": 1.5})), "priority"),
        (with(work(), json!({"timeout": "0s"})), "timeout"),
        (with(work(), json!({"timeout": "400d"})), "timeout"),
        (with(work(), json!({"retry": {"max_attempts": 0}})), "retry.max_attempts"),
        (with(work(), json!({"retry": {"max_attempts": 5000}})), "retry.max_attempts"),
        (with(work(), json!({"retry": {"max_lost": 5000}})), "retry.max_lost"),
        (with(work(), json!({"retry": {"give_up_after": "0s"}})), "retry.give_up_after"),
        (
            with(
                work(),
                json!({"retry": {"backoff": {"linear": {"initial": "1s", "step": "2s"}}}}),
            ),
            "retry.backoff.linear.step",
        ),
        (
            with(work(), json!({"at_most_once": true, "retry": {"max_attempts": 2}})),
            "retry.max_attempts",
        ),
        (with(work(), json!({"on_conflict": "overwrite"})), "on_conflict"),
        (with(work(), json!({"on_conflict": "replace"})), "key"),
        (with(work(), json!({"tags": tags})), "tags"),
        (with(work(), json!({"tags": {"a": "x".repeat(300)}})), "tags.a"),
        (with(work(), json!({"tags": {"": "x"}})), "tags."),
        (with(work(), json!({"tags": {"a": 1}})), "tags.a"),
        (with(work(), json!({"id": "no"})), "id"),
    ] {
        let reply = server.post("/v1/tasks", task.clone()).await;
        let (status, _, named) = reply.problem();
        assert_eq!((status, named.as_str()), (422, field), "{task:.200} {}", reply.text);
    }
    // The bounds themselves are within.
    for fields in [
        json!({"delay": "36500d"}),
        json!({"priority": -8, "timeout": "1ms"}),
        json!({"at_most_once": true}),
        json!({"at_most_once": true, "retry": {"max_attempts": 1}}),
        json!({"key": "k".repeat(200), "tags": {"a": "x".repeat(256)}}),
        json!({"retry": {"backoff": {"linear": {"step": "2s"}}}}),
    ] {
        server.post("/v1/tasks", with(work(), fields)).await.expect(201);
    }
}

#[tokio::test]
async fn faults_of_commands() {
    let server = Server::start().await;
    let long: Vec<&str> = vec!["x"; 1_001];
    for (command, field) in [
        (json!({"argv": []}), "target.command.argv"),
        (json!({"argv": [""]}), "target.command.argv"),
        (json!({"argv": ["a", "b\0"]}), "target.command.argv[1]"),
        (json!({"argv": long}), "target.command.argv"),
        (json!({"argv": ["a"], "env": {"A=B": "1"}}), "target.command.env"),
        (json!({"argv": ["a"], "env": {"A": "\0"}}), "target.command.env.A"),
        (json!({"argv": ["a"], "cwd": ""}), "target.command.cwd"),
        (json!({"argv": "a b"}), "target.command.argv"),
    ] {
        let body = json!({"target": {"command": command}}).to_string();
        let request = server.request(Method::POST, "/v1/tasks").bearer_auth(TOKEN);
        let request = request.header("content-type", "application/json").body(body.clone());
        let reply = Reply::read(request.send().await.unwrap()).await;
        let (status, _, named) = reply.problem();
        assert_eq!((status, named.as_str()), (422, field), "{body:.200} {}", reply.text);
    }
}

#[tokio::test]
async fn faults_of_a_batch_name_the_task() {
    let server = Server::start().await;
    for (body, status, code, index, field) in [
        (json!([later(), with(later(), json!({"priority": 9}))]), 422, "invalid", 1, "priority"),
        (json!([later(), {"target": {"worker": {}}, "x": 1}]), 422, "unknown_field", 1, "x"),
        (json!([later(), {"kind": "a"}]), 422, "invalid", 1, "target"),
        (json!([later(), later(), 7]), 422, "invalid", 2, ""),
        (
            json!([with(later(), json!({"key": "k", "on_conflict": "replace"}))]),
            422,
            "invalid",
            0,
            "on_conflict",
        ),
        (
            json!([with(later(), json!({"key": "k"})), with(later(), json!({"key": "k"}))]),
            409,
            "key_taken",
            1,
            "key",
        ),
    ] {
        let reply = server.post("/v1/tasks/batch", body.clone()).await;
        assert_eq!(reply.problem(), (status, code.into(), field.into()), "{body} {}", reply.text);
        assert_eq!(reply.json()["index"], index, "{}", reply.text);
    }
    assert_eq!(server.post("/v1/tasks/batch", json!([])).await.problem().0, 422);
    assert_eq!(server.post("/v1/tasks/batch", json!({})).await.problem().0, 422);
    let many = format!("[{}{}]", "7,".repeat(0), vec![later().to_string(); 10_001].join(","));
    let reply = server.send(Method::POST, "/v1/tasks/batch", &many).await;
    assert_eq!(reply.problem(), (413, "too_large".into(), String::new()));
    assert_eq!(server.get("/v1/stats").await.json()["counts"]["scheduled"], 0);
    let reply = server.send(Method::POST, "/v1/tasks/batch", "[{\"target\":").await;
    assert_eq!(reply.problem().0, 400);
}

#[tokio::test]
async fn bodies_and_their_types() {
    let server = Server::start().await;
    let call = async |media: Option<&str>, path: &str, body: String| {
        let mut request = server.request(Method::POST, path).body(body);
        if let Some(media) = media {
            request = request.header("content-type", media);
        }
        Reply::read(request.send().await.unwrap()).await
    };
    let task = later().to_string();
    for media in ["application/json", "application/json; charset=utf-8", "Application/JSON"] {
        call(Some(media), "/v1/tasks", task.clone()).await.expect(201);
    }
    for media in [
        None,
        Some("text/plain"),
        Some("application/x-ndjson"),
        Some("application/x-www-form-urlencoded"),
    ] {
        let reply = call(media, "/v1/tasks", task.clone()).await;
        assert_eq!(reply.problem().1, "wrong_type", "{media:?}");
        assert_eq!(reply.status, 415);
    }
    assert_eq!(call(Some("text/plain"), "/v1/tasks/batch", format!("[{task}]")).await.status, 415);
    let json = Some("application/json");
    let huge = " ".repeat((16 << 20) + 1);
    let reply = call(json, "/v1/tasks", huge).await;
    assert_eq!(reply.problem(), (413, "too_large".into(), String::new()));
    for (body, word) in [
        ("", "column"),
        ("{", "column"),
        ("{\"target\"\n: x}", "line 2 column"),
        ("[1] 2", "column"),
    ] {
        let reply = call(json, "/v1/tasks", body.to_owned()).await;
        assert!(matches!(reply.status, 400 | 422), "{body} {}", reply.text);
        assert!(reply.json()["detail"].as_str().unwrap().contains(word), "{body} {}", reply.text);
    }
}

#[tokio::test]
async fn paths_methods_and_queries() {
    let server = Server::start().await;
    for (method, path, expected) in [
        (Method::GET, "/v1/nothing", (404, "not_found")),
        (Method::GET, "/v1/tasks/", (404, "not_found")),
        (Method::PUT, "/v1/tasks", (405, "method_not_allowed")),
        (Method::DELETE, "/healthz", (405, "method_not_allowed")),
        (Method::GET, "/v1/tasks?stat=failed", (422, "unknown_field")),
        (Method::GET, "/v1/tasks?limit=0", (422, "invalid")),
        (Method::GET, "/v1/tasks?limit=1001", (422, "invalid")),
        (Method::GET, "/v1/tasks?limit=x", (400, "invalid")),
        (Method::GET, "/v1/tasks?state=asleep", (400, "invalid")),
        (Method::GET, "/v1/tasks?cursor=AAAA", (422, "invalid")),
        (Method::GET, "/v1/tasks?due_before=2030-01-01T00:00:00Z", (422, "invalid")),
        (Method::GET, "/v1/tasks?due_before=soon", (400, "invalid")),
        (Method::GET, "/v1/tasks?namespace=a&namespace=b", (400, "invalid")),
        (Method::GET, "/v1/queues/%ff", (400, "malformed")),
        (Method::GET, "/v1/stats?span=1s", (422, "invalid")),
        (Method::GET, "/v1/stats/series?from=2020-01-01T00:00:00Z", (422, "invalid")),
    ] {
        let reply = Reply::read(server.request(method.clone(), path).send().await.unwrap()).await;
        let (status, code, _) = reply.problem();
        assert_eq!((status, code.as_str()), expected, "{method} {path} {}", reply.text);
    }
}

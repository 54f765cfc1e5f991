//! Who may come in: hosts, origins, tokens, over real connections.

use reqwest::Method;
use serde_json::json;
use tourbillon_server::{ServeOptions, router};

use crate::common::{Reply, Server, TOKEN, later, with};

fn command() -> serde_json::Value {
    json!({"target": {"command": {"argv": ["true"]}}, "delay": "1h"})
}

#[tokio::test]
async fn commands_need_the_token_everywhere() {
    let server = Server::start().await;
    let schedule = json!({"every": "1h", "task": {"target": {"command": {"argv": ["true"]}}}});
    let id = server.create(later()).await;
    for (method, path, body) in [
        (Method::POST, "/v1/tasks".to_owned(), command()),
        (Method::POST, "/v1/tasks/batch".to_owned(), json!([later(), command()])),
        (Method::PUT, "/v1/schedules/s".to_owned(), schedule),
        (Method::PATCH, format!("/v1/tasks/{id}"), json!({"target": command()["target"]})),
    ] {
        let reply = server.send(method.clone(), &path, &body.to_string()).await;
        assert_eq!(reply.problem().0, 401, "{path}");
        assert_eq!(reply.header("www-authenticate"), "Bearer");
        let shown = server.request(method, &path).bearer_auth(TOKEN);
        let shown = shown.header("content-type", "application/json").body(body.to_string());
        let reply = Reply::read(shown.send().await.unwrap()).await;
        assert!(matches!(reply.status, 200 | 201), "{path} {}", reply.text);
    }
    let wrong = server.request(Method::GET, "/v1/stats").bearer_auth("wrong");
    assert_eq!(Reply::read(wrong.send().await.unwrap()).await.problem().0, 401);
}

#[tokio::test]
async fn without_a_token_nobody_runs_commands() {
    let server = Server::with(ServeOptions::default()).await;
    server.create(later()).await;
    assert_eq!(server.post("/v1/tasks", command()).await.problem().0, 401);
    let shown = server.request(Method::POST, "/v1/tasks").bearer_auth("");
    let shown = shown.header("content-type", "application/json").body(command().to_string());
    assert_eq!(Reply::read(shown.send().await.unwrap()).await.status, 401);
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let options =
        ServeOptions { allow_hosts: vec!["tasks.example".into()], ..ServeOptions::default() };
    let server = Server::with(options).await;
    let call = async |name: &str, value: &str, path: &str| {
        let request = server.request(Method::POST, path).header(name, value);
        let request = request.header("content-type", "application/json").body(later().to_string());
        Reply::read(request.send().await.unwrap()).await
    };
    for (name, value, expected) in [
        ("host", "evil.example", (403, "host_not_allowed")),
        ("host", "127.0.0.1.evil.example", (403, "host_not_allowed")),
        ("origin", "https://evil.example", (403, "origin_not_allowed")),
        ("origin", "null", (403, "origin_not_allowed")),
        ("sec-fetch-site", "cross-site", (403, "origin_not_allowed")),
    ] {
        let reply = call(name, value, "/v1/tasks").await;
        let (status, code, _) = reply.problem();
        assert_eq!((status, code.as_str()), expected, "{name}: {value}");
    }
    call("host", "tasks.example", "/v1/tasks").await.expect(201);
    call("host", "localhost:1", "/v1/tasks").await.expect(201);
    call("origin", &format!("http://{}", server.address), "/v1/tasks").await.expect(201);
    // A form needs nobody's permission to be sent, so one that is silent about its page is refused.
    let request = server.request(Method::POST, "/queues/default/pause");
    let request = request.header("content-type", "application/x-www-form-urlencoded").body("");
    assert_eq!(Reply::read(request.send().await.unwrap()).await.problem().0, 403);
}

/// Everything but the health checks needs the token when other machines can call.
#[tokio::test]
async fn beyond_loopback_everything_needs_the_token() {
    let server = Server::start().await;
    let options = ServeOptions {
        listen: "0.0.0.0:0".parse().unwrap(),
        token: Some(TOKEN.to_owned()),
        ..ServeOptions::default()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = router(server.node.clone(), options.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let client = crate::common::client();
    let get = async |path: &str, token: Option<&str>, accept: &str| {
        let mut request = client.get(format!("http://{address}{path}")).header("accept", accept);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        Reply::read(request.send().await.unwrap()).await
    };
    for path in ["/v1/tasks", "/v1/stats", "/metrics", "/openapi.json", "/v1/events", "/"] {
        assert_eq!(get(path, None, "*/*").await.problem().0, 401, "{path}");
        assert_eq!(get(path, Some("wrong"), "*/*").await.problem().0, 401, "{path}");
    }
    for path in ["/v1/tasks", "/v1/stats", "/metrics", "/openapi.json", "/"] {
        get(path, Some(TOKEN), "*/*").await.expect(200);
    }
    for path in ["/healthz", "/readyz", "/login", "/assets/console.css"] {
        get(path, None, "*/*").await.expect(200);
    }
    // A browser is shown the way.
    let reply = get("/tasks?state=failed", None, "text/html").await.expect(303);
    assert_eq!(reply.header("location"), "/login?next=%2Ftasks%3Fstate%3Dfailed");
    // And such a server does not start without a token.
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let refused = tourbillon_server::serve(
        listener,
        server.node.clone(),
        ServeOptions { token: None, ..options },
        std::future::pending(),
    )
    .await;
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn signing_in_keeps_the_token_in_a_cookie() {
    let server = Server::start().await;
    let wrong = server.form("/login", &[("token", "nonsense"), ("next", "/tasks")]).await;
    assert_eq!(wrong.status, 401);
    assert!(wrong.header("set-cookie").is_empty());
    let right = server.form("/login", &[("token", TOKEN), ("next", "/tasks")]).await.expect(303);
    assert_eq!(right.header("location"), "/tasks");
    let cookie = right.header("set-cookie").to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let pair = cookie.split(';').next().unwrap();
    let request = server.request(Method::POST, "/v1/tasks").header("cookie", pair);
    let request = request.header("content-type", "application/json").body(command().to_string());
    Reply::read(request.send().await.unwrap()).await.expect(201);
    let elsewhere = [("token", TOKEN), ("next", "//evil.example")];
    let reply = server.form("/login", &elsewhere).await.expect(303);
    assert_eq!(reply.header("location"), "/");
    let gone = server.form("/logout", &[]).await.expect(303);
    assert!(gone.header("set-cookie").contains("Max-Age=0"));
}

#[tokio::test]
async fn a_command_runs_with_the_token() {
    let server = Server::start().await;
    let task = with(
        command(),
        json!({"delay": "0s", "target": {"command": {
        "argv": ["sh", "-c", "echo out; cat; echo $X >&2"], "env": {"X": "err"}, "stdin": "in\n"}}}),
    );
    let request = server.request(Method::POST, "/v1/tasks").bearer_auth(TOKEN);
    let request = request.header("content-type", "application/json").body(task.to_string());
    let reply = Reply::read(request.send().await.unwrap()).await.expect(201).json();
    let task = server.when(reply["id"].as_str().unwrap(), "succeeded").await;
    let attempt = &task["attempts"][0];
    assert_eq!(attempt["exit_code"], 0);
    let output = server.get(attempt["output"]["url"].as_str().unwrap()).await.expect(200);
    let mut lines: Vec<&str> = output.text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["err", "in", "out"]);
}

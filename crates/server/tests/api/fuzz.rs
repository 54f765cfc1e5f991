//! Whatever is sent, the server answers, and never with a fault of its own.

use std::sync::OnceLock;

use proptest::prelude::*;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::common::Server;

const PATHS: [(&str, &str); 12] = [
    ("POST", "/v1/tasks"),
    ("POST", "/v1/tasks/batch"),
    ("POST", "/v1/tasks/cancel"),
    ("POST", "/v1/tasks/retry"),
    ("PUT", "/v1/queues/q"),
    ("PUT", "/v1/schedules/s"),
    ("POST", "/v1/schedules/preview"),
    ("POST", "/v1/queues/q/claim"),
    ("POST", "/v1/attempts/complete"),
    ("POST", "/v1/attempts/heartbeat"),
    ("PATCH", "/v1/tasks/018f2f6e-1111-7000-8000-0000000000aa"),
    ("POST", "/v1/prune"),
];

const FIELDS: [&str; 34] = [
    "id",
    "namespace",
    "queue",
    "kind",
    "key",
    "target",
    "payload",
    "delay",
    "due_at",
    "priority",
    "timeout",
    "expires_at",
    "at_most_once",
    "retry",
    "on_conflict",
    "concurrency_key",
    "tags",
    "http",
    "command",
    "worker",
    "url",
    "argv",
    "max_attempts",
    "backoff",
    "exponential",
    "filter",
    "cron",
    "every",
    "task",
    "tz",
    "schedule",
    "token",
    "outcome",
    "max",
];

fn shared() -> &'static (Runtime, Server) {
    static SHARED: OnceLock<(Runtime, Server)> = OnceLock::new();
    SHARED.get_or_init(|| {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(Server::start());
        (runtime, server)
    })
}

/// Values of the kinds that documents have, and of kinds they do not.
fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "1h",
            "0s",
            "P1D",
            "99999999w",
            "2026-12-01T09:00:00Z",
            "+999999-01-01T00:00:00Z",
            "0000-00-00T00:00:00Z",
            "* * * * *",
            "@every 1ms",
            "0 0 30 2 *",
            "quartz",
            "UTC",
            "Europe/Berlin",
            "replace",
            "keep",
            "succeeded",
            "00-1-1-0000000000000001",
            "http://127.0.0.1:1/",
            "https://[::1",
            "018f2f6e-1111-7000-8000-0000000000aa",
            "..",
            "a/b",
        ])
        .prop_map(Value::from),
    ]
}

fn document() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(FIELDS.to_vec()).prop_map(str::to_owned);
    leaf().prop_recursive(4, 24, 6, move |inner| {
        prop_oneof![
            3 => prop::collection::hash_map(name.clone(), inner.clone(), 0..6)
                .prop_map(|m| m.into_iter().collect::<serde_json::Map<_, _>>().into()),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
        ]
    })
}

/// A task, a schedule or a claim that is right but for one field.
fn nearly_right() -> impl Strategy<Value = Value> {
    let base = prop::sample::select(vec![
        json!({"target": {"worker": {}}, "delay": "1h"}),
        json!({"target": {"http": {"url": "http://127.0.0.1:1/"}}, "delay": "1h"}),
        json!({"every": "1h", "task": {"target": {"worker": {}}}}),
        json!({"schedule": {"cron": "*/5 * * * *", "task": {"target": {"worker": {}}}}}),
        json!({"filter": {"queue": "q"}, "dry_run": true}),
        json!({"max": 3}),
    ]);
    let name = prop::sample::select(FIELDS.to_vec());
    (base, name, document()).prop_map(|(mut base, name, value)| {
        base[name] = value;
        base
    })
}

fn call(method: &str, path: &str, media: &str, body: Vec<u8>) -> Result<(), TestCaseError> {
    let (runtime, server) = shared();
    let method: Method = method.parse().unwrap();
    let request = server.request(method, path).header("content-type", media).body(body.clone());
    let status = runtime.block_on(async { request.send().await.unwrap().status().as_u16() });
    let shown = String::from_utf8_lossy(&body).into_owned();
    prop_assert!((200..500).contains(&status), "{path} answers {status} to {shown}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn documents(
        (method, path) in prop::sample::select(PATHS.to_vec()),
        body in prop_oneof![document(), nearly_right()],
        wrapped in any::<bool>(),
    ) {
        let body = if wrapped { json!([body]) } else { body };
        call(method, path, "application/json", body.to_string().into_bytes())?;
    }

    #[test]
    fn bytes(
        (method, path) in prop::sample::select(PATHS.to_vec()),
        media in prop::sample::select(vec!["application/json", "application/x-ndjson", "x", "text/html"]),
        body in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        call(method, path, media, body)?;
    }

    #[test]
    fn queries(
        path in prop::sample::select(vec![
            "/v1/tasks", "/v1/schedules", "/v1/queues", "/v1/stats", "/v1/stats/series",
            "/v1/schedules/s/preview", "/tasks", "/schedules", "/analysis", "/",
        ]),
        name in prop::sample::select(vec![
            "state", "cursor", "limit", "due_after", "due_before", "namespace", "queue", "from", "to",
            "step", "span", "n", "after", "hours", "find", "key",
        ]),
        value in prop_oneof![
            "[a-zA-Z0-9%_.:+-]{0,20}",
            Just("2026-12-01T09:00:00Z".to_owned()),
            Just("1h".to_owned()),
            Just("-1".to_owned()),
        ],
    ) {
        call("GET", &format!("{path}?{name}={value}"), "x", Vec::new())?;
    }
}

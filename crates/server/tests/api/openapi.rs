//! The description of the API: complete, and sound in its structure.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::Value;

use crate::common::{Reply, Server};

/// Every call of the API, as its users know it.
const CALLS: &[&str] = &[
    "post /v1/tasks",
    "get /v1/tasks",
    "post /v1/tasks/batch",
    "get /v1/tasks/{id}",
    "patch /v1/tasks/{id}",
    "delete /v1/tasks/{id}",
    "post /v1/tasks/{id}/run",
    "post /v1/tasks/{id}/retry",
    "get /v1/tasks/{id}/attempts/{n}/output",
    "post /v1/tasks/cancel",
    "post /v1/tasks/retry",
    "get /v1/schedules",
    "put /v1/schedules/{name}",
    "get /v1/schedules/{name}",
    "delete /v1/schedules/{name}",
    "post /v1/schedules/{name}/pause",
    "post /v1/schedules/{name}/resume",
    "post /v1/schedules/{name}/trigger",
    "post /v1/schedules/{name}/backfill",
    "delete /v1/schedules/{name}/backfills/{id}",
    "get /v1/schedules/{name}/preview",
    "post /v1/schedules/preview",
    "get /v1/calendars",
    "put /v1/calendars/{name}",
    "get /v1/calendars/{name}",
    "delete /v1/calendars/{name}",
    "get /v1/queues",
    "get /v1/queues/{name}",
    "put /v1/queues/{name}",
    "post /v1/queues/{name}/pause",
    "post /v1/queues/{name}/resume",
    "post /v1/queues/{name}/purge",
    "post /v1/queues/{name}/claim",
    "post /v1/attempts/complete",
    "post /v1/attempts/heartbeat",
    "get /v1/events",
    "get /v1/stats",
    "get /v1/stats/series",
    "get /v1/wheel",
    "get /v1/nodes",
    "get /v1/workers",
    "post /v1/prune",
    "get /healthz",
    "get /readyz",
    "get /metrics",
    "get /openapi.json",
];

#[tokio::test]
async fn every_call_is_described_and_answers() {
    let server = Server::start().await;
    let reply = server.get("/openapi.json").await.expect(200);
    assert_eq!(reply.header("content-type"), "application/json");
    let document = reply.json();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            described.insert(format!("{method} {path}"));
        }
    }
    assert_eq!(described, CALLS.iter().map(|c| (*c).to_owned()).collect());
    for call in CALLS.iter().filter(|c| **c != "get /v1/events") {
        let (method, path) = call.split_once(' ').unwrap();
        let path = path
            .replace("{id}", "018f2f6e-1111-7000-8000-0000000000aa")
            .replace("{n}", "1")
            .replace("{name}", "x");
        let method: Method = method.to_uppercase().parse().unwrap();
        let reply = Reply::read(server.request(method, &path).send().await.unwrap()).await;
        assert_ne!(reply.status, 405, "{call}");
        // A path that is not there says so in these words.
        assert!(!reply.text.contains("there is no such path"), "{call} {}", reply.text);
        assert!(reply.status < 500, "{call} {}", reply.text);
    }
}

#[tokio::test]
async fn the_description_is_sound() {
    let server = Server::start().await;
    let document = server.get("/openapi.json").await.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{}", document["openapi"]);
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let mut ids = BTreeSet::new();
    let mut references = Vec::new();
    collect(&document, &mut references);
    for reference in &references {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference}"));
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    assert!(references.iter().any(|r| r.ends_with("/NewTask")));
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, call) in item.as_object().unwrap() {
            let what = format!("{method} {path}");
            assert!(ids.insert(call["operationId"].as_str().unwrap()), "{what}: its id is taken");
            assert!(call["summary"].is_string(), "{what} has no summary");
            let responses = call["responses"].as_object().unwrap();
            assert!(responses.keys().any(|s| s.starts_with('2')), "{what}");
            let named: BTreeSet<&str> =
                path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}')).collect();
            let empty = Vec::new();
            let parameters = call["parameters"].as_array().unwrap_or(&empty);
            let of = |place: &str| -> BTreeSet<&str> {
                let here = parameters.iter().filter(|p| p["in"] == place);
                here.map(|p| p["name"].as_str().unwrap()).collect()
            };
            assert_eq!(of("path"), named, "{what}");
            if path.starts_with("/v1") {
                assert!(of("query").contains("namespace"), "{what} takes no namespace");
                assert!(responses.contains_key("default"), "{what} tells no errors");
            }
            for response in responses.values() {
                assert!(response["description"].is_string(), "{what}");
            }
        }
    }
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "$ref" => references.push(text.clone()),
                    other => collect(other, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

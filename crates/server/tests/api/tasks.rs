//! Tasks: create, show, list, change, cancel, try again, one by one and many.

use serde_json::{Value, json};

use crate::common::{Server, later, until, with, work};

const ID: &str = "018f2f6e-1111-7000-8000-0000000000aa";

#[tokio::test]
async fn a_task_is_created_and_shown() {
    let server = Server::start().await;
    let given = json!({
        "queue": "orders", "kind": "close-order", "key": "order-42", "delay": "30m",
        "target": {"http": {"url": "https://example.com/close", "headers": {"X-A": "1"}}},
        "payload": "PAYLOAD", "priority": 3, "timeout": "90s",
        "retry": {"max_attempts": 7, "backoff": {"fixed": {"delay": "5s"}}},
        "tags": {"order": "42"}, "concurrency_key": "c",
    });
    let given = given.to_string().replace(r#""PAYLOAD""#, r#"{"b": 1, "a": [1.50]}"#);
    let created = server.send(reqwest::Method::POST, "/v1/tasks", &given).await.expect(201).json();
    let id = created["id"].as_str().unwrap();
    assert_eq!(created["state"], "scheduled");
    let shown = server.get(&format!("/v1/tasks/{id}")).await.expect(200);
    // The payload's text stays what it was.
    assert!(shown.text.contains(r#""payload":{"b": 1, "a": [1.50]}"#), "{}", shown.text);
    let shown = shown.json();
    for (field, value) in [
        ("queue", json!("orders")),
        ("kind", json!("close-order")),
        ("key", json!("order-42")),
        ("namespace", json!("default")),
        ("priority", json!(3)),
        ("timeout", json!("1m30s")),
        ("tags", json!({"order": "42"})),
        ("concurrency_key", json!("c")),
        ("attempt", json!(0)),
        ("due_at", created["due_at"].clone()),
        ("created_at", created["created_at"].clone()),
    ] {
        assert_eq!(shown[field], value, "{field}");
    }
    assert_eq!(shown["target"]["http"]["method"], "POST");
    assert_eq!(shown["retry"]["max_attempts"], 7);
    assert_eq!(shown["retry"]["backoff"]["fixed"]["delay"], "5s");
}

#[tokio::test]
async fn what_is_due_now_or_in_the_past_is_ready_at_once() {
    let server = Server::start().await;
    for fields in [json!({}), json!({"due_at": "2001-01-01T00:00:00Z"}), json!({"delay": "0s"})] {
        let id = server.create(with(work(), fields)).await;
        let task = server.when(&id, "ready").await;
        // The past means now: nothing is late from the start.
        assert_eq!(
            task["due_at"].as_str().unwrap()[..4],
            task["created_at"].as_str().unwrap()[..4]
        );
        assert!(task["ready_at"].is_string());
    }
}

#[tokio::test]
async fn the_same_id_and_body_again_is_the_same_task() {
    let server = Server::start().await;
    let task = with(later(), json!({"id": ID, "payload": {"a": 1}}));
    let first = server.post("/v1/tasks", task.clone()).await.expect(201).json();
    let again = server.post("/v1/tasks", task.clone()).await.expect(200).json();
    assert_eq!(first["id"], again["id"]);
    assert_eq!(first["due_at"], again["due_at"]);
    assert_eq!(first["created_at"], again["created_at"]);
    let other = with(task, json!({"priority": 1}));
    let reply = server.post("/v1/tasks", other).await;
    assert_eq!(reply.problem(), (409, "id_reused".into(), "id".into()));
}

#[tokio::test]
async fn a_taken_key_is_refused_kept_or_replaced() {
    let server = Server::start().await;
    let task = with(later(), json!({"key": "k"}));
    let first = server.create(task.clone()).await;
    let reply = server.post("/v1/tasks", task.clone()).await;
    assert_eq!(reply.problem(), (409, "key_taken".into(), "key".into()));
    assert_eq!(reply.json()["existing"], first.as_str());
    let kept = with(task.clone(), json!({"on_conflict": "keep"}));
    assert_eq!(server.post("/v1/tasks", kept).await.expect(200).json()["id"], first.as_str());
    let replaced = with(task.clone(), json!({"on_conflict": "replace"}));
    let second = server.create(replaced.clone()).await;
    assert_ne!(first, second);
    server.when(&first, "cancelled").await;
    // Another queue is another place for the same key.
    server.create(with(task.clone(), json!({"queue": "q2"}))).await;
    // A task that runs is not replaced.
    let busy = with(work(), json!({"key": "busy", "queue": "b"}));
    server.create(busy.clone()).await;
    server.claim("b").await;
    let reply = server.post("/v1/tasks", with(busy, json!({"on_conflict": "replace"}))).await;
    assert_eq!(reply.problem().0, 409);
    // A replacement keeps the concurrency key.
    let reply = server.post("/v1/tasks", with(replaced, json!({"concurrency_key": "x"}))).await;
    assert_eq!(reply.problem(), (422, "invalid".into(), "concurrency_key".into()));
}

#[tokio::test]
async fn a_batch_is_all_or_none() {
    let server = Server::start().await;
    let tasks: Vec<Value> =
        (0..1_000).map(|n| with(later(), json!({"key": format!("k{n}")}))).collect();
    let reply = server.post("/v1/tasks/batch", json!(tasks)).await.expect(201).json();
    let ids = reply["ids"].as_array().unwrap();
    assert_eq!(ids.len(), 1_000);
    let seventh = server.get(&format!("/v1/tasks/{}", ids[7].as_str().unwrap())).await.json();
    assert_eq!(seventh["key"], "k7");

    let clash = json!([later(), with(later(), json!({"key": "k5", "queue": "default"}))]);
    let reply = server.post("/v1/tasks/batch", clash).await;
    assert_eq!(reply.problem(), (409, "key_taken".into(), "key".into()));
    assert_eq!(reply.json()["index"], 1);
    assert_eq!(reply.json()["existing"], ids[5]);
    assert_eq!(server.get("/v1/queues/default").await.json()["counts"]["scheduled"], 1_000);

    let keep = json!([with(later(), json!({"key": "k5", "on_conflict": "keep"}))]);
    let reply = server.post("/v1/tasks/batch", keep).await.expect(201).json();
    assert_eq!(reply["ids"], json!([ids[5]]));

    let lines = format!("{}\n\n{}\n", later(), later());
    let request = server.request(reqwest::Method::POST, "/v1/tasks/batch");
    let request = request.header("content-type", "application/x-ndjson").body(lines);
    let reply = crate::common::Reply::read(request.send().await.unwrap()).await.expect(201);
    assert_eq!(reply.json()["ids"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn lists_go_by_pages_newest_first() {
    let server = Server::start().await;
    let mut created = Vec::new();
    for n in 0..7 {
        let queue = if n % 2 == 0 { "even" } else { "odd" };
        created.push(server.create(with(later(), json!({"queue": queue, "kind": queue}))).await);
    }
    created.reverse();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("/v1/tasks?limit=3{cursor}")).await.expect(200).json();
        for item in page["items"].as_array().unwrap() {
            seen.push(item["id"].as_str().unwrap().to_owned());
            assert!(item.get("payload").is_none());
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, created);
    let count = async |query: &str| {
        server.get(&format!("/v1/tasks?{query}")).await.expect(200).json()["items"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(count("queue=even").await, 4);
    assert_eq!(count("queue=odd&state=scheduled").await, 3);
    assert_eq!(count("kind=odd").await, 3);
    assert_eq!(count("queue=nowhere").await, 0);
    assert_eq!(count("state=ready").await, 0);
    assert_eq!(count("state=failed").await, 0);
    assert_eq!(count("namespace=elsewhere").await, 0);
    assert_eq!(count("schedule=none").await, 0);
    assert_eq!(count("state=scheduled&due_before=2200-01-01T00:00:00Z").await, 7);
    assert_eq!(count("state=scheduled&due_after=2200-01-01T00:00:00Z").await, 0);
    let due = server.create(with(work(), json!({"key": "k"}))).await;
    server.when(&due, "ready").await;
    assert_eq!(count("state=ready").await, 1);
    assert_eq!(count("key=k&queue=default").await, 1);
}

#[tokio::test]
async fn a_task_is_changed_before_its_start() {
    let server = Server::start().await;
    let id = server.create(with(later(), json!({"payload": 1}))).await;
    let path = format!("/v1/tasks/{id}");
    let before = server.get(&path).await.json();
    let change = json!({"payload": null, "priority": -8, "timeout": "5s", "tags": {"a": "b"},
        "due_at": "2100-01-01T00:00:00Z", "kind": "other"});
    let after = server.patch(&path, change).await.expect(200).json();
    assert_eq!(after["payload"], Value::Null);
    assert!(after.as_object().unwrap().contains_key("payload"));
    assert_eq!(after["priority"], -8);
    assert_eq!(after["due_at"], "2100-01-01T00:00:00Z");
    assert_eq!(after["kind"], "other");
    let stale = json!({"version": before["version"], "priority": 1});
    let reply = server.patch(&path, stale).await;
    assert_eq!(reply.problem(), (409, "version_conflict".into(), "version".into()));
    let fresh = json!({"version": after["version"], "timeout": null});
    let reply = server.patch(&path, fresh).await.expect(200).json();
    assert!(reply.get("timeout").is_none());
    assert_eq!(server.patch(&path, json!({})).await.problem().0, 422);
    assert_eq!(server.patch(&path, json!({"key": "x"})).await.problem().1, "unknown_field");
    let reply = server.patch(&path, json!({"delay": "1s", "due_at": "2100-01-01T00:00:00Z"})).await;
    assert_eq!(reply.problem(), (422, "invalid".into(), "due_at".into()));

    let running = server.create(with(work(), json!({"queue": "w"}))).await;
    server.claim("w").await;
    let reply = server.patch(&format!("/v1/tasks/{running}"), json!({"priority": 1})).await;
    assert_eq!(reply.problem().0, 409);
    let none = server.patch(&format!("/v1/tasks/{ID}"), json!({"priority": 1})).await;
    assert_eq!(none.problem(), (404, "not_found".into(), String::new()));
}

#[tokio::test]
async fn cancelling_says_how_far_it_is() {
    let server = Server::start().await;
    let id = server.create(later()).await;
    let reply = server.delete(&format!("/v1/tasks/{id}")).await.expect(200).json();
    assert_eq!(reply, json!({"id": id, "state": "cancelled"}));
    let reply = server.delete(&format!("/v1/tasks/{id}")).await;
    assert_eq!(reply.problem().1, "task_final");

    let id = server.create(with(work(), json!({"queue": "w"}))).await;
    let claimed = server.claim("w").await;
    let reply = server.delete(&format!("/v1/tasks/{id}")).await.expect(202).json();
    assert_eq!(reply["state"], "cancelling");
    let beat = json!([{"token": claimed["token"]}]);
    let reply = server.post("/v1/attempts/heartbeat", beat).await.expect(200).json();
    assert_eq!(reply[0]["status"], "cancelled");
    let done = json!([{"token": claimed["token"], "outcome": "failed"}]);
    server.post("/v1/attempts/complete", done).await.expect(200);
    let task = server.when(&id, "cancelled").await;
    assert_eq!(task["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(server.delete(&format!("/v1/tasks/{ID}")).await.problem().0, 404);
    assert_eq!(server.delete("/v1/tasks/no-uuid").await.problem().0, 404);
}

#[tokio::test]
async fn running_now_and_trying_again() {
    let server = Server::start().await;
    let once = json!({"retry": {"max_attempts": 1}, "queue": "w"});
    let id = server.create(with(later(), once)).await;
    server.act(&format!("/v1/tasks/{id}/run")).await.expect(200);
    let claimed = server.claim("w").await;
    assert_eq!(claimed["id"], id.as_str());
    let reply = server.act(&format!("/v1/tasks/{id}/retry")).await;
    assert_eq!(reply.problem().1, "task_not_final");
    let reply = server.act(&format!("/v1/tasks/{id}/run")).await;
    assert_eq!(reply.problem().1, "task_running");
    let done = json!([{"token": claimed["token"], "outcome": "failed", "error": "no luck"}]);
    server.post("/v1/attempts/complete", done).await.expect(200);
    let task = server.when(&id, "failed").await;
    assert_eq!(task["attempts"][0]["error"], "no luck");
    assert_eq!(task["attempts"][0]["worker"], "w");
    server.act(&format!("/v1/tasks/{id}/retry")).await.expect(200);
    assert_eq!(server.claim("w").await["attempt"], 2);
    assert_eq!(server.act(&format!("/v1/tasks/{ID}/retry")).await.problem().0, 404);
}

#[tokio::test]
async fn many_are_cancelled_and_tried_again_by_filter() {
    let server = Server::start().await;
    for n in 0..5 {
        server.create(with(later(), json!({"queue": format!("q{}", n % 2)}))).await;
    }
    let filter = json!({"filter": {"queue": "q0"}, "dry_run": true});
    let reply = server.post("/v1/tasks/cancel", filter).await.expect(200).json();
    assert_eq!((&reply["matched"], &reply["changed"]), (&json!(3), &json!(0)));
    let filter = json!({"filter": {"queue": "q0"}});
    let reply = server.post("/v1/tasks/cancel", filter.clone()).await.expect(200).json();
    assert_eq!((&reply["matched"], &reply["changed"]), (&json!(3), &json!(3)));
    assert_eq!(server.post("/v1/tasks/cancel", filter).await.json()["matched"], 0);
    // Without a state only failures are tried again.
    let again = json!({"filter": {"queue": "q0"}});
    assert_eq!(server.post("/v1/tasks/retry", again).await.json()["matched"], 0);
    let again = json!({"filter": {"queue": "q0", "state": "cancelled"}});
    assert_eq!(server.post("/v1/tasks/retry", again).await.json()["changed"], 3);

    let page = server.get("/v1/tasks?queue=q1").await.json();
    let ids: Vec<&Value> = page["items"].as_array().unwrap().iter().map(|t| &t["id"]).collect();
    let reply = server.post("/v1/tasks/cancel", json!({"filter": {"ids": ids}})).await.json();
    assert_eq!(reply["changed"], 2);
    let reply = server.post("/v1/tasks/cancel", json!({"filter": {"ids": ids}})).await.json();
    assert_eq!(reply["refused"], 2);
    for (path, filter, field) in [
        ("cancel", json!({}), "filter"),
        ("cancel", json!({"state": "failed"}), "filter.state"),
        ("retry", json!({"state": "running"}), "filter.state"),
        ("retry", json!({"due_before": "2030-01-01T00:00:00Z"}), "filter.due_before"),
        ("cancel", json!({"ids": ids, "queue": "q1"}), "filter.ids"),
        ("cancel", json!({"queu": "x"}), "filter.queu"),
    ] {
        let reply = server.post(&format!("/v1/tasks/{path}"), json!({"filter": filter})).await;
        let (status, _, named) = reply.problem();
        assert_eq!((status, named.as_str()), (422, field), "{}", reply.text);
    }
}

#[tokio::test]
async fn namespaces_are_worlds_of_their_own() {
    let server = Server::start().await;
    let task = with(later(), json!({"key": "k"}));
    let here = server.create(task.clone()).await;
    let there = server.post("/v1/tasks?namespace=other", task.clone()).await.expect(201).json();
    assert_eq!(there["namespace"], "other");
    let id = there["id"].as_str().unwrap();
    server.get(&format!("/v1/tasks/{id}")).await.expect(404);
    server.get(&format!("/v1/tasks/{id}?namespace=other")).await.expect(200);
    server.get(&format!("/v1/tasks/{here}?namespace=other")).await.expect(404);
    let named = with(task.clone(), json!({"namespace": "third"}));
    assert_eq!(
        server.post("/v1/tasks", named.clone()).await.expect(201).json()["namespace"],
        "third"
    );
    let reply = server.post("/v1/tasks?namespace=other", named).await;
    assert_eq!(reply.problem(), (422, "invalid".into(), "namespace".into()));
    assert_eq!(server.get("/v1/tasks?namespace=a/b").await.problem().0, 422);
    // The creation with an existing key names the namespace of its body.
    let keep = with(task, json!({"namespace": "third", "on_conflict": "keep"}));
    server.post("/v1/tasks", keep).await.expect(200);
}

#[tokio::test]
async fn what_an_http_target_answers_is_kept() {
    let server = Server::start().await;
    // The server's own paths are targets as good as any.
    let url = |path: &str| format!("http://{}{path}", server.address);
    let get = |path: &str| json!({"target": {"http": {"method": "get", "url": url(path)}}});
    let id = server.create(get("/healthz")).await;
    let task = server.when(&id, "succeeded").await;
    let attempt = &task["attempts"][0];
    assert_eq!((&attempt["http_status"], &attempt["n"]), (&json!(200), &json!(1)));
    assert_eq!(task["target"]["http"]["method"], "GET");
    let output = server.get(attempt["output"]["url"].as_str().unwrap()).await.expect(200);
    assert_eq!(output.text, "ok\n");
    assert_eq!(output.header("tourbillon-output-bytes"), "3");
    let part = server.get(&format!("/v1/tasks/{id}/attempts/1/output?from=1")).await.expect(200);
    assert_eq!((part.text.as_str(), part.header("tourbillon-output-from")), ("k\n", "1"));
    assert_eq!(server.get(&format!("/v1/tasks/{id}/attempts/2/output")).await.problem().0, 404);
    assert_eq!(server.get(&format!("/v1/tasks/{id}/attempts/x/output")).await.problem().0, 404);

    let once = json!({"retry": {"max_attempts": 1}});
    let id = server.create(with(get("/v1/tasks/none"), once)).await;
    let task = server.when(&id, "failed").await;
    assert_eq!(task["attempts"][0]["http_status"], 404);
    until("it is counted", async || server.get("/v1/stats").await.json()["counts"]["failed"] == 1)
        .await;
}

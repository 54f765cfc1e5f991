//! Schedules.

use serde_json::{Value, json};

use crate::common::{Server, until, with};

fn nightly() -> Value {
    json!({"cron": "30 2 * * *", "tz": "America/New_York",
        "task": {"kind": "report", "target": {"worker": {}}, "payload": {"n": 1}, "queue": "r"}})
}

#[tokio::test]
async fn a_schedule_is_put_shown_and_removed() {
    let server = Server::start().await;
    let path = "/v1/schedules/nightly";
    let first = server.put(path, nightly()).await.expect(201).json();
    assert_eq!(first["cron"], "30 2 * * *");
    assert_eq!((&first["dialect"], &first["gap"]), (&json!("vixie"), &json!("shift")));
    assert_eq!(first["task"]["payload"], json!({"n": 1}));
    assert_eq!(first["task"]["queue"], "r");
    assert!(first["next_at"].is_string() && first["next_local"].is_string());
    assert!(first["why"].is_string(), "{first}");
    // The same document twice changes nothing.
    let again = server.put(path, nightly()).await.expect(200).json();
    assert_eq!((&first["uid"], &first["version"]), (&again["uid"], &again["version"]));
    // Its own picture is a document that changes nothing either.
    let mut picture = again.clone();
    for field in [
        "namespace",
        "uid",
        "next_at",
        "next_local",
        "why",
        "last",
        "runs",
        "overdue",
        "created_at",
        "updated_at",
        "version",
    ] {
        picture.as_object_mut().unwrap().remove(field);
    }
    let same = server.put(path, picture).await.expect(200).json();
    assert_eq!(first["version"], same["version"]);
    let changed = server.put(path, with(nightly(), json!({"cron": "0 3 * * *"}))).await;
    let changed = changed.expect(200).json();
    assert_eq!(changed["uid"], first["uid"]);
    assert_ne!(changed["version"], first["version"]);
    server.delete(path).await.expect(204);
    server.get(path).await.expect(404);
    assert_eq!(server.delete(path).await.problem().0, 404);
    let anew = server.put(path, nightly()).await.expect(201).json();
    assert_ne!(anew["uid"], first["uid"]);
}

#[tokio::test]
async fn pausing_takes_the_next_occurrence_away() {
    let server = Server::start().await;
    server.put("/v1/schedules/s", nightly()).await.expect(201);
    let paused = server.act("/v1/schedules/s/pause").await.expect(200).json();
    assert_eq!(paused["paused"], true);
    assert!(paused.get("next_at").is_none());
    // Putting the document again does not resume it.
    let put = server.put("/v1/schedules/s", nightly()).await.expect(200).json();
    assert_eq!(put["paused"], true);
    let resumed = server.act("/v1/schedules/s/resume").await.expect(200).json();
    assert_eq!(resumed["paused"], false);
    assert!(resumed["next_at"].is_string());
    assert_eq!(server.act("/v1/schedules/none/pause").await.problem().0, 404);
}

#[tokio::test]
async fn a_backfill_is_counted_begun_shown_and_ended() {
    let server = Server::start().await;
    server.put("/v1/schedules/s", nightly()).await.expect(201);
    let span = json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-11T00:00:00Z"});
    let path = "/v1/schedules/s/backfill";
    let with = |more: serde_json::Value| {
        let mut body = span.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let dry = server.post(path, with(json!({"dry_run": true}))).await.expect(200).json();
    assert_eq!(
        (&dry["occurrences"], &dry["created"], &dry["dry_run"]),
        (&json!(10), &json!(0), &json!(true))
    );
    assert!(dry["first"].is_string() && dry["last"].is_string());
    assert!(server.get("/v1/schedules/s").await.json().get("backfills").is_none());
    server.post(path, with(json!({"id": "b", "in_flight": 2}))).await.expect(202);
    until("two of them wait for a worker", async || {
        let shown = server.get("/v1/schedules/s").await.json();
        shown["backfills"][0]["created"] == 2
    })
    .await;
    let again = server.post(path, with(json!({"id": "b"}))).await.expect(202).json();
    assert_eq!((&again["created"], &again["in_flight"]), (&json!(2), &json!(2)), "as it is");
    let other = json!({"id": "b", "from": "2026-01-02T00:00:00Z", "to": "2026-01-11T00:00:00Z"});
    assert_eq!(server.post(path, other).await.problem().0, 409);
    server.delete("/v1/schedules/s/backfills/b").await.expect(204);
    assert_eq!(server.delete("/v1/schedules/s/backfills/b").await.problem().0, 404);
    for (more, field) in [
        (json!({"to": "2025-01-01T00:00:00Z"}), "to"),
        (json!({"to": "2099-01-01T00:00:00Z"}), "to"),
        (json!({"from": "0500-01-01T00:00:00Z"}), "to"),
        (json!({"in_flight": 0}), "in_flight"),
        (json!({"in_flight": 1001}), "in_flight"),
        (json!({"id": ""}), "id"),
    ] {
        let (status, _, at) = server.post(path, with(more.clone())).await.problem();
        assert_eq!((status, at.as_str()), (422, field), "{more}");
    }
    let none = json!({"from": "2026-01-01T03:00:00Z", "to": "2026-01-01T03:00:01Z"});
    let none = server.post(path, none).await.expect(200).json();
    assert_eq!(none["occurrences"], 0);
    assert_eq!(server.post("/v1/schedules/none/backfill", span.clone()).await.problem().0, 404);
}

#[tokio::test]
async fn triggering_runs_it_beside_its_plan() {
    let server = Server::start().await;
    server.put("/v1/schedules/s", nightly()).await.expect(201);
    let reply = server.act("/v1/schedules/s/trigger").await.expect(201).json();
    let id = reply["task_id"].as_str().unwrap();
    assert!(reply["origin"].as_str().unwrap().starts_with("trigger:"));
    let claimed = server.claim("r").await;
    assert_eq!((&claimed["id"], &claimed["schedule"]), (&json!(id), &json!("s")));
    let done = json!([{"token": claimed["token"], "outcome": "succeeded"}]);
    server.post("/v1/attempts/complete", done).await.expect(200);
    let task = server.when(id, "succeeded").await;
    assert_eq!(task["schedule"], "s");
    assert_eq!(task["origin"], reply["origin"]);
    until("it is the last run", async || {
        server.get("/v1/schedules/s").await.json()["last"]["task_id"] == id
    })
    .await;
    let list = server.get("/v1/tasks?schedule=s").await.expect(200).json();
    assert!(list["items"].as_array().unwrap().iter().any(|t| t["id"] == id));
    assert_eq!(server.act("/v1/schedules/none/trigger").await.problem().0, 404);
}

#[tokio::test]
async fn previews_say_why() {
    let server = Server::start().await;
    server.put("/v1/schedules/s", nightly()).await.expect(201);
    let query = "after=2026-03-07T00:00:00Z&n=3";
    let stored = server.get(&format!("/v1/schedules/s/preview?{query}")).await.expect(200).json();
    let at: Vec<&str> =
        stored["items"].as_array().unwrap().iter().map(|o| o["at"].as_str().unwrap()).collect();
    assert_eq!(at, ["2026-03-07T07:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]);
    assert_eq!(stored["items"][1]["why"], "shifted by a DST gap");
    let ask = json!({"schedule": nightly(), "after": "2026-03-07T00:00:00Z", "n": 3});
    let unstored = server.post("/v1/schedules/preview", ask).await.expect(200).json();
    assert_eq!(stored, unstored);
    let never = json!({"schedule": with(nightly(), json!({"cron": "0 0 30 2 *"}))});
    let reply = server.post("/v1/schedules/preview", never).await.expect(200).json();
    assert_eq!(reply["items"], json!([]));
    // Further runs of a fixed delay depend on when runs end.
    let after = json!({"schedule": {"after": "5m", "task": nightly()["task"]}, "n": 5});
    let reply = server.post("/v1/schedules/preview", after).await.expect(200).json();
    assert_eq!(reply["items"].as_array().unwrap().len(), 1);
    // A preview runs nothing, so it needs no token for a command.
    let command = json!({"target": {"command": {"argv": ["true"]}}});
    let ask = json!({"schedule": {"every": "1m", "task": command}});
    server.post("/v1/schedules/preview", ask).await.expect(200);
    for query in ["n=0", "n=1001", "after=0000-01-01T00:00:00Z"] {
        let reply = server.get(&format!("/v1/schedules/s/preview?{query}")).await;
        assert_eq!(reply.problem().0, 422, "{query}");
    }
}

#[tokio::test]
async fn schedules_are_listed_by_name() {
    let server = Server::start().await;
    for name in ["c", "a", "b"] {
        server.put(&format!("/v1/schedules/{name}"), nightly()).await.expect(201);
    }
    let first = server.get("/v1/schedules?limit=2").await.expect(200).json();
    let names = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|s| s["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&first), ["a", "b"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let rest = server.get(&format!("/v1/schedules?cursor={cursor}")).await.expect(200).json();
    assert_eq!(names(&rest), ["c"]);
    assert!(rest.get("next_cursor").is_none());
}

#[tokio::test]
async fn what_a_schedule_may_not_be() {
    let server = Server::start().await;
    let task = json!({"target": {"worker": {}}});
    let of = |fields: Value| with(json!({"task": task}), fields);
    for (path, body, field) in [
        ("s", of(json!({})), "cron"),
        ("s", of(json!({"cron": "* * * * *", "every": "5m"})), "cron"),
        ("s", of(json!({"every": "5m", "dialect": "quartz"})), "dialect"),
        ("s", of(json!({"cron": "0 25 * * *"})), "cron"),
        ("s", of(json!({"cron": "* * * * *", "dialect": "unix"})), "dialect"),
        ("s", of(json!({"every": "0s"})), "every"),
        ("s", of(json!({"after": "1us"})), "after"),
        ("s", of(json!({"every": "5m", "tz": "Mars/Olympus"})), "tz"),
        ("s", of(json!({"every": "5m", "max_runs": 0})), "max_runs"),
        (
            "s",
            of(
                json!({"every": "5m", "start": "2030-01-01T00:00:00Z", "end": "2029-01-01T00:00:00Z"}),
            ),
            "end",
        ),
        ("s", of(json!({"every": "5m", "jitter": "1000d"})), "jitter"),
        (
            "s",
            of(json!({"every": "5m", "misfire": {"policy": "all", "limit": 0}})),
            "misfire.limit",
        ),
        ("s", of(json!({"every": "5m", "exclude": ["holidays"]})), "exclude[0]"),
        ("s", of(json!({"every": "5m", "name": "t"})), "name"),
        (
            "s",
            of(json!({"every": "5m", "task": {"target": {"worker": {}}, "key": "k"}})),
            "task.key",
        ),
        (
            "s",
            of(json!({"every": "5m", "task": {"target": {"worker": {}}, "priority": 8}})),
            "task.priority",
        ),
        (
            "s",
            of(json!({"every": "5m", "task": {"target": {"http": {"url": "x"}}}})),
            "task.target.http.url",
        ),
        ("s", json!({"every": "5m"}), "task"),
        ("a%2Fb", of(json!({"every": "5m"})), "name"),
        ("%2e%2e", of(json!({"every": "5m"})), "name"),
    ] {
        let reply = server.put(&format!("/v1/schedules/{path}"), body.clone()).await;
        // The client's library resolves dots in paths, so that one is another path.
        if path == "%2e%2e" {
            assert!(reply.status >= 400 && reply.status < 500);
            continue;
        }
        let (status, _, named) = reply.problem();
        assert_eq!((status, named.as_str()), (422, field), "{body} {}", reply.text);
        assert!(reply.json()["detail"].is_string(), "{}", reply.text);
    }
}

//! The client commands against a small server: requests, exit status, output, errors.

mod common;

use std::io::Read;
use std::process::Stdio;

use common::{Seen, run, run_with, serve, tourbillon};
use serde_json::{Value, json};

const ID: &str = "0193e1f0-0000-7000-8000-000000000001";

fn task(id: &str) -> Value {
    json!({"id": id, "namespace": "default", "queue": "default", "kind": "command", "state": "scheduled",
        "target": {"command": {"argv": ["true"]}}, "due_at": "2026-01-01T00:00:00Z",
        "created_at": "2026-01-01T00:00:00Z", "version": 1})
}

fn schedule(name: &str) -> Value {
    json!({"name": name, "namespace": "default", "uid": ID, "cron": "0 9 * * *", "tz": "UTC", "paused": false,
        "task": {"target": {"worker": {}}}, "next_at": "2026-01-01T09:00:00Z",
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "version": 1})
}

fn problem(status: u16, code: &str) -> (u16, Value) {
    let body = json!({"type": "urn:x", "title": "t", "status": status, "code": code, "detail": "it is wrong",
        "field": "queue", "expected": "a name"});
    (status, body)
}

/// Answers a created task with the id and what else it was given.
fn created(seen: &Seen) -> (u16, Value) {
    let given: Value = serde_json::from_str(&seen.body).unwrap();
    let mut shown = task(given["id"].as_str().unwrap());
    for field in ["queue", "key", "target", "payload"] {
        if let Some(value) = given.get(field) {
            shown[field] = value.clone();
        }
    }
    (201, shown)
}

#[tokio::test(flavor = "multi_thread")]
async fn in_and_at_create_tasks() {
    let server = serve(created).await;
    let got = server
        .run(&["in", "30m", "--queue", "q", "--key", "k", "--json", "--", "echo", "-n", "--json"]);
    assert_eq!((got.status, got.err.as_str()), (0, ""));
    assert_eq!(got.json()[0]["queue"], "q");
    let got = server.run(&[
        "--namespace",
        "n",
        "at",
        "2026-12-01 09:00",
        "--tz",
        "Asia/Shanghai",
        "--http",
        "post",
        "http://a.example/x",
        "--header",
        "X-A: b",
        "--body",
        r#"{"z":1, "a":2}"#,
        "--tag",
        "order=42",
        "--max-attempts",
        "3",
        "--backoff",
        "fixed:5s",
    ]);
    assert_eq!(got.status, 0, "{}", got.err);
    assert!(got.out.starts_with("task ") && got.out.contains(" is scheduled, due "), "{}", got.out);
    let seen = server.seen();
    let mut bodies: Vec<Value> =
        seen.iter().map(|s| serde_json::from_str(&s.body).unwrap()).collect();
    for body in &mut bodies {
        assert!(body.as_object_mut().unwrap().remove("id").is_some());
    }
    assert_eq!(
        bodies,
        [
            json!({"delay": "30m", "queue": "q", "key": "k",
                "target": {"command": {"argv": ["echo", "-n", "--json"]}}}),
            json!({"due_at": "2026-12-01T01:00:00Z", "payload": {"z": 1, "a": 2}, "tags": {"order": "42"},
                "retry": {"max_attempts": 3, "backoff": {"fixed": {"delay": "5s"}}},
                "target": {"http": {"method": "POST", "url": "http://a.example/x", "headers": {"X-A": "b"}}}}),
        ]
    );
    assert!(seen[1].body.contains(r#""payload":{"z":1, "a":2}"#), "the payload is sent as written");
    assert_eq!(server.lines(), ["POST /v1/tasks", "POST /v1/tasks?namespace=n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_and_cron_derive_the_same_name_for_the_same_words() {
    let server = serve(|seen| {
        let name = seen.line.rsplit('/').next().unwrap();
        (201, schedule(name))
    })
    .await;
    let words = ["every", "5m", "--", "/usr/bin/backup.sh"];
    assert_eq!(server.run(&words).status, 0);
    let got = server.run(&words);
    assert!(got.out.starts_with("schedule backup-sh-"), "{}", got.out);
    assert!(got.out.contains("next at 2026-01-01T09:00:00Z"), "{}", got.out);
    assert_eq!(
        server
            .run(&["cron", "0 9 * * mon-fri", "--name", "morning", "--worker", "--kind", "x"])
            .status,
        0
    );
    let lines = server.lines();
    assert_eq!(lines[0], lines[1]);
    assert_eq!(lines[2], "PUT /v1/schedules/morning");
    let wrong = server.run(&["cron", "0 9 * *", "--worker"]);
    assert_eq!(
        (wrong.status, server.lines().len()),
        (2, 3),
        "found before anything is sent: {}",
        wrong.err
    );
}

#[test]
fn wrong_use_is_status_2() {
    for args in [
        &["in", "30m"][..],
        &["in", "30m", "--worker", "--", "true"],
        &["in", "30m", "--http", "GET"],
        &["in", "soon", "--worker"],
        &["at", "2026-12-01 09:00", "--worker"],
        &["at", "2026-12-01 09:00", "--tz", "Nowhere", "--worker"],
        &["in", "1s", "--worker", "--priority", "8"],
        &["in", "1s", "--worker", "--body", "{no json"],
        &["in", "1s", "--worker", "--env", "A=B"],
        &["task", "show", "17"],
        &["task", "cancel"],
        &["task", "edit", ID],
        &["task", "list", "--state", "done"],
        &["schedule", "add", "x", "--worker"],
        &["queue", "purge", "q"],
        &["queue", "set", "q", "--rate", "fast"],
        &["import", "ndjson", "-", "--batch", "0"],
        &["completions", "cmd"],
        &["nonsense"],
        &[],
    ] {
        let got = run(args);
        assert_eq!(got.status, 2, "{args:?}: {}{}", got.out, got.err);
        assert_eq!(got.out, "", "{args:?}");
        assert!(!got.err.is_empty(), "{args:?}");
    }
    assert!(run(&["at", "2026-12-01 09:00", "--worker"]).err.contains("--tz"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_problem_is_one_clear_line() {
    let server = serve(|_| problem(422, "invalid")).await;
    let got = server.run(&["in", "1s", "--worker", "--json"]);
    assert_eq!((got.status, got.out.as_str()), (1, ""));
    assert_eq!(got.err, "error: invalid: queue: it is wrong; expected a name\n");
    for args in [
        &["task", "list"][..],
        &["task", "show", ID],
        &["task", "cancel", ID],
        &["task", "cancel", "--queue", "q"],
        &["task", "retry", "--state", "failed"],
        &["task", "run", ID],
        &["task", "edit", ID, "--in", "5m"],
        &["task", "logs", ID],
        &["schedule", "list"],
        &["schedule", "pause", "s"],
        &["schedule", "trigger", "s"],
        &[
            "schedule",
            "backfill",
            "s",
            "--from",
            "2026-01-01T00:00:00Z",
            "--to",
            "2026-01-02T00:00:00Z",
        ],
        &["schedule", "preview", "s"],
        &["calendar", "list"],
        &["calendar", "show", "c"],
        &["calendar", "put", "c", "--weekday", "sun"],
        &["calendar", "delete", "c"],
        &["export", "calendars"],
        &["queue", "list"],
        &["queue", "set", "q", "--concurrency", "1"],
        &["queue", "purge", "q", "--yes"],
        &["export", "tasks"],
        &["stats"],
        &["top"],
        &["nodes"],
        &["workers"],
        &["prune"],
    ] {
        let got = server.run(args);
        assert_eq!((got.status, got.out.as_str()), (1, ""), "{args:?}: {}", got.err);
        assert!(
            got.err.contains("invalid: queue: it is wrong; expected a name\n"),
            "{args:?}: {}",
            got.err
        );
    }
}

#[test]
fn a_server_that_is_not_there_is_said_plainly() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}");
    let got = run(&["--url", &url, "stats"]);
    assert_eq!(got.status, 1);
    assert!(got.err.starts_with(&format!("error: cannot connect to {url}/: ")), "{}", got.err);
    let got = run(&["--url", "localhost", "stats"]);
    assert_eq!(got.status, 1);
    assert!(got.err.contains("expected such as `http://127.0.0.1:7070`"), "{}", got.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_comes_from_the_environment_else_from_the_data_folder() {
    let server = serve(|seen| match seen.authorization {
        Some(_) => (200, json!({"items": []})),
        None => problem(401, "unauthorized"),
    })
    .await;
    let got = server.run(&["queue", "list"]);
    assert_eq!(got.status, 1);
    assert!(got.err.contains("error: unauthorized") && got.err.contains("hint: "), "{}", got.err);

    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".local/share/tourbillon");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("token"), "from-file\n").unwrap();
    let mut command = server.command(&["queue", "list"]);
    command.env("HOME", home.path());
    run_with(command, "");
    let mut command = server.command(&["queue", "list"]);
    command.env("HOME", "/nonexistent").env("XDG_DATA_HOME", home.path().join(".local/share"));
    run_with(command, "");
    let mut command = server.command(&["queue", "list"]);
    command.env("HOME", home.path()).env("TOURBILLON_TOKEN", "from-environment");
    run_with(command, "");
    let tokens: Vec<_> =
        server.seen().into_iter().map(|s| s.authorization.unwrap_or_default()).collect();
    assert_eq!(tokens, ["", "Bearer from-file", "Bearer from-file", "Bearer from-environment"]);

    let mut command = tourbillon(&["--url", "http://10.0.0.1", "config", "show", "--json"]);
    command.env("HOME", home.path());
    let settings = run_with(command, "").json().remove(0);
    assert_eq!(settings["token"], Value::Null, "the local token stays on this machine");
    let mut command = tourbillon(&["config", "show"]);
    command.env("TOURBILLON_TOKEN", "hush");
    let shown = run_with(command, "");
    assert!(shown.out.contains("TOURBILLON_TOKEN") && !shown.out.contains("hush"), "{}", shown.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_go_through_pages_and_an_empty_one_is_status_1() {
    let server = serve(|seen| {
        let items: Vec<Value> =
            (0..2).map(|i| task(&format!("0193e1f0-0000-7000-8000-{i:012}"))).collect();
        if seen.line.contains("state=failed") {
            (200, json!({"items": [], "scanned_to": "2026-01-01T00:00:00Z"}))
        } else if seen.line.contains("cursor=next") {
            (200, json!({"items": items[..1]}))
        } else {
            (200, json!({"items": items, "next_cursor": "next"}))
        }
    })
    .await;
    let got = server.run(&["task", "list", "--queue", "q", "--all", "--json"]);
    assert_eq!((got.status, got.json().len()), (0, 3));
    let got = server.run(&["task", "list", "-n", "2"]);
    assert_eq!(got.out.lines().count(), 3, "a header and two tasks: {}", got.out);
    assert!(got.err.contains("there are more"), "{}", got.err);
    let got = server.run(&["task", "list", "--state", "failed"]);
    assert_eq!((got.status, got.out.as_str(), got.err.as_str()), (1, "", "no task matches\n"));
    assert_eq!(
        server.lines()[..2],
        ["GET /v1/tasks?limit=500&queue=q", "GET /v1/tasks?cursor=next&limit=500&queue=q"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_are_changed_until_no_more_match() {
    let calls = std::sync::atomic::AtomicU64::new(0);
    let server = serve(move |seen| {
        if seen.body.contains("dry_run") {
            return (200, json!({"matched": 7, "changed": 0, "dry_run": true}));
        }
        let more = calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2;
        (200, json!({"matched": 5, "changed": 4, "cancelling": 1, "more": more}))
    })
    .await;
    let got =
        server.run(&["task", "cancel", "--queue", "q", "--due-before", "2026-01-01T00:00:00Z"]);
    assert_eq!(
        (got.status, got.out.as_str()),
        (0, "12 tasks cancelled, 3 being stopped\n"),
        "{}",
        got.err
    );
    assert_eq!(
        server.seen()[0].body,
        r#"{"filter":{"queue":"q","due_before":"2026-01-01T00:00:00Z"}}"#
    );
    let got = server.run(&["task", "retry", "--state", "failed", "--dry-run"]);
    assert_eq!((got.status, got.out.as_str()), (0, "7 tasks would be retried\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ndjson_goes_in_by_batches_and_says_how_far_it_came() {
    let server = serve(|seen| {
        let tasks: Vec<Value> = serde_json::from_str(&seen.body).unwrap();
        if tasks.iter().any(|t| t["key"] == "bad") {
            return problem(422, "invalid");
        }
        (201, json!({"ids": tasks.iter().map(|t| t["id"].clone()).collect::<Vec<_>>()}))
    })
    .await;
    let line = |key: &str| format!("{{\"target\":{{\"worker\":{{}}}},\"key\":\"{key}\"}}\n");
    let input: String = (0..25).map(|i| line(&i.to_string())).collect();
    let got =
        run_with(server.command(&["import", "ndjson", "-", "--batch", "10", "--json"]), &input);
    assert_eq!(got.json(), [json!({"lines": 25, "created": 25, "dry_run": false})], "{}", got.err);
    assert_eq!(server.seen().len(), 3);

    let refused: String = input.clone() + &line("bad");
    let got = run_with(server.command(&["import", "ndjson", "-", "--batch", "10"]), &refused);
    assert_eq!(got.status, 1);
    assert!(got.err.contains("20 tasks are in; go on with --from-line 21"), "{}", got.err);
    assert!(got.err.contains("it is wrong; expected a name"), "{}", got.err);

    let broken = input + "{\"target\":{\"worker\":{}},\"dealy\":\"5m\"}\n";
    let got = run_with(server.command(&["import", "ndjson", "-"]), &broken);
    assert_eq!(got.status, 1);
    for part in ["0 tasks are in; go on with --from-line 1", "-:26", "dealy", "unknown field"] {
        assert!(got.err.contains(part), "{part} is not in {}", got.err);
    }
    let got = run_with(server.command(&["import", "ndjson", "-", "--dry-run"]), "\n\n");
    assert_eq!(got.status, 1, "nothing to do");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crontab_becomes_schedules_with_command_targets() {
    let server = serve(|seen| (201, schedule(seen.line.rsplit('/').next().unwrap()))).await;
    let crontab = "HOME=/srv\nFOO=bar\n0 9 * * * report 100\\%%to: a%b\n";
    let got =
        run_with(server.command(&["import", "crontab", "-", "--tz", "UTC", "--json"]), crontab);
    assert_eq!(got.status, 0, "{}", got.err);
    let document: Value = serde_json::from_str(&server.seen()[0].body).unwrap();
    let name = document["name"].as_str().unwrap();
    assert_eq!(server.lines(), [format!("PUT /v1/schedules/{name}")]);
    assert_eq!(document["cron"], "0 9 * * *");
    assert_eq!(
        (document["tz"].as_str(), document["overlap"].as_str()),
        (Some("UTC"), Some("allow"))
    );
    let command = &document["task"]["target"]["command"];
    assert_eq!(command["argv"], json!(["/bin/sh", "-c", "report 100%"]));
    assert_eq!(
        (command["cwd"].as_str(), command["stdin"].as_str()),
        (Some("/srv"), Some("to: a\nb\n"))
    );
    assert_eq!(command["env"]["FOO"], "bar");

    let system = "0 9 * * * www-data report\n";
    let got =
        run_with(server.command(&["import", "crontab", "-", "--system", "--tz", "UTC"]), system);
    assert!(got.err.contains("it ran as www-data"), "{}", got.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn schedules_are_applied_all_or_none_read() {
    let server = serve(|seen| match seen.line.starts_with("GET") {
        // What is stored is looked at first.
        true => (200, json!({"items": []})),
        false => (200, schedule(seen.line.rsplit('/').next().unwrap())),
    })
    .await;
    let puts = || server.lines().iter().filter(|line| line.starts_with("PUT")).count();
    let one = r#"{"name":"a","every":"5m","task":{"target":{"worker":{}}}}"#;
    let two = one.replace("\"a\"", "\"b\"");
    let got = run_with(server.command(&["schedule", "apply", "-"]), &format!("[{one},{two}]"));
    assert_eq!((got.status, puts()), (0, 2), "{}", got.err);
    let got = run_with(server.command(&["schedule", "apply", "-"]), &format!("{one}\n{two}\n"));
    assert_eq!((got.status, puts()), (0, 4), "{}", got.err);
    let got = run_with(
        server.command(&["schedule", "apply", "-"]),
        &format!("[{one},{}]", one.replace("\"5m\"", "\"often\"")),
    );
    assert_eq!((got.status, puts()), (1, 4));
    assert!(
        got.err.contains("[1]")
            && got.err.contains("every")
            && got.err.contains("`often` is not a duration"),
        "{}",
        got.err
    );
}

fn calendar(name: &str) -> Value {
    json!({"name": name, "namespace": "default", "dates": ["2026-10-01"], "weekdays": ["sat", "sun"],
        "ranges": [{"from": "2027-01-01", "to": "2027-01-03"}], "used_by": ["daily", "weekly"],
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-02T00:00:00Z", "version": 3})
}

#[tokio::test(flavor = "multi_thread")]
async fn calendars_are_put_from_options_and_files_listed_shown_and_removed() {
    let server = serve(|seen| {
        if seen.line.starts_with("DELETE") && seen.line.ends_with("/used") {
            return problem(409, "in_use");
        }
        match seen.line.as_str() {
            "GET /v1/calendars?limit=100" => {
                (200, json!({"items": [calendar("a")], "next_cursor": "next"}))
            }
            line if line.starts_with("GET /v1/calendars?") => {
                (200, json!({"items": [calendar("b")]}))
            }
            line if line.starts_with("DELETE") => (204, Value::String(String::new())),
            line => (200, calendar(line.rsplit('/').next().unwrap())),
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ics = "BEGIN:VEVENT\nDTSTART:20261225\nEND:VEVENT\n";
    let (ics_file, json_file) =
        (file("x.ics", ics), file("x.json", r#"{"name": "other", "dates": ["2026-01-01"]}"#));
    let got = server.run(&[
        "calendar",
        "put",
        "cn",
        "--date",
        "2026-10-01,2026-10-02",
        "--range",
        "2027-01-01..2027-01-03",
        "--weekday",
        "sat,sun",
    ]);
    assert_eq!(got.status, 0, "{}", got.err);
    assert_eq!(got.out, "calendar cn stored, version 3; 2 schedules are planned by it\n");
    assert_eq!(server.run(&["calendar", "put", "us", &ics_file]).status, 0);
    let got = server.run(&["calendar", "put", "eu", &json_file, "--weekday", "mon", "--json"]);
    assert_eq!((got.status, &got.json()[0]["name"]), (0, &json!("eu")));
    assert_eq!(run_with(server.command(&["calendar", "put", "in", "-"]), ics).status, 0);
    let bodies: Vec<Value> =
        server.seen().iter().map(|s| serde_json::from_str(&s.body).unwrap()).collect();
    assert_eq!(
        bodies,
        [
            json!({"dates": ["2026-10-01", "2026-10-02"], "weekdays": ["sat", "sun"],
                "ranges": [{"from": "2027-01-01", "to": "2027-01-03"}]}),
            json!({"ics": ics}),
            json!({"dates": ["2026-01-01"], "weekdays": ["mon"]}),
            json!({"ics": ics}),
        ]
    );
    assert_eq!(server.lines()[0], "PUT /v1/calendars/cn");
    let sent = server.lines().len();
    for args in [
        &["calendar", "put", "x"][..],
        &["calendar", "put", "x", "--date", "2026-02-30"],
        &["calendar", "put", "x", "--range", "2026-01-01"],
        &["calendar", "put", "x", "--range", "2026-01-02..2026-01-01"],
        &["calendar", "put", "x", "--weekday", "someday"],
        &["calendar", "delete"],
    ] {
        let got = server.run(args);
        assert_eq!((got.status, got.out.as_str()), (2, ""), "{args:?}: {}", got.err);
    }
    assert_eq!(server.lines().len(), sent, "found before anything is sent");

    let got = server.run(&["calendar", "list"]);
    assert_eq!(got.status, 0, "{}", got.err);
    let names: Vec<&str> =
        got.out.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, ["NAME", "a", "b"], "through both pages");
    let got = server.run(&["calendar", "show", "a"]);
    for part in ["2027-01-01 to 2027-01-03", "daily, weekly", "sat, sun", "next days"] {
        assert!(got.out.contains(part), "{part}: {}", got.out);
    }
    let got = server.run(&["calendar", "delete", "a", "b"]);
    assert_eq!((got.status, got.out.as_str()), (0, "calendar a removed\ncalendar b removed\n"));
    let got = server.run(&["calendar", "remove", "used"]);
    assert_eq!((got.status, got.err.starts_with("error: in_use")), (1, true), "{}", got.err);

    // What is exported can be applied again.
    let exported = server.run(&["export", "calendars"]);
    assert_eq!((exported.status, exported.out.lines().count()), (0, 2), "{}", exported.err);
    let got = run_with(server.command(&["calendar", "apply", "-"]), &exported.out);
    assert_eq!((got.status, got.out.lines().count()), (0, 2), "{}", got.err);
    let applied: Value = serde_json::from_str(&server.seen().last().unwrap().body).unwrap();
    assert_eq!(applied["ranges"], calendar("b")["ranges"]);
    assert!(applied.get("version").is_none() && applied.get("used_by").is_none());
    let dry = run_with(server.command(&["calendar", "apply", "-", "--dry-run"]), &exported.out);
    assert!(dry.out.starts_with("calendar a would be stored"), "{}", dry.out);
    let got = run_with(server.command(&["calendar", "apply", "-"]), r#"{"dates": []}"#);
    assert!(got.status == 1 && got.err.contains("name"), "{}", got.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_names_calendars_and_a_preview_sends_those_from_files() {
    let server = serve(|seen| {
        if seen.line.contains("preview") {
            return (
                200,
                json!({"items": [], "left_out": [{"from": "2026-01-04T09:00:00Z",
                "to": "2026-01-11T09:00:00Z", "local": "2026-01-04T09:00:00+00:00[UTC]", "count": 2,
                "calendar": "holidays", "why": "every sun"}]}),
            );
        }
        match seen.line.starts_with("GET") {
            true => problem(404, "not_found"),
            false => (201, schedule("s")),
        }
    })
    .await;
    let add = [
        "schedule",
        "add",
        "s",
        "--calendar",
        "1 quarter",
        "--on",
        "last_business_day",
        "--at-time",
        "18:30",
        "--exclude",
        "holidays",
        "--exclude",
        "weekend",
        "--worker",
    ];
    assert_eq!(server.run(&add).status, 0);
    let body: Value = serde_json::from_str(&server.seen().last().unwrap().body).unwrap();
    assert_eq!(body["exclude"], json!(["holidays", "weekend"]));
    assert_eq!(
        body["calendar"],
        json!({"every": "1 quarter", "on": "last_business_day", "at": "18:30"})
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.json");
    std::fs::write(&path, r#"{"weekdays": ["mon"]}"#).unwrap();
    let preview = [
        "schedule",
        "preview",
        "--cron",
        "0 9 * * sun",
        "--exclude",
        "holidays",
        "--exclude-file",
        path.to_str().unwrap(),
    ];
    let got = server.run(&preview);
    let body: Value = serde_json::from_str(&server.seen().last().unwrap().body).unwrap();
    assert_eq!(body["schedule"]["exclude"], json!(["holidays", "mine"]));
    assert_eq!(body["calendars"], json!([{"name": "mine", "weekdays": ["mon"]}]));
    assert_eq!((got.status, got.out.as_str()), (1, ""));
    let told =
        "2026-01-04T09:00:00Z left out by holidays: every sun (2 times until 2026-01-11T09:00:00Z)";
    assert!(got.err.contains(told), "{}", got.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_follow_through_attempts_until_the_task_is_over() {
    let polls = std::sync::atomic::AtomicU64::new(0);
    let server = serve(move |seen| {
        let path = seen.line.split(' ').nth(1).unwrap().to_owned();
        let poll = polls.load(std::sync::atomic::Ordering::SeqCst);
        if path.contains("/output") {
            let all = if path.contains("/attempts/1/") { "one" } else { "two" };
            let from: usize = path.rsplit('=').next().unwrap().parse().unwrap();
            return (200, Value::String(all[from.min(all.len())..].to_owned()));
        }
        polls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let attempt = |n: u64, outcome: Option<&str>| {
            json!({"n": n, "outcome": outcome, "node": "n", "started_at": "2026-01-01T00:00:00Z",
                "lateness_ms": 1, "fence": "1"})
        };
        let mut shown = task(ID);
        let (state, attempts) = match poll {
            0 | 1 => ("running", vec![attempt(1, None)]),
            2 => ("running", vec![attempt(1, Some("failed")), attempt(2, None)]),
            _ => ("succeeded", vec![attempt(1, Some("failed")), attempt(2, Some("succeeded"))]),
        };
        shown["state"] = json!(state);
        shown["attempts"] = json!(attempts);
        (200, shown)
    })
    .await;
    let got = server.run(&["task", "logs", ID, "-f"]);
    assert_eq!((got.status, got.out.as_str()), (0, "onetwo"), "{}", got.err);
    assert!(got.err.contains("succeeded"), "{}", got.err);
    let got = server.run(&["task", "logs", ID, "--attempt", "1"]);
    assert_eq!(got.out, "one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_keeps_what_is_not_set() {
    let server = serve(|seen| {
        let mut queue = json!({"name": "q", "namespace": "default", "concurrency": 8, "partitions": 2,
            "paused": true, "rate": {"per": "1s", "count": 5}, "counts": {}});
        if seen.line.starts_with("PUT") {
            queue["concurrency"] = json!(3);
        }
        (200, queue)
    })
    .await;
    assert_eq!(
        server.run(&["queue", "set", "q", "--concurrency", "3", "--timeout", "5s"]).status,
        0
    );
    assert_eq!(
        server.run(&["queue", "set", "q", "--rate", "none", "--per-key-concurrency", "1"]).status,
        0
    );
    let bodies: Vec<Value> = server
        .seen()
        .into_iter()
        .filter(|s| s.line.starts_with("PUT"))
        .map(|s| serde_json::from_str(&s.body).unwrap())
        .collect();
    assert_eq!(
        bodies,
        [
            json!({"name": "q", "concurrency": 3, "rate": {"per": "1s", "count": 5}, "partitions": 2,
                "defaults": {"timeout": "5s"}}),
            json!({"name": "q", "concurrency": 8, "per_key_concurrency": 1, "partitions": 2}),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn text_from_the_server_does_not_drive_the_terminal() {
    let server = serve(|_| {
        let mut shown = task(ID);
        shown["kind"] = json!("\u{1b}[2Jevil\nline");
        (200, json!({"items": [shown]}))
    })
    .await;
    let got = server.run(&["task", "list"]);
    assert!(!got.out.contains('\u{1b}'), "{:?}", got.out);
    assert_eq!(got.out.lines().count(), 2, "{:?}", got.out);
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let mut child = tourbillon(&["schedule", "preview", "--every", "1s", "-n", "1000", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // 1000 lines are more than a pipe holds, so it is still writing when the reader goes.
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
fn completions_and_help_are_there() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let got = run(&["completions", shell]);
        assert!(got.status == 0 && got.out.contains("tourbillon"), "{shell}");
    }
    let got = run(&["--version"]);
    assert_eq!(
        (got.status, got.out.as_str()),
        (0, concat!("tourbillon ", env!("CARGO_PKG_VERSION"), "\n"))
    );
}

//! Schedules as files, and their past: apply and export there and back, backfill over kills.

// sleeps: the moment of a kill is drawn at random, it is not a wait for something.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

use crate::support::{
    Folder, Receiver, Run, SECOND, Server, binary, eventually, instant, now, run,
};

async fn tourbillon(server: &Server, words: &[&str]) -> Run {
    let mut command = Command::new(binary());
    command.env("TOURBILLON_TOKEN", server.token()).args(["--url", &server.url]).args(words);
    run(command, 60).await
}

const CALENDARS: &str = "
name: holidays
dates: [2026-10-01, 2027-01-01]
ranges:
- {from: 2026-12-24, to: 2026-12-26}
weekdays: [sun]
---
name: ics
ics: |
  BEGIN:VCALENDAR
  BEGIN:VEVENT
  DTSTART;VALUE=DATE:20261225
  END:VEVENT
  END:VCALENDAR
";

const SCHEDULES: &str = r#"
name: nightly
cron: "30 2 * * mon-fri"
tz: Europe/Berlin
exclude: [holidays, ics]
misfire: {policy: skip, grace: 90s}
task:
  queue: night
  target: {command: {argv: [/bin/true, "yes", "1"], env: {A: "b: c"}}}
  retry: {max_attempts: 2, backoff: {exponential: {max: 10m}}}
---
name: ends
calendar: {every: 1 month, on: 31, at: "02:00", month_end: skip}
start: 2026-01-01T00:00:00Z
task: {target: {worker: {}}, payload: {"a": [1, "on", null]}, priority: -3}
"#;

const MORE: &str = r#"[
  {"name": "beat", "every": "90s", "jitter": "5s", "paused": true, "overlap": "wait",
   "task": {"target": {"http": {"url": "http://127.0.0.1:9/x", "headers": {"X-A": "b"}}}, "kind": "k"}},
  {"name": "delay", "after": "1h", "max_runs": 7, "task": {"target": {"worker": {}}}}
]"#;

/// What a folder holds is stored, and stored again changes nothing; what is exported makes the same on an empty
/// server; what a folder has no more goes only when that is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_applied_exported_and_applied_again() {
    let (folder, files) = (Folder::new(), Folder::new());
    files.write("a-schedules.yaml", SCHEDULES);
    files.write("b-more.json", MORE);
    files.write("c-calendars.yml", CALENDARS);
    files.write("notes.txt", "no document");
    let dir = files.path().to_str().unwrap();
    let server = Server::start(&folder).await;
    let dry = tourbillon(&server, &["schedule", "apply", dir, "--dry-run"]).await.ended(0);
    assert_eq!(dry.out.matches("would be created").count(), 6, "{}", dry.out);
    let first = tourbillon(&server, &["schedule", "apply", dir]).await.ended(0);
    assert_eq!(first.out.matches(" created").count(), 6, "{}", first.out);
    for words in [&["schedule", "apply", dir][..], &["schedule", "apply", dir, "--dry-run"]] {
        let again = tourbillon(&server, words).await.ended(0);
        assert_eq!(again.out.matches(" unchanged").count(), 6, "{words:?}: {}", again.out);
    }
    let exported =
        tourbillon(&server, &["export", "schedules", "--yaml", "--with-calendars"]).await.ended(0);

    let other = Folder::new();
    let empty = Server::start(&other).await;
    let elsewhere = Folder::new();
    elsewhere.write("all.yaml", &exported.out);
    let all = elsewhere.file("all.yaml");
    let made = tourbillon(&empty, &["schedule", "apply", &all]).await.ended(0);
    assert_eq!(made.out.matches(" created").count(), 6, "{}", made.out);
    let back =
        tourbillon(&empty, &["export", "schedules", "--yaml", "--with-calendars"]).await.ended(0);
    assert_eq!(back.out, exported.out);
    let again = tourbillon(&empty, &["schedule", "apply", dir]).await.ended(0);
    assert_eq!(again.out.matches(" unchanged").count(), 6, "{}", again.out);

    files.write("a-schedules.yaml", &SCHEDULES.replace("30 2 * * mon-fri", "45 2 * * mon-fri"));
    files.write("b-more.json", "[]");
    let dry =
        tourbillon(&server, &["schedule", "apply", dir, "--dry-run", "--prune"]).await.ended(0);
    assert!(
        dry.out.contains(
            "schedule nightly would be changed: cron: \"30 2 * * mon-fri\" -> \"45 2 * * mon-fri\""
        ),
        "{}",
        dry.out
    );
    assert_eq!(dry.out.matches("would be removed").count(), 2, "{}", dry.out);
    assert_eq!(server.get("/v1/schedules").await.json()["items"].as_array().unwrap().len(), 4);
    let pruned = tourbillon(&server, &["schedule", "apply", dir, "--prune"]).await.ended(0);
    assert!(pruned.out.contains("schedule beat removed"), "{}", pruned.out);
    assert_eq!(server.get("/v1/schedules").await.json()["items"].as_array().unwrap().len(), 2);

    // A slip in the last file changes nothing.
    files.write("z.yaml", "name: z\ncron: 61 * * * *\ntask: {target: {worker: {}}}\n");
    files.write("a-schedules.yaml", SCHEDULES);
    let slip = tourbillon(&server, &["schedule", "apply", dir]).await;
    assert!(slip.status != Some(0) && slip.err.contains("z.yaml:1"), "{}", slip.err);
    let nightly = server.get("/v1/schedules/nightly").await.json();
    assert_eq!(nightly["cron"], "45 2 * * mon-fri");
}

/// The server is killed again and again while a backfill runs: each planned time of the span is called, under one
/// idempotency key, and there is one task of each.
#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_over_kills_runs_every_occurrence_once() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let mut server = Server::start(&folder).await;
    let document = json!({"every": "1h", "task": {"target": receiver.target("/old"),
        "retry": {"max_attempts": 20, "max_lost": 100, "backoff": {"fixed": {"delay": "10ms"}}}}});
    server.put("/v1/schedules/s", &document).await.is(201);
    let hour = 3_600 * SECOND;
    let until = now() / hour * hour - hour;
    let from = until - 400 * hour;
    let (from_text, until_text) = (instant(from), instant(until));
    let words = [
        "schedule",
        "backfill",
        "s",
        "--from",
        &from_text,
        "--to",
        &until_text,
        "--id",
        "b",
        "--in-flight",
        "4",
    ];
    let dry = tourbillon(&server, &[&words[..], &["--dry-run"]].concat()).await.ended(0);
    assert!(dry.out.starts_with("400 occurrences"), "{}", dry.out);
    assert_eq!(receiver.count("/old"), 0);
    tourbillon(&server, &words).await.ended(0);
    for round in 1..=4_u64 {
        receiver.until("some are called", 30, |calls| calls.len() as u64 >= round * 40).await;
        tokio::time::sleep(Duration::from_micros(round * 7_919 % 5_000)).await;
        server.kill().await;
        server = Server::start(&folder).await;
    }
    let shown = eventually("the backfill is through", 120, async || {
        let shown = server.get("/v1/schedules/s").await.is(200).json();
        shown.get("backfills").is_none().then_some(shown)
    })
    .await;
    assert_eq!(shown["paused"], false);
    let again = tourbillon(&server, &[&words[..], &["--wait"]].concat()).await.ended(0);
    assert!(again.out.contains("400 occurrences are over"), "{}", again.out);
    let mut keys: BTreeMap<i64, std::collections::BTreeSet<String>> = BTreeMap::new();
    for call in receiver.calls() {
        keys.entry(call.logical.expect("a logical time")).or_default().insert(call.key);
    }
    let wanted: Vec<i64> = (0..400).map(|n| from + n * hour).collect();
    assert_eq!(keys.keys().copied().collect::<Vec<i64>>(), wanted);
    assert!(keys.values().all(|keys| keys.len() == 1), "one task of each");
    let tasks = server.list("schedule=s").await;
    let of: Vec<_> = tasks.iter().filter(|t| t["origin"] == "backfill:b").collect();
    assert_eq!(of.len(), 400);
    assert!(of.iter().all(|t| t["state"] == "succeeded" && t["priority"] == -8));
}

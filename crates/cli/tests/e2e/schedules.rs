//! Schedules over a real restart, and changes of a schedule against the clock.

// sleeps: the length of an outage is what is tested.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Call, Folder, Receiver, SECOND, Server, eventually, instant, now, time_of};

/// How long the server is away, at least.
const AWAY: Duration = Duration::from_millis(4_200);

/// Logical times of the calls to `path`, each once.
fn logical(calls: &[Call], path: &str) -> BTreeSet<i64> {
    calls.iter().filter(|c| c.path == path).map(|c| c.logical.expect("a logical time")).collect()
}

/// quartz#239 (a misfire policy that ran what it should have skipped), kubernetes#42649 (more than 100
/// missed and never again), river#1035 (a flood of catch-up runs), sidekiq#6804 and dkron#1210 (the
/// server was away at 10:00:00, and the 10:00 run never came, or came twice).
///
/// One downtime of some seconds, every policy. Whatever the policy, each planned time is either
/// run once or part of one record of skipped ones.
#[tokio::test(flavor = "multi_thread")]
async fn misfires_follow_their_policy_over_a_restart() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start(&folder).await;
    let policies = [
        ("skip", json!({"policy": "skip"})),
        ("once", json!({"policy": "once"})),
        ("all", json!({"policy": "all"})),
        ("two", json!({"policy": "all", "limit": 2})),
    ];
    for (name, misfire) in &policies {
        let document = json!({"every": "1s", "misfire": misfire, "overlap": "allow",
            "task": {"queue": name, "target": receiver.target(&format!("/{name}"))}});
        server.put(&format!("/v1/schedules/{name}"), &document).await.is(201);
    }
    receiver
        .until("each has run", 30, |calls| {
            policies.iter().all(|(name, _)| logical(calls, &format!("/{name}")).len() >= 2)
        })
        .await;
    // Due once, while the server is away.
    let at = (now() / SECOND + 2) * SECOND;
    let document = json!({"every": "1h", "start": instant(at),
        "task": {"target": receiver.target("/exactly")}});
    let made = server.put("/v1/schedules/exactly", &document).await.is(201).json();
    assert_eq!(time_of(&made, "next_at"), at);
    server.kill().await;
    let killed = now();
    assert!(killed < at, "the machine is too slow for this test");
    // Not a wait for something: the length of the outage is what is tested.
    tokio::time::sleep(AWAY).await;

    let back = now();
    let server = Server::start(&folder).await;
    receiver
        .until("each runs again", 30, |calls| {
            let new = |name: &str| logical(calls, &format!("/{name}")).range(back + 1..).count();
            policies.iter().all(|(name, _)| new(name) >= 2)
                && calls.iter().any(|c| c.path == "/exactly")
        })
        .await;
    for (name, _) in &policies {
        server.post(&format!("/v1/schedules/{name}/pause"), &json!({})).await.is(200);
    }
    for (name, _) in &policies {
        settled(&server, name).await;
    }
    let calls = receiver.calls();

    let missed = |name: &str| -> Vec<i64> {
        logical(&calls, &format!("/{name}")).range(killed + 1..=back).copied().collect()
    };
    let skip = missed("skip");
    assert!(skip.iter().all(|at| *at > back - SECOND), "later than the grace: {skip:?}");
    let once = missed("once");
    assert!(once.len() <= 1, "one catch-up run: {once:?}");
    assert!(once.iter().all(|at| *at > back - SECOND), "the latest of those missed: {once:?}");
    let two = missed("two");
    assert!(two.len() <= 2 && two.iter().all(|at| *at > back - 2 * SECOND), "the limit: {two:?}");
    for (name, _) in &policies {
        each_time_is_accounted_for(&server, name, &calls).await;
    }
    let all = logical(&calls, "/all");
    let (first, last) = (all.first().unwrap(), all.last().unwrap());
    assert_eq!((last - first) / SECOND + 1, all.len() as i64, "none is missing: {all:?}");
    assert!(missed("all").len() >= 4, "and some of them were missed");

    let exactly: Vec<&Call> = calls.iter().filter(|c| c.path == "/exactly").collect();
    assert_eq!(exactly.len(), 1, "{exactly:?}");
    assert_eq!((exactly[0].logical, exactly[0].attempt), (Some(at), 1));
}

/// Waits until a paused schedule has nothing live any more.
async fn settled(server: &Server, name: &str) {
    eventually("what runs comes to its end", 30, async || {
        let tasks = server.list(&format!("schedule={name}")).await;
        tasks.iter().all(|t| t["finished_at"].is_string()).then_some(())
    })
    .await;
}

/// Each second of an `every: 1s` is one run or in one record of skipped ones, and calls agree.
async fn each_time_is_accounted_for(server: &Server, name: &str, calls: &[Call]) {
    let mut seen: BTreeMap<i64, String> = BTreeMap::new();
    let mut ran = BTreeSet::new();
    for task in server.list(&format!("schedule={name}")).await {
        let (from, to) = match task.get("skipped") {
            Some(skipped) => (time_of(skipped, "from"), time_of(skipped, "to")),
            None if task["state"] == "succeeded" => {
                ran.insert(time_of(&task, "logical_time"));
                (time_of(&task, "logical_time"), time_of(&task, "logical_time"))
            }
            // The occurrence that waited when it was paused.
            None => {
                assert_ne!(task["state"], "failed", "{task}");
                continue;
            }
        };
        if let Some(skipped) = task.get("skipped") {
            assert_eq!(skipped["count"], (to - from) / SECOND + 1, "{task}");
        }
        for at in (from..=to).step_by(1_000_000) {
            let id = task["id"].as_str().unwrap().to_owned();
            let twice = seen.insert(at, id);
            assert!(twice.is_none(), "{name}: {} is in two records: {task}", instant(at));
        }
    }
    assert_eq!(ran, logical(calls, &format!("/{name}")), "{name}: what ran is what was called");
    let (first, last) = (seen.keys().next().unwrap(), seen.keys().next_back().unwrap());
    let gaps: Vec<String> = (*first..=*last)
        .step_by(1_000_000)
        .filter(|at| !seen.contains_key(at))
        .map(instant)
        .collect();
    assert!(gaps.is_empty(), "{name}: neither run nor skipped: {gaps:?}");
}

/// dkron#1939: a run whose node died stayed "running", and a schedule that does not overlap was
/// blocked for ever by its ghost.
#[tokio::test(flavor = "multi_thread")]
async fn a_dead_run_does_not_block_its_schedule() {
    let folder = Folder::new();
    let server = Server::start(&folder).await;
    let document = json!({"every": "1s", "overlap": "skip",
        "task": {"target": folder.long_command(), "retry": {"max_lost": 1}}});
    server.put("/v1/schedules/ghost", &document).await.is(201);
    let first =
        eventually("it runs", 30, async || server.list("schedule=ghost&state=running").await.pop())
            .await;
    server.kill().await;

    let server = Server::start(&folder).await;
    let id = first["id"].as_str().unwrap();
    let ghost = server.until_state(id, "failed", 30).await;
    assert_eq!(ghost["attempts"][0]["outcome"], "lost");
    let next = eventually("the next one runs", 30, async || {
        server.list("schedule=ghost&state=running").await.pop()
    })
    .await;
    assert!(time_of(&next, "logical_time") > time_of(&first, "logical_time"));
    // Times pass while it runs, and none of them starts a second one.
    let later = time_of(&next, "logical_time") + 2 * SECOND;
    eventually("two more times pass", 30, async || (now() > later).then_some(())).await;
    assert_eq!(server.list("schedule=ghost&state=running").await.len(), 1);
    folder.write("end", "");
    server.until_state(next["id"].as_str().unwrap(), "succeeded", 30).await;
}

/// jobrunr#899: a schedule deleted and created again under its name ran the old job too.
/// xxl-job#1577: a job paused while a run of it was being made was un-paused by the write-back.
///
/// What was answered holds from then on: no occurrence planned later than a pause or removal starts,
/// over a restart too.
#[tokio::test(flavor = "multi_thread")]
async fn a_removed_or_paused_schedule_starts_nothing_more() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start(&folder).await;
    let every = |path: &str| {
        json!({"every": "100ms", "misfire": {"policy": "all"}, "overlap": "allow",
            "task": {"queue": "fast", "target": receiver.target(path)}})
    };
    let old = server.put("/v1/schedules/again", &every("/old")).await.is(201).json();
    server.put("/v1/schedules/paused", &every("/paused")).await.is(201);
    receiver
        .until("both run", 30, |calls| {
            ["/old", "/paused"].iter().all(|path| calls.iter().any(|c| c.path == *path))
        })
        .await;

    // Many times, so that some meet an occurrence that is just being made.
    for round in 0..10 {
        let before = receiver.count("/paused");
        server.post("/v1/schedules/paused/pause", &json!({})).await.is(200);
        let acknowledged = now();
        let shown = server.get("/v1/schedules/paused").await.is(200).json();
        assert_eq!(shown["paused"], true);
        // Long enough for two more of them, told by the other schedule's.
        let others = receiver.count("/old");
        receiver
            .until("time passes", 30, |c| {
                c.iter().filter(|c| c.path == "/old").count() >= others + 2
            })
            .await;
        let after: Vec<Call> =
            receiver.calls().into_iter().filter(|c| c.path == "/paused").skip(before).collect();
        assert!(
            after.iter().all(|c| c.logical <= Some(acknowledged)),
            "round {round}: started though paused: {after:?}"
        );
        server.post("/v1/schedules/paused/resume", &json!({})).await.is(200);
        let before = receiver.count("/paused");
        receiver
            .until("it goes on", 30, |calls| {
                calls.iter().filter(|c| c.path == "/paused").count() > before
            })
            .await;
    }

    server.delete("/v1/schedules/again").await;
    let removed = now();
    let gone = server.get("/v1/schedules/again").await;
    assert_eq!(gone.status, 404);
    let new = server.put("/v1/schedules/again", &every("/new")).await.is(201).json();
    assert_ne!(new["uid"], old["uid"], "a uid is never used again");
    receiver
        .until("the new one runs", 30, |calls| {
            calls.iter().filter(|c| c.path == "/new").count() >= 3
        })
        .await;
    server.post("/v1/schedules/paused/pause", &json!({})).await.is(200);
    let paused = now();
    server.kill().await;

    let server = Server::start(&folder).await;
    let runs = receiver.count("/new");
    receiver
        .until("the new one goes on", 30, |calls| {
            calls.iter().filter(|c| c.path == "/new").count() >= runs + 5
        })
        .await;
    for call in receiver.calls() {
        match call.path.as_str() {
            "/old" => assert!(call.logical <= Some(removed), "it was removed: {call:?}"),
            // A repeat of an attempt that the kill cut short is of an earlier time.
            "/paused" => assert!(call.logical <= Some(paused), "it is paused: {call:?}"),
            _ => {}
        }
    }
    let shown = server.get("/v1/schedules/paused").await.is(200).json();
    assert_eq!((&shown["paused"], shown.get("next_at")), (&Value::Bool(true), None), "{shown}");
}

/// A calendar and a calendar rule are there after a kill; while every day is left out nothing runs, and
/// when the calendar is changed it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn calendars_outlive_the_server_and_are_followed() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start(&folder).await;
    let all = json!({"weekdays": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]});
    server.put("/v1/calendars/closed", &all).await.is(201);
    let document = json!({"every": "1s", "exclude": ["closed"],
        "task": {"target": receiver.target("/closed")}});
    let made = server.put("/v1/schedules/closed", &document).await.is(201).json();
    assert_eq!(made.get("next_at"), None, "{made}");
    let open = json!({"every": "1s", "task": {"target": receiver.target("/open")}});
    server.put("/v1/schedules/open", &open).await.is(201);
    let monthly = json!({"calendar": {"every": "1 month", "on": "last_business_day", "at": "18:30"},
        "tz": "Asia/Shanghai", "task": {"target": receiver.target("/monthly")}});
    let monthly = server.put("/v1/schedules/monthly", &monthly).await.is(201).json();
    let open = |calls: &[Call]| calls.iter().filter(|c| c.path == "/open").count();
    receiver.until("time passes", 30, |calls| open(calls) >= 3).await;
    server.kill().await;

    let server = Server::start(&folder).await;
    let before = open(&receiver.calls());
    receiver.until("time passes again", 30, |calls| open(calls) >= before + 3).await;
    assert_eq!(receiver.count("/closed"), 0, "every day is left out");
    let again = server.get("/v1/schedules/monthly").await.is(200).json();
    assert_eq!(
        (&again["next_at"], &again["calendar"]),
        (&monthly["next_at"], &monthly["calendar"])
    );
    let refused = server.delete("/v1/calendars/closed").await;
    assert_eq!(refused.status, 409);
    let asked = now();
    server.put("/v1/calendars/closed", &json!({})).await.is(200);
    let calls =
        receiver.until("it goes on", 30, |calls| calls.iter().any(|c| c.path == "/closed")).await;
    let first = calls.iter().find(|c| c.path == "/closed").expect("just seen");
    assert!(first.logical > Some(asked), "what was left out is not made up for: {first:?}");
    let calendar = server.get("/v1/calendars/closed").await.is(200).json();
    assert_eq!(calendar["used_by"], json!(["closed"]));
}

/// A document put twice changes nothing; a change takes effect at once; a trigger runs now.
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_put_changed_triggered_and_previewed() {
    let (folder, receiver) = (Folder::new(), Receiver::start().await);
    let server = Server::start(&folder).await;
    let document = json!({"cron": "0 9 * * mon-fri", "tz": "Asia/Shanghai",
        "task": {"target": receiver.target("/report")}});
    let path = "/v1/schedules/daily-report";
    let first = server.put(path, &document).await.is(201).json();
    let again = server.put(path, &document).await.is(200).json();
    assert_eq!((&first["version"], &first["uid"]), (&again["version"], &again["uid"]));
    let next = time_of(&first, "next_at");
    assert!(next > now());
    assert!(first["next_local"].as_str().unwrap().contains("09:00"), "{first}");

    let preview = server.get(&format!("{path}/preview?n=3")).await.is(200).json();
    let times: Vec<i64> =
        preview["items"].as_array().unwrap().iter().map(|i| time_of(i, "at")).collect();
    assert_eq!((times.len(), times[0]), (3, next));
    assert!(times.is_sorted_by(|a, b| a < b));

    server.post(&format!("{path}/trigger"), &json!({})).await;
    let calls = receiver.until("the trigger runs it", 30, |calls| !calls.is_empty()).await;
    let task = server.until_state(&calls[0].key, "succeeded", 30).await;
    assert_eq!(task["schedule"], "daily-report");
    assert!(task["origin"].as_str().unwrap().starts_with("trigger:"), "{task}");

    let changed = json!({"cron": "30 10 * * *", "tz": "Asia/Shanghai",
        "task": {"target": receiver.target("/report")}});
    let changed = server.put(path, &changed).await.is(200).json();
    assert_eq!(changed["uid"], first["uid"]);
    assert!(changed["next_local"].as_str().unwrap().contains("10:30"), "{changed}");
    let waiting = server.list("schedule=daily-report&state=scheduled").await;
    assert_eq!(waiting.len(), 1, "one waits, at the new time: {waiting:?}");
    assert_eq!(time_of(&waiting[0], "due_at"), time_of(&changed, "next_at"));
    assert_eq!(receiver.calls().len(), 1);
}

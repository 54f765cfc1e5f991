//! Exclusion calendars, and the calendar rule, through the API.

use reqwest::Method;
use serde_json::{Value, json};
use tourbillon_schedule::{format_instant, parse_instant};
use tourbillon_server::{Limits, ServeOptions};

use crate::common::{Server, TOKEN, until, with};

const DAY: i64 = 86_400_000_000;

fn schedule(fields: Value) -> Value {
    with(json!({"task": {"target": {"worker": {}}, "queue": "q"}}), fields)
}

fn daily(exclude: &[&str]) -> Value {
    schedule(json!({"calendar": {"every": "1 day", "at": "09:00"}, "exclude": exclude}))
}

/// The date (UTC) of the schedule's next occurrence.
async fn next(server: &Server, name: &str) -> String {
    let shown = server.get(&format!("/v1/schedules/{name}")).await.expect(200).json();
    shown["next_at"].as_str().map_or_else(String::new, |at| at[..10].to_owned())
}

/// A date some days after another.
fn plus(date: &str, days: i64) -> String {
    let at = parse_instant(&format!("{date}T00:00:00Z"), None).unwrap() + days * DAY;
    format_instant(at)[..10].to_owned()
}

#[tokio::test]
async fn a_calendar_is_put_shown_listed_and_removed() {
    let server = Server::start().await;
    let path = "/v1/calendars/holidays-cn";
    let document = json!({"name": "holidays-cn", "dates": ["2026-01-01"],
        "ranges": [{"from": "2026-10-01", "to": "2026-10-07"}], "weekdays": ["sat", "Sun"],
        "ics": "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20260501\r\nEND:VEVENT\r\nEND:VCALENDAR"});
    assert_eq!(server.get(path).await.problem().0, 404);
    assert_eq!(server.delete(path).await.problem().0, 404);
    let first = server.put(path, document.clone()).await.expect(201).json();
    for (field, value) in document.as_object().unwrap() {
        assert_eq!(first[field], *value);
    }
    assert_eq!(first["namespace"], "default");
    assert!(first["created_at"].is_string() && first["version"].as_u64() > Some(0));
    assert!(first.get("used_by").is_none());
    // The same document twice changes nothing, nor does its own picture.
    let again = server.put(path, document.clone()).await.expect(200).json();
    assert_eq!(again, first);
    let mut picture = again;
    for field in ["namespace", "created_at", "updated_at", "version"] {
        picture.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(server.put(path, picture).await.expect(200).json(), first);
    let changed = server.put(path, json!({"dates": ["2026-12-25"]})).await.expect(200).json();
    assert!(changed["version"].as_u64() > first["version"].as_u64());
    assert_eq!(changed["created_at"], first["created_at"]);
    assert_eq!(server.get(path).await.expect(200).json(), changed);
    assert!(changed.get("weekdays").is_none(), "a calendar is replaced as a whole");

    server.put("/v1/calendars/b", json!({})).await.expect(201);
    server.put("/v1/calendars/a", json!({"weekdays": ["mon"]})).await.expect(201);
    let page = server.get("/v1/calendars?limit=2").await.expect(200).json();
    let names = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|c| c["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&page), ["a", "b"]);
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = server.get(&format!("/v1/calendars?cursor={cursor}")).await.expect(200).json();
    assert_eq!(names(&rest), ["holidays-cn"]);
    // Another namespace is another world, also one that only has a calendar.
    assert_eq!(server.get("/v1/calendars?namespace=n").await.json()["items"], json!([]));
    server.put("/v1/calendars/a?namespace=n", json!({"weekdays": ["tue"]})).await.expect(201);
    let there = server.get("/v1/calendars?namespace=n").await.json();
    assert_eq!(there["items"][0]["weekdays"], json!(["tue"]));

    server.delete(path).await.expect(204);
    assert_eq!(server.get(path).await.problem().0, 404);
    let anew = server.put(path, json!({"dates": ["2026-12-25"]})).await.expect(201).json();
    assert!(anew["version"].as_u64() > changed["version"].as_u64(), "never the same version again");
}

#[tokio::test]
async fn what_a_calendar_may_not_be() {
    let limits = Limits { calendar_dates: 3, calendars: 2, ..Limits::default() };
    let options = ServeOptions { token: Some(TOKEN.to_owned()), limits, ..ServeOptions::default() };
    let server = Server::with(options).await;
    for (body, status, field) in [
        (json!({"name": "other"}), 422, "name"),
        (json!({"dates": ["2026-02-30"]}), 422, "dates[0]"),
        (json!({"dates": ["2026-01-01", "tomorrow"]}), 422, "dates[1]"),
        (json!({"dates": vec!["2026-01-01"; 4]}), 422, "dates"),
        (json!({"ranges": [{"from": "2026-01-02", "to": "2026-01-01"}]}), 422, "ranges[0].to"),
        (json!({"ranges": [{"from": "2026-01-02"}]}), 422, "ranges[0].to"),
        (
            json!({"ranges": vec![json!({"from": "2026-01-01", "to": "2026-01-01"}); 4]}),
            422,
            "ranges",
        ),
        (json!({"weekdays": ["mon", "someday"]}), 422, "weekdays[1]"),
        (json!({"weekdays": vec!["mon"; 8]}), 422, "weekdays"),
        (json!({"ics": "no calendar"}), 422, "ics"),
        (json!({"ics": "BEGIN:VEVENT\nDTSTART:20261301\nEND:VEVENT"}), 422, "ics"),
        (json!({"ics": "x".repeat((256 << 10) + 1)}), 422, "ics"),
        (json!({"days": []}), 422, "days"),
        (json!({"dates": "2026-01-01"}), 422, "dates"),
    ] {
        let reply = server.put("/v1/calendars/c", body.clone()).await;
        let (found, _, named) = reply.problem();
        assert_eq!((found, named.as_str()), (status, field), "{body} {}", reply.text);
        let (detail, expected) = (&reply.json()["detail"], &reply.json()["expected"]);
        assert!(detail.is_string(), "{}", reply.text);
        assert!(expected.is_string() || field == "days" || detail.as_str().unwrap().len() > 10);
    }
    let reply =
        server.put("/v1/calendars/c", json!({"ics": "BEGIN:VEVENT\nDTSTART:x\nEND:VEVENT"}));
    assert!(reply.await.json()["detail"].as_str().unwrap().starts_with("line 2: "));
    assert_eq!(server.put("/v1/calendars/a%2Fb", json!({})).await.problem().2, "name");
    assert_eq!(server.send(Method::PUT, "/v1/calendars/c", "{").await.problem().0, 400);
    assert_eq!(server.get("/v1/calendars/c").await.status, 404, "nothing was stored");
    // There is a bound on how many there are.
    server.put("/v1/calendars/a", json!({})).await.expect(201);
    server.put("/v1/calendars/b", json!({})).await.expect(201);
    server.put("/v1/calendars/b", json!({"weekdays": ["sun"]})).await.expect(200);
    let reply = server.put("/v1/calendars/c", json!({})).await;
    assert_eq!(reply.problem(), (422, "invalid".into(), "name".into()));
    server.put("/v1/calendars/a?namespace=n", json!({})).await.expect(201);
}

#[tokio::test]
async fn a_schedule_names_calendars_that_there_are() {
    let server = Server::start().await;
    let path = "/v1/schedules/s";
    let reply = server.put(path, daily(&["gone"])).await;
    assert_eq!(reply.problem(), (422, "invalid".into(), "exclude[0]".into()));
    assert!(
        reply.text.contains("`gone`") && reply.text.contains("no calendar here"),
        "{}",
        reply.text
    );
    server.put("/v1/calendars/here", json!({"weekdays": ["sun"]})).await.expect(201);
    server.put("/v1/calendars/there", json!({})).await.expect(201);
    let reply = server.put(path, daily(&["here", "gone"])).await;
    assert_eq!(reply.problem().2, "exclude[1]");
    assert_eq!(reply.json()["expected"], "one of: here, there");
    assert_eq!(server.put(path, daily(&["here", "here"])).await.problem().2, "exclude[1]");
    assert_eq!(server.put(path, daily(&["a/b"])).await.problem().2, "exclude[0]");
    let many: Vec<String> = (0..17).map(|n| format!("c{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(server.put(path, daily(&many)).await.problem().2, "exclude");
    let reply = server.put("/v1/schedules/s?namespace=other", daily(&["here"])).await;
    assert_eq!(reply.problem().2, "exclude[0]");
    let ask = json!({"schedule": daily(&["gone"])});
    let reply = server.post("/v1/schedules/preview", ask).await;
    assert_eq!(reply.problem().2, "schedule.exclude[0]");
    server.get(path).await.expect(404);

    let shown = server.put(path, daily(&["here"])).await.expect(201).json();
    assert_eq!(shown["exclude"], json!(["here"]));
    let calendar = server.get("/v1/calendars/here").await.expect(200).json();
    assert_eq!(calendar["used_by"], json!(["s"]));
    // It is not removed while it is named.
    let reply = server.delete("/v1/calendars/here").await;
    assert_eq!(reply.problem().1, "in_use");
    assert_eq!(reply.status, 409);
    assert!(reply.json()["detail"].as_str().unwrap().contains("schedules s"), "{}", reply.text);
    for n in 0..25 {
        server.put(&format!("/v1/schedules/t{n:02}"), daily(&["here"])).await.expect(201);
    }
    let reply = server.delete("/v1/calendars/here").await.expect(409);
    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("t05") && detail.ends_with("and others"), "{detail}");
    for n in 0..25 {
        server.delete(&format!("/v1/schedules/t{n:02}")).await.expect(204);
    }
    server.put(path, daily(&["there"])).await.expect(200);
    server.delete("/v1/calendars/here").await.expect(204);
    assert_eq!(server.put(path, daily(&["here"])).await.problem().2, "exclude[0]");
}

#[tokio::test]
async fn a_change_of_a_calendar_moves_what_waits() {
    let server = Server::start().await;
    server.put("/v1/calendars/c", json!({})).await.expect(201);
    server.put("/v1/schedules/s", daily(&["c"])).await.expect(201);
    server.put("/v1/schedules/other", daily(&[])).await.expect(201);
    let first = next(&server, "s").await;
    assert_eq!(next(&server, "other").await, first);
    // When it answers, the schedule stands by the new days.
    for (days, moved) in [(1, 1), (3, 3), (2, 2), (0, 0)] {
        let dates: Vec<String> = (0..days).map(|n| plus(&first, n)).collect();
        server.put("/v1/calendars/c", json!({"dates": dates})).await.expect(200);
        assert_eq!(next(&server, "s").await, plus(&first, moved), "{dates:?}");
        let tasks = server.get("/v1/tasks?schedule=s").await.expect(200).json();
        assert_eq!(tasks["items"].as_array().unwrap().len(), 1, "one waits: {tasks}");
    }
    assert_eq!(next(&server, "other").await, first, "it names no calendar");
    let preview = server.get("/v1/schedules/s/preview?n=1").await.expect(200).json();
    assert_eq!(preview["items"][0]["at"].as_str().unwrap()[..10], first);
    let all = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    server.put("/v1/calendars/c", json!({"weekdays": all})).await.expect(200);
    let shown = server.get("/v1/schedules/s").await.json();
    assert!(shown.get("next_at").is_none(), "no day is left");
}

#[tokio::test]
async fn a_preview_says_why_an_occurrence_is_left_out() {
    let server = Server::start().await;
    let weekend = json!({"weekdays": ["sat", "sun"]});
    server.put("/v1/calendars/weekend", weekend).await.expect(201);
    let range = json!({"ranges": [{"from": "2026-10-01", "to": "2026-10-07"}]});
    server.put("/v1/calendars/golden-week", range.clone()).await.expect(201);
    let document = with(daily(&["golden-week", "weekend"]), json!({"tz": "Asia/Shanghai"}));
    server.put("/v1/schedules/s", document.clone()).await.expect(201);
    let query = "after=2026-09-30T02:00:00Z&n=3";
    let stored = server.get(&format!("/v1/schedules/s/preview?{query}")).await.expect(200).json();
    let expected = json!({"items": [
        {"at": "2026-10-08T01:00:00Z", "local": "2026-10-08T09:00:00+08:00[Asia/Shanghai]", "why": "normal",
         "left_out": [{"from": "2026-10-01T01:00:00Z", "to": "2026-10-07T01:00:00Z", "count": 7,
            "local": "2026-10-01T09:00:00+08:00[Asia/Shanghai]", "calendar": "golden-week",
            "why": "2026-10-01 to 2026-10-07"}]},
        {"at": "2026-10-09T01:00:00Z", "local": "2026-10-09T09:00:00+08:00[Asia/Shanghai]", "why": "normal"},
        {"at": "2026-10-12T01:00:00Z", "local": "2026-10-12T09:00:00+08:00[Asia/Shanghai]", "why": "normal",
         "left_out": [
            {"from": "2026-10-10T01:00:00Z", "to": "2026-10-10T01:00:00Z", "count": 1,
             "local": "2026-10-10T09:00:00+08:00[Asia/Shanghai]", "calendar": "weekend", "why": "every sat"},
            {"from": "2026-10-11T01:00:00Z", "to": "2026-10-11T01:00:00Z", "count": 1,
             "local": "2026-10-11T09:00:00+08:00[Asia/Shanghai]", "calendar": "weekend", "why": "every sun"}]},
    ]});
    assert_eq!(stored, expected);
    let ask = json!({"schedule": document, "after": "2026-09-30T02:00:00Z", "n": 3});
    assert_eq!(
        server.post("/v1/schedules/preview", ask.clone()).await.expect(200).json(),
        expected
    );
    // A calendar that is given stands in the place of the stored one, and is not stored.
    let given = json!({"name": "golden-week", "dates": ["2026-10-08"]});
    let asked = with(ask.clone(), json!({"calendars": [given]}));
    let reply = server.post("/v1/schedules/preview", asked).await.expect(200).json();
    assert_eq!(reply["items"][0]["at"], "2026-10-01T01:00:00Z");
    assert!(server.get("/v1/calendars/golden-week").await.json().get("dates").is_none());
    for (calendar, field) in [
        (json!({"dates": ["2026-10-08"]}), "calendars[0].name"),
        (json!({"name": "x", "dates": ["x"]}), "calendars[0].dates[0]"),
    ] {
        let asked = with(ask.clone(), json!({"calendars": [calendar]}));
        assert_eq!(server.post("/v1/schedules/preview", asked).await.problem().2, field);
    }
    // A rule that has no day left says so.
    let never = schedule(json!({"cron": "0 9 * * sun", "exclude": ["weekend"]}));
    let ask = json!({"schedule": never, "after": "2026-09-30T02:00:00Z", "n": 2});
    let reply = server.post("/v1/schedules/preview", ask).await.expect(200).json();
    assert_eq!((&reply["items"], reply["left_out"].as_array().unwrap().len()), (&json!([]), 1));
    assert_eq!(reply["left_out"][0]["why"], "every sun");
}

#[tokio::test]
async fn the_calendar_rule_is_stored_shown_and_edited() {
    let server = Server::start().await;
    let path = "/v1/schedules/s";
    for (rule, first, why) in [
        (
            json!({"every": "1 month", "on": 31, "at": "02:00"}),
            "2027-02-28T02:00:00Z",
            "clamped to the month's end",
        ),
        (
            json!({"every": "1 month", "on": 31, "at": "02:00", "month_end": "skip"}),
            "2027-03-31T02:00:00Z",
            "normal",
        ),
        (
            json!({"every": "1 quarter", "on": "last_business_day"}),
            "2027-03-31T00:00:00Z",
            "normal",
        ),
        (json!({"every": "2 weeks", "on": 5, "at": "23:59:59"}), "2027-02-05T23:59:59Z", "normal"),
        (json!({"every": "3 days"}), "2027-02-01T00:00:00Z", "normal"),
        (json!({"every": "year"}), "2028-02-01T00:00:00Z", "normal"),
    ] {
        let document = schedule(json!({"calendar": rule, "start": "2027-02-01T00:00:00Z"}));
        let shown = server.put(path, document.clone()).await;
        assert!(shown.status == 200 || shown.status == 201, "{}", shown.text);
        let shown = shown.json();
        for (field, value) in rule.as_object().unwrap() {
            assert_eq!(shown["calendar"][field], *value, "{shown}");
        }
        assert!(shown["calendar"]["at"].is_string() && shown["calendar"]["month_end"].is_string());
        assert!(shown["next_at"].is_string() && shown["why"].is_string(), "{shown}");
        let again = server.put(path, document).await.expect(200).json();
        assert_eq!(again["version"], shown["version"], "the same document twice changes nothing");
        let picture =
            schedule(json!({"calendar": again["calendar"], "start": "2027-02-01T00:00:00Z"}));
        let same = server.put(path, picture).await.expect(200).json();
        assert_eq!(same["version"], shown["version"], "nor does its picture");
        let preview =
            server.get(&format!("{path}/preview?after=2027-01-31T00:00:01Z&n=9")).await.json();
        let items = preview["items"].as_array().unwrap();
        let found = items.iter().find(|o| o["at"] == first);
        assert_eq!(found.map(|o| &o["why"]), Some(&json!(why)), "{rule}: {preview}");
    }
    for (rule, field) in [
        (json!({"every": "1 fortnight"}), "calendar.every"),
        (json!({"every": "0 days"}), "calendar.every"),
        (json!({"every": "1 day", "on": 1}), "calendar.on"),
        (json!({"every": "1 week", "on": 8}), "calendar.on"),
        (json!({"every": "1 month", "on": 32}), "calendar.on"),
        (json!({"every": "1 month", "on": -1}), "calendar.on"),
        (json!({"every": "1 month", "on": "first"}), "calendar.on"),
        (json!({"every": "1 month", "at": "25:00"}), "calendar.at"),
        (json!({"every": "1 month", "month_end": "wrap"}), "calendar.month_end"),
        (json!({"every": "1 month", "unit": 1}), "calendar.unit"),
        (json!({"on": 1}), "calendar.every"),
    ] {
        let reply = server.put(path, schedule(json!({"calendar": rule}))).await;
        let (status, _, named) = reply.problem();
        assert_eq!((status, named.as_str()), (422, field), "{rule}: {}", reply.text);
    }
}

#[tokio::test]
async fn events_tell_of_calendars() {
    let server = Server::start().await;
    let response = server.request(Method::GET, "/v1/events").send().await.unwrap();
    let mut response = response;
    server.put("/v1/calendars/c", json!({"weekdays": ["sun"]})).await.expect(201);
    server.put("/v1/calendars/c", json!({"weekdays": ["sun"]})).await.expect(200);
    server.delete("/v1/calendars/c").await.expect(204);
    server.put("/v1/calendars/last", json!({})).await.expect(201);
    let mut text = String::new();
    while !text.contains("\"last\"") {
        let piece = response.chunk().await.unwrap().expect("it goes on");
        text.push_str(&String::from_utf8_lossy(&piece));
    }
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let told: Vec<(&Value, &Value)> = events.iter().map(|e| (&e["kind"], &e["calendar"])).collect();
    let changed = json!("calendar.changed");
    let (c, last) = (json!("c"), json!("last"));
    assert_eq!(told, [(&changed, &c), (&changed, &c), (&changed, &last)], "one a change");
    assert!(events.iter().all(|e| e["actor"].is_string()));
}

/// Many schedules of many shards follow one change before it is answered.
#[tokio::test]
async fn every_shard_follows() {
    let server = Server::start().await;
    server.put("/v1/calendars/c", json!({})).await.expect(201);
    let mut first = String::new();
    for n in 0..60 {
        let task = json!({"target": {"worker": {}}, "queue": format!("q{n}")});
        let path = format!("/v1/schedules/s{n}");
        let shown = server.put(&path, with(daily(&["c"]), json!({"task": task}))).await.expect(201);
        first = shown.json()["next_at"].as_str().unwrap()[..10].to_owned();
    }
    server.put("/v1/calendars/c", json!({"dates": [first]})).await.expect(200);
    for n in 0..60 {
        assert_eq!(next(&server, &format!("s{n}")).await, plus(&first, 1));
    }
    until("each has one task", async || {
        let queues = server.get("/v1/queues?limit=1000").await.json();
        let queues = queues["items"].as_array().unwrap().clone();
        queues.len() == 60 && queues.iter().all(|q| q["counts"]["scheduled"] == 1)
    })
    .await;
}

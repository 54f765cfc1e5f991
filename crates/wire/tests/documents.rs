//! The documents as JSON: what is written reads back, shapes are the documented ones, faults are
//! refused with their place.

use proptest::prelude::*;
use serde_json::{Value, json};
use tourbillon_wire::*;

#[track_caller]
fn round_trip<T>(document: Value) -> T
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let read: T = serde_json::from_str(&document.to_string()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), document);
    read
}

#[test]
fn the_documented_task_reads_and_writes_as_documented() {
    let task: NewTask = round_trip(json!({
        "id": "0193e1f0-0000-7000-8000-000000000001",
        "namespace": "default", "queue": "orders", "kind": "close-order", "key": "order-42",
        "target": {"http": {"method": "POST", "url": "https://a.example/close", "headers": {"x-a": "1"}}},
        "payload": {"order": 42, "a": null},
        "delay": "30m", "priority": 3, "timeout": "30s", "expires_at": "2026-12-02T00:00:00Z",
        "at_most_once": true,
        "retry": {"max_attempts": 5, "max_lost": 3, "give_up_after": "1d",
                  "backoff": {"exponential": {"initial": "1s", "factor": 2.0, "max": "1h", "jitter": "full"}}},
        "on_conflict": "replace", "concurrency_key": "c", "tags": {"order": "42"}
    }));
    assert_eq!(task.delay.unwrap().as_micros(), 1_800_000_000);
    let factor = json!({"exponential": {"factor": 2}});
    assert!(
        matches!(serde_json::from_value(factor).unwrap(), Backoff::Exponential(e) if e.factor == Some(2.0))
    );
}

#[test]
fn every_target_and_backoff_has_its_form() {
    for target in [
        json!({"worker": {}}),
        json!({"http": {"url": "http://a"}}),
        json!({"command": {"argv": ["a", "b"], "env": {"X": "1"}, "cwd": "/", "stdin": "x"}}),
    ] {
        round_trip::<Target>(target);
    }
    for backoff in [
        json!({"fixed": {"delay": "5s"}}),
        json!({"linear": {"initial": "5s", "step": "10s", "max": "1h", "jitter": "none"}}),
        json!({"exponential": {}}),
    ] {
        round_trip::<Backoff>(backoff);
    }
    assert!(serde_json::from_str::<Target>(r#"{"worker":{},"http":{"url":"x"}}"#).is_err());
}

#[test]
fn a_payload_keeps_its_text() {
    let text = r#"{ "b":1.50, "a":[1 ,2], "n":12345678901234567890123 }"#;
    let task: NewTask =
        serde_json::from_str(&format!(r#"{{"target":{{"worker":{{}}}},"payload":{text}}}"#))
            .unwrap();
    assert_eq!(task.payload.as_ref().unwrap().get(), text);
    assert!(serde_json::to_string(&task).unwrap().contains(text));
}

#[test]
fn a_null_payload_is_a_payload() {
    let null: NewTask = serde_json::from_str(r#"{"target":{"worker":{}},"payload":null}"#).unwrap();
    assert_eq!(null.payload.unwrap().get(), "null");
    let none: NewTask = serde_json::from_str(r#"{"target":{"worker":{}}}"#).unwrap();
    assert_eq!(none, NewTask::new(Target::worker()));
    assert_eq!(serde_json::to_string(&none).unwrap(), r#"{"target":{"worker":{}}}"#);
}

#[test]
fn a_patch_tells_null_from_absent() {
    let patch: TaskPatch =
        serde_json::from_str(r#"{"timeout":null,"payload":null,"version":3}"#).unwrap();
    assert_eq!(patch.timeout, Some(None));
    assert_eq!(patch.expires_at, None);
    assert_eq!(patch.payload.as_ref().unwrap().get(), "null");
    assert!(!patch.is_empty());
    assert!(TaskPatch { version: Some(3), ..TaskPatch::default() }.is_empty());
    assert!(serde_json::from_str::<TaskPatch>(r#"{"queue":"other"}"#).is_err());
}

#[test]
fn schedules_read_and_write_as_documented() {
    round_trip::<NewSchedule>(json!({
        "name": "daily-report", "cron": "0 9 * * mon-fri", "dialect": "vixie",
        "tz": "Asia/Shanghai", "gap": "shift", "fold": "first", "start": "2026-01-01T00:00:00Z",
        "max_runs": 5, "jitter": "30s", "exclude": ["holidays-cn"],
        "misfire": {"policy": "once", "grace": "1s", "limit": 100}, "overlap": "cancel_running",
        "paused": false, "expect_within": "1d", "task": {"kind": "report", "target": {"worker": {}}}
    }));
    for on in [json!(31), json!("last_business_day")] {
        round_trip::<NewSchedule>(json!({
            "calendar": {"every": "1 month", "on": on, "at": "02:00", "month_end": "clamp"},
            "task": {"target": {"worker": {}}, "payload": [1]}
        }));
    }
    let with_key = r#"{"every":"5m","task":{"target":{"worker":{}},"key":"x"}}"#;
    assert!(serde_json::from_str::<NewSchedule>(with_key).is_err(), "a template has no key");
}

#[test]
fn a_schedule_as_shown_can_be_given_again() {
    let shown: Schedule = serde_json::from_value(json!({
        "name": "n", "namespace": "default", "uid": "0193e1f0-0000-7000-8000-000000000001",
        "every": "5m", "tz": "UTC", "paused": true, "task": {"target": {"worker": {}}, "payload": null},
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "version": 1,
        "a field of a newer server": 1
    }))
    .unwrap();
    let given = NewSchedule::from(shown);
    let text = serde_json::to_string(&given).unwrap();
    assert_eq!(serde_json::from_str::<NewSchedule>(&text).unwrap(), given);
    assert_eq!((given.paused, given.overlap), (Some(true), Some(Overlap::Skip)));
}

#[test]
fn calendars_queues_and_worker_documents_keep_their_form() {
    let given = round_trip::<NewCalendar>(json!({
        "name": "cn", "dates": ["2026-10-01"], "ranges": [{"from": "2026-10-01", "to": "2026-10-07"}],
        "weekdays": ["sat", "sun"], "ics": "BEGIN:VCALENDAR"
    }));
    let shown: Calendar = serde_json::from_value(json!({
        "name": "cn", "namespace": "default", "dates": ["2026-10-01"],
        "ranges": [{"from": "2026-10-01", "to": "2026-10-07"}], "weekdays": ["sat", "sun"],
        "ics": "BEGIN:VCALENDAR", "used_by": ["s"], "version": 3, "a field of a newer server": 1,
        "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"
    }))
    .unwrap();
    assert_eq!(NewCalendar::from(shown), given, "a calendar as shown can be given again");
    round_trip::<NewQueue>(json!({
        "name": "q", "concurrency": 8, "rate": {"per": "1s", "count": 100, "burst": 100},
        "per_key_concurrency": 1, "partitions": 4, "paused": false,
        "defaults": {"timeout": "30s", "retry": {"max_attempts": 2}}
    }));
    round_trip::<ClaimRequest>(json!({"max": 10, "wait": "20s", "worker": "w1", "kinds": ["a"]}));
    round_trip::<Vec<CompleteItem>>(json!([
        {"token": "t", "outcome": "retry", "error": "busy", "retry_in": "5s"},
        {"token": "t", "outcome": "succeeded", "result": null},
    ]));
    round_trip::<Vec<HeartbeatItem>>(json!([{"token": "t", "progress": 0.5, "log": "half\n"}]));
    round_trip::<Vec<HoldReply>>(json!([{"token": "t", "status": "gone"}]));
    assert_eq!(serde_json::from_str::<ClaimRequest>("{}").unwrap().max, 1);
}

#[test]
fn a_problem_prints_on_one_line() {
    let problem = Problem::invalid("retry.max_attempts", "0 is too few", "1 or more").with_index(3);
    assert_eq!(
        problem.to_string(),
        "invalid: task 3: retry.max_attempts: 0 is too few; expected 1 or more"
    );
    let document = serde_json::to_value(&problem).unwrap();
    assert_eq!(document["type"], "urn:tourbillon:problem:invalid");
    assert_eq!(document["title"], "A field is wrong");
    assert_eq!(round_trip::<Problem>(document), problem);
}

#[test]
fn an_event_of_an_unknown_kind_is_still_an_event() {
    let event = json!({"seq": 1, "at": "2026-01-01T00:00:00Z", "kind": "moon.full", "namespace": "default"});
    let event: Event = serde_json::from_value(event).unwrap();
    assert_eq!(event.kind, EventKind::Other);
    assert_eq!(serde_json::to_value(EventKind::TaskCreated).unwrap(), "task.created");
}

fn tasks(n: usize) -> Vec<NewTask> {
    (0..n)
        .map(|i| NewTask { key: Some(format!("k{i}")), ..NewTask::new(Target::worker()) })
        .collect()
}

#[test]
fn both_forms_of_a_batch_read_the_same() {
    let array = serde_json::to_vec(&tasks(5)).unwrap();
    let lines: String =
        tasks(5).iter().map(|t| serde_json::to_string(t).unwrap() + "\r\n\n").collect();
    assert_eq!(batch::from_array(&array, 5).unwrap(), tasks(5));
    assert_eq!(batch::from_ndjson(lines.as_bytes(), 5).unwrap(), tasks(5));
    assert!(matches!(batch::from_array(&array, 4), Err(BatchError::TooMany { max: 4 })));
    assert!(matches!(batch::from_ndjson(lines.as_bytes(), 4), Err(BatchError::TooMany { max: 4 })));
    assert_eq!(batch::from_array(b"[]", 5).unwrap(), []);
    assert_eq!(batch::from_ndjson(b"\n\n", 5).unwrap(), []);
}

#[test]
fn a_fault_in_a_batch_has_its_index_and_field() {
    let good = r#"{"target":{"worker":{}}}"#;
    let bad = r#"{"target":{"worker":{}},"retry":{"max_attempts":-1}}"#;
    let array = Problem::from(
        batch::from_array(format!("[{good},\n{good}, {bad}]").as_bytes(), 9).unwrap_err(),
    );
    let lines = Problem::from(
        batch::from_ndjson(format!("{good}\n\n{good}\n{bad}\n").as_bytes(), 9).unwrap_err(),
    );
    for problem in [array, lines] {
        assert_eq!(problem.index, Some(2), "{problem}");
        assert_eq!(problem.field.as_deref(), Some("retry.max_attempts"), "{problem}");
        assert_eq!(problem.status, 400);
    }
    let missing = Problem::from(
        batch::from_array(format!("[{good},{{}},{good}]").as_bytes(), 9).unwrap_err(),
    );
    assert_eq!((missing.index, missing.field.as_deref()), (Some(1), None), "{missing}");
    for not_an_array in ["{}", "", "[", "5", "[] []"] {
        let problem = Problem::from(batch::from_array(not_an_array.as_bytes(), 9).unwrap_err());
        assert_eq!(problem.status, 400, "{not_an_array}");
    }
}

#[test]
fn every_document_has_a_schema_with_descriptions() {
    use utoipa::OpenApi;
    #[derive(OpenApi)]
    #[openapi(components(schemas(
        NewTask, Task, Page<Task>, TaskPatch, BatchReply, ManyRequest, ManyReply, CancelReply,
        NewSchedule, Schedule, Page<Schedule>, PreviewRequest, Preview, TriggerReply,
        BackfillRequest, BackfillReply, BackfillProgress, NewCalendar, Calendar, NewQueue, Queue, PurgeReply, ClaimRequest,
        ClaimReply, CompleteItem, HeartbeatItem, HoldReply, Stats, Series, Wheels, Node, Worker,
        Event, PruneRequest, PruneReply, Problem
    )))]
    struct Api;
    let api = serde_json::to_value(Api::openapi()).unwrap();
    assert!(api["openapi"].as_str().unwrap().starts_with("3.1"), "{}", api["openapi"]);
    let schemas = api["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        assert!(schema["description"].is_string(), "{name} has no description: {schema}");
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            // Where null is allowed, the description sits on the other alternative.
            let described = property["description"].is_string()
                || property["oneOf"]
                    .as_array()
                    .is_some_and(|any| any.iter().any(|s| s["description"].is_string()));
            assert!(described, "{name}.{field}: {property}");
        }
    }
    assert_eq!(schemas["NewTask"]["required"], json!(["target"]));
    assert_eq!(schemas["NewTask"]["additionalProperties"], false);
    assert_eq!(schemas["Duration"]["type"], "string");
    assert_eq!(schemas["Timestamp"]["format"], "date-time");
    assert!(schemas["Json"].get("type").is_none(), "any JSON value: {}", schemas["Json"]);
    let text = api.to_string();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name} is referred to and not there");
    }
}

proptest! {
    #[test]
    fn a_task_reads_back_as_written(
        key in proptest::option::of("\\PC{1,20}"),
        queue in proptest::option::of("[a-z]{1,9}"),
        tags in proptest::collection::btree_map("\\PC{1,5}", "\\PC{0,5}", 0..5),
        delay in proptest::option::of(any::<u64>().prop_map(Duration::from_micros)),
        due in proptest::option::of(any::<i64>().prop_map(Timestamp::from_micros)),
        priority in any::<i32>(),
        payload in proptest::option::of("\\PC{0,20}"),
    ) {
        let task = NewTask {
            key, queue, delay, due_at: due, priority,
            tags: tags.into_iter().collect(),
            payload: payload.map(|p| Json::from_value(&p).unwrap()),
            ..NewTask::new(Target::worker())
        };
        let text = serde_json::to_string(&task).unwrap();
        prop_assert_eq!(&serde_json::from_str::<NewTask>(&text).unwrap(), &task);
        prop_assert_eq!(batch::from_ndjson(text.as_bytes(), 1).unwrap(), [task]);
    }
}

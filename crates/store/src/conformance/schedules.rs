//! Queues and schedules as records.

use crate::schedule::{Backfill, Cursor, NextOccurrence, Rule};
use crate::time::MINUTE;
use crate::{Done, Refusal, ScheduleDoc, ScheduleRecord, Shard, TaskId, Write};

use super::World;
use super::fixture::{T0, spec};

/// A schedule nobody created yet.
pub(crate) fn record(w: &World, uid: u128, name: &str) -> ScheduleRecord {
    ScheduleRecord {
        uid,
        namespace: w.namespace(),
        name: name.to_owned(),
        partition: w.partition(),
        shard: w.shard,
        version: 0,
        paused: false,
        created_at: T0,
        updated_at: T0,
        doc: ScheduleDoc {
            rule: Rule::Cron { expr: "0 9 * * *".into(), dialect: "vixie".into() },
            tz: "Asia/Shanghai".into(),
            gap: "shift".into(),
            fold: "first".into(),
            start: Some(T0),
            end: None,
            max_runs: Some(3),
            jitter: 5,
            exclude: vec![],
            misfire: Default::default(),
            misfire_grace: None,
            misfire_limit: 100,
            overlap: Default::default(),
            expect_within: None,
            task: spec("report"),
        },
        cursor: Cursor::default(),
    }
}

fn put(w: &World, record: &ScheduleRecord) -> Result<Done, Refusal> {
    w.write(Write::PutSchedule(Box::new(record.clone())))
}

pub(super) fn a_queue_is_created_once(w: &World) {
    let again = w.ensure_queue("default", "default");
    assert_eq!(again, w.queue);
    assert_eq!((again.version, again.partitions_ever), (1, 1));
    let other = w.ensure_queue("default", "other");
    assert_eq!((other.namespace, other.namespace_name.as_str()), (w.namespace(), "default"));
    assert_ne!(other.id, w.queue.id);
    let elsewhere = w.ensure_queue("there", "other");
    assert_ne!(elsewhere.id, other.id);
    let all = w.store.queues().unwrap();
    assert_eq!(all, [w.queue.clone(), other, elsewhere.clone()]);
    let names = w.queries.namespaces().unwrap();
    assert_eq!(names, [(w.namespace(), "default".into()), (elsewhere.namespace, "there".into())]);
    assert_eq!(w.queries.namespace("default").unwrap(), Some(w.namespace()));
    assert_eq!(w.queries.namespace("nowhere").unwrap(), None);
}

pub(super) fn a_queue_is_replaced_by_compare_and_set(w: &World) {
    let mut record = w.queue.clone();
    record.config.partitions = 8;
    record.config.paused = true;
    let put =
        |record: &crate::QueueRecord| w.write(Write::PutQueue { record: Box::new(record.clone()) });
    let Ok(Done::Queue(now)) = put(&record) else { panic!("not put") };
    assert_eq!((now.version, now.partitions_ever), (2, 8));
    assert_eq!(now.config, record.config);
    assert_eq!(put(&record), Err(Refusal::Conflict));
    record.version = 2;
    record.config.partitions = 2;
    let Ok(Done::Queue(now)) = put(&record) else { panic!("not put") };
    assert_eq!((now.version, now.partitions_ever, now.config.partitions), (3, 8, 2));
    assert_eq!(w.ensure_queue("default", "default"), *now);
    assert_eq!(w.store.queues().unwrap(), [*now]);
    record.id.0 += 50;
    assert_eq!(put(&record), Err(Refusal::Conflict));
}

pub(super) fn a_schedule_is_created_replaced_and_deleted_by_compare_and_set(w: &World) {
    let mut wanted = record(w, 1 << 127, "daily");
    assert_eq!(put(w, &wanted), Ok(Done::Ok));
    let stored = |name: &str| w.queries.schedule(w.namespace(), name).unwrap();
    wanted.version = 1;
    assert_eq!(stored("daily"), Some(wanted.clone()));
    let again = ScheduleRecord { version: 0, ..wanted.clone() };
    assert_eq!(put(w, &again), Err(Refusal::Conflict), "it exists");
    wanted.paused = true;
    wanted.name = "nightly".into();
    wanted.shard = Shard(8);
    wanted.doc.tz = "UTC".into();
    assert_eq!(put(w, &wanted), Ok(Done::Ok));
    assert_eq!(put(w, &wanted), Err(Refusal::Conflict), "it moved on");
    wanted.version = 2;
    assert_eq!(stored("nightly"), Some(wanted.clone()));
    assert_eq!(stored("daily"), None);
    let moved = w.store.reload(Shard(8), &[]).unwrap().schedules;
    assert_eq!(moved, [(wanted.clone(), Vec::new())]);
    assert_eq!(w.store.reload(w.shard, &[]).unwrap().schedules, []);
    let delete = |version| w.write(Write::DeleteSchedule { uid: 1 << 127, version });
    assert_eq!(delete(1), Err(Refusal::Conflict));
    assert_eq!(delete(2), Ok(Done::Ok));
    assert_eq!(delete(2), Err(Refusal::Conflict));
    assert_eq!(stored("nightly"), None);
    assert_eq!(put(w, &wanted), Err(Refusal::Conflict), "nothing to replace");
}

pub(super) fn a_schedule_name_is_unique_in_its_namespace(w: &World) {
    assert_eq!(put(w, &record(w, 1, "a")), Ok(Done::Ok));
    assert_eq!(put(w, &record(w, 2, "b")), Ok(Done::Ok));
    assert_eq!(put(w, &record(w, 3, "a")), Err(Refusal::Exists));
    let renamed = ScheduleRecord { version: 1, ..record(w, 2, "a") };
    assert_eq!(put(w, &renamed), Err(Refusal::Exists));
    let mut there = record(w, 3, "a");
    there.namespace = w.ensure_queue("other", "q").namespace;
    assert_eq!(put(w, &there), Ok(Done::Ok));
}

pub(super) fn a_schedule_advances_alone(w: &World) {
    let mut wanted = record(w, 9, "daily");
    wanted.paused = true;
    put(w, &wanted).unwrap();
    let next = NextOccurrence { id: TaskId(4), logical: T0, due: T0.plus(MINUTE) };
    let backfill = Backfill {
        id: "june".into(),
        from: T0.plus(-MINUTE),
        until: T0,
        next: T0.plus(-1),
        in_flight: 3,
        created: 4,
        occurrences: 60,
    };
    let backfills = vec![backfill];
    let cursor = Cursor { next: Some(next), last: Some(T0), created: 1, calendars: 7, backfills };
    let advance = |version| w.write(Write::Advance { uid: 9, version, cursor: cursor.clone() });
    assert_eq!(advance(0), Err(Refusal::Conflict));
    assert_eq!(advance(1), Ok(Done::Ok));
    assert_eq!(advance(1), Err(Refusal::Conflict));
    wanted.version = 2;
    wanted.cursor = cursor.clone();
    assert_eq!(w.queries.schedule(w.namespace(), "daily").unwrap(), Some(wanted));
    let unknown = Write::Advance { uid: 10, version: 1, cursor };
    assert_eq!(w.write(unknown), Err(Refusal::Conflict));
}

pub(super) fn schedules_are_listed_by_name(w: &World) {
    for (uid, name) in [(5, "c"), (2, "a"), (9, "b"), (7, "d")] {
        put(w, &record(w, uid, name)).unwrap();
    }
    let mut there = record(w, 8, "aa");
    there.namespace = w.ensure_queue("other", "q").namespace;
    put(w, &there).unwrap();
    let names = |after: Option<&str>, limit| -> Vec<String> {
        let page = w.queries.schedules(w.namespace(), after, limit).unwrap();
        page.into_iter().map(|s| s.name).collect()
    };
    assert_eq!(names(None, 9), ["a", "b", "c", "d"]);
    assert_eq!(names(None, 2), ["a", "b"]);
    assert_eq!(names(Some("b"), 9), ["c", "d"]);
}

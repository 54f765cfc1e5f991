//! Exclusion calendars as records, and the schedules that name them.

use crate::time::MINUTE;
use crate::{CalendarDoc, CalendarRecord, Done, NamespaceId, Refusal, ScheduleRecord, Write};

use super::World;
use super::fixture::T0;
use super::schedules::record;

/// Days that say which they are.
pub(super) fn doc(date: &str) -> CalendarDoc {
    CalendarDoc {
        dates: vec![date.to_owned()],
        ranges: vec![("2026-10-01".into(), "2026-10-07".into())],
        weekdays: vec!["sun".into()],
        ics: Some("BEGIN:VEVENT\r\nDTSTART:20261225\r\nEND:VEVENT".into()),
    }
}

fn put(w: &World, name: &str, version: u64, date: &str) -> Result<CalendarRecord, Refusal> {
    let write = Write::PutCalendar {
        namespace: "default".into(),
        name: name.into(),
        version,
        at: T0.plus(version as i64 * MINUTE),
        doc: Box::new(doc(date)),
    };
    w.write(write).map(|done| match done {
        Done::Calendar(record) => *record,
        done => panic!("{done:?}"),
    })
}

fn delete(w: &World, name: &str, version: u64) -> Result<Done, Refusal> {
    let namespace = w.namespace();
    w.write(Write::DeleteCalendar { namespace, name: name.into(), version })
}

fn schedule(w: &World, uid: u128, name: &str, exclude: &[&str]) -> ScheduleRecord {
    let mut record = record(w, uid, name);
    record.doc.exclude = exclude.iter().map(|name| (*name).to_owned()).collect();
    record
}

fn put_schedule(w: &World, record: ScheduleRecord) -> Result<Done, Refusal> {
    w.write(Write::PutSchedule(Box::new(record)))
}

pub(super) fn a_calendar_is_created_replaced_and_deleted_by_compare_and_set(w: &World) {
    let stored = |name: &str| w.queries.calendar(w.namespace(), name).unwrap();
    assert_eq!(stored("holidays"), None);
    assert_eq!(put(w, "holidays", 1, "2026-01-01"), Err(Refusal::Conflict), "nothing to replace");
    let first = put(w, "holidays", 0, "2026-01-01").unwrap();
    let wanted = CalendarRecord {
        namespace: w.namespace(),
        namespace_name: "default".into(),
        name: "holidays".into(),
        version: first.version,
        created_at: T0,
        updated_at: T0,
        doc: doc("2026-01-01"),
    };
    assert_eq!((stored("holidays"), &first), (Some(wanted.clone()), &wanted));
    assert_eq!(put(w, "holidays", 0, "2026-01-02"), Err(Refusal::Conflict), "it exists");
    let second = put(w, "holidays", first.version, "2026-01-02").unwrap();
    assert!(second.version > first.version);
    assert_eq!((second.created_at, second.doc.clone()), (T0, doc("2026-01-02")));
    assert_eq!(second.updated_at, T0.plus(first.version as i64 * MINUTE));
    assert_eq!(stored("holidays"), Some(second.clone()));
    assert_eq!(put(w, "holidays", first.version, "2026-01-03"), Err(Refusal::Conflict));
    assert_eq!(delete(w, "holidays", first.version), Err(Refusal::Conflict));
    assert_eq!(delete(w, "none", 0), Err(Refusal::Conflict));
    assert_eq!(delete(w, "holidays", second.version), Ok(Done::Ok));
    assert_eq!(delete(w, "holidays", second.version), Err(Refusal::Conflict));
    assert_eq!(stored("holidays"), None);
}

pub(super) fn a_version_is_never_given_twice(w: &World) {
    let mut last = put(w, "a", 0, "2026-01-01").unwrap().version;
    assert!(last > 0, "0 stands for none");
    for name in ["b", "c"] {
        let next = put(w, name, 0, "2026-01-01").unwrap().version;
        assert!(next > last);
        last = next;
    }
    // Removed and made anew, it is another.
    let a = w.queries.calendar(w.namespace(), "a").unwrap().unwrap();
    delete(w, "a", a.version).unwrap();
    let anew = put(w, "a", 0, "2026-01-01").unwrap();
    assert!(anew.version > last);
    // A unit that is refused gives none away for good or not: what counts is that none comes back.
    let refused = w.unit(vec![
        Write::PutCalendar {
            namespace: "default".into(),
            name: "d".into(),
            version: 0,
            at: T0,
            doc: Box::new(doc("2026-01-01")),
        },
        Write::DeleteCalendar { namespace: w.namespace(), name: "none".into(), version: 0 },
    ]);
    assert!(w.commit(&[refused])[0].is_err());
    assert_eq!(w.queries.calendar(w.namespace(), "d").unwrap(), None);
    assert!(put(w, "d", 0, "2026-01-01").unwrap().version > anew.version);
}

pub(super) fn a_schedule_names_only_calendars_that_are_there(w: &World) {
    let wanted = schedule(w, 1, "s", &["a", "b"]);
    assert_eq!(put_schedule(w, wanted.clone()), Err(Refusal::NoCalendar));
    put(w, "a", 0, "2026-01-01").unwrap();
    assert_eq!(put_schedule(w, wanted.clone()), Err(Refusal::NoCalendar), "one is missing");
    assert_eq!(w.queries.schedule(w.namespace(), "s").unwrap(), None);
    assert_eq!(w.queries.calendar_users(w.namespace(), "a", 9).unwrap(), Vec::<String>::new());
    put(w, "b", 0, "2026-01-01").unwrap();
    assert_eq!(put_schedule(w, wanted.clone()), Ok(Done::Ok));
    let stored = w.queries.schedule(w.namespace(), "s").unwrap().unwrap();
    assert_eq!(stored.doc.exclude, ["a", "b"]);
    // A calendar of another namespace is another.
    let mut there = schedule(w, 2, "t", &["a"]);
    there.namespace = w.ensure_queue("other", "q").namespace;
    assert_eq!(put_schedule(w, there), Err(Refusal::NoCalendar));
    // An edit may name another one, or none that is not there.
    let missing = ScheduleRecord { version: 1, ..schedule(w, 1, "s", &["a", "c"]) };
    assert_eq!(put_schedule(w, missing), Err(Refusal::NoCalendar));
    assert_eq!(w.queries.schedule(w.namespace(), "s").unwrap(), Some(stored));
}

pub(super) fn a_calendar_in_use_stays(w: &World) {
    let users = |name: &str| w.queries.calendar_users(w.namespace(), name, 9).unwrap();
    let [a, b] = ["a", "b"].map(|name| put(w, name, 0, "2026-01-01").unwrap().version);
    put_schedule(w, schedule(w, 1, "two", &["a"])).unwrap();
    put_schedule(w, schedule(w, 2, "one", &["b", "a"])).unwrap();
    assert_eq!((users("a"), users("b")), (vec!["one".into(), "two".into()], vec!["one".into()]));
    assert_eq!(w.queries.calendar_users(w.namespace(), "a", 1).unwrap(), ["one"]);
    assert_eq!(delete(w, "a", a + 40), Err(Refusal::Conflict), "the version comes first");
    assert_eq!(delete(w, "a", a), Err(Refusal::InUse));
    let a = put(w, "a", a, "2026-01-02").unwrap().version;
    // Of one that is edited, renamed and removed, and of one that is removed in the same unit.
    let edited = ScheduleRecord { version: 1, ..schedule(w, 2, "renamed", &["a"]) };
    put_schedule(w, edited).unwrap();
    assert_eq!((users("a"), users("b")), (vec!["renamed".into(), "two".into()], vec![]));
    assert_eq!(delete(w, "b", b), Ok(Done::Ok));
    w.must(Write::DeleteSchedule { uid: 1, version: 1 });
    assert_eq!(users("a"), ["renamed"]);
    assert_eq!(delete(w, "a", a), Err(Refusal::InUse));
    let both = w.unit(vec![
        Write::DeleteSchedule { uid: 2, version: 2 },
        Write::DeleteCalendar { namespace: w.namespace(), name: "a".into(), version: a },
    ]);
    assert!(w.commit(&[both])[0].is_ok());
    assert_eq!(users("a"), Vec::<String>::new());
    assert_eq!(w.store.all_calendars().unwrap(), []);
}

pub(super) fn calendars_are_listed_by_name(w: &World) {
    for name in ["c", "a", "b"] {
        put(w, name, 0, "2026-01-01").unwrap();
    }
    let there = Write::PutCalendar {
        namespace: "other".into(),
        name: "aa".into(),
        version: 0,
        at: T0,
        doc: Box::default(),
    };
    w.must(there);
    let names = |after: Option<&str>, limit| -> Vec<String> {
        let page = w.queries.calendars(w.namespace(), after, limit).unwrap();
        page.into_iter().map(|c| c.name).collect()
    };
    assert_eq!(names(None, 9), ["a", "b", "c"]);
    assert_eq!(names(None, 2), ["a", "b"]);
    assert_eq!(names(Some("a"), 9), ["b", "c"]);
    let all = w.store.all_calendars().unwrap();
    let all: Vec<_> = all.iter().map(|c| (c.namespace_name.as_str(), c.name.as_str())).collect();
    assert_eq!(all, [("default", "a"), ("default", "b"), ("default", "c"), ("other", "aa")]);
}

pub(super) fn a_calendar_creates_its_namespace(w: &World) {
    let write = |version| Write::PutCalendar {
        namespace: "new".into(),
        name: "a".into(),
        version,
        at: T0,
        doc: Box::default(),
    };
    assert_eq!(w.write(write(1)), Err(Refusal::Conflict));
    assert_eq!(w.queries.namespace("new").unwrap(), None, "what is refused leaves no trace");
    let Done::Calendar(made) = w.must(write(0)) else { panic!("no calendar") };
    assert_eq!(w.queries.namespace("new").unwrap(), Some(made.namespace));
    assert_eq!(w.ensure_queue("new", "q").namespace, made.namespace);
    let elsewhere = w.queries.calendar(NamespaceId(made.namespace.0 + 40), "a").unwrap();
    assert_eq!(elsewhere, None);
}

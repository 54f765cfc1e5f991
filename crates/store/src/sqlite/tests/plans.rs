//! Fault 28: with ten million finished tasks, lists and counts took seconds elsewhere, because some
//! statement walked or sorted them all. Here every statement that people's questions run is asked
//! for its plan.

use std::time::Instant;

use super::{Folder, world};
use crate::conformance::fixture::{T0, close, link};
use crate::queries::{Cursor, TaskFilter};
use crate::{Queries, Seq, State, Time, Write};

/// The steps of a statement's plan.
fn plan(conn: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect(sql);
    let count = explain.parameter_count();
    let mut rows = explain.query(rusqlite::params_from_iter(vec![1i64; count])).expect(sql);
    let mut steps = Vec::new();
    while let Some(row) = rows.next().expect(sql) {
        steps.push(row.get::<_, String>(3).expect(sql));
    }
    assert!(!steps.is_empty());
    steps
}

#[test]
fn lists_walk_indexes_in_order_and_sort_nothing() {
    let folder = Folder::new();
    let store = folder.open();
    let w = world(&store);
    w.ensure_queue("default", "b");
    let question = store.readers.question().unwrap();
    let all = TaskFilter { namespace: w.namespace(), ..TaskFilter::default() };
    let with_states = State::ALL.map(|state| TaskFilter { states: vec![state], ..all.clone() });
    let mut filters = vec![
        all.clone(),
        TaskFilter { queue: Some(w.queue.id), ..all.clone() },
        TaskFilter { key: Some("k".into()), ..all.clone() },
        TaskFilter { schedule: Some(1), ..all.clone() },
    ];
    filters.extend(with_states);
    let mut seen = 0;
    for filter in filters {
        for sql in question.statements(&filter).unwrap() {
            let steps = plan(&question.conn, &sql);
            // Live tasks of one key or schedule, and running ones, are few: they may be sorted.
            let few = ["tasks_key", "tasks_occurrence", "tasks_running"];
            let few = few.iter().any(|index| sql.contains(&format!("BY {index}\n")));
            for step in steps {
                let sorted = step.contains("TEMP B-TREE");
                assert!(!step.contains("SCAN") || few, "{step}: {sql}");
                assert!(!sorted || few, "{step}: {sql}");
            }
            seen += 1;
        }
    }
    assert!(seen > 20);
}

#[test]
fn everything_else_that_is_asked_uses_an_index() {
    let folder = Folder::new();
    let store = folder.open();
    world(&store);
    let question = store.readers.question().unwrap();
    for sql in [
        "SELECT min(bucket) FROM tasks INDEXED BY tasks_due
         WHERE state = 0 AND overdue = ?1 AND bucket >= ?2",
        "SELECT seq, due, payload FROM tasks INDEXED BY tasks_due
         WHERE state = 0 AND overdue = ?1 AND bucket = ?2 AND (fine, seq) > (?3, ?4)
             AND fine <= ?5
         ORDER BY fine, seq LIMIT 20000",
        "SELECT seq, due FROM tasks INDEXED BY tasks_overdue
         WHERE overdue = 1 AND queue = ?1 AND part = ?2 AND (npri, due, seq) > (?3, ?4, ?5)
         ORDER BY npri, due, seq LIMIT ?6",
        "SELECT queue, part, npri, due, seq, shard FROM tasks INDEXED BY tasks_overdue
         WHERE overdue = 1 AND (queue, part) > (?1, ?2)
         ORDER BY queue, part, npri, due, seq LIMIT 1",
        "SELECT seq FROM tasks WHERE namespace = ?1 AND id = ?2",
        "SELECT seq FROM history_succeeded WHERE namespace = ?1 AND id = ?2",
        "SELECT seq FROM history_other WHERE namespace = ?1 AND id = ?2",
        "SELECT id FROM tasks WHERE task_key = ?1 AND queue = ?2",
        "SELECT 1 FROM tasks WHERE schedule_uid = ?1 AND origin = ?2 AND logical = ?3",
        "SELECT 1 FROM history_other WHERE schedule_uid = ?1 AND origin = ?2 AND logical = ?3",
        "DELETE FROM history_succeeded WHERE fin <= ?1",
        "SELECT minute, rows FROM stats WHERE minute >= ?1 AND minute < ?2 ORDER BY minute",
        "SELECT DISTINCT minute FROM stats WHERE shard = ?1 AND minute < ?2 AND n > 0",
        "DELETE FROM outputs WHERE seq = ?1",
        crate::sqlite::calendars::USERS,
        "SELECT version FROM calendars WHERE namespace = ?1 AND name = ?2",
        "SELECT doc FROM calendars WHERE namespace = ?1 AND name > ?2 ORDER BY name LIMIT ?3",
        "DELETE FROM schedule_calendars WHERE uid = ?1",
        "SELECT uid FROM schedules WHERE namespace = ?1 AND name > ?2 ORDER BY name LIMIT ?3",
    ] {
        for step in plan(&question.conn, sql) {
            let fine = step.starts_with("SEARCH") && !step.contains("TEMP B-TREE");
            assert!(fine, "{step}: {sql}");
        }
    }
    // Oldest first is the order of the table: no sort, and the limit ends the walk.
    let prune = "SELECT finished_at FROM history_other ORDER BY fin LIMIT ?1";
    assert_eq!(plan(&question.conn, prune), ["SCAN history_other"]);
}

#[test]
fn lists_and_counts_over_much_history_answer_soon() {
    let folder = Folder::new();
    let store = folder.open();
    let w = world(&store);
    for round in 0..20i64 {
        let mut inserts = Vec::new();
        let mut news = Vec::new();
        for n in 0..500 {
            let mut new = w.new_task(T0);
            new.spec.kind = "usual".into();
            if n == 0 {
                new.schedule = Some(link(5, "plan", T0.plus(round)));
            }
            inserts.push(Write::Insert(Box::new(new.clone())));
            news.push(new);
        }
        let done = w.commit(&[w.unit(inserts)]).remove(0).unwrap();
        let closes = done.iter().zip(&news).map(|(done, new)| {
            let crate::Done::Inserted(seq) = done else { panic!("{done:?}") };
            close(&crate::apply::created(new, *seq), State::Cancelled)
        });
        let closes = closes.collect();
        assert!(w.commit(&[w.unit(closes)])[0].is_ok());
    }
    let failed = w.in_state(State::Failed);
    w.in_state(State::Running);
    let all = TaskFilter { namespace: w.namespace(), ..TaskFilter::default() };
    let of = |state| TaskFilter { states: vec![state], queue: Some(w.queue.id), ..all.clone() };
    let begin = Instant::now();
    let mut questions = 0;
    for _ in 0..10 {
        assert_eq!(store.list(&of(State::Failed), None, 50).unwrap().tasks[0].id, failed.id);
        assert_eq!(store.list(&of(State::Running), None, 50).unwrap().tasks.len(), 1);
        assert_eq!(store.list(&of(State::Succeeded), None, 50).unwrap().tasks.len(), 0);
        let middle = Some(Cursor::Seq(Seq(5_000)));
        assert_eq!(store.list(&all, middle, 50).unwrap().tasks.len(), 50);
        assert_eq!(store.last_runs(5, 10).unwrap().len(), 10);
        assert_eq!(store.counts().unwrap().iter().map(|c| c.count).sum::<u64>(), 10_002);
        assert_eq!(store.prunable(false, Time::MAX, 500).unwrap(), 500);
        questions += 7;
    }
    let mean = begin.elapsed() / questions;
    // In an optimised build it is far below a millisecond; this only tells a walk of everything.
    assert!(mean.as_millis() < 100, "{mean:?}");
}

//! What happens at the bounds: a full disk, a long log, a long question.

use std::time::Duration;

use super::super::SqliteOptions;
use super::{Folder, options, world};
use crate::conformance::fixture::T0;
use crate::{Done, State, Store, StoreErrorKind, Time, Write};

/// Fault 31: a full disk must cost the request alone. What was acknowledged stays, and when there
/// is room again work goes on without a restart.
#[test]
fn a_full_disk_refuses_and_recovers_when_there_is_room() {
    let folder = Folder::new();
    let options = SqliteOptions { database_max_bytes: Some(1 << 20), ..options() };
    let store = folder.open_with(&options);
    let w = world(&store);
    let mut kept = Vec::new();
    let full = loop {
        let mut new = w.new_task(T0);
        new.spec.payload = Some("x".repeat(20_000));
        let ids = [new.id, w.new_task(T0).id];
        let mut second = new.clone();
        second.id = ids[1];
        let units = [new, second].map(|new| w.unit(vec![Write::Insert(Box::new(new))]));
        match store.commit(&units) {
            Ok(_) => kept.extend(ids),
            Err(error) => break (error, ids),
        }
        assert!(kept.len() < 1_000, "it never fills up");
    };
    assert!(full.0.is_full() && full.0.is_retryable() && !full.0.is_outcome_unknown());
    assert!(kept.len() > 20);
    assert!(kept.iter().all(|id| w.find(*id).is_some()));
    assert!(full.1.iter().all(|id| w.find(*id).is_none()), "nothing of the refused batch");
    assert_eq!(w.queries.counts().unwrap()[0].count, kept.len() as u64);

    // Ending tasks and retention make room, also while it is full.
    for id in &kept[..10] {
        w.finish(&w.task(*id), State::Succeeded);
    }
    let prune = Write::Prune { succeeded: true, before: Time::MAX, limit: 500 };
    assert_eq!(w.must(prune), Done::Pruned(10));
    let mut new = w.new_task(T0);
    new.spec.payload = Some("x".repeat(20_000));
    w.insert(&new);
    assert_eq!(w.task(new.id).spec.payload, new.spec.payload);
}

#[test]
fn the_log_stays_bounded_under_a_reader_that_does_not_let_go() {
    let folder = Folder::new();
    let options = SqliteOptions {
        wal_checkpoint_bytes: 100_000,
        wal_pause_bytes: 200_000,
        wal_max_bytes: 600_000,
        busy_max: Duration::from_millis(20),
        ..options()
    };
    let store = folder.open_with(&options);
    let w = world(&store);
    let question = store.readers.question().unwrap();
    let rows: i64 =
        question.conn.query_row("SELECT count(*) FROM tasks", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 0);
    let mut committed = 0;
    let refused = loop {
        let units: Vec<_> =
            (0..50).map(|_| w.unit(vec![Write::Insert(Box::new(w.new_task(T0)))])).collect();
        match store.commit(&units) {
            Ok(_) => committed += 50,
            Err(error) => break error,
        }
        assert!(committed < 10_000, "the log has no bound");
    };
    assert_eq!(refused.kind(), StoreErrorKind::Busy);
    assert!(refused.is_retryable() && !refused.is_outcome_unknown(), "{refused}");
    let wal = store.gauges().wal_bytes;
    assert!((600_000..900_000).contains(&wal), "{wal}");
    drop(question);
    w.insert(&w.new_task(T0));
    assert!(store.gauges().wal_bytes < 200_000, "the log started anew");
    assert_eq!(w.queries.counts().unwrap()[0].count, committed + 1);
}

#[test]
fn without_readers_in_the_way_the_log_never_reaches_its_bound() {
    let folder = Folder::new();
    let options = SqliteOptions {
        wal_checkpoint_bytes: 50_000,
        wal_pause_bytes: 200_000,
        wal_max_bytes: 400_000,
        ..options()
    };
    let store = folder.open_with(&options);
    let w = world(&store);
    for _ in 0..60 {
        let units: Vec<_> =
            (0..50).map(|_| w.unit(vec![Write::Insert(Box::new(w.new_task(T0)))])).collect();
        store.commit(&units).unwrap();
        assert!(store.gauges().wal_bytes < 400_000);
        w.store.load(&[(w.shard, crate::Edge::START)], Time::MAX, 10).unwrap();
    }
    assert!(store.gauges().checkpoints > 0);
    assert!(store.gauges().data_bytes > 500_000);
}

#[test]
fn a_question_that_takes_too_long_is_ended_and_its_reader_is_free_again() {
    let folder = Folder::new();
    let options = SqliteOptions { read_max: Duration::from_millis(30), readers: 1, ..options() };
    let store = folder.open_with(&options);
    let w = world(&store);
    {
        let question = store.readers.question().unwrap();
        let endless = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
                       SELECT count(*) FROM c";
        let result: Result<i64, _> = question.conn.query_row(endless, [], |row| row.get(0));
        let error = crate::StoreError::from(result.expect_err("endless"));
        assert_eq!(error.kind(), StoreErrorKind::Busy);
        let error = store.queues().expect_err("the only reader is in use");
        assert_eq!(error.kind(), StoreErrorKind::Busy);
    }
    assert_eq!(store.queues().unwrap(), [w.queue]);
}

/// A long walk over buckets gives its snapshot up on the way, so it is not ended by the bound on
/// questions; and what it answers is in order and complete.
#[test]
fn a_long_load_renews_its_snapshot() {
    let folder = Folder::new();
    let options = SqliteOptions { read_max: Duration::from_millis(40), ..options() };
    let store = folder.open_with(&options);
    let w = world(&store);
    let due = |n: i64| T0.plus(n * 7 % 2_000 * 60_000_000);
    let writes = (0..6_000).map(|n| Write::Insert(Box::new(w.new_task(due(n))))).collect();
    assert!(w.commit(&[w.unit(writes)])[0].is_ok());
    let mut edge = crate::Edge::START;
    let mut found = 0;
    loop {
        let span = store.load(&[(w.shard, edge)], Time::MAX, 4_000).unwrap();
        assert!(span.stubs.is_sorted_by_key(|(_, stub)| (stub.due, stub.seq)));
        found += span.stubs.len();
        if span.stubs.is_empty() || found == 6_000 {
            break;
        }
        edge = span.edge;
    }
    assert_eq!(found, 6_000);
}

#[test]
fn a_list_that_must_look_at_too_much_is_cut_and_goes_on() {
    let folder = Folder::new();
    let store = folder.open();
    let w = world(&store);
    for n in 0..300 {
        let mut new = w.new_task(T0.plus(n * 1_000_000));
        new.spec.kind = if n % 100 == 7 { "rare" } else { "usual" }.to_owned();
        w.insert(&new);
    }
    for by_due in [false, true] {
        let filter = crate::queries::TaskFilter {
            namespace: w.namespace(),
            kind: Some("rare".into()),
            states: vec![State::Scheduled],
            due_after: by_due.then_some(T0),
            ..Default::default()
        };
        let (mut cursor, mut found, mut cuts) = (None, 0, 0);
        loop {
            let page = store.readers.question().unwrap().list(&filter, cursor, 2, 40).unwrap();
            found += page.tasks.len();
            cuts += usize::from(page.cut);
            assert!(!page.cut || page.next.is_some());
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, 3);
        assert!(cuts >= if by_due { 2 } else { 4 }, "{cuts}");
    }
}

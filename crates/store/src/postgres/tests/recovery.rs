//! What breaks between this process and the server, and that the store is well again afterwards.

use std::thread;
use std::time::Duration;

use crate::conformance::fixture::{T0, acquire, close};
use crate::time::{MINUTE, SECOND};
use crate::{Done, State, Store, StoreErrorKind, Write};

use super::super::leases::SHARE;
use super::super::server::{TestServer, fresh_schema};
use super::super::{PostgresOptions, PostgresStore};
use super::{Connector, Rival, open, options, shared, world};

const WRITER: &str = "tourbillon writer";

#[test]
fn a_connection_cut_before_the_commit_commits_nothing_and_is_opened_anew() {
    let schema = fresh_schema();
    let store = open(&schema);
    let w = world(&store);
    let task = w.insert_due(T0);
    let batch =
        [w.unit(vec![close(&task, State::Cancelled), Write::Insert(Box::new(w.new_task(T0)))])];
    let mut rival = Rival::new(&schema);
    rival.run("BEGIN; LOCK TABLE counters IN ACCESS EXCLUSIVE MODE");
    thread::scope(|scope| {
        let committing = scope.spawn(|| store.commit(&batch));
        let pids = rival.until_waiting(WRITER, 1);
        rival.end_backend(pids[0]);
        let error = committing.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(!error.is_outcome_unknown() && error.is_retryable(), "{error}");
    });
    rival.run("COMMIT");
    assert_eq!(w.task(task.id), task);
    assert_eq!(w.queries.counts().unwrap()[0].count, 1);
    let results = store.commit(&batch).expect("a new connection");
    assert!(matches!(results[0].as_deref(), Ok([Done::Ok, Done::Inserted(_)])), "{results:?}");
}

/// The server has the `COMMIT`, and the connection is cut while it works on it.
#[test]
fn a_connection_cut_inside_the_commit_leaves_the_outcome_unknown() {
    let schema = fresh_schema();
    let store = open(&schema);
    let w = world(&store);
    let mut rival = Rival::new(&schema);
    rival.run(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM 1 FROM meta WHERE name = ''catalogue'' FOR UPDATE; RETURN NULL; END';
         CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON tasks DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION dawdle()",
    );
    rival.run("BEGIN; SELECT 1 FROM meta WHERE name = 'catalogue' FOR UPDATE");
    let new = w.new_task(T0);
    let batch = [w.unit(vec![Write::Insert(Box::new(new.clone()))])];
    thread::scope(|scope| {
        let committing = scope.spawn(|| store.commit(&batch));
        let pids = rival.until_waiting(WRITER, 1);
        rival.end_backend(pids[0]);
        let error = committing.join().unwrap().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(error.is_outcome_unknown(), "{error}");
    });
    rival.run("COMMIT");
    assert_eq!(w.find(new.id), None, "this time it was not committed");
    assert!(store.commit(&batch).expect("a new connection")[0].is_ok());
    assert!(w.find(new.id).is_some());
}

/// A node that is stopped inside its transaction holds the locks of its shards no longer than the
/// bound says.
#[test]
fn a_node_that_stands_still_holds_up_no_takeover() {
    let schema = fresh_schema();
    let store = open(&schema);
    let w = world(&store);
    let brief =
        PostgresOptions { idle_in_transaction_max: Duration::from_millis(200), ..options(&schema) };
    let connector = Connector::new(&shared().url(), &brief).unwrap();
    let mut stopped = connector.connect("stopped").unwrap();
    stopped.batch("BEGIN").unwrap();
    stopped.rows(SHARE, &[&vec![i16::from(w.shard.0)]]).unwrap();
    let taken = store.leases(&acquire("n2", &[w.shard], T0.plus(MINUTE))).unwrap();
    assert_eq!(taken.len(), 1);
    assert!(stopped.batch("COMMIT").is_err(), "its transaction is gone");
}

/// Somebody waits too long for a lock: busy, nothing committed, and the same connection goes on.
#[test]
fn a_lock_that_does_not_come_is_busy() {
    let schema = fresh_schema();
    let brief = PostgresOptions { lock_max: Duration::from_millis(50), ..options(&schema) };
    let store = std::sync::Arc::new(PostgresStore::open(&shared().url(), &brief).expect("open"));
    let w = world(&store);
    let mut rival = Rival::new(&schema);
    rival.run("BEGIN; SELECT 1 FROM leases FOR UPDATE");
    let batch = [w.unit(vec![Write::Insert(Box::new(w.new_task(T0)))])];
    let error = store.commit(&batch).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}");
    assert!(!error.is_outcome_unknown());
    let error = store.leases(&acquire("n1", &[w.shard], T0)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy, "{error}");
    rival.run("COMMIT");
    assert!(store.commit(&batch).unwrap()[0].is_ok());
    assert_eq!(store.leases(&acquire("n1", &[w.shard], T0)).unwrap().len(), 1);
}

/// Every connection is cut, then the server goes away for good: what is asked fails as unavailable,
/// and the first time is the last time after a mere cut.
#[test]
fn readers_and_leases_are_connected_anew() {
    let server = TestServer::start(&["fsync=off"]).unwrap_or_else(|error| panic!("{error}"));
    let options = options("cut");
    let store = std::sync::Arc::new(PostgresStore::open(&server.url(), &options).expect("open"));
    let w = world(&store);
    let task = w.insert_due(T0);
    let connector = Connector::new(&server.url(), &options).unwrap();
    let mut rival = connector.connect("rival").unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name LIKE 'tourbillon%'";
    let ask = || {
        let renew = vec![(w.shard, w.epoch)];
        let mut ask = acquire("n1", &[], T0.plus(SECOND));
        ask.renew = renew;
        [store.lease_table().map(drop), store.leases(&ask).map(drop), store.commit(&[]).map(drop)]
    };
    assert!(ask().iter().all(Result::is_ok));
    assert!(rival.rows(cut, &[]).unwrap().len() >= 3);
    for error in ask().into_iter().filter_map(Result::err) {
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(!error.is_outcome_unknown(), "nothing had been sent: {error}");
    }
    assert!(ask().iter().all(Result::is_ok));
    assert_eq!(w.task(task.id), task);
    drop(server);
    for result in ask().into_iter().chain(ask()) {
        assert_eq!(result.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }
}

//! Opening: addresses, schemas, versions; whose time it is; nudges.

use std::thread;
use std::time::Duration;

use crate::conformance::fixture::{T0, acquire};
use crate::time::{MINUTE, SECOND};
use crate::{Done, NewTask, Store, StoreErrorKind, Time, Unit, Write};

use super::super::migrate::{MIGRATIONS, Migration};
use super::super::server::fresh_schema;
use super::super::{PostgresOptions, PostgresStore, TimeSource};
use super::{Rival, open, options, shared, world};

#[test]
fn an_address_that_makes_no_sense_is_refused() {
    let open = |url: &str| PostgresStore::open(url, &options("x")).unwrap_err();
    for url in ["postgres://[", "nonsense", "host=/tmp port=x"] {
        let error = open(url);
        assert!(error.to_string().contains("postgres://USER"), "{error}");
    }
    let secret = open("postgres://me:hunter2@[");
    assert!(!secret.to_string().contains("hunter2"));
    let tls = open("host=/tmp sslmode=require");
    assert!(tls.to_string().contains("TLS"), "{tls}");
    let nobody = open("host=/nonexistent user=x");
    assert_eq!(nobody.kind(), StoreErrorKind::Unavailable, "{nobody}");
}

#[test]
fn nodes_that_start_at_once_make_one_schema() {
    let schema = fresh_schema();
    thread::scope(|scope| {
        let opening: Vec<_> = (0..4).map(|_| scope.spawn(|| open(&schema))).collect();
        for store in opening {
            let store = store.join().unwrap();
            assert!(store.info().detail.contains(&schema));
            assert!(!store.info().durable, "the tests' server does not wait for the disk");
        }
    });
}

#[test]
fn a_newer_schema_is_used_while_it_only_added_and_refused_else() {
    let schema = fresh_schema();
    let open_with = |migrations: &[Migration]| {
        PostgresStore::open_with(&shared().url(), &options(&schema), migrations)
    };
    let added = Migration { version: 2, min_binary: 1, sql: "CREATE TABLE more (n bigint)" };
    let removed = Migration { version: 3, min_binary: 3, sql: "DROP TABLE more" };
    let [first] = MIGRATIONS else { panic!("more than one migration") };
    open_with(&[*first]).expect("the first");
    open_with(&[*first, added]).expect("a newer one");
    let old = open_with(&[*first]).expect("an older binary beside it");
    assert!(old.info().detail.contains("(2)"), "{}", old.info().detail);
    open_with(&[*first, added, removed]).expect("the newest");
    let error = open_with(&[*first, added]).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TooNew, "{error}");
}

#[test]
fn a_migration_that_fails_leaves_the_schema_as_it_was() {
    let schema = fresh_schema();
    let bad =
        Migration { version: 2, min_binary: 1, sql: "CREATE TABLE more (n bigint); SELECT 1/0" };
    let migrations = [MIGRATIONS[0], bad];
    let open_with = || PostgresStore::open_with(&shared().url(), &options(&schema), &migrations);
    assert!(open_with().is_err());
    assert!(open_with().is_err(), "not because its table exists");
    assert!(open(&schema).info().detail.contains("(1)"));
}

#[test]
fn a_schema_that_holds_something_else_is_refused() {
    let schema = fresh_schema();
    Rival::new("other")
        .run(&format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.mine (n integer)"));
    let error = PostgresStore::open(&shared().url(), &options(&schema)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
}

/// Leases run by the database's clock, whatever a node believes what time it is.
#[test]
fn store_time_is_the_databases() {
    let schema = fresh_schema();
    let options = PostgresOptions { time: TimeSource::Database, ..options(&schema) };
    let store = PostgresStore::open(&shared().url(), &options).unwrap();
    let time = || store.time().unwrap().expect("it has a clock");
    let shard = crate::Shard(3);
    let ask = |node: &str, now: Time| {
        let mut ask = acquire(node, &[shard], now);
        ask.period = 10 * MINUTE;
        store.leases(&ask).unwrap()
    };
    let before = time();
    let held = ask("n1", Time::MIN);
    let after = time();
    let [lease] = &held[..] else { panic!("{held:?}") };
    assert!(before.plus(10 * MINUTE) <= lease.until && lease.until <= after.plus(10 * MINUTE));
    assert!(i64::from(lease.epoch.0) >= before.0 / SECOND);
    assert_eq!(ask("n2", Time::MAX), [], "a node whose clock is far ahead takes nothing early");
}

#[test]
fn a_foreign_insert_nudges_whoever_listens() {
    let schema = fresh_schema();
    let (a, b) = (open(&schema), open(&schema));
    let w = world(&a);
    let nudges = a.nudges().unwrap();
    assert!(nudges.wait(Duration::ZERO).unwrap().is_empty());
    let new = NewTask { inbox: true, ..w.new_task(T0) };
    let unit = Unit { fences: Vec::new(), writes: vec![Write::Insert(Box::new(new.clone()))] };
    let results = b.commit(&[unit]).unwrap();
    let Ok([Done::Inserted(seq)]) = results[0].as_deref() else { panic!("{results:?}") };
    let heard = nudges.wait(Duration::from_secs(60)).unwrap();
    assert_eq!(heard.into_iter().collect::<Vec<_>>(), [w.shard]);
    assert_eq!(a.inbox(&[w.shard]).unwrap(), [(w.shard, new.stub(*seq))]);
}

//! The PostgreSQL store against the suite and the model, on a real server; what only several
//! connections can do wrong is beside.

mod open;
mod plans;
mod races;
mod recovery;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::{Connection, Connector};
use super::server::{fresh_schema, shared};
use super::{PostgresOptions, PostgresStore, TimeSource};
use crate::conformance::{self, World, model::Model};
use crate::{Queries, Store};

/// Patient: a test decides when what waits may go on, however busy the machine is.
fn options(schema: &str) -> PostgresOptions {
    PostgresOptions {
        schema: schema.to_owned(),
        time: TimeSource::Caller,
        readers: 2,
        lock_max: Duration::from_secs(60),
        statement_max: Duration::from_secs(60),
        idle_in_transaction_max: Duration::from_secs(60),
        answer_max: Duration::from_secs(90),
        ..PostgresOptions::default()
    }
}

/// A store in a schema, whose time is the test's.
fn open(schema: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(&shared().url(), &options(schema)).expect("open"))
}

fn make() -> (Arc<dyn Store>, Arc<dyn Queries>) {
    let store = open(&fresh_schema());
    (store.clone(), store)
}

fn world(store: &Arc<PostgresStore>) -> World {
    World::new(store.clone(), store.clone())
}

/// A connection of the test's own, to be in the way with.
struct Rival {
    conn: Connection,
    schema: String,
    _connector: Connector,
}

impl Rival {
    fn new(schema: &str) -> Rival {
        let connector = Connector::new(&shared().url(), &options(schema)).expect("options");
        let conn = connector.connect("rival").expect("connect");
        Rival { conn, schema: schema.to_owned(), _connector: connector }
    }

    fn run(&mut self, sql: &str) {
        self.conn.batch(sql).expect(sql);
    }

    /// What `EXPLAIN` answers.
    fn plan(&mut self, sql: &str) -> String {
        self.conn.texts(sql).expect(sql).join("\n")
    }

    /// The backends of this role that wait for a lock and are at work in this schema.
    fn waiting(&mut self, role: &str) -> Vec<i32> {
        let sql = "SELECT a.pid FROM pg_stat_activity a
             WHERE a.application_name = $1 AND a.wait_event_type = 'Lock' AND EXISTS
                 (SELECT 1 FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                  JOIN pg_namespace n ON n.oid = c.relnamespace
                  WHERE l.pid = a.pid AND n.nspname = $2)";
        // Activity is shown as it was at the first look of a transaction.
        self.run("SELECT pg_stat_clear_snapshot()");
        let rows = self.conn.rows(sql, &[&role, &self.schema.clone()]).expect("activity");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Looks until so many backends of this role wait.
    fn until_waiting(&mut self, role: &str, count: usize) -> Vec<i32> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let found = self.waiting(role);
            if found.len() == count {
                return found;
            }
            assert!(Instant::now() < deadline, "{found:?} of role {role} wait, not {count}");
        }
    }

    fn end_backend(&mut self, pid: i32) {
        self.conn.rows("SELECT pg_terminate_backend($1)", &[&pid]).expect("terminate");
    }
}

#[test]
fn it_conforms() {
    conformance::run(&make);
}

#[test]
fn it_agrees_with_the_memory_store() {
    for seed in 0..4 {
        let schema = fresh_schema();
        let store = open(&schema);
        let mut model = Model::new(store.clone(), store, seed);
        for step in 0..60 {
            model.step();
            if step % 20 == 19 {
                model.compare();
            }
            if step % 30 == 9 {
                let again = open(&schema);
                model.reopened(again.clone(), again);
                model.compare();
            }
        }
    }
}

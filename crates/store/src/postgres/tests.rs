//! The PostgreSQL store against the suite and the model, on a real server; what only several
//! connections can do wrong is beside.

use std::sync::Arc;

use super::server::{fresh_schema, shared};
use super::{PostgresOptions, PostgresStore, TimeSource};
use crate::conformance::{self, model};
use crate::{Queries, Store};

/// A store in a schema of its own, whose time is the test's.
fn open(schema: &str) -> Arc<PostgresStore> {
    let options = PostgresOptions {
        schema: schema.to_owned(),
        time: TimeSource::Caller,
        readers: 2,
        ..PostgresOptions::default()
    };
    Arc::new(PostgresStore::open(&shared().url(), &options).expect("open"))
}

fn make() -> (Arc<dyn Store>, Arc<dyn Queries>) {
    let store = open(&fresh_schema());
    (store.clone(), store)
}

#[test]
fn it_conforms() {
    conformance::run(&make);
}

#[test]
fn it_agrees_with_the_memory_store() {
    for seed in 0..4 {
        model::run(&make, seed, 60);
    }
}

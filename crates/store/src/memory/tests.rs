//! The memory store against the suite, against itself, and its faults.

use std::sync::Arc;

use super::{Fault, MemoryStore};
use crate::conformance::{self, World};
use crate::{Queries, Store, StoreErrorKind, Time, Write};

fn make() -> (Arc<dyn Store>, Arc<dyn Queries>) {
    let store = Arc::new(MemoryStore::new());
    (store.clone(), store)
}

#[test]
fn it_conforms() {
    conformance::run(&make);
}

#[test]
fn it_agrees_with_itself() {
    for seed in 0..20 {
        conformance::model::run(&make, seed, 60);
    }
}

#[test]
fn injected_faults_come_in_line_and_do_what_they_say() {
    let store = Arc::new(MemoryStore::shared());
    let w = World::new(store.clone(), store.clone());
    let faults = [
        (Fault::NotCommitted, StoreErrorKind::Io, false, 0),
        (Fault::UnknownCommitted, StoreErrorKind::Io, true, 1),
        (Fault::UnknownNotCommitted, StoreErrorKind::Io, true, 0),
        (Fault::Busy, StoreErrorKind::Busy, false, 0),
        (Fault::Full, StoreErrorKind::Full, false, 0),
    ];
    faults.iter().for_each(|f| store.inject(f.0));
    for (fault, kind, unknown, committed) in faults {
        let new = w.new_task(Time(0));
        let unit = w.unit(vec![Write::Insert(Box::new(new.clone()))]);
        let error = store.commit(&[unit]).expect_err("injected");
        assert_eq!((error.kind(), error.is_outcome_unknown()), (kind, unknown), "{fault:?}");
        assert_eq!(usize::from(w.find(new.id).is_some()), committed, "{fault:?}");
    }
    assert_eq!(store.faults_left(), 0);
    w.insert(&w.new_task(Time(0)));
    store.set_unavailable(true);
    let error = store.queues().expect_err("unavailable");
    assert!(error.is_retryable() && error.kind() == StoreErrorKind::Unavailable);
    store.set_unavailable(false);
    w.insert(&w.new_task(Time(0)));
    store.check_invariants();
}

#[test]
fn after_release_all_another_node_takes_over_at_once() {
    let store = MemoryStore::new();
    let ask = |node: &str| crate::LeaseAsk {
        node: node.into(),
        acquire: vec![crate::Shard(3)],
        renew: Vec::new(),
        release: Vec::new(),
        now: Time(0),
        period: 1_000,
    };
    let first = store.leases(&ask("a")).unwrap()[0];
    assert!(store.leases(&ask("b")).unwrap().is_empty());
    store.release_all();
    let second = store.leases(&ask("b")).unwrap()[0];
    assert!(second.epoch > first.epoch);
}

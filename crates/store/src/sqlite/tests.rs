//! The SQLite store against the suite and the model; what only SQLite can do wrong is beside.

mod bounds;
mod dense;
mod open;
mod plans;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{SqliteOptions, SqliteStore};
use crate::conformance::{self, World, model::Model};
use crate::{Queries, Store};

/// A folder that goes with the test.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tourbillon-sqlite-{}-{n}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }

    fn open(&self) -> Arc<SqliteStore> {
        self.open_with(&options())
    }

    fn open_with(&self, options: &SqliteOptions) -> Arc<SqliteStore> {
        Arc::new(SqliteStore::open(&self.0, options).expect("open"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Without waiting for the disk: durability is tested elsewhere.
fn options() -> SqliteOptions {
    SqliteOptions { synchronous: super::Synchronous::Off, ..SqliteOptions::default() }
}

fn world(store: &Arc<SqliteStore>) -> World {
    World::new(store.clone(), store.clone())
}

#[test]
fn it_conforms() {
    let folders = std::cell::RefCell::new(Vec::new());
    conformance::run(&|| -> (Arc<dyn Store>, Arc<dyn Queries>) {
        let folder = Folder::new();
        let store = folder.open();
        folders.borrow_mut().push(folder);
        (store.clone(), store)
    });
}

#[test]
fn it_agrees_with_the_memory_store() {
    for seed in 0..5 {
        let folder = Folder::new();
        let store = folder.open();
        let mut model = Model::new(store.clone(), store.clone(), seed);
        let mut store = Some(store);
        for step in 0..60 {
            model.step();
            if step % 20 == 19 {
                model.compare();
            }
            if step % 30 == 9 {
                // The old one must be gone before another may open the folder.
                model.detached();
                drop(store.take());
                let again = folder.open();
                model.reopened(again.clone(), again.clone());
                store = Some(again);
                model.compare();
            }
        }
    }
}

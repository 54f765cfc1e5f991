//! Faults 29 and 31: a disk that is full or fails while it has power. The batch under way fails, and
//! what is said of it is true: "not committed", or "not known". Nothing acknowledged is harmed, and
//! when the trouble is over the same store goes on.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tourbillon_store::conformance::World;
use tourbillon_store::conformance::fixture::T0;
use tourbillon_store::sqlite::{SqliteOptions, Synchronous};
use tourbillon_store::{SqliteStore, StoreError, StoreErrorKind, TaskId, Write};

use crate::disk::{Disk, Files, Trouble};
use crate::{Folder, options, vfs};

struct Troubled {
    world: World,
    disk: Arc<std::sync::Mutex<Disk>>,
    kept: Vec<TaskId>,
    folder: Folder,
}

impl Troubled {
    fn new(name: &str) -> Troubled {
        let folder = Folder::new(name);
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let disk = vfs::mount(&folder.0, Disk::new(Files::new(), 0, 0, acknowledged));
        let world = open(&folder);
        let mut troubled = Troubled { world, disk, kept: Vec::new(), folder };
        (0..5).for_each(|_| troubled.insert().1.expect("no trouble yet"));
        troubled
    }

    fn set(&self, trouble: Option<Trouble>) {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner).trouble = trouble;
    }

    /// Commits two tasks of some size.
    fn insert(&mut self) -> ([TaskId; 2], Result<(), StoreError>) {
        let news = [0, 1].map(|_| {
            let mut new = self.world.new_task(T0);
            new.spec.payload = Some("x".repeat(9_000));
            new
        });
        let ids = [news[0].id, news[1].id];
        let units = news.map(|new| self.world.unit(vec![Write::Insert(Box::new(new))]));
        let result = self.world.store.commit(&units).map(|_| self.kept.extend(ids));
        (ids, result)
    }

    fn check(&self) {
        for id in &self.kept {
            assert!(self.world.find(*id).is_some(), "{id} was acknowledged");
        }
        let scheduled = self.world.queries.counts().unwrap()[0].count;
        assert_eq!(scheduled, self.kept.len() as u64);
    }

    /// The trouble is over: the same store goes on, and so does one opened anew.
    fn recovers(mut self) {
        self.set(None);
        self.check();
        self.insert().1.expect("the trouble is over");
        self.check();
        let Troubled { world, kept, folder, .. } = self;
        drop(world);
        let world = open(&folder);
        for id in kept {
            assert!(world.find(id).is_some(), "{id} is gone after reopening");
        }
    }
}

fn open(folder: &Folder) -> World {
    // No checkpoint comes between, so that the trouble hits the commit.
    let options = SqliteOptions {
        checkpoint_every: Duration::from_secs(60),
        wal_checkpoint_bytes: u64::MAX,
        wal_pause_bytes: u64::MAX,
        ..options(Synchronous::Full)
    };
    let store = Arc::new(SqliteStore::open(&folder.0, &options).expect("open"));
    World::new(store.clone(), store)
}

#[test]
fn no_room_for_the_log() {
    let mut troubled = Troubled::new("full");
    troubled.set(Some(Trouble::Full("-wal")));
    for _ in 0..3 {
        let (ids, result) = troubled.insert();
        let error = result.expect_err("no room");
        assert!(error.is_full() && !error.is_outcome_unknown(), "{error}");
        assert!(ids.iter().all(|id| troubled.world.find(*id).is_none()));
        troubled.check();
    }
    troubled.recovers();
}

#[test]
fn the_log_cannot_be_written() {
    let mut troubled = Troubled::new("no-write");
    troubled.set(Some(Trouble::NoWrite("-wal")));
    let (ids, result) = troubled.insert();
    let error = result.expect_err("no write");
    assert_eq!(error.kind(), StoreErrorKind::Io);
    assert!(ids.iter().all(|id| troubled.world.find(*id).is_none()));
    troubled.recovers();
}

/// Fault 38 from the store's side: after a sync that failed nobody knows what the disk has. Saying
/// "not committed" would be a guess.
#[test]
fn a_sync_that_fails_leaves_the_outcome_unknown() {
    let mut troubled = Troubled::new("no-sync");
    troubled.set(Some(Trouble::NoSync("-wal")));
    let (ids, result) = troubled.insert();
    let error = result.expect_err("no sync");
    assert!(error.is_outcome_unknown() && error.kind() == StoreErrorKind::Io, "{error}");
    // Whole or not at all, and asking the store tells which.
    let there = ids.map(|id| troubled.world.find(id).is_some());
    assert_eq!(there[0], there[1]);
    if there[0] {
        troubled.kept.extend(ids);
    }
    troubled.recovers();
}

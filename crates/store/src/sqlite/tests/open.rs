//! Opening: the lock, what is reported, old and new schemas, epochs.

use std::sync::Arc;

use super::super::migrate::{MIGRATIONS, Migration};
use super::super::{DATABASE, SqliteOptions, SqliteStore, Synchronous};
use super::{Folder, world};
use crate::conformance::fixture::{T0, acquire};
use crate::{Queries, Refusal, Store, StoreErrorKind, Unit, Write};

/// Fault 30: two servers on one data folder would both run everything. The second refuses and says
/// why, and the first is not disturbed.
#[test]
fn a_second_store_on_the_folder_is_refused_with_the_reason() {
    let folder = Folder::new();
    let first = folder.open();
    let w = world(&first);
    let error = SqliteStore::open(&folder.0, &SqliteOptions::default()).expect_err("in use");
    assert_eq!(error.kind(), StoreErrorKind::InUse);
    let told = error.to_string();
    assert!(told.contains(&std::process::id().to_string()), "{told}");
    assert!(told.contains(&*folder.0.to_string_lossy()), "{told}");
    w.insert(&w.new_task(T0));
    drop((w, first));
    folder.open();
}

/// Fault 42: `synchronous` set lower by mistake goes unnoticed until a power failure.
#[test]
fn a_store_that_does_not_wait_for_the_disk_says_so() {
    for (synchronous, durable) in
        [(Synchronous::Off, false), (Synchronous::Normal, false), (Synchronous::Full, true)]
    {
        let folder = Folder::new();
        let options = SqliteOptions { synchronous, ..SqliteOptions::default() };
        let info = folder.open_with(&options).info();
        assert_eq!((info.durable, info.exclusive), (durable, true));
        assert_eq!(info.detail.contains("NOT DURABLE"), !durable, "{}", info.detail);
        assert!(info.detail.contains("journal_mode=WAL"), "{}", info.detail);
        let full = info.detail.contains("synchronous=FULL") && !info.detail.contains("wanted");
        assert_eq!(full, durable, "{}", info.detail);
    }
}

#[cfg(unix)]
#[test]
fn the_folder_and_the_database_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    folder.open();
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).expect("there").permissions().mode() & 0o777
    };
    assert_eq!(mode(&folder.0), 0o700);
    assert_eq!(mode(&folder.0.join(DATABASE)), 0o600);
}

#[test]
fn an_opened_store_is_free_and_its_epochs_are_higher() {
    let folder = Folder::new();
    let (shard, old) = {
        let w = world(&folder.open());
        (w.shard, w.epoch)
    };
    let store = folder.open();
    let rows = store.lease_table().unwrap();
    assert_eq!((rows[0].shard, rows[0].epoch, rows[0].owner.clone()), (shard, old, None));
    let insert = |epoch| {
        let ensure = Write::EnsureQueue { namespace: "a".into(), name: "b".into() };
        let unit = Unit { fences: vec![(shard, epoch)], writes: vec![ensure] };
        store.commit(&[unit]).unwrap().remove(0)
    };
    assert_eq!(insert(old).unwrap_err().why, Refusal::Fenced);
    // Another node's name, and the clock of a restored backup's machine an hour behind.
    let now = T0.plus(-3_600_000_000);
    let lease = store.leases(&acquire("n2", &[shard], now)).unwrap()[0];
    assert!(lease.epoch > old);
    assert!(insert(lease.epoch).is_ok());
}

#[test]
fn what_was_committed_is_there_after_reopening_and_sequences_go_on() {
    let folder = Folder::new();
    let (new, seq) = {
        let w = world(&folder.open());
        let (new, gone) = (w.new_keyed("k"), w.new_task(T0));
        let seq = w.insert(&new);
        let last = w.insert(&gone);
        w.must(Write::Discard { seq: last, version: 0 });
        (new, last.max(seq))
    };
    let w = world(&folder.open());
    assert_eq!(w.task(new.id).spec, new.spec);
    assert_eq!(w.write(Write::Insert(Box::new(new))), Err(Refusal::IdReused));
    let third = (0..3).map(|_| w.new_keyed("l")).last().expect("three");
    assert!(w.insert(&third) > seq);
}

const SECOND_STEP: Migration = Migration {
    version: 2,
    min_binary: 1,
    sql: "ALTER TABLE queues ADD COLUMN note TEXT; CREATE TABLE notes (n INTEGER) STRICT;",
};

fn steps(more: &[Migration]) -> Vec<Migration> {
    MIGRATIONS.iter().chain(more).copied().collect()
}

fn open(folder: &Folder, more: &[Migration]) -> Result<Arc<SqliteStore>, crate::StoreError> {
    SqliteStore::open_with(&folder.0, &super::options(), &steps(more)).map(Arc::new)
}

#[test]
fn an_old_schema_is_brought_up_to_date_and_an_older_binary_may_use_it_if_it_can() {
    let folder = Folder::new();
    let id = {
        let w = world(&folder.open());
        w.insert_due(T0).id
    };
    let store = open(&folder, &[SECOND_STEP]).unwrap();
    assert!(store.info().detail.contains("schema 2"));
    drop(store);
    let again = folder.open();
    assert!(again.info().detail.contains("schema 2"), "{}", again.info().detail);
    let namespace = again.namespace("default").unwrap().unwrap();
    assert!(again.task(namespace, id).unwrap().is_some());
}

#[test]
fn a_schema_that_is_too_new_is_refused_and_left_alone() {
    let folder = Folder::new();
    let incompatible = Migration { min_binary: 2, ..SECOND_STEP };
    drop(open(&folder, &[incompatible]).unwrap());
    let error = open(&folder, &[]).expect_err("too new");
    assert_eq!(error.kind(), StoreErrorKind::TooNew);
    assert!(error.to_string().contains("schema 2"), "{error}");
    open(&folder, &[incompatible]).unwrap();
}

/// Fault 22, during migration: a step that breaks off half-way leaves the schema as it was.
#[test]
fn a_step_that_fails_half_way_changes_nothing() {
    let folder = Folder::new();
    let id = {
        let w = world(&folder.open());
        w.insert_due(T0).id
    };
    let sql = "CREATE TABLE notes (n INTEGER) STRICT; DELETE FROM tasks; SELECT no_such_thing();";
    let broken = Migration { sql, ..SECOND_STEP };
    open(&folder, &[broken]).expect_err("it fails");
    let store = folder.open();
    assert!(store.info().detail.contains("schema 1,"), "{}", store.info().detail);
    let namespace = store.namespace("default").unwrap().unwrap();
    assert!(store.task(namespace, id).unwrap().is_some());
    drop(store);
    open(&folder, &[SECOND_STEP]).unwrap();
}

#[test]
fn strange_files_are_refused() {
    let folder = Folder::new();
    std::fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join(DATABASE);
    std::fs::write(&path, vec![0x5a; 8192]).unwrap();
    let error = SqliteStore::open(&folder.0, &super::options()).expect_err("no database");
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    std::fs::remove_file(&path).unwrap();
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign.execute_batch("CREATE TABLE theirs (a)").unwrap();
    drop(foreign);
    let error = SqliteStore::open(&folder.0, &super::options()).expect_err("not ours");
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(error.to_string().contains("another data folder"), "{error}");
}

/// A lease that is renewed late because a batch takes long would stop a healthy node.
#[test]
fn a_renewal_does_not_wait_for_the_batch_under_way() {
    let folder = Folder::new();
    let store = folder.open();
    let w = world(&store);
    let under_way = store.writer();
    let mut ask = acquire("n1", &[], T0.plus(1_000_000));
    ask.renew = vec![(w.shard, w.epoch)];
    let (sender, answer) = std::sync::mpsc::channel();
    let other = store.clone();
    let thread = std::thread::spawn(move || sender.send(other.leases(&ask).unwrap().len()));
    let held = answer.recv_timeout(std::time::Duration::from_secs(20));
    drop(under_way);
    thread.join().unwrap().unwrap();
    assert_eq!(held, Ok(1));
}

//! Faults 22 and 42: the power fails, at any moment, also while retention deletes, while the schema
//! is made, and while the log is moved into the database. The disk loses whatever was not synced,
//! in any order, in pieces of 512 bytes.
//!
//! The real store runs on a disk in memory. At a thousand operations chosen at random the disk's
//! state is copied, the power is taken to have failed there, and the store is opened on what is
//! left. It must hold everything that was acknowledged, at most one batch more (the one under way,
//! whole or not at all), and pass SQLite's own check. The same test with `synchronous` set lower
//! must find losses, or it would prove nothing (beanstalkd#62 is such a loss).

mod disk;
mod trouble;
mod vfs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use disk::{Disk, Files, Snapshot};
use rusqlite::{Connection, OpenFlags};
use tourbillon_store::conformance::fixture::{self, T0};
use tourbillon_store::conformance::{Rng, World};
use tourbillon_store::queries::{Count, TaskFilter};
use tourbillon_store::sqlite::{DATABASE, SqliteOptions, Synchronous};
use tourbillon_store::time::{MINUTE, SECOND};
use tourbillon_store::{
    AttemptOutcome, Edge, MemoryStore, NamespaceId, NewTask, Output, Partition, Queries, QueueId,
    Seq, Shard, SqliteStore, State, Store, StoreError, Stub, Task, Then, Time, Unit, Write,
};

/// A folder that goes with the test; only its lock file is really there.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("tourbillon-power-{}-{name}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        vfs::unmount(&self.0);
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn options(synchronous: Synchronous) -> SqliteOptions {
    SqliteOptions {
        synchronous,
        vfs: Some(vfs::NAME.to_owned()),
        readers: 1,
        // All three ways of moving the log happen within a short run.
        checkpoint_every: Duration::from_millis(3),
        wal_checkpoint_bytes: 150_000,
        wal_pause_bytes: 250_000,
        ..SqliteOptions::default()
    }
}

/// Everything a store tells of its tasks.
#[derive(Debug, PartialEq)]
struct Seen {
    tasks: Vec<Task>,
    payloads: Vec<Option<String>>,
    outputs: Vec<Option<Output>>,
    waiting: Vec<Stub>,
    overdue: Vec<Stub>,
    counts: Vec<Count>,
    minutes: usize,
}

/// Looks at the only queue there is.
fn see<S: Store + Queries>(store: &S) -> Result<Seen, StoreError> {
    let namespace = NamespaceId(1);
    let partition = Partition { queue: QueueId(1), index: 0 };
    let filter = TaskFilter { namespace, ..TaskFilter::default() };
    let tasks = store.list(&filter, None, 10_000)?.tasks;
    let mut payloads = Vec::new();
    let mut outputs = Vec::new();
    let live: Vec<Seq> = tasks.iter().map(|task| task.seq).collect();
    for (task, live) in tasks.iter().zip(store.fetch(&live)?) {
        if task.state.is_final() {
            payloads.push(store.task(namespace, task.id)?.and_then(|task| task.spec.payload));
            outputs.push(store.output(task.seq, 1)?);
        } else {
            payloads.push(live.and_then(|task| task.spec.payload));
        }
    }
    Ok(Seen {
        tasks,
        payloads,
        outputs,
        waiting: store
            .load(&[(SHARD, Edge::START)], Time::MAX, 10_000)?
            .stubs
            .into_iter()
            .map(|s| s.1)
            .collect(),
        overdue: store.load_overdue(partition, None, 10_000)?,
        counts: store.counts()?.into_iter().filter(|count| count.count > 0).collect(),
        minutes: store.series(0, i64::MAX)?.len(),
    })
}

/// Makes batches against the model, which always commits first.
struct Workload {
    rng: Rng,
    memory: Arc<MemoryStore>,
    model: World,
    live: Vec<Task>,
    over: Vec<Task>,
}

impl Workload {
    fn new(seed: u64) -> Workload {
        let store = Arc::new(MemoryStore::new());
        let model = World::new(store.clone(), store.clone());
        assert_eq!(model.shard, SHARD);
        Workload { rng: Rng::new(seed), memory: store, model, live: Vec::new(), over: Vec::new() }
    }

    fn batch(&mut self) -> Vec<Unit> {
        let units = (0..1 + self.rng.below(4)).map(|_| {
            let writes = match self.rng.below(10) {
                0..=3 => self.insert(),
                4..=7 => self.moves(),
                8 => vec![Write::Prune {
                    succeeded: self.rng.one_in(2),
                    before: Time::MAX,
                    limit: self.rng.below(20) as u32,
                }],
                _ => self.stats(),
            };
            Unit { fences: Vec::new(), writes }
        });
        let units: Vec<Unit> = units.collect();
        self.model.store.commit(&units).unwrap();
        let filter = TaskFilter { namespace: self.model.namespace(), ..TaskFilter::default() };
        let tasks = self.model.queries.list(&filter, None, 10_000).unwrap().tasks;
        (self.over, self.live) = tasks.into_iter().partition(|task| task.state.is_final());
        units
    }

    fn insert(&mut self) -> Vec<Write> {
        let n = 1 + self.rng.below(12);
        let new = |rng: &mut Rng| {
            let mut new: NewTask = self.model.new_task(T0.plus(rng.below(600) as i64 * SECOND));
            let long = if rng.one_in(8) { 5_000 } else { 100 };
            new.spec.payload = Some("p".repeat(rng.below(long) as usize));
            new.spec.key = rng.one_in(3).then(|| format!("key-{}", new.id));
            new.spec.kind = format!("kind-{}", rng.below(5));
            Write::Insert(Box::new(new))
        };
        (0..n).map(|_| new(&mut self.rng)).collect()
    }

    fn moves(&mut self) -> Vec<Write> {
        let mut writes = Vec::new();
        for _ in 0..1 + self.rng.below(8) {
            let Some(n) = (self.live.len() as u64).checked_sub(1) else { break };
            let task = self.live.swap_remove(self.rng.below(n + 1) as usize);
            let epoch = self.model.epoch;
            writes.push(match (self.rng.below(5), task.state) {
                (0, State::Scheduled) => {
                    let open = Box::new(fixture::open(&task, epoch));
                    Write::Start { seq: task.seq, version: task.version, open }
                }
                (1, State::Scheduled) => Write::Spill { seqs: vec![task.seq] },
                (2, State::Scheduled) => fixture::close(&task, State::Cancelled),
                (3, _) => {
                    let due = T0.plus(self.rng.below(600) as i64 * SECOND);
                    fixture::end(&task, epoch, AttemptOutcome::Failed, Then::Again { due })
                }
                _ => {
                    let then = Then::Finish { to: State::Succeeded, reason: None };
                    let mut end = fixture::end(&task, epoch, AttemptOutcome::Succeeded, then);
                    if let Write::End { output, .. } = &mut end {
                        let head = vec![7; self.rng.below(2_000) as usize];
                        *output = Some(Box::new(Output { head, tail: Vec::new(), total: 9 }));
                    }
                    end
                }
            });
        }
        if let Some(over) = self.rng.pick(&self.over).filter(|_| writes.len() % 3 == 0) {
            let (namespace, id) = (over.namespace, over.id);
            writes.push(Write::Redrive { namespace, id, due: T0.plus(MINUTE) });
        }
        writes
    }

    fn stats(&mut self) -> Vec<Write> {
        let shard = self.model.shard;
        let minute = 100 + self.rng.below(5) as i64;
        let delta = tourbillon_store::stats::StatsDelta { shard, minute, rows: Vec::new() };
        vec![Write::Stats(Box::new(delta)), Write::FoldStats { shard, before_minute: 103 }]
    }
}

/// One run: the states after each acknowledged batch, and copies of the disk.
struct Run {
    seen: Vec<Seen>,
    snapshots: Vec<Snapshot>,
}

const BATCHES: usize = 30;

/// The shard of the workload's queue.
const SHARD: Shard = Shard(7);

fn run(folder: &Path, seed: u64, options: &SqliteOptions, one_in: u64) -> Run {
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let disk = vfs::mount(folder, Disk::new(Files::new(), seed, one_in, acknowledged.clone()));
    let mut workload = Workload::new(seed);
    let mut seen = Vec::new();
    {
        let store = Arc::new(SqliteStore::open(folder, options).unwrap());
        // Makes the queue; nothing else of it can be seen in tasks.
        World::new(store.clone(), store.clone());
        seen.push(see(&*store).unwrap());
        for _ in 0..BATCHES {
            let batch = workload.batch();
            seen.push(see(&*workload.memory).unwrap());
            let results = store.commit(&batch).unwrap();
            acknowledged.fetch_add(1, Ordering::SeqCst);
            assert!(results.iter().any(Result::is_ok), "{results:?}");
        }
        assert_eq!(see(&*store).unwrap(), *seen.last().unwrap(), "seed {seed}");
        let gauges = store.gauges();
        let bounded = gauges.checkpoints > 0 && gauges.wal_bytes < 1_000_000;
        assert!(bounded || options.wal_pause_bytes > 1_000_000, "{gauges:?}");
    }
    let snapshots = std::mem::take(
        &mut disk.lock().unwrap_or_else(std::sync::PoisonError::into_inner).snapshots,
    );
    Run { seen, snapshots }
}

/// Opens the store on what survived; says what is wrong with it.
fn verify(folder: &Path, run: &Run, snapshot: &Snapshot, rng: &mut Rng) -> Result<(), String> {
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let moved = |(name, data): (String, Vec<u8>)| {
        let name = Path::new(&name).file_name().unwrap_or_default().to_owned();
        (folder.join(name).to_string_lossy().into_owned(), data)
    };
    let files: Files = snapshot.survivors(rng).into_iter().map(moved).collect();
    vfs::mount(folder, Disk::new(files, 0, 0, acknowledged));
    let state = {
        let store = SqliteStore::open(folder, &options(Synchronous::Full))
            .map_err(|error| format!("cannot be opened: {error}"))?;
        let state = see(&store).map_err(|error| format!("cannot be read: {error}"))?;
        let ensure = Write::EnsureQueue { namespace: "after".into(), name: "after".into() };
        store
            .commit(&[Unit { fences: Vec::new(), writes: vec![ensure] }])
            .map_err(|error| format!("cannot be written: {error}"))?;
        state
    };
    let k = snapshot.acknowledged;
    let under_way = run.seen.get(k + 1);
    if state != run.seen[k] && Some(&state) != under_way {
        let before = run.seen[..k].iter().rposition(|seen| *seen == state);
        return Err(format!("{k} batches were acknowledged, what is there is batch {before:?}"));
    }
    let conn = Connection::open_with_flags_and_vfs(
        folder.join(DATABASE),
        OpenFlags::SQLITE_OPEN_READ_WRITE,
        vfs::NAME,
    )
    .map_err(|error| error.to_string())?;
    let check: String = conn
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .map_err(|error| error.to_string())?;
    if check == "ok" { Ok(()) } else { Err(format!("integrity check: {check}")) }
}

/// Fails the power at about so many moments; answers how many were tried and what was wrong.
fn crash(name: &str, options: &SqliteOptions, points: usize) -> (usize, Vec<String>) {
    let (live, left) = (Folder::new(&format!("{name}-live")), Folder::new(&format!("{name}-left")));
    let mut tried = 0;
    let mut wrong = Vec::new();
    for seed in 0.. {
        let run = run(&live.0, seed, options, 6);
        let mut rng = Rng::new(seed);
        for (n, snapshot) in run.snapshots.iter().enumerate() {
            if tried == points {
                return (tried, wrong);
            }
            tried += 1;
            if let Err(error) = verify(&left.0, &run, snapshot, &mut rng) {
                wrong.push(format!("seed {seed}, crash {n}: {error}"));
            }
        }
    }
    (tried, wrong)
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_half_applied() {
    let (tried, wrong) = crash("full", &options(Synchronous::Full), 1_000);
    assert_eq!(tried, 1_000);
    assert!(wrong.is_empty(), "{} of {tried}: {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
}

#[test]
fn losses_are_found_when_commits_do_not_wait_for_the_disk() {
    for (name, synchronous) in [("off", Synchronous::Off), ("normal", Synchronous::Normal)] {
        // No checkpoint syncs the log by chance, however slow the machine is.
        let options = SqliteOptions {
            checkpoint_every: Duration::from_secs(60),
            wal_checkpoint_bytes: u64::MAX,
            wal_pause_bytes: u64::MAX,
            ..options(synchronous)
        };
        let (tried, wrong) = crash(name, &options, 60);
        assert!(wrong.len() > tried / 3, "{name}: only {} of {tried} were losses", wrong.len());
    }
}

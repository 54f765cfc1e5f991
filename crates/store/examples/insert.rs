//! How fast the SQLite store takes tasks in and finishes them on this machine.
//!
//!     cargo run --release -p tourbillon-store --example insert -- [ROWS] [FOLDER] [CACHE_MB]
//!
//! Inserts ROWS tasks (default 1,000,000) in units of one and batches of 4,000, payloads of 200
//! bytes, due at random within 24 hours, over all shards, all in one queue; then finishes up to
//! 100,000 in batches of 5,000: in order of creation, then in order of due time (which is random
//! in order of creation). The folder (default: a fresh one in the temporary folder) is deleted at
//! the end. A measurement for those who change the store; not a benchmark of the product.

use std::path::PathBuf;
use std::time::Instant;

use tourbillon_store::queries::TaskFilter;
use tourbillon_store::task::Target;
use tourbillon_store::time::{DAY, MILLI, SECOND};
use tourbillon_store::{
    AttemptOutcome, AttemptRecord, Done, Edge, Epoch, Fence, LeaseAsk, NamespaceId, NewTask,
    Partition, Queries, QueueId, Seq, Shard, SqliteOptions, SqliteStore, State, Store, TaskId,
    TaskSpec, Then, Time, Unit, Write,
};

const BATCH: usize = 4_000;
const FINISH: usize = 5_000;
const T0: Time = Time(1_780_000_000 * SECOND);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let rows: usize = args.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let folder = args.next().map_or_else(
        || std::env::temp_dir().join(format!("tourbillon-insert-{}", std::process::id())),
        PathBuf::from,
    );
    let mut options = SqliteOptions::default();
    if let Some(megabytes) = args.next() {
        options.writer_cache_bytes = megabytes.parse::<u64>()? << 20;
    }
    let store = SqliteStore::open(&folder, &options)?;
    println!("{}", store.info().detail);
    let result = measure(&store, rows);
    drop(store);
    std::fs::remove_dir_all(&folder)?;
    result
}

fn measure(store: &SqliteStore, rows: usize) -> Result<(), Box<dyn std::error::Error>> {
    let ensure = Write::EnsureQueue { namespace: "default".into(), name: "default".into() };
    let results = store.commit(&[Unit { fences: Vec::new(), writes: vec![ensure] }])?;
    let Ok([Done::Queue(queue)]) = results[0].as_deref() else { return Err("no queue".into()) };
    let ask = LeaseAsk {
        node: "n".into(),
        acquire: (0..=u8::MAX).map(Shard).collect(),
        renew: Vec::new(),
        release: Vec::new(),
        now: T0,
        period: 3600 * SECOND,
    };
    let leases = store.leases(&ask)?;
    let fence = |shard: Shard| (shard, leases[usize::from(shard.0)].epoch);

    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed >> 33
    };
    let mut new_task = || NewTask {
        id: TaskId(uuid::Uuid::now_v7().as_u128()),
        fingerprint: None,
        namespace: queue.namespace,
        partition: Partition { queue: queue.id, index: 0 },
        shard: Shard(random() as u8),
        due: T0.plus((random() as i64 * MILLI) % DAY),
        created_at: T0,
        spec: TaskSpec {
            kind: "close-order".into(),
            key: None,
            target: Target::Worker,
            payload: Some("x".repeat(200)),
            priority: 0,
            timeout: None,
            expires_at: None,
            at_most_once: false,
            retry: Default::default(),
            concurrency_key: None,
            tags: Vec::new(),
        },
        schedule: None,
        keep_existing: false,
        inbox: false,
    };
    let mut spent = 0.0;
    let mut on_cpu = 0.0;
    let mut step = (0, 0.0);
    let mut slowest: f64 = 0.0;
    let mut done = 0;
    while done < rows {
        let units: Vec<Unit> = (0..BATCH)
            .map(|_| {
                let new = new_task();
                let fences = vec![fence(new.shard)];
                Unit { fences, writes: vec![Write::Insert(Box::new(new))] }
            })
            .collect();
        let (begin, cpu) = (Instant::now(), cpu_seconds());
        let results = store.commit(&units)?;
        let seconds = begin.elapsed().as_secs_f64();
        on_cpu += cpu_seconds() - cpu;
        if results.iter().any(Result::is_err) {
            return Err("a unit was refused".into());
        }
        spent += seconds;
        slowest = slowest.max(seconds);
        done += BATCH;
        if done - step.0 >= 1_000_000 || done >= rows {
            let rate = (done - step.0) as f64 / (spent - step.1);
            let gauges = store.gauges();
            println!(
                "insert: {done} rows, last {rate:.0}/s, mean {:.0}/s, {:.1} us of CPU each, slowest batch {:.0} ms, data {} MB, wal {} MB",
                done as f64 / spent,
                on_cpu * 1e6 / done as f64,
                slowest * 1e3,
                gauges.data_bytes >> 20,
                gauges.wal_bytes >> 20
            );
            (step, slowest) = ((done, spent), 0.0);
        }
    }
    let begin = Instant::now();
    let stubs = load(store, T0.plus(600 * SECOND))?;
    println!("load: 10 minutes of all shards, {} stubs in {:.1} ms", stubs.len(), ms(begin));

    let some = (rows / 4).min(100_000) / FINISH * FINISH;
    let fence = fence(Shard(0));
    finish(store, fence, "in order of creation", (1..=some as i64).map(Seq).collect())?;
    let due: Vec<Seq> = load(store, T0.plus(DAY))?.into_iter().take(some).map(|s| s.1).collect();
    finish(store, fence, "in order of due", due)?;
    questions(store, queue.namespace, queue.id)
}

/// What is due until then, in order.
fn load(store: &SqliteStore, until: Time) -> Result<Vec<(Time, Seq)>, Box<dyn std::error::Error>> {
    let from: Vec<(Shard, Edge)> = (0..=u8::MAX).map(|shard| (Shard(shard), Edge::START)).collect();
    let span = store.load(&from, until, usize::MAX)?;
    Ok(span.stubs.iter().map(|(_, stub)| (stub.due, stub.seq)).collect())
}

/// What the console asks, over all that is there.
fn questions(
    store: &SqliteStore,
    namespace: NamespaceId,
    queue: QueueId,
) -> Result<(), Box<dyn std::error::Error>> {
    let all = TaskFilter { namespace, ..TaskFilter::default() };
    let of = |state| TaskFilter { states: vec![state], queue: Some(queue), ..all.clone() };
    let kind = Some("no-such-work".to_owned());
    let lists = [
        ("all", all.clone()),
        ("scheduled", of(State::Scheduled)),
        ("running", of(State::Running)),
        ("succeeded", of(State::Succeeded)),
        ("failed", of(State::Failed)),
        ("of a kind", TaskFilter { kind, ..all.clone() }),
        ("by due", TaskFilter { due_after: Some(T0), ..of(State::Scheduled) }),
    ];
    for (name, filter) in lists {
        let begin = Instant::now();
        let page = store.list(&filter, None, 100)?;
        println!("list {name}: {} tasks in {:.1} ms", page.tasks.len(), ms(begin));
    }
    let begin = Instant::now();
    let counts = store.counts()?;
    println!("counts: {} in {:.1} ms", counts.len(), ms(begin));
    let prune = Write::Prune { succeeded: true, before: Time::MAX, limit: 500 };
    let begin = Instant::now();
    store.commit(&[Unit { fences: Vec::new(), writes: vec![prune] }])?;
    println!("prune: 500 rows in {:.1} ms", ms(begin));
    Ok(())
}

fn finish(
    store: &SqliteStore,
    fence: (Shard, Epoch),
    name: &str,
    seqs: Vec<Seq>,
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut spent, mut on_cpu) = (0.0, 0.0);
    let mut slowest: f64 = 0.0;
    for batch in seqs.chunks_exact(FINISH) {
        let units: Vec<Unit> =
            batch.iter().map(|seq| Unit::one(fence.0, fence.1, end(*seq, fence.1))).collect();
        let (begin, cpu) = (Instant::now(), cpu_seconds());
        let results = store.commit(&units)?;
        let seconds = begin.elapsed().as_secs_f64();
        on_cpu += cpu_seconds() - cpu;
        if results.iter().any(Result::is_err) {
            return Err("an end was refused".into());
        }
        spent += seconds;
        slowest = slowest.max(seconds);
    }
    println!(
        "finish {name}: {} rows, {:.0}/s, {:.1} us of CPU each, slowest batch {:.0} ms",
        seqs.len(),
        seqs.len() as f64 / spent,
        on_cpu * 1e6 / seqs.len() as f64,
        slowest * 1e3
    );
    Ok(())
}

fn end(seq: Seq, epoch: Epoch) -> Write {
    let attempt = AttemptRecord {
        n: 1,
        outcome: AttemptOutcome::Succeeded,
        fence: Fence::new(epoch, 1),
        node: "node-1".into(),
        worker: None,
        due: T0,
        ready_at: T0,
        started_at: T0,
        ended_at: T0,
        error: None,
        http_status: Some(200),
        exit_code: None,
        result: None,
        output_bytes: 0,
        output_truncated: false,
    };
    let then = Then::Finish { to: State::Succeeded, reason: None };
    Write::End { seq, version: 0, attempt: Box::new(attempt), output: None, then }
}

fn ms(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}

/// Seconds this thread was on a CPU (Linux; 0 elsewhere): what matters on a machine that others
/// use too.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0) / 1e9
}

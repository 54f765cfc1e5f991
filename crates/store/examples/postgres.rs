//! How fast the PostgreSQL store takes tasks in and finishes them on this machine.
//!
//!     cargo run --release -p tourbillon-store --example postgres --features postgres,conformance \
//!         -- [ROWS] [URL]
//!
//! Inserts ROWS tasks (default 400,000) in batches of 1,000 as one unit each, as many in batches of 8,000
//! units; payloads of 200 bytes, due at random within 24 hours, over all shards, in one queue. Then
//! loads ten minutes, finishes ROWS in batches of 8,000, and asks what the console asks. Without a URL, on
//! a private server of the installed programs, at its default durability. A measurement for those who
//! change the store; not a benchmark of the product.

use std::time::Instant;

use tourbillon_store::postgres::server::TestServer;
use tourbillon_store::queries::TaskFilter;
use tourbillon_store::task::Target;
use tourbillon_store::time::{DAY, MILLI, SECOND};
use tourbillon_store::{
    AttemptOutcome, AttemptRecord, Done, Edge, Epoch, Fence, LeaseAsk, NewTask, Partition,
    PostgresOptions, PostgresStore, Queries, QueueRecord, Seq, Shard, State, Store, TaskId,
    TaskSpec, Then, Time, Unit, Write,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const T0: Time = Time(1_780_000_000 * SECOND);

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let rows: usize = args.next().map_or(Ok(400_000), |text| text.parse())?;
    let (server, url) = match args.next() {
        Some(url) => (None, url),
        None => {
            let server = TestServer::start(&[])?;
            let url = server.url();
            (Some(server), url)
        }
    };
    let store = PostgresStore::open(&url, &PostgresOptions::default())?;
    println!("{}", store.info().detail);
    let result = measure(&store, rows);
    drop(store);
    drop(server);
    result
}

struct Setting {
    queue: QueueRecord,
    epochs: Vec<Epoch>,
    seed: u64,
}

impl Setting {
    fn random(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.seed >> 33
    }

    fn fence(&self, shard: Shard) -> (Shard, Epoch) {
        (shard, self.epochs[shard.index()])
    }

    fn task(&mut self) -> NewTask {
        NewTask {
            id: TaskId(uuid::Uuid::now_v7().as_u128()),
            fingerprint: None,
            namespace: self.queue.namespace,
            partition: Partition { queue: self.queue.id, index: 0 },
            shard: Shard(self.random() as u8),
            due: T0.plus((self.random() as i64 * MILLI) % DAY),
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
        }
    }
}

fn measure(store: &PostgresStore, rows: usize) -> Outcome<()> {
    let ensure = Write::EnsureQueue { namespace: "default".into(), name: "default".into() };
    let results = store.commit(&[Unit { fences: Vec::new(), writes: vec![ensure] }])?;
    let Ok([Done::Queue(queue)]) = results[0].as_deref() else { return Err("no queue".into()) };
    let ask = LeaseAsk {
        node: "n".into(),
        acquire: Shard::all().collect(),
        renew: Vec::new(),
        release: Vec::new(),
        now: T0,
        period: 3600 * SECOND,
    };
    let epochs = store.leases(&ask)?.into_iter().map(|lease| lease.epoch).collect();
    let mut setting = Setting { queue: (**queue).clone(), epochs, seed: 1 };
    let mut seqs = insert(store, &mut setting, rows, 1_000, true)?;
    seqs.extend(insert(store, &mut setting, rows, 8_000, false)?);

    let from: Vec<(Shard, Edge)> = Shard::all().map(|shard| (shard, Edge::START)).collect();
    let begin = Instant::now();
    let span = store.load(&from, T0.plus(600 * SECOND), 1_000_000)?;
    println!("load: 10 minutes of all shards, {} stubs in {:.1} ms", span.stubs.len(), ms(begin));
    let begin = Instant::now();
    let some: Vec<Seq> = seqs.iter().take(1_000).copied().collect();
    println!("fetch: {} tasks in {:.1} ms", store.fetch(&some)?.len(), ms(begin));

    let fence = setting.fence(Shard(0));
    seqs.truncate(rows);
    let mut pace = Pace::default();
    for batch in seqs.chunks(8_000) {
        let end = |seq: &Seq| Unit::one(fence.0, fence.1, end(*seq, fence.1));
        pace.commit(store, batch.len(), &batch.iter().map(end).collect::<Vec<_>>())?;
    }
    pace.tell("finish in batches of 8000");
    questions(store, &setting.queue)
}

fn insert(
    store: &PostgresStore,
    setting: &mut Setting,
    rows: usize,
    batch: usize,
    one_unit: bool,
) -> Outcome<Vec<Seq>> {
    let mut pace = Pace::default();
    let mut seqs = Vec::with_capacity(rows);
    while seqs.len() < rows {
        let tasks: Vec<NewTask> = (0..batch).map(|_| setting.task()).collect();
        let units: Vec<Unit> = if one_unit {
            let mut fences: Vec<_> = tasks.iter().map(|task| setting.fence(task.shard)).collect();
            fences.sort_unstable();
            fences.dedup();
            let writes = tasks.into_iter().map(|task| Write::Insert(Box::new(task))).collect();
            vec![Unit { fences, writes }]
        } else {
            let one = |task: NewTask| Unit {
                fences: vec![setting.fence(task.shard)],
                writes: vec![Write::Insert(Box::new(task))],
            };
            tasks.into_iter().map(one).collect()
        };
        for done in pace.commit(store, batch, &units)? {
            let Done::Inserted(seq) = done else { return Err("not inserted".into()) };
            seqs.push(seq);
        }
    }
    pace.tell(&format!("insert in batches of {batch}"));
    Ok(seqs)
}

#[derive(Default)]
struct Pace {
    rows: usize,
    spent: f64,
    on_cpu: f64,
    slowest: f64,
}

impl Pace {
    fn commit(&mut self, store: &PostgresStore, rows: usize, units: &[Unit]) -> Outcome<Vec<Done>> {
        let (begin, cpu) = (Instant::now(), cpu_seconds());
        let results = store.commit(units)?;
        let seconds = begin.elapsed().as_secs_f64();
        self.on_cpu += cpu_seconds() - cpu;
        self.rows += rows;
        self.spent += seconds;
        self.slowest = self.slowest.max(seconds);
        let mut all = Vec::with_capacity(rows);
        for result in results {
            all.extend(result.map_err(|refused| format!("refused: {refused:?}"))?);
        }
        Ok(all)
    }

    fn tell(&self, what: &str) {
        println!(
            "{what}: {} rows, {:.0}/s, {:.1} us of this process's CPU each, slowest batch {:.0} ms",
            self.rows,
            self.rows as f64 / self.spent,
            self.on_cpu * 1e6 / self.rows as f64,
            self.slowest * 1e3
        );
    }
}

/// What the console asks, over all that is there.
fn questions(store: &PostgresStore, queue: &QueueRecord) -> Outcome<()> {
    let all = TaskFilter { namespace: queue.namespace, ..TaskFilter::default() };
    let of = |state| TaskFilter { states: vec![state], queue: Some(queue.id), ..all.clone() };
    let lists = [
        ("all", all.clone()),
        ("scheduled", of(State::Scheduled)),
        ("running", of(State::Running)),
        ("succeeded", of(State::Succeeded)),
        ("failed", of(State::Failed)),
        ("of a kind", TaskFilter { kind: Some("no-such-work".into()), ..all.clone() }),
        ("by due", TaskFilter { due_after: Some(T0), ..of(State::Scheduled) }),
    ];
    for (name, filter) in lists {
        let begin = Instant::now();
        let page = store.list(&filter, None, 100)?;
        println!("list {name}: {} tasks in {:.1} ms", page.tasks.len(), ms(begin));
    }
    let begin = Instant::now();
    println!("counts: {} in {:.1} ms", store.counts()?.len(), ms(begin));
    let prune = Write::Prune { succeeded: true, before: Time::MAX, limit: 500 };
    let begin = Instant::now();
    store.commit(&[Unit { fences: Vec::new(), writes: vec![prune] }])?;
    println!("prune: 500 rows in {:.1} ms", ms(begin));
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
        ended_at: T0.plus(SECOND),
        error: None,
        http_status: None,
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

/// User and system time of this process, where /proc tells it (in hundredths of a second).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    fields.filter_map(|field| field.parse::<f64>().ok()).sum::<f64>() / 100.0
}

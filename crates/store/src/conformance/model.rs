//! The same random units for two stores, and everything that can be seen compared.
//!
//! The memory store is the model. Sequences may differ between the two, as a store may leave
//! gaps; they are translated. Catalogue ids must not: queues are created in the same order.

use std::collections::HashMap;
use std::sync::Arc;

use crate::memory::MemoryStore;
use crate::queries::{Located, TaskFilter};
use crate::schedule::{Cursor, LiveOccurrence};
use crate::stats::{StatsDelta, StatsRow};
use crate::task::{Output, SkippedRun};
use crate::time::{MILLI, MINUTE, SECOND};
use crate::{
    AttemptOutcome, Done, Edge, Epoch, NewTask, Partition, Queries, QueueRecord, Rank, Seq, Shard,
    State, Store, Stub, Task, TaskId, Then, Time, Unit, UnitResult, Write,
};

use super::fixture::{self, T0};
use super::{Make, Rng, World, calendars, lists, loads, schedules};

const SHARD_COUNT: u8 = 3;

/// One store with the same content as another, as far as the two agree.
pub struct Model {
    rng: Rng,
    seed: u64,
    model: World,
    tested: World,
    queues: Vec<QueueRecord>,
    known: Vec<(TaskId, Seq)>,
    to_tested: HashMap<Seq, Seq>,
    to_model: HashMap<Seq, Seq>,
    /// The model's and the tested store's epoch of each shard.
    fences: Vec<(Shard, Epoch, Epoch)>,
    next: u128,
}

/// Gives `steps` random commits to a fresh store and to the model, comparing as it goes.
///
/// # Panics
///
/// When the two differ; the seed is in the message.
pub fn run(make: &Make<'_>, seed: u64, steps: usize) {
    let (store, queries) = make();
    let mut model = Model::new(store, queries, seed);
    for step in 0..steps {
        model.step();
        if step % 10 == 9 {
            model.compare();
        }
    }
    model.compare();
}

impl Model {
    /// A model of an empty store.
    pub fn new(store: Arc<dyn Store>, queries: Arc<dyn Queries>, seed: u64) -> Model {
        let memory = Arc::new(MemoryStore::new());
        let mut model = Model {
            rng: Rng::new(seed),
            seed,
            model: World::new(memory.clone(), memory),
            tested: World::new(store, queries),
            queues: Vec::new(),
            known: Vec::new(),
            to_tested: HashMap::new(),
            to_model: HashMap::new(),
            fences: Vec::new(),
            next: 1 << 64,
        };
        for (namespace, name) in [("default", "default"), ("default", "b"), ("other", "c")] {
            let queue = model.model.ensure_queue(namespace, name);
            assert_eq!(model.tested.ensure_queue(namespace, name), queue);
            model.queues.push(queue);
        }
        model.take_leases(T0);
        model
    }

    /// Lets go of the store under test, so that it can be opened anew.
    pub fn detached(&mut self) {
        let memory = Arc::new(MemoryStore::new());
        (self.tested.store, self.tested.queries) = (memory.clone(), memory);
    }

    /// Goes on with the same store, opened anew.
    pub fn reopened(&mut self, store: Arc<dyn Store>, queries: Arc<dyn Queries>) {
        (self.tested.store, self.tested.queries) = (store, queries);
        self.fences.clear();
        self.take_leases(T0.plus(MINUTE));
    }

    fn take_leases(&mut self, now: Time) {
        let shards: Vec<Shard> = (0..SHARD_COUNT).map(Shard).collect();
        let take = |w: &World| -> Vec<(Shard, Epoch)> {
            let ask = fixture::acquire("n1", &shards, now);
            w.store.leases(&ask).unwrap().into_iter().map(|l| (l.shard, l.epoch)).collect()
        };
        let (model, tested) = (take(&self.model), take(&self.tested));
        self.fences = model.into_iter().zip(tested).map(|((s, m), (_, t))| (s, m, t)).collect();
    }

    /// Gives both the same random units and compares the answers.
    pub fn step(&mut self) {
        let units: Vec<(Unit, Unit)> = (0..=self.rng.below(4)).map(|_| self.unit()).collect();
        let (model, tested): (Vec<Unit>, Vec<Unit>) = units.into_iter().unzip();
        let wanted = self.model.store.commit(&model).expect("the model commits");
        let got = self.tested.store.commit(&tested).expect("commit");
        for ((wanted, got), unit) in wanted.iter().zip(&got).zip(&model) {
            self.learn(unit, wanted, got);
        }
        for ((wanted, got), unit) in wanted.iter().zip(&got).zip(&model) {
            let got = got.clone().map(|done| done.into_iter().map(|d| self.done(d)).collect());
            assert_eq!(got, *wanted, "seed {}: {unit:#?}", self.seed);
        }
    }

    fn learn(&mut self, unit: &Unit, wanted: &UnitResult, got: &UnitResult) {
        let (Ok(wanted), Ok(got)) = (wanted, got) else { return };
        for ((write, wanted), got) in unit.writes.iter().zip(wanted).zip(got) {
            if let (Write::Insert(new), Done::Inserted(m), Done::Inserted(t)) = (write, wanted, got)
            {
                self.known.retain(|k| k.0 != new.id);
                self.known.push((new.id, *m));
                self.to_tested.insert(*m, *t);
                self.to_model.insert(*t, *m);
            }
        }
    }

    fn done(&self, done: Done) -> Done {
        match done {
            Done::Inserted(seq) => Done::Inserted(self.seq(seq)),
            Done::Redriven(task) => Done::Redriven(Box::new(self.task(*task))),
            done => done,
        }
    }

    fn seq(&self, tested: Seq) -> Seq {
        self.to_model.get(&tested).copied().unwrap_or(Seq(-1))
    }

    fn task(&self, task: Task) -> Task {
        Task { seq: self.seq(task.seq), ..task }
    }

    fn stub(&self, stub: Stub) -> Stub {
        Stub { seq: self.seq(stub.seq), ..stub }
    }

    fn unit(&mut self) -> (Unit, Unit) {
        let writes: Vec<Write> = (0..=self.rng.below(3)).map(|_| self.write()).collect();
        let tested = writes.iter().map(|write| self.translate(write)).collect();
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        if let Some(&(shard, m, t)) = self.rng.pick(&self.fences) {
            let stale = u32::from(self.rng.one_in(40));
            mine.push((shard, Epoch(m.0 - stale)));
            theirs.push((shard, Epoch(t.0 - stale)));
        }
        (Unit { fences: mine, writes }, Unit { fences: theirs, writes: tested })
    }

    fn translate(&self, write: &Write) -> Write {
        let to = |seq: &Seq| self.to_tested.get(seq).copied().unwrap_or(Seq(i64::MAX / 2));
        let mut write = write.clone();
        match &mut write {
            Write::Start { seq, .. }
            | Write::End { seq, .. }
            | Write::Close { seq, .. }
            | Write::RequestCancel { seq, .. }
            | Write::Edit { seq, .. }
            | Write::Discard { seq, .. }
            | Write::Progress { seq, .. } => *seq = to(seq),
            Write::Spill { seqs } | Write::TakeIn { seqs, .. } => {
                seqs.iter_mut().for_each(|seq| *seq = to(seq));
            }
            _ => {}
        }
        write
    }

    fn due(&mut self) -> Time {
        T0.plus(self.rng.below(20) as i64 * 10 * SECOND + self.rng.below(2) as i64 * MILLI)
    }

    fn new_task(&mut self) -> NewTask {
        self.next += 1;
        let queue = &self.queues[self.rng.below(self.queues.len() as u64) as usize];
        let index = self.rng.below(2) as u16;
        let mut new = self.model.new_task(T0);
        if self.rng.one_in(2) {
            new.id = TaskId(self.next);
        }
        new.namespace = queue.namespace;
        new.partition = Partition { queue: queue.id, index };
        new.shard = Shard(((queue.id.0 as u8) + index as u8) % SHARD_COUNT);
        new.due = self.due();
        new.inbox = self.rng.one_in(4);
        new.keep_existing = self.rng.one_in(2);
        new.spec.kind = format!("kind-{}", self.rng.below(3));
        new.spec.priority = self.rng.below(16) as i8 - 8;
        new.spec.key = self.rng.one_in(3).then(|| format!("key-{}", self.rng.below(4)));
        new.spec.concurrency_key = self.rng.one_in(4).then(|| format!("c-{}", self.rng.below(2)));
        if self.rng.one_in(2) {
            new.spec.target = fixture::http();
        }
        if self.rng.one_in(4) {
            new.spec.payload = Some("p".repeat(self.rng.below(3_000) as usize));
        }
        new.spec.at_most_once = self.rng.one_in(5);
        new.spec.expires_at = self.rng.one_in(5).then(|| T0.plus(MINUTE));
        if self.rng.one_in(4) {
            let at = T0.plus(self.rng.below(12) as i64);
            new.schedule = Some(fixture::link(1 + u128::from(self.rng.below(2)), "plan", at));
        }
        if self.rng.one_in(3) {
            new.fingerprint = Some(self.rng.below(2));
            if let Some(&(id, _)) =
                self.rng.pick(&self.known).filter(|_| self.next.is_multiple_of(2))
            {
                new.id = id;
            }
        }
        new
    }

    /// A known task, or a made-up one, with a version that is mostly right.
    fn pick(&mut self) -> Task {
        let found = self.rng.pick(&self.known).copied().and_then(|(id, _)| self.find(id));
        let mut task = found
            .unwrap_or_else(|| crate::apply::created(&self.model.new_task(T0), Seq(1_000_000)));
        if self.rng.one_in(12) {
            task.version += 1;
        }
        task
    }

    fn find(&self, id: TaskId) -> Option<Task> {
        let namespaces = self.queues.iter().map(|q| q.namespace);
        namespaces.into_iter().find_map(|n| self.model.queries.task(n, id).unwrap())
    }

    fn then(&mut self) -> (AttemptOutcome, Then) {
        use AttemptOutcome::*;
        match self.rng.below(6) {
            0 => (Lost, Then::Again { due: self.due() }),
            1 => (Released, Then::Again { due: self.due() }),
            2 => (TimedOut, Then::Again { due: self.due() }),
            3 => (Failed, Then::Finish { to: State::Failed, reason: Some("why".into()) }),
            4 => (Cancelled, Then::Finish { to: State::Cancelled, reason: None }),
            _ => (Succeeded, Then::Finish { to: State::Succeeded, reason: None }),
        }
    }

    fn write(&mut self) -> Write {
        let task = self.pick();
        let (seq, version) = (task.seq, task.version);
        let at = self.due();
        match self.rng.below(25) {
            0..=6 => Write::Insert(Box::new(self.new_task())),
            7..=9 => Write::Start { seq, version, open: Box::new(fixture::open(&task, Epoch(9))) },
            10..=13 => {
                let (outcome, then) = self.then();
                let mut write = fixture::end(&task, Epoch(9), outcome, then);
                if let (Write::End { output, .. }, true) = (&mut write, self.rng.one_in(2)) {
                    let head = vec![self.rng.below(256) as u8; 3];
                    *output = Some(Box::new(Output { head, tail: vec![1], total: 9 }));
                }
                write
            }
            14 => {
                let run = SkippedRun { from: T0, to: at, count: 3, reason: "overlap".into() };
                let to = State::ALL[2 + self.rng.below(5) as usize];
                let (reason, skipped) =
                    if self.rng.one_in(2) { (None, Some(run)) } else { (Some("x".into()), None) };
                Write::Close { seq, version, to, at, reason, skipped }
            }
            15 => Write::RequestCancel { seq, version },
            16 => Write::Edit { seq, version, due: at, spec: Box::new(self.new_task().spec) },
            17 if self.rng.one_in(2) => Write::Discard { seq, version },
            17 | 18 => {
                let seqs = (0..4).map(|_| self.pick().seq).collect();
                if self.rng.one_in(3) {
                    let shard = Shard(self.rng.below(u64::from(SHARD_COUNT)) as u8);
                    Write::TakeIn { shard, seqs }
                } else {
                    Write::Spill { seqs }
                }
            }
            19 => {
                let claim_until = self.rng.one_in(2).then_some(at);
                let progress = self.rng.one_in(2).then(|| "{\"p\":1}".to_owned());
                Write::Progress { seq, version, claim_until, progress }
            }
            20 => Write::Redrive { namespace: task.namespace, id: task.id, due: at },
            21 => self.schedule_write(),
            22 => self.stats_write(),
            23 => self.calendar_write(),
            _ if self.rng.one_in(2) => {
                let (succeeded, limit) = (self.rng.one_in(2), self.rng.below(4) as u32);
                Write::Prune { succeeded, before: at, limit }
            }
            _ => {
                let n = self.rng.below(self.queues.len() as u64) as usize;
                let mut record = self.model.store.queues().unwrap()[n].clone();
                record.config.partitions = 1 + self.rng.below(4) as u16;
                record.version += u32::from(self.rng.one_in(5));
                Write::PutQueue { record: Box::new(record) }
            }
        }
    }

    fn schedule_write(&mut self) -> Write {
        let uid = 1 + u128::from(self.rng.below(3));
        let name = format!("s{}", self.rng.below(3));
        let all = self.model.queries.schedules(self.queues[0].namespace, None, 9).unwrap();
        let known = all.iter().find(|s| s.uid == uid).map_or(0, |s| s.version);
        let version = known + u32::from(self.rng.one_in(6));
        match self.rng.below(5) {
            0 => Write::DeleteSchedule { uid, version },
            1 | 2 => Write::Advance {
                uid,
                version,
                cursor: Cursor { created: self.rng.below(9), ..Cursor::default() },
            },
            _ => {
                let mut record = schedules::record(&self.model, uid, &name);
                record.version = version;
                record.shard = Shard(self.rng.below(u64::from(SHARD_COUNT)) as u8);
                record.doc.exclude = (0..self.rng.below(3)).map(|n| format!("c{n}")).collect();
                Write::PutSchedule(Box::new(record))
            }
        }
    }

    fn calendar_write(&mut self) -> Write {
        let namespace = self.queues[0].namespace;
        let name = format!("c{}", self.rng.below(3));
        let known = self.model.queries.calendar(namespace, &name).unwrap();
        let version = known.map_or(0, |known| known.version) + u64::from(self.rng.one_in(6));
        match self.rng.below(3) {
            0 => Write::DeleteCalendar { namespace, name, version },
            _ => Write::PutCalendar {
                namespace: self.queues[0].namespace_name.clone(),
                name,
                version,
                at: self.due(),
                doc: Box::new(calendars::doc(&format!("2026-01-0{}", 1 + self.rng.below(9)))),
            },
        }
    }

    fn stats_write(&mut self) -> Write {
        let shard = Shard(self.rng.below(u64::from(SHARD_COUNT)) as u8);
        let minute = 100 + self.rng.below(4) as i64;
        if self.rng.one_in(4) {
            return Write::FoldStats { shard, before_minute: minute };
        }
        let kind = format!("kind-{}", self.rng.below(3));
        let mut row = StatsRow::new(self.queues[0].id, kind);
        row.created = self.rng.below(5) as u32;
        row.finish(State::ALL[2 + self.rng.below(5) as usize], 1);
        row.lateness.record(self.rng.below(1_000_000) as i64);
        Write::Stats(Box::new(StatsDelta { shard, minute, rows: vec![row] }))
    }

    /// Compares everything that can be seen.
    ///
    /// # Panics
    ///
    /// When the two differ.
    pub fn compare(&self) {
        let (m, t, seed) = (&self.model, &self.tested, self.seed);
        let located = |l: Option<Located>| l.map(|l| Located { seq: self.seq(l.seq), ..l });
        for &(id, seq) in &self.known {
            for queue in &self.queues {
                let n = queue.namespace;
                let wanted = m.queries.task(n, id).unwrap();
                let got = t.queries.task(n, id).unwrap().map(|task| self.task(task));
                assert_eq!(got, wanted, "seed {seed}");
                let got = located(t.queries.locate(n, id).unwrap());
                assert_eq!(got, m.queries.locate(n, id).unwrap(), "seed {seed}");
            }
            let there = self.to_tested[&seq];
            let wanted = m.store.fetch(&[seq]).unwrap();
            let got: Vec<_> = t
                .store
                .fetch(&[there])
                .unwrap()
                .into_iter()
                .map(|o| o.map(|t| self.task(t)))
                .collect();
            assert_eq!(got, wanted, "seed {seed}");
            for n in 0..6 {
                let wanted = m.queries.output(seq, n).unwrap();
                assert_eq!(t.queries.output(there, n).unwrap(), wanted, "seed {seed}");
            }
        }
        for queue in &self.queues {
            for n in 0..4 {
                let key = format!("key-{n}");
                let got = located(t.queries.locate_key(queue.id, &key).unwrap());
                assert_eq!(got, m.queries.locate_key(queue.id, &key).unwrap(), "seed {seed}");
            }
            for index in 0..2 {
                let partition = Partition { queue: queue.id, index };
                for limit in [2, 1000] {
                    let got: Vec<Stub> = loads::overdue_pages(t, partition, limit)
                        .into_iter()
                        .map(|stub| self.stub(stub))
                        .collect();
                    assert_eq!(got, loads::overdue_pages(m, partition, 1000), "seed {seed}");
                }
            }
        }
        self.compare_shards();
        self.compare_lists();
        assert_eq!(t.store.queues().unwrap(), m.store.queues().unwrap(), "seed {seed}");
        let counts = |w: &World| {
            let counts = w.queries.counts().unwrap();
            counts.into_iter().filter(|count| count.count > 0).collect::<Vec<_>>()
        };
        assert_eq!(counts(t), counts(m), "seed {seed}");
        let series = |w: &World| w.queries.series(0, 1000).unwrap();
        assert_eq!(series(t), series(m), "seed {seed}");
        for succeeded in [true, false] {
            for before in [T0.plus(MINUTE), Time::MAX] {
                let prunable = |w: &World| w.queries.prunable(succeeded, before, 50).unwrap();
                assert_eq!(prunable(t), prunable(m), "seed {seed}");
            }
        }
    }

    fn compare_shards(&self) {
        let (m, t, seed) = (&self.model, &self.tested, self.seed);
        let from: Vec<_> = (0..SHARD_COUNT).map(|n| (Shard(n), Edge::START)).collect();
        let together = |w: &World, limit| loads::load_from(w, &from, Time::MAX, limit);
        let got: Vec<_> =
            together(t, 5).into_iter().map(|(s, stub)| (s, self.stub(stub))).collect();
        assert_eq!(got, together(m, 1000), "seed {seed}");
        for shard in (0..SHARD_COUNT).map(Shard) {
            for (until, limit) in [(Time::MAX, 1000), (T0.plus(2 * MINUTE), 3)] {
                let load = |w: &World| loads::load_all(w, shard, until, limit);
                let got: Vec<Stub> = load(t).into_iter().map(|stub| self.stub(stub)).collect();
                assert_eq!(got, load(m), "seed {seed}");
            }
            let probe: Vec<Seq> = self.known.iter().map(|k| k.1).collect();
            let theirs: Vec<Seq> = probe.iter().map(|seq| self.to_tested[seq]).collect();
            let wanted = m.store.reload(shard, &probe).unwrap();
            let mut got = t.store.reload(shard, &theirs).unwrap();
            got.running = got.running.into_iter().map(|task| self.task(task)).collect();
            got.probed = got.probed.into_iter().map(|o| o.map(|task| self.task(task))).collect();
            let occurrence = |l: &mut LiveOccurrence| l.seq = self.seq(l.seq);
            got.schedules.iter_mut().for_each(|s| s.1.iter_mut().for_each(occurrence));
            let rank = |r: Rank| Rank { seq: self.seq(r.seq), ..r };
            got.spilled = got.spilled.into_iter().map(|(p, r)| (p, rank(r))).collect();
            assert_eq!(got, wanted, "seed {seed}");
            let inbox = t.store.inbox(&[shard]).unwrap();
            let got: Vec<_> = inbox.into_iter().map(|(s, stub)| (s, self.stub(stub))).collect();
            assert_eq!(got, m.store.inbox(&[shard]).unwrap(), "seed {seed}");
        }
    }

    fn compare_lists(&self) {
        let (m, t, seed) = (&self.model, &self.tested, self.seed);
        for queue in &self.queues {
            let all = TaskFilter { namespace: queue.namespace, ..TaskFilter::default() };
            let of_queue = TaskFilter { queue: Some(queue.id), ..all.clone() };
            let states = |states: &[State]| TaskFilter { states: states.to_vec(), ..all.clone() };
            let filters = [
                states(&[State::Scheduled]),
                states(&[State::Running]),
                states(&[State::Failed, State::Succeeded]),
                TaskFilter { states: vec![State::Cancelled, State::Running], ..of_queue.clone() },
                TaskFilter { kind: Some("kind-1".into()), ..of_queue.clone() },
                TaskFilter { key: Some("key-1".into()), ..all.clone() },
                TaskFilter { schedule: Some(1), ..all.clone() },
                TaskFilter { due_after: Some(T0.plus(MINUTE)), ..states(&[State::Scheduled]) },
                TaskFilter {
                    due_before: Some(T0.plus(2 * MINUTE)),
                    states: vec![State::Scheduled],
                    ..of_queue.clone()
                },
                all.clone(),
                of_queue,
            ];
            for filter in filters {
                let wanted = lists::all_pages(m, &filter, 1000);
                for limit in [3, 1000] {
                    let got = lists::all_pages(t, &filter, limit);
                    let got: Vec<Task> = got.into_iter().map(|task| self.task(task)).collect();
                    assert_eq!(got, wanted, "seed {seed}: {filter:?} by {limit}");
                }
            }
        }
        for uid in 1..4 {
            let got = t.queries.last_runs(uid, 5).unwrap();
            let got: Vec<Task> = got.into_iter().map(|task| self.task(task)).collect();
            assert_eq!(got, m.queries.last_runs(uid, 5).unwrap(), "seed {seed}");
        }
        let schedules = |w: &World| w.queries.schedules(self.queues[0].namespace, None, 9).unwrap();
        assert_eq!(schedules(t), schedules(m), "seed {seed}");
        assert_eq!(
            t.store.all_calendars().unwrap(),
            m.store.all_calendars().unwrap(),
            "seed {seed}"
        );
        let namespace = self.queues[0].namespace;
        let calendars = |w: &World| w.queries.calendars(namespace, Some("c0"), 9).unwrap();
        assert_eq!(calendars(t), calendars(m), "seed {seed}");
        for name in ["c0", "c1", "c2"] {
            let users = |w: &World| w.queries.calendar_users(namespace, name, 2).unwrap();
            assert_eq!(users(t), users(m), "seed {seed}");
            let one = |w: &World| w.queries.calendar(namespace, name).unwrap();
            assert_eq!(one(t), one(m), "seed {seed}");
        }
    }
}

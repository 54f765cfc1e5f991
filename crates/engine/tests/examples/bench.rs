//! A node that does at once what the engine asks, in a time that only tests move.

use std::collections::BTreeMap;

use tourbillon_engine::api::{
    Answer, Claim, Effect, Ended, Event, Now, ReplyId, Request, StartOrder,
};
use tourbillon_engine::calendars::Calendar;
use tourbillon_engine::{Engine, EngineConfig};
use tourbillon_schedule::Exclusion;
use tourbillon_store::id::shard_of;
use tourbillon_store::queries::{Located, TaskFilter};
use tourbillon_store::schedule::{Cursor, Misfire, Overlap, Rule};
use tourbillon_store::task::{Backoff, BackoffShape, CommandTarget, Retry, Target};
use tourbillon_store::time::SECOND;
use tourbillon_store::{
    AttemptOutcome, CalendarDoc, Done, Epoch, LeaseAsk, MemoryStore, NewTask, Partition, Queries,
    QueueRecord, ScheduleDoc, ScheduleRecord, Seq, Shard, State, Store, Task, TaskId, TaskSpec,
    Time, Unit, Write,
};

/// 2026-03-02T00:00:00Z, a Monday.
pub(crate) const START: Time = Time(1_772_409_600_000_000);

pub(crate) struct Bench {
    pub(crate) store: MemoryStore,
    pub(crate) engine: Engine,
    pub(crate) queue: QueueRecord,
    pub(crate) shard: Shard,
    pub(crate) epoch: Epoch,
    pub(crate) mono: u64,
    pub(crate) offset: i64,
    pub(crate) started: Vec<StartOrder>,
    pub(crate) stopped: Vec<(Seq, u64)>,
    pub(crate) answers: BTreeMap<ReplyId, Answer>,
    /// Loads and commits are kept here while a test holds them back.
    pub(crate) hold_loads: bool,
    /// Leaves out the check after every step, which takes time with the number of tasks.
    pub(crate) unchecked: bool,
    pub(crate) hold_commits: bool,
    pub(crate) held: Vec<Effect>,
    next: u64,
    cfg: EngineConfig,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        let plain = Backoff {
            shape: BackoffShape::Exponential,
            initial: SECOND,
            factor: 2.0,
            max: 3600 * SECOND,
            full_jitter: false,
        };
        Bench::with(EngineConfig { backoff: plain, linger: 0, ..EngineConfig::default() })
    }

    pub(crate) fn with(cfg: EngineConfig) -> Bench {
        let store = MemoryStore::new();
        let write = Write::EnsureQueue { namespace: "default".into(), name: "q".into() };
        let done = store.commit(&[Unit { fences: vec![], writes: vec![write] }]).expect("it works");
        let Ok([Done::Queue(queue)]) = done[0].as_deref() else { panic!("no queue") };
        let queue = (**queue).clone();
        let now = Now { mono: 0, store: START };
        let mut bench = Bench {
            engine: Engine::new(cfg.clone(), now),
            store,
            shard: shard_of("default", "q", 0),
            queue,
            epoch: Epoch(0),
            mono: 0,
            offset: START.0,
            started: Vec::new(),
            stopped: Vec::new(),
            answers: BTreeMap::new(),
            hold_loads: false,
            unchecked: false,
            hold_commits: false,
            held: Vec::new(),
            next: 0,
            cfg,
        };
        bench.boot();
        bench
    }

    fn boot(&mut self) {
        let queues = self.store.queues().expect("reads work");
        self.tell(Event::Queues(queues));
        let calendars = self.store.all_calendars().expect("reads work");
        let calendars = calendars.iter().map(|c| Calendar::of(c).expect("it was judged"));
        self.tell(Event::Calendars(calendars.collect()));
        self.gain();
    }

    /// Takes the shard, under a new epoch.
    pub(crate) fn gain(&mut self) {
        let ask = LeaseAsk {
            node: "a".into(),
            acquire: vec![self.shard],
            renew: vec![],
            release: vec![],
            now: self.now(),
            period: 10_000 * 24 * 3600 * SECOND,
        };
        let lease = self.store.leases(&ask).expect("leases answer")[0];
        self.epoch = lease.epoch;
        let (shard, epoch, until) = (lease.shard, lease.epoch, lease.until);
        self.tell(Event::LeaseGained { shard, epoch, until });
    }

    /// The node dies; attempts of its own die with it. It starts again after `down`.
    pub(crate) fn restart(&mut self, down: i64) {
        self.mono += down as u64;
        self.held.clear();
        self.started.clear();
        self.store.release_all();
        let now = Now { mono: self.mono, store: self.now() };
        self.engine = Engine::new(self.cfg.clone(), now);
        self.boot();
    }

    pub(crate) fn now(&self) -> Time {
        Time(self.mono as i64 + self.offset)
    }

    /// The wall clock is set.
    pub(crate) fn step_clock(&mut self, by: i64) {
        self.offset += by;
        self.tell(Event::ClockStepped);
    }

    /// An event, and all that follows from it now.
    pub(crate) fn tell(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let now = Now { mono: self.mono, store: self.now() };
            let effects = self.engine.step(now, event);
            if !self.unchecked {
                self.engine.check_invariants();
            }
            let follow: Vec<Event> = effects.into_iter().filter_map(|e| self.perform(e)).collect();
            events.extend(follow.into_iter().rev());
        }
    }

    fn perform(&mut self, effect: Effect) -> Option<Event> {
        match &effect {
            Effect::Commit { .. } if self.hold_commits => {
                self.held.push(effect);
                return None;
            }
            Effect::Load { .. } if self.hold_loads => {
                self.held.push(effect);
                return None;
            }
            _ => {}
        }
        self.do_now(effect)
    }

    /// Performs an effect; answers the event that it leads to.
    pub(crate) fn do_now(&mut self, effect: Effect) -> Option<Event> {
        Some(match effect {
            Effect::Commit { call, units } => {
                let result = self.store.commit(&units);
                Event::Committed { call, units, result }
            }
            Effect::Load { call, from, until, limit } => {
                let result = self.store.load(&from, until, limit);
                Event::Loaded { call, shards: from.into_iter().map(|f| f.0).collect(), result }
            }
            Effect::LoadOverdue { call, partition, after, limit } => {
                let result = self.store.load_overdue(partition, after, limit);
                Event::LoadedOverdue { call, partition, result }
            }
            Effect::Reload { call, shard, probe } => {
                let result = self.store.reload(shard, &probe);
                Event::Reloaded { call, shard, probe, result }
            }
            Effect::Fetch { call, seqs } => {
                let result = self.store.fetch(&seqs);
                Event::Fetched { call, seqs, result }
            }
            Effect::Start(order) => {
                assert!(order.open.started_at >= order.task.due, "nothing is early");
                self.started.push(*order);
                return None;
            }
            Effect::Stop { seq, nonce } => {
                self.stopped.push((seq, nonce));
                return None;
            }
            Effect::Reply { reply, answer } => {
                let twice = self.answers.insert(reply, answer);
                assert!(twice.is_none(), "{reply:?} is answered twice");
                return None;
            }
            Effect::Publish(_) => return None,
        })
    }

    /// Performs what was held back.
    pub(crate) fn release(&mut self) {
        (self.hold_loads, self.hold_commits) = (false, false);
        for effect in std::mem::take(&mut self.held) {
            if let Some(event) = self.do_now(effect) {
                self.tell(event);
            }
        }
    }

    /// Time passes, stopping wherever the engine wants to be woken.
    pub(crate) fn pass(&mut self, micros: i64) {
        let end = self.mono + micros as u64;
        let mut idle = 0;
        loop {
            let wake = self.engine.next_wake().map(|at| (at.0 - self.offset).max(0) as u64);
            match wake.map(|w| w.max(self.mono)) {
                Some(wake) if wake <= end => {
                    idle = if wake == self.mono { idle + 1 } else { 0 };
                    assert!(idle < 10_000, "the engine wakes for nothing");
                    self.mono = wake;
                    self.tell(Event::Tick);
                }
                _ => break,
            }
        }
        self.mono = end;
        self.tell(Event::Tick);
    }

    pub(crate) fn pass_until(&mut self, at: Time) {
        let by = at.since(self.now());
        assert!(by >= 0, "time goes on");
        self.pass(by);
    }

    // ---- what clients ask -------------------------------------------------------------------

    pub(crate) fn reply(&mut self) -> ReplyId {
        self.next += 1;
        ReplyId(self.next)
    }

    pub(crate) fn ask(&mut self, request: Request) -> ReplyId {
        let reply = self.reply();
        self.tell(Event::Request { reply, request });
        reply
    }

    pub(crate) fn new_task(&mut self, due: Time, spec: TaskSpec) -> NewTask {
        self.next += 1;
        NewTask {
            id: TaskId(7 << 76 | u128::from(self.next)),
            fingerprint: None,
            namespace: self.queue.namespace,
            partition: Partition { queue: self.queue.id, index: 0 },
            shard: self.shard,
            due,
            created_at: self.now(),
            spec,
            schedule: None,
            keep_existing: false,
            inbox: false,
        }
    }

    pub(crate) fn create(&mut self, due: Time, spec: TaskSpec) -> TaskId {
        let task = self.new_task(due, spec);
        let (id, reply) = (task.id, self.reply());
        self.tell(Event::Accept { reply, tasks: vec![task], replaces: None });
        if !self.hold_commits {
            assert!(matches!(self.answers[&reply], Answer::Accepted(_)));
        }
        id
    }

    pub(crate) fn task(&self, id: TaskId) -> Task {
        self.store.task(self.queue.namespace, id).expect("reads work").expect("it exists")
    }

    pub(crate) fn located(&self, id: TaskId) -> Located {
        self.store.locate(self.queue.namespace, id).expect("reads work").expect("it exists")
    }

    pub(crate) fn cancel(&mut self, id: TaskId) -> ReplyId {
        let at = self.located(id);
        self.ask(Request::Cancel { at })
    }

    /// A schedule as stored.
    pub(crate) fn stored(&self, uid: u128) -> ScheduleRecord {
        let all = self.store.schedules(self.queue.namespace, None, 1_000).expect("reads work");
        all.into_iter().find(|s| s.uid == uid).expect("it is stored")
    }

    /// The tasks of a state, oldest first.
    pub(crate) fn all(&self, state: State) -> Vec<Task> {
        let namespace = self.queue.namespace;
        let filter = TaskFilter { namespace, states: vec![state], ..TaskFilter::default() };
        let mut tasks = self.store.list(&filter, None, 50_000).expect("reads work").tasks;
        tasks.reverse();
        tasks
    }

    // ---- attempts ---------------------------------------------------------------------------

    /// The attempts that started since the last call.
    pub(crate) fn starts(&mut self) -> Vec<StartOrder> {
        std::mem::take(&mut self.started)
    }

    /// The only attempt that started since the last call.
    pub(crate) fn start(&mut self) -> StartOrder {
        let mut starts = self.starts();
        assert_eq!(starts.len(), 1, "one attempt starts");
        starts.remove(0)
    }

    pub(crate) fn end(&mut self, order: &StartOrder, outcome: AttemptOutcome) {
        self.tell(Event::Ended(Ended::new(order.task.seq, order.open.nonce, outcome)));
    }

    pub(crate) fn claim(&mut self, max: usize) -> Vec<StartOrder> {
        let reply = self.reply();
        let claim = Claim {
            queue: self.queue.id,
            max,
            wait_until: self.now(),
            worker: "w".into(),
            kinds: vec![],
        };
        self.tell(Event::Claim { reply, claim });
        match self.answers.remove(&reply) {
            Some(Answer::Claimed(orders)) => orders,
            other => panic!("{other:?}"),
        }
    }

    // ---- calendars --------------------------------------------------------------------------

    /// Stores a calendar of these dates and weekdays, and does not tell the engine yet.
    pub(crate) fn store_calendar(&mut self, name: &str, days: &[&str]) -> Calendar {
        let known = self.store.calendar(self.queue.namespace, name).expect("reads work");
        let (weekdays, dates) =
            days.iter().map(|day| (*day).to_owned()).partition(|d| d.len() == 3);
        let write = Write::PutCalendar {
            namespace: self.queue.namespace_name.clone(),
            name: name.into(),
            version: known.map_or(0, |known| known.version),
            at: self.now(),
            doc: Box::new(CalendarDoc { dates, weekdays, ..CalendarDoc::default() }),
        };
        let done = self.store.commit(&[Unit { fences: vec![], writes: vec![write] }]);
        let Ok([Ok(done)]) = done.as_deref() else { panic!("no calendar") };
        let [Done::Calendar(record)] = &done[..] else { panic!("no calendar") };
        Calendar::of(record).expect("these are days")
    }

    /// The days of calendars as they are stored.
    pub(crate) fn engine_days(&self, names: &[String]) -> Vec<std::sync::Arc<Exclusion>> {
        let of = |name: &String| {
            let record = self.store.calendar(self.queue.namespace, name).expect("reads work");
            Calendar::of(&record.expect("it exists")).expect("it was judged").days
        };
        names.iter().map(of).collect()
    }

    /// Stores a calendar, tells the engine, and waits for what follows.
    pub(crate) fn calendar(&mut self, name: &str, days: &[&str]) -> ReplyId {
        let calendar = self.store_calendar(name, days);
        self.tell(Event::Calendars(vec![calendar]));
        self.ask(Request::AwaitCalendars)
    }

    // ---- schedules --------------------------------------------------------------------------

    /// A schedule that nobody created yet.
    pub(crate) fn unstored(&mut self, name: &str) -> ScheduleRecord {
        self.next += 1;
        ScheduleRecord {
            uid: u128::from(self.next),
            namespace: self.queue.namespace,
            name: name.into(),
            partition: Partition { queue: self.queue.id, index: 0 },
            shard: self.shard,
            version: 0,
            paused: false,
            created_at: self.now(),
            updated_at: self.now(),
            doc: every(60, Misfire::Once, Overlap::Skip),
            cursor: Cursor::default(),
        }
    }

    pub(crate) fn schedule(&mut self, name: &str, doc: ScheduleDoc) -> ScheduleRecord {
        let record = ScheduleRecord { doc, ..self.unstored(name) };
        let reply = self.ask(Request::PutSchedule(Box::new(record)));
        match self.answers.remove(&reply) {
            Some(Answer::Schedule(record)) => *record,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) fn command() -> TaskSpec {
    TaskSpec {
        kind: "k".into(),
        key: None,
        target: Target::Command(CommandTarget {
            argv: vec!["true".into()],
            env: vec![],
            cwd: None,
            stdin: None,
        }),
        payload: Some("{}".into()),
        priority: 0,
        timeout: None,
        expires_at: None,
        at_most_once: false,
        retry: Retry::default(),
        concurrency_key: None,
        tags: vec![],
    }
}

pub(crate) fn worker() -> TaskSpec {
    TaskSpec { target: Target::Worker, ..command() }
}

pub(crate) fn every(seconds: i64, misfire: Misfire, overlap: Overlap) -> ScheduleDoc {
    ScheduleDoc {
        rule: Rule::Every(seconds * SECOND),
        tz: "UTC".into(),
        gap: "shift".into(),
        fold: "first".into(),
        start: None,
        end: None,
        max_runs: None,
        jitter: 0,
        exclude: vec![],
        misfire,
        misfire_grace: None,
        misfire_limit: 100,
        overlap,
        expect_within: None,
        task: command(),
    }
}

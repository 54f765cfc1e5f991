//! The world around one engine: its node, store, targets, workers, clients and clocks.
//!
//! Everything that takes time is an action at a moment of monotonic time; time jumps from one
//! to the next. Reads are computed at a moment between the question and the answer, commits are
//! applied at another, so that late answers of early snapshots are the rule here.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tourbillon_engine::api::{Answer, CallId, Effect, Ended, Event, Now, ReplyId};
use tourbillon_engine::{Engine, EngineConfig};
use tourbillon_store::memory::Fault;
use tourbillon_store::queue::Rate;
use tourbillon_store::task::{Backoff, BackoffShape};
use tourbillon_store::time::{MILLI, MINUTE, SECOND};
use tourbillon_store::{
    AttemptOutcome, Done, Edge, Epoch, LeaseAsk, MemoryStore, NamespaceId, Partition, Queries,
    QueueRecord, Rank, Seq, Shard, State, Store, StoreError, StoreErrorKind, Stub, Task, TaskId,
    Time, Unit, Write,
};

use crate::check::Model;
use crate::clients::{Asked, Clients};
use crate::plant::Plant;
use crate::rng::Rng;

pub(crate) const NODE: &str = "a";

/// Something that happens at a moment.
pub(crate) enum Act {
    CommitApply {
        life: u32,
        call: CallId,
        units: Vec<Unit>,
    },
    Read {
        life: u32,
        read: Read,
    },
    /// An event for the engine of that life.
    Tell {
        life: u32,
        event: Event,
    },
    /// The end of an attempt of this node.
    AttemptEnds {
        life: u32,
        seq: Seq,
        nonce: u64,
        stopped: bool,
    },
    /// A request reaches the node, which may be down.
    Deliver {
        asked: Box<Asked>,
        event: Event,
    },
    /// The node tells its engine of a calendar, then waits for it on behalf of who changed it.
    Calendar {
        event: Event,
        asked: Box<Asked>,
        request: Event,
    },
    Abandon {
        reply: ReplyId,
    },
    Client,
    Worker(usize),
    Beat(u64),
    Done(u64),
    Crash,
    Restart,
    ClockStep,
    Renew,
    LoseShard,
    RegainShard(Shard),
    InboxPoll,
    Calm,
    Drain,
}

pub(crate) enum Read {
    Load { call: CallId, from: Vec<(Shard, Edge)>, until: Time, limit: usize },
    Overdue { call: CallId, partition: Partition, after: Option<Rank>, limit: usize },
    Reload { call: CallId, shard: Shard, probe: Vec<Seq> },
    Fetch { call: CallId, seqs: Vec<Seq> },
}

/// How often rare things happened.
pub(crate) type Counters = BTreeMap<&'static str, u64>;

/// See the module.
pub(crate) struct World {
    pub seed: u64,
    pub rng: Rng,
    pub trace: bool,
    pub plant: Option<Plant>,
    pub store: MemoryStore,
    pub engine: Option<Engine>,
    /// Grows with every start of the node.
    pub life: u32,
    pub mono: u64,
    pub offset: i64,
    acts: BTreeMap<(u64, u64), Act>,
    next_act: u64,
    pub queues: Vec<QueueRecord>,
    pub namespace: NamespaceId,
    /// Shards held, with their epochs.
    pub held: BTreeMap<Shard, Epoch>,
    /// Shards taken away for a while.
    away: BTreeSet<Shard>,
    pub calm: bool,
    pub draining: bool,
    pub flight: Option<Vec<Unit>>,
    pub loads: u32,
    pub model: Model,
    pub clients: Clients,
    pub counters: Counters,
    /// Up to where each shard was loaded in this life.
    edges: HashMap<Shard, Edge>,
    stopped: HashSet<(Seq, u64)>,
    /// Tasks whose cancellation was acknowledged, for a planted fault.
    pub ghosts: Vec<Task>,
    plant_done: bool,
    closing: bool,
    /// It crashes when it next commits.
    crash_at_commit: bool,
    gathered: Vec<Event>,
    idle: u32,
    quiet: u32,
    pub steps: u64,
}

impl World {
    pub(crate) fn new(seed: u64, plant: Option<Plant>, trace: bool) -> World {
        let store = MemoryStore::new();
        let mut rng = Rng::new(seed);
        let mut queues = Vec::new();
        let partitions = [1u16, 2, 1, 1];
        for (i, partitions) in partitions.into_iter().enumerate() {
            let write = Write::EnsureQueue { namespace: "default".into(), name: format!("q{i}") };
            let done = store.commit(&[Unit { fences: vec![], writes: vec![write] }]);
            let Ok([Ok(done)]) = done.as_deref() else { panic!("no queue") };
            let Done::Queue(queue) = &done[0] else { panic!("no queue") };
            let mut record = (**queue).clone();
            record.config.partitions = partitions;
            record.config.concurrency = rng.between(2, 6) as u32;
            if i == 1 {
                record.config.per_key_concurrency = Some(rng.between(1, 2) as u32);
            }
            if i == 0 && rng.chance(60) {
                record.config.rate = Some(rate(&mut rng));
            }
            let write = Write::PutQueue { record: Box::new(record) };
            let done = store.commit(&[Unit { fences: vec![], writes: vec![write] }]);
            let Ok([Ok(done)]) = done.as_deref() else { panic!("no queue") };
            let Done::Queue(queue) = &done[0] else { panic!("no queue") };
            queues.push((**queue).clone());
        }
        let namespace = queues[0].namespace;
        let mut world = World {
            seed,
            rng,
            trace,
            plant,
            store,
            engine: None,
            life: 0,
            mono: 1_000_000,
            offset: 1_700_000_000_000_000,
            acts: BTreeMap::new(),
            next_act: 0,
            namespace,
            held: BTreeMap::new(),
            away: BTreeSet::new(),
            calm: false,
            draining: false,
            flight: None,
            loads: 0,
            model: Model::new(&queues),
            clients: Clients::default(),
            queues,
            counters: Counters::new(),
            edges: HashMap::new(),
            stopped: HashSet::new(),
            ghosts: Vec::new(),
            plant_done: false,
            closing: false,
            crash_at_commit: false,
            gathered: Vec::new(),
            idle: 0,
            quiet: 0,
            steps: 0,
        };
        let minutes = world.rng.between(3, 12);
        world.after(0, Act::Restart);
        world.after(10 * MILLI, Act::Client);
        for worker in 0..4 {
            world.after(world_worker_delay(worker), Act::Worker(worker));
        }
        world.after(20 * SECOND, Act::Renew);
        world.after(SECOND, Act::InboxPoll);
        world.after(minutes * MINUTE, Act::Calm);
        if world.rng.chance(70) {
            let at = world.rng.between(SECOND, minutes * MINUTE);
            world.after(at, Act::ClockStep);
        }
        if world.rng.chance(70) {
            let at = world.rng.between(SECOND, minutes * MINUTE);
            world.after(at, Act::Crash);
        }
        if world.rng.chance(60) {
            let at = world.rng.between(SECOND, minutes * MINUTE);
            world.after(at, Act::LoseShard);
        }
        world
    }

    pub(crate) fn now(&self) -> Time {
        Time(self.mono as i64 + self.offset)
    }

    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counters.entry(what).or_default() += 1;
    }

    pub(crate) fn log(&self, text: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>12} {} {}", self.mono, self.life, text());
        }
    }

    /// A checker saw a fault.
    pub(crate) fn fail(&self, why: &str) -> ! {
        panic!(
            "seed {}: {why}\nrun it alone: WORLD_SEED={} cargo test -p tourbillon-engine --test \
             world one_seed -- --nocapture",
            self.seed, self.seed
        );
    }

    pub(crate) fn check(&self, holds: bool, why: impl FnOnce() -> String) {
        if !holds {
            self.fail(&why());
        }
    }

    pub(crate) fn after(&mut self, delay: i64, act: Act) {
        self.next_act += 1;
        self.acts.insert((self.mono + delay.max(0) as u64, self.next_act), act);
    }

    /// A short time that most things take, sometimes a long one.
    pub(crate) fn some_time(&mut self) -> i64 {
        match self.rng.below(20) {
            0 if !self.calm => self.rng.between(0, 3 * SECOND),
            1..=6 => 0,
            _ => self.rng.between(0, 30 * MILLI),
        }
    }

    /// Plays the world to its end and checks what must hold then.
    pub(crate) fn run(mut self) -> Counters {
        loop {
            let wake = self.engine.as_ref().and_then(Engine::next_wake);
            let wake = wake.map(|at| (at.0 - self.offset).max(self.mono as i64) as u64);
            let act = self.acts.keys().next().copied();
            match (wake, act) {
                (Some(wake), act) if act.is_none_or(|(at, _)| wake <= at) => {
                    self.idle = if wake == self.mono { self.idle + 1 } else { 0 };
                    self.check(self.idle < 2_000, || "the engine wakes for nothing".into());
                    self.mono = wake;
                    self.step(Event::Tick);
                }
                (_, Some(at)) => {
                    if at.0 > self.mono {
                        self.idle = 0;
                    }
                    self.mono = self.mono.max(at.0);
                    let act = self.acts.remove(&at).expect("just seen");
                    self.act(act);
                    if self.quiet >= 2 {
                        break;
                    }
                }
                (_, None) => self.fail("nothing happens any more"),
            }
        }
        self.check_end();
        self.counters.insert("steps", self.steps);
        self.counters.insert("virtual seconds", self.mono / 1_000_000);
        self.counters
    }

    // ---- the node -------------------------------------------------------------------------

    fn act(&mut self, act: Act) {
        match act {
            Act::CommitApply { life, call, units } => self.commit_apply(life, call, units),
            Act::Read { life, read } if life == self.life => self.read(read),
            Act::Read { .. } => {}
            Act::Tell { life, event } => {
                if life == self.life && self.engine.is_some() {
                    self.tell(event);
                }
            }
            Act::AttemptEnds { life, seq, nonce, stopped } => {
                self.attempt_ends(life, seq, nonce, stopped);
            }
            Act::Deliver { asked, event } => self.deliver(*asked, event),
            Act::Calendar { event, mut asked, request } => {
                if let Asked::Calendar { told, .. } = &mut *asked {
                    *told = self.now();
                }
                self.step(event);
                self.deliver(*asked, request);
            }
            Act::Abandon { reply } => {
                if !self.gathered.is_empty() {
                    // One of them may answer it.
                    let last = self.gathered.pop().expect("there is one");
                    self.step_now(last);
                }
                if let Some(asked) = self.model.outstanding.remove(&reply) {
                    self.count("claims abandoned");
                    self.asker_is_alone(&asked);
                    self.step(Event::ClaimAbandoned { reply });
                }
            }
            Act::Client => self.client(),
            Act::Worker(worker) => self.worker(worker),
            Act::Beat(nonce) => self.worker_beats(nonce),
            Act::Done(nonce) => self.worker_is_done(nonce),
            Act::Crash => self.crash(),
            Act::Restart => self.restart(),
            Act::ClockStep => self.clock_step(),
            Act::Renew => self.renew(),
            Act::LoseShard => self.lose_shard(),
            Act::RegainShard(shard) => self.regain_shard(shard),
            Act::InboxPoll => self.inbox_poll(),
            Act::Calm => {
                if self.closing {
                    // The node that is being stopped stops first, and waits for no batch: once all
                    // is calm nothing crashes any more, and it would start nothing for ever.
                    self.crash_at_commit = true;
                    self.act(Act::Crash);
                }
                self.log(|| "calm".into());
                self.calm = true;
                self.after(MINUTE, Act::Drain);
            }
            Act::Drain => self.drain(),
        }
    }

    fn tell(&mut self, event: Event) {
        match &event {
            Event::Committed { .. } => self.flight = None,
            Event::Loaded { shards, result: Ok(span), .. } => {
                self.loads -= 1;
                self.edges.extend(shards.iter().map(|shard| (*shard, span.edge)));
            }
            Event::Loaded { .. } => self.loads -= 1,
            _ => {}
        }
        self.step(event);
    }

    /// One step of the engine, checked.
    pub(crate) fn step(&mut self, event: Event) {
        if self.trace && !matches!(event, Event::Tick) {
            let text = format!("{event:?}");
            self.log(|| format!("> {:.4000}", text));
        }
        if self.engine.is_none() {
            return;
        }
        // Some events come together with the next one.
        let alone = self.calm
            || matches!(
                event,
                Event::ClockStepped | Event::LeaseGained { .. } | Event::ClaimAbandoned { .. }
            );
        if !alone && self.rng.chance(10) {
            self.gathered.push(event);
            return;
        }
        self.step_now(event);
    }

    fn step_now(&mut self, event: Event) {
        let now = Now { mono: self.mono, store: self.now() };
        let idle = matches!(event, Event::Tick | Event::LeaseRenewed { .. });
        let Some(engine) = &mut self.engine else { return };
        let mut events = std::mem::take(&mut self.gathered);
        events.push(event);
        let effects = engine.step_all(now, events);
        self.steps += 1;
        if !idle || !effects.is_empty() || self.steps.is_multiple_of(8) {
            engine.check_invariants();
        }
        let view = self.steps.is_multiple_of(16).then(|| engine.numbers());
        if let Some(view) = view {
            // Beyond the bound: ready, being loaded and being marked, for each partition, and
            // tasks held for a request.
            let bound = self.config().max_resident + 5 * 3 * 8 + self.model.outstanding.len();
            self.check(view.resident <= bound, || format!("{} residents", view.resident));
            if view.resident >= self.config().max_resident {
                self.count("memory full");
            }
        }
        for effect in effects {
            self.effect(effect);
        }
    }

    fn effect(&mut self, effect: Effect) {
        if self.trace {
            let text = format!("{effect:?}");
            self.log(|| format!("    < {:.4000}", text));
        }
        let life = self.life;
        match effect {
            Effect::Commit { call, mut units } => {
                self.check(self.flight.is_none(), || "two batches in flight".into());
                if self.plant == Some(Plant::DoubleAdvance) {
                    double_advance(&mut units);
                }
                let writes: Vec<Write> = units.iter().flat_map(|u| u.writes.clone()).collect();
                for write in &writes {
                    match write {
                        Write::Spill { .. } => self.count("spills"),
                        Write::Advance { .. } => self.count("advances"),
                        Write::PutSchedule(record) => self.count_planned_anew(record),
                        _ => {}
                    }
                }
                self.flight = Some(units.clone());
                if self.crash_at_commit {
                    self.after(0, Act::Crash);
                }
                let delay = self.some_time();
                self.after(delay, Act::CommitApply { life, call, units });
            }
            Effect::Load { call, from, until, limit } => {
                self.check(self.loads == 0, || "two loads under way".into());
                let mut ahead = from.iter().filter(|f| f.1 != Edge::START);
                if ahead.any(|(shard, edge)| self.edges.get(shard).is_some_and(|e| edge < e)) {
                    self.count("pull-backs");
                }
                if from.len() > 1 {
                    self.count("loads of several shards");
                }
                self.loads += 1;
                self.ask_store(Read::Load { call, from, until, limit });
            }
            Effect::LoadOverdue { call, partition, after, limit } => {
                self.count("overdue loads");
                self.ask_store(Read::Overdue { call, partition, after, limit });
            }
            Effect::Reload { call, shard, probe } => {
                self.count("reloads");
                if !probe.is_empty() {
                    self.count("reloads with running attempts");
                }
                self.edges.remove(&shard);
                self.ask_store(Read::Reload { call, shard, probe });
            }
            Effect::Fetch { call, seqs } => {
                self.check_decided(&seqs);
                self.ask_store(Read::Fetch { call, seqs });
            }
            Effect::Start(mut order) => {
                if self.plant == Some(Plant::FenceWithoutEpoch) {
                    order.open.epoch = Epoch(1);
                }
                let (seq, nonce) = (order.task.seq, order.open.nonce);
                self.started(&order, None);
                let takes = match self.rng.below(12) {
                    0 if !self.calm => self.rng.between(5 * SECOND, 60 * SECOND),
                    1 | 2 => 0,
                    _ => self.rng.between(0, 2 * SECOND),
                };
                let takes = takes.min(order.timeout);
                self.after(takes, Act::AttemptEnds { life, seq, nonce, stopped: false });
            }
            Effect::Stop { seq, nonce } => {
                self.count("stops");
                self.stopped.insert((seq, nonce));
                let takes = self.some_time();
                self.after(takes, Act::AttemptEnds { life, seq, nonce, stopped: true });
            }
            Effect::Reply { reply, answer } => self.replied(reply, answer),
            Effect::Publish(_) => {}
        }
    }

    fn replied(&mut self, reply: ReplyId, answer: Answer) {
        if self.plant == Some(Plant::LostReply) && !self.plant_done && self.rng.chance(2) {
            self.plant_done = true;
            return;
        }
        self.answered(reply, answer);
    }

    fn ask_store(&mut self, read: Read) {
        let delay = self.some_time();
        let life = self.life;
        self.after(delay, Act::Read { life, read });
    }

    fn read(&mut self, read: Read) {
        let fails = !self.calm && self.rng.chance(3);
        let error = || StoreError::new(StoreErrorKind::Unavailable, "the read failed");
        let event = match read {
            Read::Load { call, from, until, limit } => {
                let mut result = self.store.load(&from, until, limit);
                if let Ok(span) = &mut result {
                    self.plant_in_load(&mut span.stubs);
                }
                let shards = from.into_iter().map(|f| f.0).collect();
                Event::Loaded { call, shards, result: if fails { Err(error()) } else { result } }
            }
            Read::Overdue { call, partition, after, limit } => {
                let result = self.store.load_overdue(partition, after, limit);
                let result = if fails { Err(error()) } else { result };
                Event::LoadedOverdue { call, partition, result }
            }
            Read::Reload { call, shard, probe } => {
                let result = self.store.reload(shard, &probe);
                let result = if fails { Err(error()) } else { result };
                Event::Reloaded { call, shard, probe, result }
            }
            Read::Fetch { call, seqs } => {
                let mut result = self.store.fetch(&seqs);
                if self.plant == Some(Plant::LostFetch) && !self.plant_done && self.calm {
                    self.plant_done = true;
                    return;
                }
                if let Ok(tasks) = &mut result {
                    for (seq, task) in seqs.iter().zip(tasks) {
                        if task.is_none() {
                            *task = self.ghosts.iter().find(|g| g.seq == *seq).cloned();
                        }
                    }
                }
                Event::Fetched { call, seqs, result: if fails { Err(error()) } else { result } }
            }
        };
        if fails {
            self.count("failed reads");
        }
        let delay = self.some_time();
        let life = self.life;
        self.after(delay, Act::Tell { life, event });
    }

    fn plant_in_load(&mut self, stubs: &mut Vec<(Shard, Stub)>) {
        match self.plant {
            Some(Plant::EarlyLoad) => {
                stubs.iter_mut().for_each(|(_, stub)| stub.due = stub.due.plus(-10 * SECOND));
            }
            Some(Plant::IgnoredTombstone) => {
                if let Some(&(shard, first)) = stubs.first()
                    && let Some(ghost) = self.ghosts.iter().find(|g| g.shard == shard)
                {
                    stubs.insert(0, (shard, Stub { due: first.due, ..ghost.stub() }));
                }
            }
            _ => {}
        }
    }

    fn commit_apply(&mut self, life: u32, call: CallId, units: Vec<Unit>) {
        // A batch of an earlier life arrives late, as from a stopped process that goes on: its
        // epochs must keep it out.
        let late = life != self.life || self.engine.is_none();
        if late {
            self.count("late batches of an earlier life");
        } else if !self.calm && self.rng.chance(6) {
            let faults = [
                Fault::NotCommitted,
                Fault::UnknownCommitted,
                Fault::UnknownCommitted,
                Fault::UnknownNotCommitted,
                Fault::Busy,
                Fault::Full,
            ];
            let fault = *self.rng.pick(&faults);
            self.log(|| format!("fault {fault:?}"));
            self.count("failed commits");
            if matches!(fault, Fault::UnknownCommitted | Fault::UnknownNotCommitted) {
                self.count("unknown commits");
            }
            self.store.inject(fault);
        }
        let mut units = units;
        if late {
            // A queue has no epoch; the node that writes it reads it again when it starts.
            units.retain(|u| !u.writes.iter().any(|w| matches!(w, Write::PutQueue { .. })));
        }
        let result = self.store.commit(&units);
        self.log(|| format!("applied {call:?} {result:?}"));
        self.check_committed(&units, late, &result);
        if late {
            return;
        }
        if let Ok(results) = &result
            && results.iter().any(Result::is_err)
        {
            self.count("refused units");
        }
        let delay = self.some_time();
        self.after(delay, Act::Tell { life, event: Event::Committed { call, units, result } });
    }

    fn attempt_ends(&mut self, life: u32, seq: Seq, nonce: u64, stopped: bool) {
        if life != self.life || self.engine.is_none() {
            return;
        }
        let Some(active) = self.model.active.remove(&nonce) else { return };
        let mut ended = Ended::new(seq, nonce, AttemptOutcome::Succeeded);
        let was_stopped = self.stopped.remove(&(seq, nonce));
        match self.rng.below(20) {
            _ if stopped || (was_stopped && self.rng.chance(50)) => {
                ended.outcome = AttemptOutcome::Cancelled;
            }
            0..=3 => ended.outcome = AttemptOutcome::Failed,
            4 => ended.outcome = AttemptOutcome::TimedOut,
            5 => {
                ended.outcome = AttemptOutcome::Failed;
                ended.retry_in = Some(self.rng.between(0, 30 * SECOND));
            }
            6 if self.rng.chance(30) => {
                ended.outcome = AttemptOutcome::Failed;
                ended.reject = true;
            }
            _ => {}
        }
        if ended.outcome == AttemptOutcome::Succeeded {
            self.model.succeeded.insert(active.id);
        }
        self.step(Event::Ended(ended));
    }

    fn config(&self) -> EngineConfig {
        EngineConfig {
            node: NODE.into(),
            window: 2 * MINUTE,
            max_resident: 20 + (self.seed % 31) as usize,
            load_chunk: 5,
            overdue_chunk: 4 + (self.seed % 5) as usize,
            max_payload_bytes: 8_000,
            batch_max: 10,
            max_pending_writes: 200,
            max_waiting_claims: 8,
            timer_budget: 20,
            claim_timeout: 10 * SECOND,
            backoff: Backoff {
                shape: BackoffShape::Exponential,
                initial: SECOND,
                factor: 2.0,
                max: 30 * SECOND,
                full_jitter: self.seed.is_multiple_of(2),
            },
            seed: self.seed ^ u64::from(self.life) << 40,
            publish: self.seed.is_multiple_of(3),
            ..EngineConfig::default()
        }
    }

    fn crash(&mut self) {
        // One that was told to stop takes nothing in any more: it must stop, and start again.
        if (self.calm && !self.closing) || self.engine.is_none() {
            self.crash_at_commit = false;
            return;
        }
        if self.engine.as_ref().is_some_and(|e| !self.closing && !e.is_quiet())
            && self.rng.chance(40)
        {
            // It is told to stop, and has some time for what runs.
            self.closing = true;
            self.count("drains");
            self.step(Event::Drain);
            let grace = self.rng.between(0, 30 * SECOND);
            return self.after(grace, Act::Crash);
        }
        if self.flight.is_none() && !self.crash_at_commit && self.rng.chance(70) {
            // The worst moment is while a batch is under way: with the next one, if one comes soon.
            self.crash_at_commit = true;
            return self.after(30 * SECOND, Act::Crash);
        }
        self.crash_at_commit = false;
        self.closing = false;
        self.log(|| "crash".into());
        self.count("crashes");
        self.engine = None;
        self.gathered.clear();
        self.life += 1;
        self.flight = None;
        self.loads = 0;
        self.held.clear();
        // Most batches in flight are done or dead by now; a few arrive later.
        let commits: Vec<(u64, u64)> = self
            .acts
            .iter()
            .filter(|(_, a)| matches!(a, Act::CommitApply { .. }))
            .map(|(at, _)| *at)
            .collect();
        for at in commits {
            match self.rng.below(3) {
                0 => {
                    self.acts.remove(&at);
                }
                1 => {
                    if let Some(act) = self.acts.remove(&at) {
                        self.after(5 * SECOND, act);
                    }
                }
                _ => {}
            }
        }
        self.forget_life();
        let down = self.rng.between(0, 20 * SECOND);
        self.after(down, Act::Restart);
        if self.rng.chance(50) {
            let again = down + self.rng.between(SECOND, MINUTE);
            self.after(again, Act::Crash);
        }
    }

    fn restart(&mut self) {
        self.life += 1;
        self.log(|| "start".into());
        self.store.release_all();
        let now = Now { mono: self.mono, store: self.now() };
        self.engine = Some(Engine::new(self.config(), now));
        self.edges.clear();
        self.stopped.clear();
        let queues = self.store.queues().expect("reads work");
        self.model.queues_known(&queues, self.mono);
        self.step(Event::Queues(queues));
        let calendars = self.stored_calendars();
        self.step(Event::Calendars(calendars));
        let shards: Vec<Shard> = self.shards().into_iter().collect();
        self.away.clear();
        self.acquire(shards);
    }

    pub(crate) fn shards(&self) -> BTreeSet<Shard> {
        self.queues.iter().flat_map(|q| (0..q.config.partitions).map(|i| shard_of(q, i))).collect()
    }

    fn acquire(&mut self, shards: Vec<Shard>) {
        let leases = self.ask_leases(shards, vec![], vec![]);
        for lease in leases {
            self.held.insert(lease.shard, lease.epoch);
            let (shard, epoch, until) = (lease.shard, lease.epoch, lease.until);
            self.step(Event::LeaseGained { shard, epoch, until });
        }
    }

    fn ask_leases(
        &mut self,
        acquire: Vec<Shard>,
        renew: Vec<(Shard, Epoch)>,
        release: Vec<(Shard, Epoch)>,
    ) -> Vec<tourbillon_store::Lease> {
        let (now, period) = (self.now(), MINUTE);
        let ask = LeaseAsk { node: NODE.into(), acquire, renew, release, now, period };
        self.store.leases(&ask).expect("leases answer")
    }

    fn renew(&mut self) {
        if self.engine.is_some() {
            let held: Vec<(Shard, Epoch)> = self.held.iter().map(|(s, e)| (*s, *e)).collect();
            for lease in self.ask_leases(vec![], held, vec![]) {
                let (shard, until) = (lease.shard, lease.until);
                self.step(Event::LeaseRenewed { shard, until });
            }
        }
        // Sometimes so late that the lease has run out in between.
        let late = !self.calm && self.rng.chance(10);
        let next =
            if late { 70 * SECOND } else { 20 * SECOND + 30 * SECOND * i64::from(self.calm) };
        if late {
            self.count("leases that ran out for a while");
        }
        self.after(next, Act::Renew);
    }

    fn lose_shard(&mut self) {
        if self.calm || self.engine.is_none() {
            return;
        }
        let held: Vec<Shard> = self.held.keys().copied().collect();
        if held.is_empty() {
            return;
        }
        let shard = *self.rng.pick(&held);
        let epoch = self.held.remove(&shard).expect("held");
        self.count("shards lost");
        self.log(|| format!("lost {shard:?}"));
        let (now, period) = (self.now(), MINUTE);
        self.ask_leases(vec![], vec![], vec![(shard, epoch)]);
        let ask = LeaseAsk {
            node: "b".into(),
            acquire: vec![shard],
            renew: vec![],
            release: vec![],
            now,
            period,
        };
        self.store.leases(&ask).expect("leases answer");
        *self.model.losses.entry(shard).or_default() += 1;
        self.away.insert(shard);
        // Sometimes the engine learns of it first by a fenced write.
        if self.rng.chance(60) {
            self.step(Event::LeaseLost { shard });
        }
        let back = self.rng.between(0, 40 * SECOND);
        self.after(back, Act::RegainShard(shard));
        if self.rng.chance(60) {
            let again = self.rng.between(SECOND, 2 * MINUTE);
            self.after(again, Act::LoseShard);
        }
    }

    fn regain_shard(&mut self, shard: Shard) {
        if self.engine.is_none() || !self.away.remove(&shard) {
            return;
        }
        self.log(|| format!("regain {shard:?}"));
        self.store.release_all_of("b", self.now());
        self.acquire(vec![shard]);
    }

    fn clock_step(&mut self) {
        if self.calm {
            return;
        }
        let by = match self.rng.below(4) {
            0 => self.rng.between(-3 * 60 * MINUTE, -1),
            1 => self.rng.between(-5 * SECOND, -1),
            2 => self.rng.between(1, 3 * 60 * MINUTE),
            _ => self.rng.between(1, 10 * SECOND),
        };
        self.offset += by;
        self.log(|| format!("clock steps by {by}"));
        self.count(if by < 0 { "steps back" } else { "steps forward" });
        self.model.clock_stepped();
        self.step(Event::ClockStepped);
        // A lease is judged by the same clock.
        if self.rng.chance(70) {
            self.act(Act::Renew);
        }
        if self.rng.chance(50) {
            let again = self.rng.between(SECOND, 3 * MINUTE);
            self.after(again, Act::ClockStep);
        }
    }

    fn inbox_poll(&mut self) {
        if self.engine.is_some() {
            let shards: Vec<Shard> = self.held.keys().copied().collect();
            let rows = self.store.inbox(&shards).expect("reads work");
            if !rows.is_empty() {
                self.count("inbox rows");
                let delay = self.some_time();
                let life = self.life;
                self.after(delay, Act::Tell { life, event: Event::Inbox(rows) });
            }
        }
        self.after(SECOND, Act::InboxPoll);
    }

    /// Faults are over: lets everything come to its end.
    fn drain(&mut self) {
        if !self.draining {
            self.check_plans();
            self.log(|| "drain".into());
            self.draining = true;
            self.model.drain_until = self.mono + 12 * 60 * MINUTE as u64;
            self.model.drained_at = self.mono;
        }
        let live = self.live();
        if self.mono > self.model.drained_at + 30 * MINUTE as u64 {
            // Time enough for any backlog of this world.
            let long_ago = self.now().plus(-30 * MINUTE);
            let late = live.iter().find(|t| t.state == State::Scheduled && t.due < long_ago);
            self.check(late.is_none(), || format!("never starts: {:?}", late.map(Task::stub)));
        }
        let schedules = self.schedules();
        self.drain_requests(&schedules);
        let over = live.is_empty()
            && schedules.iter().all(|s| s.paused)
            && self.flight.is_none()
            && self.model.outstanding.values().all(|a| matches!(a, Asked::Claim { .. }));
        if over {
            self.clients.closed = true;
            let idle = self.model.outstanding.is_empty();
            self.quiet = if idle { self.quiet + 1 } else { 0 };
        }
        let stuck = self.mono > self.model.drain_until;
        self.check(!stuck, || {
            let tasks: Vec<String> = live
                .iter()
                .take(5)
                .map(|t| format!("{:?} {:?} due {:?}", t.seq, t.state, t.due))
                .collect();
            let asked: Vec<String> =
                self.model.outstanding.values().take(5).map(|a| format!("{a:.200?}")).collect();
            format!("{} tasks never end: {tasks:?}; unanswered: {asked:?}", live.len())
        });
        let next = if over { SECOND } else { 5 * SECOND };
        self.after(next, Act::Drain);
    }

    pub(crate) fn live(&self) -> Vec<Task> {
        self.store.live_tasks()
    }
}

/// The shard of a queue's partition.
pub(crate) fn shard_of(queue: &QueueRecord, index: u16) -> Shard {
    tourbillon_store::id::shard_of(&queue.namespace_name, &queue.name, index)
}

pub(crate) fn rate(rng: &mut Rng) -> Rate {
    Rate {
        per: rng.between(1, 4) * SECOND,
        count: rng.between(1, 8) as u32,
        burst: rng.between(1, 4) as u32,
    }
}

fn world_worker_delay(worker: usize) -> i64 {
    worker as i64 * 300 * MILLI
}

/// A planted fault: what moves a schedule on creates one occurrence more.
fn double_advance(units: &mut [Unit]) {
    for unit in units {
        let advances = unit.writes.iter().any(|w| matches!(w, Write::Advance { .. }));
        if advances && let Some(Write::Insert(task)) = unit.writes.last().cloned() {
            let mut task = task;
            task.id = TaskId(task.id.0 ^ 1);
            if let Some(link) = &mut task.schedule {
                link.logical = link.logical.plus(1);
            }
            unit.writes.push(Write::Insert(task));
        }
    }
}

/// What the harness needs of the memory store beyond its traits.
pub(crate) trait Peek {
    fn live_tasks(&self) -> Vec<Task>;
    fn release_all_of(&self, node: &str, now: Time);
}

impl Peek for MemoryStore {
    fn live_tasks(&self) -> Vec<Task> {
        use tourbillon_store::queries::TaskFilter;
        let filter = TaskFilter {
            namespace: NamespaceId(1),
            states: vec![State::Scheduled, State::Running],
            ..TaskFilter::default()
        };
        self.list(&filter, None, 50_000).expect("reads work").tasks
    }

    fn release_all_of(&self, node: &str, now: Time) {
        let rows = self.lease_table().expect("reads work");
        let of = rows.into_iter().filter(|r| r.owner.as_deref() == Some(node));
        let release = of.map(|r| (r.shard, r.epoch)).collect();
        let ask = LeaseAsk {
            node: node.into(),
            acquire: vec![],
            renew: vec![],
            release,
            now,
            period: SECOND,
        };
        self.leases(&ask).expect("leases answer");
    }
}

//! Clients and workers: what they ask, and what they do with the answers.

use std::collections::{BTreeMap, HashMap, HashSet};

use tourbillon_engine::api::{
    Answer, BackfillChange, Beat, Claim, Completion, Event, ReplyId, Request, TokenState,
    WorkerOutcome,
};
use tourbillon_store::id::partition_index;
use tourbillon_store::queries::{Located, TaskFilter};
use tourbillon_store::schedule::{Backfill, Cursor, Misfire, Overlap, Rule};
use tourbillon_store::task::{CommandTarget, Retry, Target, kind_hash};
use tourbillon_store::time::{MILLI, MINUTE, SECOND};
use tourbillon_store::{
    AttemptOutcome, AttemptToken, NewTask, Partition, Queries, QueueRecord, ScheduleDoc,
    ScheduleRecord, State, Store, TaskId, TaskSpec, Time, Unit, Write,
};

use crate::world::{Act, World, rate, shard_of};

/// What was asked under a [`ReplyId`].
#[derive(Debug)]
pub(crate) enum Asked {
    Accept {
        ids: Vec<TaskId>,
        replaces: Option<TaskId>,
    },
    Cancel {
        id: TaskId,
    },
    Edit {
        id: TaskId,
    },
    Redrive {
        id: TaskId,
        schedule: Option<u128>,
    },
    Queue {
        record: Box<QueueRecord>,
    },
    Schedule {
        uid: u128,
        paused: bool,
        delete: bool,
    },
    Trigger,
    Backfill,
    /// A calendar was changed to this version, or removed.
    Calendar {
        name: String,
        version: Option<u64>,
        /// When the engine was told, in store time.
        told: Time,
    },
    Claim {
        worker: usize,
    },
    Complete {
        items: Vec<(AttemptToken, AttemptOutcome)>,
    },
    Heartbeat {
        tokens: Vec<AttemptToken>,
    },
}

impl Asked {
    /// The tasks it changes.
    pub(crate) fn about(&self) -> Option<Vec<TaskId>> {
        match self {
            Asked::Cancel { id } | Asked::Edit { id } | Asked::Redrive { id, .. } => {
                Some(vec![*id])
            }
            Asked::Accept { replaces: Some(id), .. } => Some(vec![*id]),
            _ => None,
        }
    }

    pub(crate) fn deletes(&self, of: u128) -> bool {
        matches!(self, Asked::Schedule { uid, delete: true, .. } if *uid == of)
    }

    pub(crate) fn resumes(&self, of: u128) -> bool {
        matches!(self, Asked::Schedule { uid, delete: false, paused: false } if *uid == of)
    }
}

/// What clients and workers remember.
#[derive(Default)]
pub(crate) struct Clients {
    next_reply: u64,
    next_id: u64,
    next_uid: u128,
    /// Tasks that were sent, to be sent again.
    sent: Vec<NewTask>,
    /// Claims that a worker works on, by nonce.
    held: BTreeMap<u64, Held>,
    waits: HashMap<usize, ReplyId>,
    overlaps: HashMap<u128, Overlap>,
    /// The calendars that each schedule names.
    pub excludes: HashMap<u128, Vec<String>>,
    /// Ids of backfills that were asked for again.
    pub begun_again: HashSet<String>,
    pub closed: bool,
}

#[derive(Clone)]
struct Held {
    token: AttemptToken,
    timeout: i64,
    /// It gives no sign of life and does not end.
    vanished: bool,
    outcome: Option<(WorkerOutcome, AttemptOutcome)>,
}

const QUEUES_OF_WORKERS: [usize; 2] = [2, 3];

impl World {
    pub(crate) fn reply(&mut self) -> ReplyId {
        self.clients.next_reply += 1;
        ReplyId(self.clients.next_reply)
    }

    fn new_id(&mut self) -> TaskId {
        self.clients.next_id += 1;
        TaskId(7 << 76 | u128::from(self.clients.next_id))
    }

    pub(crate) fn send(&mut self, asked: Asked, event: Event) {
        let delay = self.some_time();
        self.after(delay, Act::Deliver { asked: Box::new(asked), event });
    }

    /// A request reaches the node.
    pub(crate) fn deliver(&mut self, asked: Asked, event: Event) {
        if self.engine.is_none() {
            return self.asker_is_alone(&asked);
        }
        let reply = match &event {
            Event::Accept { reply, .. }
            | Event::Request { reply, .. }
            | Event::Claim { reply, .. }
            | Event::Complete { reply, .. }
            | Event::Heartbeat { reply, .. } => *reply,
            _ => return,
        };
        self.model.asked(&asked);
        match &asked {
            Asked::Cancel { .. } if self.loads > 0 => self.count("cancels during a load"),
            Asked::Schedule { uid, .. } => {
                let busy = self.flight.iter().flatten().flat_map(|u| &u.writes);
                let busy = busy.filter(|w| matches!(w, Write::Advance { uid: u, .. } if u == uid));
                if busy.count() > 0 {
                    self.count("deferred schedule requests");
                }
            }
            _ => {}
        }
        match &asked {
            Asked::Heartbeat { tokens } => {
                for token in tokens {
                    if let Some(active) = self.model.active.get_mut(&token.nonce) {
                        active.last_sign = active.last_sign.max(self.mono);
                    }
                }
            }
            Asked::Complete { items } => {
                for (token, outcome) in items {
                    if let Some(active) = self.model.active.get_mut(&token.nonce) {
                        active.told = true;
                        if *outcome == AttemptOutcome::Succeeded {
                            self.model.succeeded.insert(active.id);
                        }
                    }
                }
            }
            _ => {}
        }
        let early = self.plant == Some(crate::plant::Plant::AckBeforeCommit)
            && matches!(&asked, Asked::Accept { replaces: None, .. });
        let done = self.plant == Some(crate::plant::Plant::DoneBeforeCommit);
        let states = match &asked {
            Asked::Complete { items } if done => Some(vec![TokenState::Yours; items.len()]),
            _ => None,
        };
        let ids = match &asked {
            Asked::Accept { ids, .. } => ids.clone(),
            _ => Vec::new(),
        };
        self.model.outstanding.insert(reply, asked);
        if early {
            let done = ids.into_iter().map(tourbillon_store::Done::Same).collect();
            return self.answered(reply, Answer::Accepted(done));
        }
        if let Some(states) = states {
            return self.answered(reply, Answer::Tokens(states));
        }
        self.step(event);
    }

    /// The node is gone before it answered.
    pub(crate) fn asker_is_alone(&mut self, asked: &Asked) {
        match asked {
            Asked::Claim { worker, .. } => {
                self.clients.waits.remove(worker);
                self.after(SECOND, Act::Worker(*worker));
            }
            Asked::Complete { items } => {
                for (token, _) in items {
                    self.after(500 * MILLI, Act::Done(token.nonce));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn asker_hears(&mut self, asked: Asked, answer: Answer) {
        match (asked, answer) {
            (Asked::Claim { worker, .. }, answer) => {
                self.clients.waits.remove(&worker);
                let mut pause = self.some_time();
                match answer {
                    Answer::Claimed(orders) => {
                        for order in orders {
                            self.worker_begins(&order);
                        }
                    }
                    _ => pause += SECOND,
                }
                self.after(pause, Act::Worker(worker));
            }
            (Asked::Complete { items }, Answer::Tokens(_)) => {
                for (token, _) in items {
                    self.clients.held.remove(&token.nonce);
                }
            }
            (Asked::Complete { items }, _) => {
                for (token, _) in items {
                    self.after(500 * MILLI, Act::Done(token.nonce));
                }
            }
            (Asked::Heartbeat { tokens }, Answer::Tokens(states)) => {
                for (token, state) in tokens.iter().zip(states) {
                    match state {
                        TokenState::Cancelled => self.after(0, Act::Done(token.nonce)),
                        TokenState::Gone => {
                            self.clients.held.remove(&token.nonce);
                            self.model.active.remove(&token.nonce);
                        }
                        TokenState::Yours => {}
                    }
                }
            }
            (Asked::Queue { .. }, Answer::Unavailable(_)) => {
                // It is not known what was written: the node reads the queues again.
                let queues = self.store.queues().expect("reads work");
                if !self.model.outstanding.values().any(|a| matches!(a, Asked::Queue { .. })) {
                    self.model.queues_known(&queues, self.mono);
                }
                let life = self.life;
                self.after(0, Act::Tell { life, event: Event::Queues(queues) });
            }
            _ => {}
        }
    }

    // ---- clients ----------------------------------------------------------------------------

    pub(crate) fn client(&mut self) {
        if self.calm {
            return;
        }
        match self.rng.below(110) {
            0..=29 => self.create(1),
            30..=36 => {
                let n = self.rng.between(2, 15) as usize;
                self.create(n);
            }
            37..=39 => self.insert_by_inbox(),
            40..=42 => self.create_again(),
            43..=57 => self.cancel(),
            58..=66 => self.edit(),
            67..=70 => self.redrive(),
            71..=78 => self.put_queue(),
            79..=88 => self.put_schedule(),
            89..=93 => self.pause_schedule(),
            94..=95 => self.delete_schedule(),
            96..=99 => self.trigger(),
            100..=104 => self.backfill(),
            _ => self.change_calendar(),
        }
        let next = match self.rng.below(10) {
            0 => self.rng.between(0, 10 * SECOND),
            1..=3 => 0,
            _ => self.rng.between(0, 1_500 * MILLI),
        };
        self.after(next, Act::Client);
    }

    fn spec(&mut self, queue: usize) -> TaskSpec {
        let worker = queue == 2 || (queue == 3 && self.rng.chance(50));
        let target = if worker {
            Target::Worker
        } else {
            Target::Command(CommandTarget {
                argv: vec!["true".into()],
                env: vec![],
                cwd: None,
                stdin: None,
            })
        };
        let retry = if self.rng.chance(50) {
            Retry {
                max_attempts: Some(self.rng.between(1, 4) as u32),
                max_lost: self.rng.chance(30).then_some(self.rng.between(1, 4) as u32),
                give_up_after: self.rng.chance(20).then_some(self.rng.between(0, MINUTE)),
                backoff: None,
            }
        } else {
            Retry::default()
        };
        let at_most_once = self.rng.chance(10);
        TaskSpec {
            kind: format!("k{}", self.rng.below(2)),
            key: None,
            target,
            payload: Some(format!("{{\"n\":{}}}", self.clients.next_id)),
            priority: self.rng.between(-2, 2) as i8,
            timeout: self.rng.chance(20).then_some(self.rng.between(2, 40) * SECOND),
            expires_at: None,
            at_most_once,
            retry: if at_most_once { Retry::default() } else { retry },
            concurrency_key: (queue == 1 && self.rng.chance(60))
                .then(|| format!("c{}", self.rng.below(3))),
            tags: vec![],
        }
    }

    fn due(&mut self) -> Time {
        let ahead = match self.rng.below(10) {
            0..=2 => 0,
            3 => self.rng.between(-MINUTE, 0),
            4..=7 => self.rng.between(0, 20 * SECOND),
            8 => self.rng.between(0, 5 * MINUTE),
            _ => self.rng.between(0, 20 * MINUTE),
        };
        // Many at one instant, so that edges fall among equals.
        let due = self.now().plus(ahead);
        if self.rng.chance(30) {
            Time(due.0 / (10 * SECOND) * 10 * SECOND)
        } else {
            due.ceil_milli()
        }
    }

    fn new_task(&mut self) -> NewTask {
        let q = *self.rng.pick(&[0usize, 0, 1, 1, 2, 3]);
        let mut spec = self.spec(q);
        let due = self.due();
        if self.rng.chance(10) {
            spec.expires_at = Some(due.plus(self.rng.between(1, 30 * SECOND)));
        }
        if self.rng.chance(25) {
            spec.key = Some(format!("key{}", self.rng.below(6)));
        }
        let id = self.new_id();
        let queue = self.queues[q].clone();
        let affinity = spec.concurrency_key.clone().or_else(|| spec.key.clone());
        let affinity = affinity.map_or(id.0.to_be_bytes().to_vec(), String::into_bytes);
        let index = partition_index(&affinity, queue.config.partitions);
        NewTask {
            id,
            fingerprint: Some(id.0 as u64),
            namespace: self.namespace,
            partition: Partition { queue: queue.id, index },
            shard: shard_of(&queue, index),
            due,
            created_at: self.now(),
            spec,
            schedule: None,
            keep_existing: self.rng.chance(40),
            inbox: false,
        }
    }

    fn create(&mut self, n: usize) {
        let mut tasks: Vec<NewTask> = (0..n).map(|_| self.new_task()).collect();
        let mut replaces: Option<Located> = None;
        if n == 1
            && let Some(key) = tasks[0].spec.key.clone()
            && self.rng.chance(60)
        {
            let queue = tasks[0].partition.queue;
            let holder = self.store.locate_key(queue, &key).expect("reads work");
            if let Some(holder) = holder.filter(|h| h.state == State::Scheduled) {
                tasks[0].partition = holder.partition;
                tasks[0].shard = holder.shard;
                tasks[0].spec.concurrency_key = holder.concurrency_key.clone();
                replaces = Some(holder);
            }
        }
        self.clients.sent.extend(tasks.iter().take(2).cloned());
        self.accept(tasks, replaces);
    }

    fn accept(&mut self, tasks: Vec<NewTask>, replaces: Option<Located>) {
        let reply = self.reply();
        let ids = tasks.iter().map(|t| t.id).collect();
        let asked = Asked::Accept { ids, replaces: replaces.as_ref().map(|r| r.id) };
        self.send(asked, Event::Accept { reply, tasks, replaces });
    }

    fn create_again(&mut self) {
        if self.clients.sent.is_empty() {
            return;
        }
        let at = self.rng.below(self.clients.sent.len() as u64) as usize;
        let task = self.clients.sent[at].clone();
        self.count("ids sent twice");
        self.accept(vec![task], None);
    }

    /// Another node, which does not own the shard, inserts.
    fn insert_by_inbox(&mut self) {
        let mut task = self.new_task();
        task.inbox = true;
        let id = task.id;
        let unit = Unit { fences: vec![], writes: vec![Write::Insert(Box::new(task))] };
        let result = self.store.commit(&[unit]).expect("no fault is set");
        if let [Ok(done)] = &result[..]
            && matches!(done[..], [tourbillon_store::Done::Inserted(_)])
        {
            self.model.tasks.entry(id).or_default().acked = true;
            self.model.inboxed.insert(id);
        }
    }

    fn some_task(&mut self, states: &[State]) -> Option<tourbillon_store::Task> {
        let filter = TaskFilter {
            namespace: self.namespace,
            states: states.to_vec(),
            ..TaskFilter::default()
        };
        let tasks = self.store.list(&filter, None, 1_000).expect("reads work").tasks;
        if tasks.is_empty() { None } else { Some(self.rng.pick(&tasks).clone()) }
    }

    fn cancel(&mut self) {
        let Some(task) = self.some_task(&[State::Scheduled, State::Running]) else { return };
        let at = self.store.locate(self.namespace, task.id).expect("reads work").expect("listed");
        let again = if self.rng.chance(10) { 2 } else { 1 };
        for _ in 0..again {
            let reply = self.reply();
            let request = Request::Cancel { at: at.clone() };
            self.send(Asked::Cancel { id: task.id }, Event::Request { reply, request });
        }
    }

    fn edit(&mut self) {
        let Some(task) = self.some_task(&[State::Scheduled]) else { return };
        let task = self.store.task(self.namespace, task.id).expect("reads work").expect("listed");
        if task.schedule.is_some() {
            return;
        }
        let run_now = self.rng.chance(30);
        let mut spec = task.spec.clone();
        let due = if run_now { self.now() } else { self.due() };
        if !run_now {
            spec.priority = self.rng.between(-8, 7) as i8;
            spec.payload = Some("{\"edited\":true}".into());
            if self.rng.chance(10) {
                spec.concurrency_key = Some("other".into());
            }
        }
        let (id, reply) = (task.id, self.reply());
        let request = Request::Edit {
            task: Box::new(task),
            due: due.ceil_milli(),
            spec: Box::new(spec),
            unstarted: !run_now,
        };
        self.send(Asked::Edit { id }, Event::Request { reply, request });
    }

    fn redrive(&mut self) {
        let over = [State::Failed, State::Cancelled, State::Expired, State::Skipped];
        let Some(task) = self.some_task(&over) else { return };
        let at = self.store.locate(self.namespace, task.id).expect("reads work").expect("listed");
        let due = self.due();
        let reply = self.reply();
        let request = Request::Redrive { at, namespace: self.namespace, due };
        let schedule = task.schedule.map(|s| s.uid);
        self.send(Asked::Redrive { id: task.id, schedule }, Event::Request { reply, request });
    }

    fn put_queue(&mut self) {
        let queues = self.store.queues().expect("reads work");
        let mut record = self.rng.pick(&queues).clone();
        let config = &mut record.config;
        match self.rng.below(5) {
            0 | 1 => config.paused = !config.paused,
            2 => config.concurrency = self.rng.between(2, 6) as u32,
            3 => {
                config.rate = self.rng.chance(50).then(|| rate(&mut self.rng));
            }
            _ => {
                config.per_key_concurrency =
                    self.rng.chance(70).then_some(self.rng.between(1, 3) as u32);
            }
        }
        self.send_queue(record);
    }

    fn send_queue(&mut self, record: QueueRecord) {
        let reply = self.reply();
        let record = Box::new(record);
        let request = Request::PutQueue(record.clone());
        self.send(Asked::Queue { record }, Event::Request { reply, request });
    }

    fn put_schedule(&mut self) {
        let name = format!("s{}", self.rng.below(3));
        let known = self.store.schedule(self.namespace, &name).expect("reads work");
        let q = *self.rng.pick(&[0usize, 1, 2]);
        let mut task = self.spec(q);
        task.at_most_once = false;
        let rule = match self.rng.below(5) {
            0 => Rule::After(self.rng.between(1, 30) * SECOND),
            1 => Rule::Cron { expr: "* * * * *".into(), dialect: "vixie".into() },
            _ => Rule::Every(self.rng.between(2, 40) * SECOND),
        };
        let overlaps = [Overlap::Allow, Overlap::Skip, Overlap::Wait, Overlap::CancelRunning];
        let misfires = [Misfire::Skip, Misfire::Once, Misfire::All];
        let mut doc = ScheduleDoc {
            rule,
            tz: "UTC".into(),
            gap: "shift".into(),
            fold: "first".into(),
            start: None,
            end: None,
            max_runs: self.rng.chance(20).then_some(self.rng.between(1, 8) as u64),
            jitter: if self.rng.chance(20) { 2 * SECOND } else { 0 },
            exclude: self.some_calendars(),
            misfire: *self.rng.pick(&misfires),
            misfire_grace: self.rng.chance(30).then_some(self.rng.between(0, MINUTE)),
            misfire_limit: self.rng.between(1, 5) as u32,
            overlap: *self.rng.pick(&overlaps),
            expect_within: None,
            task,
        };
        let now = self.now();
        let record = match known {
            Some(known) => {
                doc.overlap = known.doc.overlap;
                doc.exclude = known.doc.exclude.clone();
                if self.rng.chance(70) {
                    doc.rule = known.doc.rule.clone();
                }
                doc.task.target = known.doc.task.target.clone();
                if self.rng.chance(80) {
                    doc.task.concurrency_key = known.doc.task.concurrency_key.clone();
                }
                ScheduleRecord { doc, updated_at: now, paused: false, ..known }
            }
            None => {
                self.clients.next_uid += 1;
                let uid = self.clients.next_uid;
                let queue = self.queues[q].clone();
                let index = partition_index(&uid.to_be_bytes(), queue.config.partitions);
                ScheduleRecord {
                    uid,
                    namespace: self.namespace,
                    name,
                    partition: Partition { queue: queue.id, index },
                    shard: shard_of(&queue, index),
                    version: 0,
                    paused: false,
                    created_at: now,
                    updated_at: now,
                    doc,
                    cursor: Cursor::default(),
                }
            }
        };
        let uid = record.uid;
        self.clients.overlaps.insert(uid, record.doc.overlap);
        self.clients.excludes.insert(uid, record.doc.exclude.clone());
        let reply = self.reply();
        let request = Request::PutSchedule(Box::new(record));
        let asked = Asked::Schedule { uid, paused: false, delete: false };
        self.send(asked, Event::Request { reply, request });
    }

    fn some_schedule(&mut self) -> Option<ScheduleRecord> {
        let schedules = self.schedules();
        if schedules.is_empty() { None } else { Some(self.rng.pick(&schedules).clone()) }
    }

    fn pause_schedule(&mut self) {
        let Some(schedule) = self.some_schedule() else { return };
        self.send_pause(&schedule, !schedule.paused);
    }

    fn send_pause(&mut self, schedule: &ScheduleRecord, paused: bool) {
        let (shard, uid) = (schedule.shard, schedule.uid);
        let reply = self.reply();
        let request = Request::PauseSchedule { shard, uid, paused };
        let asked = Asked::Schedule { uid, paused, delete: false };
        self.send(asked, Event::Request { reply, request });
    }

    fn delete_schedule(&mut self) {
        let Some(schedule) = self.some_schedule() else { return };
        let (shard, uid) = (schedule.shard, schedule.uid);
        let reply = self.reply();
        let request = Request::DeleteSchedule { shard, uid };
        let asked = Asked::Schedule { uid, paused: true, delete: true };
        self.send(asked, Event::Request { reply, request });
    }

    fn trigger(&mut self) {
        let Some(schedule) = self.some_schedule() else { return };
        let id = self.new_id();
        let (shard, uid) = (schedule.shard, schedule.uid);
        let reply = self.reply();
        let request = Request::TriggerSchedule { shard, uid, id };
        self.send(Asked::Trigger, Event::Request { reply, request });
    }

    /// A backfill of a span before now, or the end of one that is under way.
    fn backfill(&mut self) {
        let Some(schedule) = self.some_schedule() else { return };
        let known = &schedule.cursor.backfills;
        let known = (!known.is_empty()).then(|| self.rng.pick(known).clone());
        let again = self.rng.chance(20);
        let change = match known {
            Some(known) if again => {
                // It may be over when that arrives, and begin anew over what it has created.
                self.clients.begun_again.insert(known.id.clone());
                let known = Backfill { next: known.from, created: 0, ..known };
                BackfillChange::Begin(Box::new(known))
            }
            Some(known) if self.rng.chance(30) => BackfillChange::End(known.id),
            _ => {
                let id = format!("b{:x}", self.new_id().0);
                let until = self.now().plus(-self.rng.between(0, 10 * SECOND));
                let from = until.plus(-self.rng.between(1, 3 * MINUTE));
                let in_flight = self.rng.between(1, 4) as u32;
                BackfillChange::Begin(Box::new(Backfill {
                    id,
                    from,
                    until,
                    next: from,
                    in_flight,
                    created: 0,
                    occurrences: 0,
                }))
            }
        };
        let (shard, uid) = (schedule.shard, schedule.uid);
        let reply = self.reply();
        let request = Request::Backfill { shard, uid, change };
        self.send(Asked::Backfill, Event::Request { reply, request });
    }

    /// In the end every pause is lifted and every schedule is paused.
    pub(crate) fn drain_requests(&mut self, schedules: &[ScheduleRecord]) {
        if self.engine.is_none() {
            return;
        }
        for mut queue in self.store.queues().expect("reads work") {
            if queue.config.paused {
                queue.config.paused = false;
                self.send_queue(queue);
            }
        }
        for schedule in schedules.iter().filter(|s| !s.paused) {
            self.send_pause(schedule, true);
        }
    }

    // ---- workers ----------------------------------------------------------------------------

    pub(crate) fn worker(&mut self, worker: usize) {
        if self.clients.closed || self.clients.waits.contains_key(&worker) {
            return;
        }
        let reply = self.reply();
        let queue = self.queues[QUEUES_OF_WORKERS[worker % 2]].id;
        let kinds = match worker {
            0 | 1 => vec![],
            _ => vec![kind_hash(if self.rng.chance(50) { "k0" } else { "k1" })],
        };
        let longest = if self.calm { 120 * SECOND } else { 20 * SECOND };
        let claim = Claim {
            queue,
            max: self.rng.between(1, 4) as usize,
            wait_until: self.now().plus(self.rng.between(0, longest)),
            worker: format!("w{worker}"),
            kinds,
        };
        self.clients.waits.insert(worker, reply);
        self.send(Asked::Claim { worker }, Event::Claim { reply, claim });
        if !self.calm && self.rng.chance(5) {
            let at = self.rng.between(0, 10 * SECOND);
            self.after(at, Act::Abandon { reply });
        }
    }

    fn worker_begins(&mut self, order: &tourbillon_engine::api::StartOrder) {
        let token = order.open.token(order.task.shard, order.task.seq);
        let vanished = !self.calm && self.rng.chance(8);
        let held = Held { token, timeout: order.timeout, vanished, outcome: None };
        self.clients.held.insert(token.nonce, held);
        if vanished {
            self.count("workers that vanished");
            if self.rng.chance(50) {
                // It comes back, too late.
                let late = order.timeout + self.rng.between(0, 10 * SECOND);
                self.after(late, Act::Done(token.nonce));
            }
            return;
        }
        let takes = match self.rng.below(6) {
            0 if !self.calm => self.rng.between(0, 40 * SECOND),
            _ => self.rng.between(0, 2 * SECOND),
        };
        self.after(order.timeout / 3, Act::Beat(token.nonce));
        self.after(takes, Act::Done(token.nonce));
    }

    pub(crate) fn worker_beats(&mut self, nonce: u64) {
        let Some(held) = self.clients.held.get(&nonce).cloned() else { return };
        if held.outcome.is_some() || held.vanished {
            return;
        }
        let reply = self.reply();
        let progress = self.rng.chance(40).then(|| "{\"half\":true}".to_owned());
        let beat = Beat { token: held.token, progress };
        let asked = Asked::Heartbeat { tokens: vec![held.token] };
        self.send(asked, Event::Heartbeat { reply, items: vec![beat] });
        self.after(held.timeout / 3, Act::Beat(nonce));
    }

    pub(crate) fn worker_is_done(&mut self, nonce: u64) {
        let draw = self.rng.below(20);
        let wait = self.rng.between(0, 5 * SECOND);
        let Some(held) = self.clients.held.get_mut(&nonce) else { return };
        let (outcome, recorded) = *held.outcome.get_or_insert(match draw {
            0..=3 => (WorkerOutcome::Failed, AttemptOutcome::Failed),
            4 => (WorkerOutcome::Retry(Some(wait)), AttemptOutcome::Failed),
            5 => (WorkerOutcome::Reject, AttemptOutcome::Failed),
            6 => (WorkerOutcome::Release, AttemptOutcome::Released),
            _ => (WorkerOutcome::Succeeded, AttemptOutcome::Succeeded),
        });
        let token = held.token;
        let item = Completion { token, outcome, result: None, error: None, output: None };
        let reply = self.reply();
        let asked = Asked::Complete { items: vec![(token, recorded)] };
        self.send(asked, Event::Complete { reply, items: vec![item] });
    }
}

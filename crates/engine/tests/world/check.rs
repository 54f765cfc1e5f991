//! What is promised, checked at every start, answer and commit, and at the end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tourbillon_engine::api::{Answer, ReplyId, StartOrder, TokenState};
use tourbillon_store::queries::TaskFilter;
use tourbillon_store::schedule::Overlap;
use tourbillon_store::task::Target;
use tourbillon_store::time::MILLI;
use tourbillon_store::{
    AttemptOutcome, Done, Fence, Partition, Queries, QueueConfig, QueueId, QueueRecord,
    ScheduleRecord, Seq, Shard, State, Store, StoreError, Task, TaskId, Unit, UnitResult, Write,
};

use crate::calendars::Promise;
use crate::clients::Asked;
use crate::plant::Plant;
use crate::world::World;

/// From a decision to start to the start, at most: microseconds.
const HANDED_OUT_WITHIN: u64 = 10_000_000;

/// What is known of a task from outside.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Its creation was answered with success.
    pub acked: bool,
    /// It must not start any more, and why.
    forbidden: Option<&'static str>,
    /// An edit to this version was answered with success.
    min_version: u32,
    last: Option<(u32, Fence)>,
    starts: u32,
    redrives: u32,
}

/// An attempt under way, as its maker sees it.
#[derive(Debug, Clone)]
pub(crate) struct Active {
    pub id: TaskId,
    pub seq: Seq,
    pub partition: Partition,
    pub shard: Shard,
    key: u64,
    life: u32,
    losses: u32,
    pub worker: Option<usize>,
    pub last_sign: u64,
    pub timeout: i64,
    /// Its end was told, so it may be over for the engine.
    pub told: bool,
    pub uid: Option<u128>,
}

/// What is known of a queue's limits while they change: the loosest that may hold.
#[derive(Debug)]
struct Limits {
    may_hold: Vec<QueueConfig>,
    /// Limits that held until a while ago: a start that took its slot under them may be handed
    /// out later, when it is durable.
    held: Vec<(u64, QueueConfig)>,
    changing: u32,
    /// Since when (monotonic) a pause holds that was answered with success.
    paused_since: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Stopped {
    /// Why no planned occurrence may start, and since when.
    why: Option<(&'static str, u64)>,
}

/// See the module.
pub(crate) struct Model {
    pub tasks: HashMap<TaskId, Known>,
    pub active: HashMap<u64, Active>,
    pub succeeded: HashSet<TaskId>,
    pub outstanding: BTreeMap<ReplyId, Asked>,
    queues: HashMap<QueueId, Limits>,
    schedules: HashMap<u128, Stopped>,
    /// What the change of a calendar promised when it was answered, until the next change of it.
    pub calendars: HashMap<String, Promise>,
    /// How often each shard was lost.
    pub losses: HashMap<Shard, u32>,
    /// When the start of an attempt was committed.
    recorded: HashMap<u64, u64>,
    /// Theoretical arrival by partition: nanoseconds of monotonic time.
    rates: HashMap<Partition, i128>,
    /// Schedules whose runs were redriven.
    redriven: HashSet<u128>,
    /// Tasks that came through the inbox, whose rank the engine may know late.
    pub inboxed: HashSet<TaskId>,
    /// Tasks that were read for a start in this life: held, starting, or back.
    pub fetching: HashSet<Seq>,
    pub drain_until: u64,
    pub drained_at: u64,
}

impl Model {
    pub(crate) fn new(queues: &[QueueRecord]) -> Model {
        let mut model = Model {
            tasks: HashMap::new(),
            active: HashMap::new(),
            succeeded: HashSet::new(),
            outstanding: BTreeMap::new(),
            queues: HashMap::new(),
            schedules: HashMap::new(),
            calendars: HashMap::new(),
            losses: HashMap::new(),
            recorded: HashMap::new(),
            rates: HashMap::new(),
            redriven: HashSet::new(),
            inboxed: HashSet::new(),
            fetching: HashSet::new(),
            drain_until: u64::MAX,
            drained_at: 0,
        };
        model.queues_known(queues, 0);
        model
    }

    /// The engine was told what the queues are, and nothing about them is under way.
    pub(crate) fn queues_known(&mut self, queues: &[QueueRecord], mono: u64) {
        self.rates.clear();
        for queue in queues {
            let old = self.queues.remove(&queue.id);
            let mut limits = Limits {
                may_hold: vec![queue.config.clone()],
                held: Vec::new(),
                changing: 0,
                paused_since: None,
            };
            if let Some(old) = old {
                limits.paused_since = old.paused_since.filter(|_| queue.config.paused);
                limits.held = old.held;
                let until = mono + HANDED_OUT_WITHIN;
                limits.held.extend(old.may_hold.into_iter().map(|config| (until, config)));
            }
            self.queues.insert(queue.id, limits);
        }
    }

    pub(crate) fn clock_stepped(&mut self) {
        self.rates.clear();
    }

    /// A request that lifts what an earlier answer promised is on its way.
    pub(crate) fn asked(&mut self, asked: &Asked) {
        match asked {
            Asked::Queue { record } => {
                self.rates.clear();
                if let Some(limits) = self.queues.get_mut(&record.id) {
                    limits.may_hold.push(record.config.clone());
                    limits.changing += 1;
                    if !record.config.paused {
                        limits.paused_since = None;
                    }
                }
            }
            Asked::Redrive { id, schedule } => {
                let known = self.tasks.entry(*id).or_default();
                known.forbidden = None;
                known.redrives += 1;
                self.redriven.extend(schedule);
            }
            Asked::Schedule { uid, paused: false, delete: false } => {
                self.schedules.entry(*uid).or_default().why = None;
            }
            _ => {}
        }
    }
}

impl World {
    /// The node is gone, and with it who waited for it.
    pub(crate) fn forget_life(&mut self) {
        for (_, asked) in std::mem::take(&mut self.model.outstanding) {
            self.asker_is_alone(&asked);
        }
        for active in self.model.active.values_mut() {
            active.life = 0;
        }
        self.model.active.retain(|_, a| a.worker.is_some());
        self.model.fetching.clear();
    }

    // ---- starts -----------------------------------------------------------------------------

    /// An attempt is handed to a target or a worker.
    pub(crate) fn started(&mut self, order: &StartOrder, worker: Option<usize>) {
        let (task, open) = (&order.task, &order.open);
        let id = task.id;
        let what = format!("{id} {:?} attempt {}", task.seq, open.n);
        self.check(open.started_at >= task.due, || {
            format!("{what} is early: started {:?}, due {:?}", open.started_at, task.due)
        });
        let expired = task.attempt == 0
            && task.spec.expires_at.is_some_and(|expires| expires <= open.started_at);
        self.check(!expired, || format!("{what} starts although it expired"));
        let is_worker = task.spec.target == Target::Worker;
        self.check(is_worker == worker.is_some(), || format!("{what} went the wrong way"));
        let row = self.store.fetch(&[task.seq]).expect("reads work").remove(0);
        if let Some(row) = row {
            self.check(row.spec == task.spec || row.version > task.version + 2, || {
                format!("{what} starts with another definition than is stored")
            });
        }

        let fence = open.fence();
        let known = self.model.tasks.entry(id).or_default();
        let (forbidden, min_version, last) = (known.forbidden, known.min_version, known.last);
        known.last = Some((open.n, fence));
        known.starts += 1;
        let again = known.redrives == 0 && known.starts > task.released + 1;
        let once = task.spec.at_most_once && again;
        let first_ever = last.is_none();
        let redriven = known.redrives > 0;
        if let Some(why) = forbidden {
            self.fail(&format!("{what} starts although {why}"));
        }
        self.check(task.version >= min_version, || {
            format!("{what} starts at version {}, edited to {min_version}", task.version)
        });
        self.check(!once, || format!("{what} runs at most once and starts again"));
        if let Some((n, fence_before)) = last {
            self.check(fence > fence_before, || {
                format!("{what} has fence {fence:?} after {fence_before:?} of attempt {n}")
            });
            self.check(open.n >= n, || format!("{what} after attempt {n}"));
        }

        let losses = self.model.losses.get(&task.shard).copied().unwrap_or(0);
        let (mono, life) = (self.mono, self.life);
        for other in self.model.active.values() {
            if other.seq != task.seq {
                continue;
            }
            let ran_out = mono - other.last_sign + MILLI as u64 >= other.timeout as u64;
            let lost = match other.worker {
                Some(_) => other.told || ran_out,
                None => other.life != life || other.losses != losses,
            };
            self.check(lost, || format!("{what} overlaps with another attempt: {other:?}"));
        }
        self.model.active.retain(|_, a| a.seq != task.seq || a.worker.is_some());

        self.check_limits(order, &what, worker.is_some());
        if let Some(link) = &task.schedule
            && link.origin == "plan"
        {
            let stopped = self.model.schedules.entry(link.uid).or_default().why;
            if let Some((why, since)) = stopped
                && first_ever
                && !redriven
                && open.n == 1
            {
                let before = worker.is_some()
                    && self.model.recorded.get(&open.nonce).is_some_and(|at| *at <= since);
                self.check(before, || format!("{what} starts although its schedule is {why}"));
            }
            if first_ever && !redriven && open.n == 1 {
                let recorded = self.model.recorded.get(&open.nonce).copied();
                self.check_calendars(link, task.shard, recorded, &what);
            }
            if open.n == 1 {
                self.check_overlap(link.uid, task, &what);
            }
        }
        self.model.active.insert(
            open.nonce,
            Active {
                id,
                seq: task.seq,
                partition: task.partition,
                shard: task.shard,
                key: task.spec.concurrency_hash(),
                life,
                losses,
                worker,
                last_sign: mono,
                timeout: order.timeout,
                told: false,
                uid: task.schedule.as_ref().map(|s| s.uid),
            },
        );
    }

    fn check_limits(&self, order: &StartOrder, what: &str, is_claim: bool) {
        let task = &order.task;
        let limits = &self.model.queues[&task.partition.queue];
        if let Some(since) = limits.paused_since {
            let recorded = self.model.recorded.get(&order.open.nonce);
            let before = is_claim && recorded.is_some_and(|at| *at <= since);
            self.check(before, || format!("{what} starts although its queue is paused"));
        }
        let counts = |a: &&Active| {
            a.life == self.life
                && a.seq != task.seq
                && a.losses == self.model.losses.get(&a.shard).copied().unwrap_or(0)
                && !a.told
                && a.worker.is_none_or(|_| self.mono < a.last_sign + a.timeout as u64)
        };
        let active = self.model.active.values().filter(counts);
        let before = limits.held.iter().filter(|(until, _)| self.mono < *until).map(|(_, c)| c);
        let configs = limits.may_hold.iter().chain(before);
        // A partition has its share of the queue's limit.
        let share = |c: &QueueConfig| {
            let (n, i) = (u32::from(c.partitions), u32::from(task.partition.index));
            (c.concurrency / n + u32::from(i < c.concurrency % n)) as usize
        };
        let max = configs.clone().map(share).max().unwrap_or(0);
        let others: Vec<_> = active.clone().filter(|a| a.partition == task.partition).collect();
        self.check(others.len() < max, || format!("{what}: {max} at once, beside {others:?}"));
        let key = task.spec.concurrency_hash();
        let max = configs.map(|c| c.per_key_concurrency.unwrap_or(u32::MAX)).max();
        let same = active.filter(|a| key != 0 && a.key == key && a.partition == task.partition);
        let same = same.count();
        self.check(same < max.unwrap_or(0) as usize, || format!("{what} beside {same} of its key"));
    }

    fn check_overlap(&self, uid: u128, task: &Task, what: &str) {
        let schedules = self.schedules();
        let Some(schedule) = schedules.iter().find(|s| s.uid == uid) else { return };
        if schedule.doc.overlap == Overlap::Allow || self.model.redriven.contains(&uid) {
            return;
        }
        let others = self.live().into_iter().filter(|t| {
            t.seq != task.seq
                && t.schedule.as_ref().is_some_and(|s| s.uid == uid && s.origin == "plan")
                && (t.state == State::Running || t.attempt > 0)
        });
        let others: Vec<Seq> = others.map(|t| t.seq).collect();
        self.check(others.is_empty(), || format!("{what} overlaps with the runs {others:?}"));
        let losses = self.model.losses.get(&task.shard).copied().unwrap_or(0);
        let running = self.model.active.values().find(|a| {
            a.uid == Some(uid)
                && a.seq != task.seq
                && a.worker.is_none()
                && a.life == self.life
                && a.losses == losses
                && self.tasks_origin_is_plan(a.seq)
        });
        self.check(running.is_none(), || format!("{what} overlaps with {running:?}"));
    }

    fn tasks_origin_is_plan(&self, seq: Seq) -> bool {
        let row = self.store.fetch(&[seq]).expect("reads work").remove(0);
        row.is_some_and(|t| t.schedule.is_some_and(|s| s.origin == "plan"))
    }

    /// The engine has decided to start these tasks: the rate allows it, and nothing that is
    /// marked overdue and free to start comes before them.
    pub(crate) fn check_decided(&mut self, seqs: &[Seq]) {
        let tasks: Vec<Task> =
            self.store.fetch(seqs).expect("reads work").into_iter().flatten().collect();
        // After a step forward what became due gets ready in several steps.
        let wake = self.engine.as_ref().and_then(|e| e.next_wake());
        let behind = wake.is_some_and(|at| at <= self.now());
        let decided: HashSet<Seq> = seqs.iter().copied().collect();
        let busy: HashSet<TaskId> =
            self.model.outstanding.values().flat_map(|a| a.about().into_iter().flatten()).collect();
        for task in &tasks {
            self.check_rate(task);
            let unsure = self.model.inboxed.contains(&task.id);
            if task.spec.target == Target::Worker || behind || unsure {
                continue;
            }
            let first = self.store.load_overdue(task.partition, None, 1_000).expect("reads work");
            let rank = task.stub().rank();
            let ahead = first.into_iter().find(|stub| {
                stub.rank() < rank
                    && stub.concurrency_hash == 0
                    && stub.flags.0 & 5 == 0
                    && stub.due <= self.now()
                    && stub.expires > self.now()
                    && !decided.contains(&stub.seq)
                    && !self.model.fetching.contains(&stub.seq)
            });
            let Some(ahead) = ahead else { continue };
            let row = self.store.fetch(&[ahead.seq]).expect("reads work").remove(0);
            let free = row.is_some_and(|t| {
                let known = self.model.tasks.get(&t.id);
                !busy.contains(&t.id) && t.attempt == 0 && known.is_none_or(|k| k.last.is_none())
            });
            self.check(!free, || format!("{:?} starts before {:?}", task.seq, ahead.seq));
        }
        self.model.fetching.extend(seqs);
    }

    fn check_rate(&mut self, task: &Task) {
        let limits = &self.model.queues[&task.partition.queue];
        if limits.changing > 0 || limits.may_hold.len() != 1 {
            return;
        }
        let Some(rate) = limits.may_hold[0].rate.clone() else { return };
        if limits.may_hold[0].partitions > 1 {
            return;
        }
        let step = i128::from(rate.per) * 1_000 / i128::from(rate.count);
        let now = i128::from(self.mono) * 1_000;
        let arrival = self.model.rates.get(&task.partition).copied().unwrap_or(0);
        let ahead = arrival - now;
        let allowed = step * i128::from(rate.burst - 1) + 1_000;
        self.check(ahead <= allowed, || format!("{:?} starts above the rate {rate:?}", task.seq));
        self.model.rates.insert(task.partition, arrival.max(now) + step);
    }

    // ---- answers ----------------------------------------------------------------------------

    /// The engine answers: once, and with nothing that is not so.
    pub(crate) fn answered(&mut self, reply: ReplyId, answer: Answer) {
        let Some(asked) = self.model.outstanding.remove(&reply) else {
            self.fail(&format!("{reply:?} is answered twice, or was never asked: {answer:?}"));
        };
        match (&asked, &answer) {
            (Asked::Accept { ids, replaces }, Answer::Accepted(done)) => {
                self.check(done.len() == ids.len(), || "an answer per task".into());
                for (id, done) in ids.iter().zip(done) {
                    let id = match done {
                        Done::Inserted(_) => *id,
                        Done::Same(id) | Done::Kept(id) => *id,
                        other => self.fail(&format!("{other:?} is no answer to a creation")),
                    };
                    let stored = self.store.task(self.namespace, id).expect("reads work");
                    self.check(stored.is_some(), || format!("{id} is acknowledged, not stored"));
                    let known = self.model.tasks.entry(id).or_default();
                    known.acked = true;
                }
                if let Some(old) = replaces {
                    self.forbid(*old, "it was replaced");
                    self.count("replaced");
                }
            }
            (Asked::Cancel { id }, Answer::Cancelled) => {
                let task = self.store.task(self.namespace, *id).expect("reads work");
                let state = task.map(|t| t.state);
                let redriven = self.model.tasks.get(id).is_some_and(|k| k.redrives > 0);
                self.check(state == Some(State::Cancelled) || redriven, || {
                    format!("{id} is answered cancelled and is {state:?}")
                });
                if !self.is_redriving(*id) {
                    self.forbid(*id, "its cancellation was answered");
                }
                self.count("cancelled");
            }
            (Asked::Cancel { id }, Answer::Cancelling) => {
                let task = self.store.task(self.namespace, *id).expect("reads work");
                let so = task.is_some_and(|t| t.cancel_requested || t.state.is_final());
                let redriven = self.model.tasks.get(id).is_some_and(|k| k.redrives > 0);
                self.check(so || redriven, || format!("{id} is not being cancelled"));
                self.count("cancelling");
            }
            (Asked::Edit { id }, Answer::Edited { version }) => {
                let task = self.store.task(self.namespace, *id).expect("reads work");
                let stored = task.map(|t| t.version);
                self.check(stored >= Some(*version), || format!("{id} is at {stored:?}"));
                let known = self.model.tasks.entry(*id).or_default();
                known.min_version = known.min_version.max(*version);
                self.count("edited");
            }
            (Asked::Redrive { id, .. }, Answer::Redriven(task)) => {
                self.check(task.id == *id, || "another task is redriven".into());
                self.count("redriven");
            }
            (Asked::Queue { record }, answer) => self.queue_answered(record, answer),
            (Asked::Calendar { name, version, told }, Answer::Done) => {
                self.calendar_answered(name, *version, *told);
            }
            (Asked::Schedule { uid, delete, .. }, Answer::Schedule(_) | Answer::Done) => {
                let schedules = self.schedules();
                let stored = schedules.iter().find(|s| s.uid == *uid);
                let mut stopped = None;
                if let Answer::Schedule(record) = &answer {
                    let so = stored.is_some_and(|s| s.version >= record.version);
                    let deleting = self.model.outstanding.values().any(|a| a.deletes(*uid));
                    self.check(so || deleting, || "a schedule is answered, not stored".into());
                    if record.paused {
                        stopped = Some("paused");
                    }
                }
                if *delete && matches!(answer, Answer::Done) {
                    self.check(stored.is_none(), || "a schedule is deleted and there".into());
                    stopped = Some("deleted");
                }
                if let Some(why) = stopped
                    && !self.model.outstanding.values().any(|a| a.resumes(*uid))
                {
                    let why = Some((why, self.mono));
                    self.model.schedules.entry(*uid).or_default().why = why;
                }
                self.count("schedule changes");
            }
            (Asked::Claim { worker, .. }, Answer::Claimed(orders)) => {
                for order in orders {
                    let row = self.store.fetch(&[order.task.seq]).expect("reads work").remove(0);
                    let open = row.as_ref().and_then(|r| r.open.as_ref());
                    let nonce = order.open.nonce;
                    let so = open.is_some_and(|o| o.nonce == nonce);
                    let cancelled = self.model.recorded.contains_key(&nonce);
                    self.check(so || cancelled, || "a claim's start is not durable".into());
                    self.started(order, Some(*worker));
                }
            }
            (Asked::Complete { items, .. }, Answer::Tokens(states)) => {
                self.check(items.len() == states.len(), || "a state per token".into());
                for ((token, outcome), state) in items.iter().zip(states) {
                    let Some(active) = self.model.active.remove(&token.nonce) else { continue };
                    if *state != TokenState::Yours {
                        self.count("completions that came too late");
                        continue;
                    }
                    let task = self.store.task(self.namespace, active.id).expect("reads work");
                    let attempts = task.as_ref().map(|t| &t.attempts[..]).unwrap_or_default();
                    let record = attempts.iter().find(|a| a.n == token.attempt);
                    self.check(record.is_some_and(|a| a.outcome == *outcome), || {
                        format!("{token:?} is answered as done and is not: {record:?}")
                    });
                    if active.life != self.life {
                        self.count("adopted worker attempts");
                    }
                    if *outcome == AttemptOutcome::Succeeded {
                        self.model.succeeded.insert(active.id);
                    }
                }
            }
            (Asked::Backfill, Answer::Schedule(_)) => self.count("backfills begun or ended"),
            (_, Answer::Changed) => self.count("answered changed"),
            (_, Answer::Unavailable(_)) => self.count("answered unavailable"),
            (_, Answer::Refused { .. }) => self.count("answered refused"),
            _ => {}
        }
        self.asker_hears(asked, answer);
    }

    fn is_redriving(&self, id: TaskId) -> bool {
        self.model
            .outstanding
            .values()
            .any(|a| matches!(a, Asked::Redrive { id: i, .. } if *i == id))
            || self.model.tasks.get(&id).is_some_and(|k| k.redrives > 0)
    }

    fn forbid(&mut self, id: TaskId, why: &'static str) {
        self.model.tasks.entry(id).or_default().forbidden = Some(why);
        if self.plant == Some(Plant::IgnoredTombstone)
            && let Ok(Some(mut task)) = self.store.task(self.namespace, id)
        {
            task.version -= 1;
            task.state = State::Scheduled;
            task.finished_at = None;
            self.ghosts.push(task);
        }
    }

    fn queue_answered(&mut self, record: &QueueRecord, answer: &Answer) {
        let mono = self.mono;
        let Some(limits) = self.model.queues.get_mut(&record.id) else { return };
        limits.changing -= 1;
        self.model.rates.clear();
        if let Answer::Queue(stored) = answer {
            if limits.changing == 0 {
                let until = mono + HANDED_OUT_WITHIN;
                let old = std::mem::replace(&mut limits.may_hold, vec![stored.config.clone()]);
                limits.held.extend(old.into_iter().map(|config| (until, config)));
            }
            let resuming = self
                .model
                .outstanding
                .values()
                .any(|a| matches!(a, Asked::Queue { record: r } if r.id == record.id && !r.config.paused));
            if stored.config.paused && !resuming {
                limits.paused_since = Some(mono);
            }
        }
    }

    // ---- commits ----------------------------------------------------------------------------

    /// A batch reached the store.
    pub(crate) fn check_committed(
        &mut self,
        units: &[Unit],
        late: bool,
        result: &Result<Vec<UnitResult>, StoreError>,
    ) {
        for unit in units {
            for write in &unit.writes {
                if let Write::Start { open, seq, .. } = write {
                    let row = self.store.fetch(&[*seq]).expect("reads work").remove(0);
                    let so = row.is_some_and(|r| r.open.is_some_and(|o| o.nonce == open.nonce));
                    if so {
                        self.model.recorded.entry(open.nonce).or_insert(self.mono);
                    }
                }
            }
        }
        if late
            && self.engine.is_some()
            && let Ok(results) = result
        {
            for (unit, result) in units.iter().zip(results) {
                self.check(unit.fences.is_empty() || result.is_err(), || {
                    "a batch of an earlier life was committed".into()
                });
            }
        }
        self.check_schedules();
        self.check_backfills(units);
        if self.steps.is_multiple_of(16) {
            self.store.check_invariants();
        }
    }

    fn check_schedules(&self) {
        let schedules = self.schedules();
        if schedules.is_empty() {
            return;
        }
        let mut waiting: HashMap<u128, u32> = HashMap::new();
        let mut live: HashSet<TaskId> = HashSet::new();
        for task in self.live() {
            live.insert(task.id);
            if let Some(link) = &task.schedule
                && link.origin == "plan"
                && task.attempt == 0
                && task.state == State::Scheduled
                && self.model.tasks.get(&task.id).is_none_or(|k| k.redrives == 0)
            {
                *waiting.entry(link.uid).or_default() += 1;
            }
        }
        for schedule in schedules {
            let n = waiting.get(&schedule.uid).copied().unwrap_or(0);
            self.check(n <= 1, || format!("{n} occurrences of {} wait", schedule.name));
            match schedule.cursor.next {
                Some(next) => self.check(live.contains(&next.id), || {
                    format!("{} waits for {}, which is not live", schedule.name, next.id)
                }),
                None => {
                    let doc = &schedule.doc;
                    let spent = doc.max_runs.is_some_and(|max| schedule.cursor.created >= max);
                    let ends = doc.end.is_some() || !doc.exclude.is_empty();
                    self.check(schedule.paused || spent || ends, || {
                        format!("{} goes on no further", schedule.name)
                    });
                }
            }
        }
    }

    /// What a schedule says that its backfills have created is what there is: none is lost on the way, none
    /// is there twice. Looked at when one of them moved.
    fn check_backfills(&mut self, units: &[Unit]) {
        let writes = units.iter().flat_map(|unit| &unit.writes);
        let moved: BTreeSet<u128> = writes
            .filter_map(|write| match write {
                Write::Advance { uid, cursor, .. } if !cursor.backfills.is_empty() => Some(*uid),
                _ => None,
            })
            .collect();
        for schedule in self.schedules().into_iter().filter(|s| moved.contains(&s.uid)) {
            let filter = TaskFilter {
                namespace: self.namespace,
                schedule: Some(schedule.uid),
                ..TaskFilter::default()
            };
            let tasks = self.store.list(&filter, None, 50_000).expect("reads work").tasks;
            for backfill in &schedule.cursor.backfills {
                let origin = format!("backfill:{}", backfill.id);
                let of = |t: &&Task| t.schedule.as_ref().is_some_and(|s| s.origin == origin);
                let of: Vec<&Task> = tasks.iter().filter(of).collect();
                let again = self.clients.begun_again.contains(&backfill.id);
                self.check(of.len() as u64 == backfill.created || again, || {
                    format!("{} tasks of {backfill:?} of {}", of.len(), schedule.name)
                });
                let live = of.iter().filter(|t| !t.state.is_final() && !self.is_redriving(t.id));
                let live = live.count() as u32;
                self.check(live <= backfill.in_flight, || format!("{live} live of {backfill:?}"));
                let inside = of.iter().filter_map(|t| t.schedule.as_ref()).all(|s| {
                    s.logical >= backfill.from && s.logical < backfill.next.min(backfill.until)
                });
                self.check(inside || again, || format!("outside of {backfill:?}"));
                if !of.is_empty() {
                    self.count("backfills under way");
                }
            }
        }
    }

    pub(crate) fn schedules(&self) -> Vec<ScheduleRecord> {
        self.store.schedules(self.namespace, None, 1_000).expect("reads work")
    }

    // ---- the end ----------------------------------------------------------------------------

    /// Everything is over: nothing acknowledged is lost, nothing stays in memory, every count is
    /// within its bound.
    pub(crate) fn check_end(&mut self) {
        let view = self.engine.as_ref().expect("it runs").view();
        let wheel = view.wheel;
        let view = view.numbers;
        let left =
            (view.resident, view.running, view.backlog, view.payload_bytes, view.waiting_claims);
        self.check(left == (0, 0, 0, 0, 0), || format!("left in memory: {left:?}"));
        self.check(wheel.len == 0, || format!("timers are left: {}", wheel.len));
        let mut by_occurrence = BTreeSet::new();
        let known: Vec<(TaskId, bool, u32)> =
            self.model.tasks.iter().map(|(id, k)| (*id, k.acked, k.redrives)).collect();
        for (id, acked, redrives) in known {
            let task = self.store.task(self.namespace, id).expect("reads work");
            let Some(task) = task else {
                self.check(!acked, || format!("{id} was acknowledged and is lost"));
                continue;
            };
            self.check(task.state.is_final(), || format!("{id} is {:?} in the end", task.state));
            if let Some(link) = &task.schedule {
                let new = by_occurrence.insert((link.uid, link.origin.clone(), link.logical));
                self.check(new, || format!("{link:?} happened twice"));
            }
            if task.state == State::Succeeded {
                self.check(self.model.succeeded.contains(&id), || format!("{id} never succeeded"));
            }
            let max = task.spec.retry.max_attempts.unwrap_or(5).max(1);
            let max = if task.spec.at_most_once { 1 } else { max };
            let counted = task.counted_attempts();
            self.check(counted <= max + redrives, || format!("{id} had {counted} of {max}"));
            if task.outcome_reason.as_deref() == Some("the attempts are used up") && redrives == 0 {
                self.check(counted == max, || format!("{id} failed after {counted} of {max}"));
            }
            let max = task.spec.retry.max_lost.unwrap_or(3);
            self.check(task.lost <= max + redrives, || format!("{id} lost {}", task.lost));
            for attempt in &task.attempts {
                self.check(attempt.started_at >= attempt.due, || format!("{id}: {attempt:?}"));
                self.check(attempt.ended_at >= attempt.started_at, || format!("{attempt:?}"));
            }
            let numbers: Vec<u32> = task.attempts.iter().map(|a| a.n).collect();
            self.check(numbers.is_sorted_by(|a, b| a < b), || format!("{id}: {numbers:?}"));
        }
        for schedule in self.schedules() {
            self.check(schedule.cursor.next.is_none(), || "a paused schedule waits".into());
        }
    }
}

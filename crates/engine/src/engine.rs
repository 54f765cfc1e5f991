//! The engine's state and the order of a step: the event, then what became due, then what may
//! start, then what must be loaded, then what must be written.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tourbillon_store::time::{MILLI, SECOND};
use tourbillon_store::{
    Partition, QueueId, QueueRecord, SHARDS, Seq, Shard, StoreErrorKind, Stub, Time,
};
use tourbillon_wheel::{Budget, HierarchicalWheel, Key, Snapshot, TimerQueue};

use crate::api::{Answer, CallId, Effect, Event, Now, ReplyId, Unavailable};
use crate::attempt::Running;
use crate::backfill::Backfills;
use crate::batch::Batches;
use crate::behind::Behind;
use crate::config::EngineConfig;
use crate::occurrence::Schedules;
use crate::part::{Part, Share};
use crate::rng::Rng;
use crate::tally::Tally;
use crate::window::ShardState;
use crate::worker::Workers;

/// What a timer of the wheel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A resident task becomes ready.
    Due(Seq),
    /// A ready task expires.
    Expire(Seq),
    /// A worker's claim runs out.
    Claim(Seq, u64),
    /// A waiting claim has waited long enough.
    ClaimWait(ReplyId),
    /// A partition's rate limit allows a start again.
    Rate(Partition),
    /// A read that failed is tried again.
    RetryReads(Shard),
    /// The same for the overdue rows of a partition.
    RetryOverdue(Partition),
}

/// A scheduled task in memory.
#[derive(Debug)]
pub(crate) struct Resident {
    pub(crate) stub: Stub,
    pub(crate) place: Place,
    /// The timer of its expiry, set when it is first ready.
    pub(crate) expiry: Option<Key>,
    /// It was taken in from the inbox as it was when that was read, and may have changed since.
    pub(crate) unverified: bool,
}

impl Resident {
    pub(crate) fn new(stub: Stub, place: Place) -> Resident {
        Resident { stub, place, expiry: None, unverified: false }
    }
}

/// Where a resident task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Waits for its due time.
    Wheel(Key),
    /// Among its partition's ready tasks.
    Ready,
    /// Being read by this fetch for its start; its slot is taken. For a claim, or by this node.
    Fetching(CallId, Option<ReplyId>),
    /// An occurrence that waits for the previous run to end.
    Parked,
    /// A change to it is being written; it must not start.
    Held,
}

/// The durable scheduler. See the crate's documentation.
pub struct Engine {
    pub(crate) cfg: EngineConfig,
    pub(crate) now: Now,
    pub(crate) rng: Rng,
    pub(crate) wheel: HierarchicalWheel<Timer>,
    /// Store time of the wheel's tick 0, in microseconds.
    base: i64,
    pub(crate) shards: Vec<ShardState>,
    /// The load under way.
    pub(crate) load: Option<CallId>,
    pub(crate) queues: FxHashMap<QueueId, Arc<QueueRecord>>,
    /// Queues that are being paused, and by how many writes.
    pausing: FxHashMap<QueueId, u32>,
    pub(crate) parts: FxHashMap<Partition, Part>,
    pub(crate) flagged: Vec<Partition>,
    /// Partitions that wait for memory: for payload bytes, or for ends to be written.
    pub(crate) starved: Vec<Partition>,
    /// In boxes, so that the map that grows to twice as many places costs little: with a million
    /// of them it was 130 MB more.
    pub(crate) resident: FxHashMap<Seq, Box<Resident>>,
    pub(crate) running: FxHashMap<Seq, Running>,
    pub(crate) payload_bytes: u64,
    /// What is to be read at the end of the step, and by which fetch.
    pub(crate) fetch: Vec<Seq>,
    pub(crate) next_fetch: Option<CallId>,
    pub(crate) batches: Batches,
    pub(crate) schedules: Schedules,
    pub(crate) behind: Behind,
    pub(crate) backfills: Backfills,
    pub(crate) workers: Workers,
    pub(crate) tally: Tally,
    pub(crate) effects: Vec<Effect>,
    pub(crate) draining: bool,
    next_call: u64,
    /// Whether the wheel has due timers that the budget left.
    wheel_behind: bool,
}

/// Numbers of an engine, for people.
#[derive(Debug, Clone)]
pub struct EngineNumbers {
    /// Stubs in memory.
    pub resident: usize,
    /// Of them, ready ones.
    pub ready: usize,
    /// Ready ones by queue.
    pub ready_by_queue: Vec<(QueueId, usize)>,
    /// Attempts under way, or ended and not yet written.
    pub running: usize,
    /// Writes that wait or are in flight.
    pub backlog: usize,
    /// Bytes of payloads in memory.
    pub payload_bytes: u64,
    /// Shards held and loaded.
    pub shards_active: usize,
    /// Waiting claims.
    pub waiting_claims: usize,
    /// The highest epoch held.
    pub epoch: u32,
}

/// The wheel of an engine, for people.
#[derive(Debug, Clone)]
pub struct EngineView {
    /// The numbers beside it.
    pub numbers: EngineNumbers,
    /// Store time of the wheel's tick 0, in microseconds.
    pub base: i64,
    /// Length of a tick, in microseconds.
    pub tick: i64,
    /// What is where.
    pub wheel: Snapshot,
}

/// Length of a tick, in microseconds. Due times are whole milliseconds of store time.
const TICK: i64 = MILLI;

/// Entries for which memory is kept whatever happens.
const SPARE: usize = 1_024;

impl Engine {
    /// An engine that holds nothing, at `now`.
    pub fn new(cfg: EngineConfig, now: Now) -> Engine {
        let rng = Rng::new(cfg.seed);
        Engine {
            now,
            rng,
            wheel: HierarchicalWheel::new(),
            base: floor_tick(now.store.0),
            shards: (0..SHARDS).map(|_| ShardState::default()).collect(),
            load: None,
            queues: FxHashMap::default(),
            pausing: FxHashMap::default(),
            parts: FxHashMap::default(),
            flagged: Vec::new(),
            starved: Vec::new(),
            resident: FxHashMap::default(),
            running: FxHashMap::default(),
            payload_bytes: 0,
            fetch: Vec::new(),
            next_fetch: None,
            batches: Batches::default(),
            schedules: Schedules::default(),
            behind: Behind::default(),
            backfills: Backfills::default(),
            workers: Workers::default(),
            tally: Tally::new(cfg.max_kinds),
            effects: Vec::new(),
            draining: false,
            next_call: 0,
            wheel_behind: false,
            cfg,
        }
    }

    /// Takes an event at a time and answers what is to be done, in order.
    pub fn step(&mut self, now: Now, event: Event) -> Vec<Effect> {
        self.step_all(now, [event])
    }

    /// The same for events that came together, which share what follows: their writes gather in
    /// one batch.
    pub fn step_all(&mut self, now: Now, events: impl IntoIterator<Item = Event>) -> Vec<Effect> {
        // Between steps store time is promised not to go back; hold it if it does.
        self.now = Now { mono: now.mono, store: now.store.max(self.now.store) };
        for event in events {
            if matches!(event, Event::ClockStepped) {
                let back = now.store < self.now.store;
                self.now.store = now.store;
                self.clock_stepped(back);
            }
            self.handle(event);
        }
        self.fire_timers();
        self.start_ready();
        self.give_memory_back();
        self.load_windows();
        self.plan_behind();
        self.move_backfills();
        self.flush();
        std::mem::take(&mut self.effects)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Tick | Event::ClockStepped => {}
            Event::Queues(queues) => queues.into_iter().for_each(|q| self.set_queue(q)),
            Event::Calendars(calendars) => self.set_calendars(calendars),
            Event::CalendarRemoved { namespace, name, version } => {
                self.behind.calendars.remove(namespace, &name, version);
            }
            Event::LeaseGained { shard, epoch, until } => self.lease_gained(shard, epoch, until),
            Event::LeaseRenewed { shard, until } => self.lease_renewed(shard, until),
            Event::LeaseLost { shard } => self.lease_lost(shard),
            Event::Accept { reply, tasks, replaces } => self.accept(reply, tasks, replaces),
            Event::Inbox(rows) => self.take_inbox(rows),
            Event::Committed { call, units, result } => self.committed(call, units, result),
            Event::Loaded { call, shards, result } => self.loaded(call, &shards, result),
            Event::LoadedOverdue { call, partition, result } => {
                self.loaded_overdue(call, partition, result);
            }
            Event::Reloaded { call, shard, probe, result } => {
                self.reloaded(call, shard, &probe, result);
            }
            Event::Fetched { call, seqs, result } => self.fetched(call, seqs, result),
            Event::Ended(ended) => self.ended(ended),
            Event::Request { reply, request } => self.request(reply, request),
            Event::Claim { reply, claim } => self.claim(reply, claim),
            Event::ClaimAbandoned { reply } => self.claim_abandoned(reply),
            Event::Complete { reply, items } => self.complete(reply, items),
            Event::Heartbeat { reply, items } => self.heartbeat(reply, items),
            Event::Drain => self.draining = true,
        }
    }

    /// When the engine wants [`Event::Tick`] if nothing else happens before: store time.
    pub fn next_wake(&self) -> Option<Time> {
        let moves = self.has_behind_to_plan() || self.has_backfill_to_move() && !self.draining;
        if self.wheel_behind || !self.flagged.is_empty() || moves {
            return Some(self.now.store);
        }
        let timer = self.wheel.next_deadline().map(|tick| self.time_of(tick));
        let window = self.next_window_wake();
        let batch = self.next_batch_wake();
        [timer, window, batch].into_iter().flatten().min()
    }

    /// Whether nothing is running and nothing waits to be written.
    pub fn is_quiet(&self) -> bool {
        self.running.is_empty()
            && self.batches.is_empty()
            && self.tally.is_empty()
            && self.fetch_count() == 0
    }

    /// Whether [`Effect::Publish`] is wanted from now on.
    pub fn set_publish(&mut self, publish: bool) {
        self.cfg.publish = publish;
    }

    /// The attempts that this node makes itself and that are under way: task and nonce.
    pub fn executing(&self) -> Vec<(Seq, u64)> {
        self.running
            .iter()
            .filter(|(_, r)| r.is_executing_here())
            .map(|(s, r)| (*s, r.open.nonce))
            .collect()
    }

    /// Its numbers. Takes time in proportion to partitions and shards.
    pub fn numbers(&self) -> EngineNumbers {
        let mut by_queue: FxHashMap<QueueId, usize> = FxHashMap::default();
        for (partition, part) in self.parts.iter().filter(|(_, part)| part.ready() > 0) {
            *by_queue.entry(partition.queue).or_default() += part.ready();
        }
        EngineNumbers {
            resident: self.resident.len(),
            ready: by_queue.values().sum(),
            ready_by_queue: by_queue.into_iter().collect(),
            running: self.running.len(),
            backlog: self.batches.pending_writes(),
            payload_bytes: self.payload_bytes,
            shards_active: self.shards.iter().filter(|s| s.is_active()).count(),
            waiting_claims: self.workers.waiting(),
            epoch: self.shards.iter().filter_map(|s| s.epoch()).map(|e| e.0).max().unwrap_or(0),
        }
    }

    /// Its numbers and the wheel's picture. Takes time in proportion to the wheel's slots.
    pub fn view(&self) -> EngineView {
        EngineView {
            numbers: self.numbers(),
            base: self.base,
            tick: TICK,
            wheel: self.wheel.snapshot(),
        }
    }

    pub(crate) fn call(&mut self) -> CallId {
        self.next_call += 1;
        CallId(self.next_call)
    }

    pub(crate) fn answer(&mut self, reply: ReplyId, answer: Answer) {
        self.effects.push(Effect::Reply { reply, answer });
    }

    pub(crate) fn refuse(&mut self, reply: ReplyId, why: Unavailable) {
        self.answer(reply, Answer::Unavailable(why));
    }

    /// The partition, made when it is first seen. Its shard follows from names.
    pub(crate) fn part(&mut self, partition: Partition, shard: Shard) -> &mut Part {
        self.parts.entry(partition).or_insert_with(|| Part::new(shard))
    }

    pub(crate) fn share(&self, partition: Partition) -> Option<Share> {
        let mut share = Share::of(self.queues.get(&partition.queue)?, partition.index);
        share.paused |= self.pausing.contains_key(&partition.queue);
        Some(share)
    }

    /// A pause is being written: from now on nothing of the queue starts.
    pub(crate) fn pause_begins(&mut self, queue: QueueId) {
        *self.pausing.entry(queue).or_default() += 1;
        self.unfetch(queue);
    }

    /// A pause was written, or not: the queue is as it is known.
    pub(crate) fn pause_over(&mut self, queue: Option<QueueId>) {
        let Some(queue) = queue else { return };
        if let Some(n) = self.pausing.get_mut(&queue) {
            *n -= 1;
            if *n == 0 {
                self.pausing.remove(&queue);
            }
        }
        self.flag_queue(queue);
    }

    fn partitions_of(&self, queue: QueueId) -> Vec<Partition> {
        let mut of: Vec<Partition> =
            self.parts.keys().filter(|p| p.queue == queue).copied().collect();
        of.sort();
        of
    }

    fn flag_queue(&mut self, queue: QueueId) {
        self.partitions_of(queue).into_iter().for_each(|p| self.flag(p));
    }

    /// The partition is looked at before the step ends.
    pub(crate) fn flag(&mut self, partition: Partition) {
        if let Some(part) = self.parts.get_mut(&partition)
            && !part.flagged
        {
            part.flagged = true;
            self.flagged.push(partition);
        }
    }

    pub(crate) fn set_queue(&mut self, queue: QueueRecord) {
        if self.queues.get(&queue.id).is_some_and(|q| q.version > queue.version) {
            return;
        }
        let id = queue.id;
        let paused = queue.config.paused;
        self.queues.insert(id, Arc::new(queue));
        if paused {
            self.unfetch(id);
        }
        for partition in self.partitions_of(id) {
            let ranks = self.parts.get_mut(&partition).map(Part::unblock_all).unwrap_or_default();
            for rank in ranks {
                self.back_to_ready(rank.seq);
            }
            self.clamp_rate(partition);
            self.flag(partition);
        }
    }

    /// The rate or the clock changed: what waits for a token waits anew.
    fn clamp_rate(&mut self, partition: Partition) {
        let Some(share) = self.share(partition) else { return };
        let Some(part) = self.parts.get_mut(&partition) else { return };
        part.clamp_rate(&share, self.now.store);
        if let Some(key) = part.rate_timer.take() {
            self.wheel.cancel(key);
        }
        self.flag(partition);
    }

    // ---- wheel time -------------------------------------------------------------------

    /// The tick at which something due then fires: rounded up, so never early.
    fn tick_of(&self, due: Time) -> u64 {
        let after = due.0.saturating_sub(self.base);
        if after <= 0 { 0 } else { (after as u64).div_ceil(TICK as u64) }
    }

    fn time_of(&self, tick: u64) -> Time {
        let micros = i64::try_from(tick).ok().and_then(|t| t.checked_mul(TICK));
        Time(micros.map_or(i64::MAX, |m| self.base.saturating_add(m)))
    }

    pub(crate) fn set_timer(&mut self, at: Time, timer: Timer) -> Key {
        let tick = self.tick_of(at);
        self.wheel.insert_at(tick, timer)
    }

    /// After a great many tasks left memory at once, their room goes too. Each time costs as
    /// much as the removals that led to it. The wheel does so by itself.
    fn give_memory_back(&mut self) {
        let spare = |capacity: usize, len: usize| capacity / 8 > len.max(SPARE);
        if spare(self.resident.capacity(), self.resident.len()) {
            self.resident.shrink_to(2 * self.resident.len());
        }
        if spare(self.running.capacity(), self.running.len()) {
            self.running.shrink_to(2 * self.running.len());
        }
    }

    fn fire_timers(&mut self) {
        let since = self.now.store.0.saturating_sub(self.base);
        if since < 0 {
            return;
        }
        let now = (since / TICK) as u64;
        let mut budget = Budget::new(self.cfg.timer_budget);
        while let Some((_, _, timer)) = self.wheel.pop(now, &mut budget) {
            self.fired(timer);
        }
        self.wheel_behind = budget.ran_out();
    }

    fn fired(&mut self, timer: Timer) {
        match timer {
            Timer::Due(seq) => {
                if self.resident.get(&seq).is_some_and(|r| matches!(r.place, Place::Wheel(_))) {
                    self.make_ready(seq);
                }
            }
            Timer::Expire(seq) => {
                if let Some(resident) = self.resident.get_mut(&seq) {
                    resident.expiry = None;
                    if matches!(resident.place, Place::Ready | Place::Parked) {
                        self.expire(seq);
                    }
                }
            }
            Timer::Claim(seq, nonce) => self.claim_ran_out(seq, nonce),
            Timer::ClaimWait(reply) => self.claim_waited(reply),
            Timer::Rate(partition) => {
                if let Some(part) = self.parts.get_mut(&partition) {
                    part.rate_timer = None;
                }
                self.flag(partition);
            }
            Timer::RetryReads(shard) => self.retry_reads(shard),
            Timer::RetryOverdue(partition) => self.flag(partition),
        }
    }

    /// Store time jumped. Back: the window is dropped and loaded again at the new offset.
    /// Forward: what has become due runs, in bounded steps, by the ordinary path.
    fn clock_stepped(&mut self, back: bool) {
        if !back {
            return self.renew_claims(false);
        }
        self.base = floor_tick(self.now.store.0);
        let mut old = std::mem::replace(&mut self.wheel, HierarchicalWheel::new());
        let mut keep = Vec::new();
        old.drain(|_, _, timer| match timer {
            Timer::Due(_)
            | Timer::Expire(_)
            | Timer::Claim(..)
            | Timer::ClaimWait(_)
            | Timer::Rate(_) => {}
            other => keep.push(other),
        });
        // A worker that waits is answered soon, and asks again.
        let wait = self.now.store.plus(SECOND);
        for timer in keep {
            self.set_timer(self.now.store, timer);
        }
        self.workers.wait_until_at_most(wait);
        self.rearm_waits(wait);
        self.renew_claims(true);
        self.drop_window();
        let mut partitions: Vec<Partition> = self.parts.keys().copied().collect();
        partitions.sort();
        self.parts.values_mut().for_each(|part| part.rate_timer = None);
        partitions.into_iter().for_each(|p| self.clamp_rate(p));
    }

    pub(crate) fn unavailable(kind: StoreErrorKind, message: String) -> Unavailable {
        match kind {
            StoreErrorKind::Full => Unavailable::Full,
            _ => Unavailable::Store(message),
        }
    }

    /// Panics, saying what is wrong, when the state contradicts itself. For tests; takes time
    /// in proportion to what is in memory.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.wheel.check_invariants();
        let mut slots: FxHashMap<Partition, u32> = FxHashMap::default();
        let mut ready: FxHashMap<Partition, usize> = FxHashMap::default();
        for (seq, resident) in &self.resident {
            assert_eq!(*seq, resident.stub.seq);
            assert!(!self.running.contains_key(seq), "{seq:?} is resident and running");
            let partition = resident.stub.partition;
            match resident.place {
                Place::Wheel(key) => assert_eq!(self.wheel.get(key), Some(&Timer::Due(*seq))),
                Place::Ready => *ready.entry(partition).or_default() += 1,
                Place::Fetching(..) => *slots.entry(partition).or_default() += 1,
                Place::Parked | Place::Held => {}
            }
        }
        for running in self.running.values().filter(|r| r.has_slot) {
            *slots.entry(running.task.partition).or_default() += 1;
        }
        for (partition, part) in &self.parts {
            assert_eq!(part.running, slots.get(partition).copied().unwrap_or(0), "{partition:?}");
            assert_eq!(part.ready(), ready.get(partition).copied().unwrap_or(0), "{partition:?}");
            if let Some(share) = self.share(*partition) {
                // A limit that was lowered is reached as attempts end, never exceeded by a start.
                let _ = share;
            }
        }
        assert!(self.batches.pending_writes() >= self.batches.in_outbox());
    }
}

fn floor_tick(micros: i64) -> i64 {
    micros - micros.rem_euclid(TICK)
}

/// Waiting writers of one kind of list, in order.
pub(crate) type Line<T> = VecDeque<T>;

//! The window: cascading the store's buckets into the wheel, and what a shard's owner
//! knows of it.
//!
//! For a held shard, everything scheduled up to its edge is in memory. A load moves the edge
//! on; while it is under way the engine remembers which tasks changed, so that a late reply
//! resurrects nothing. When memory is full the edge is pulled back; what is overdue and has no
//! room is marked in the store (*spilled*) and comes back in rank order.

mod loads;

use rustc_hash::FxHashSet;
use tourbillon_store::time::MILLI;
use tourbillon_store::{
    Edge, Epoch, Partition, Reloaded, Seq, Shard, StoreError, Stub, StubFlags, Task, Time, Unit,
    Write,
};
use tourbillon_wheel::TimerQueue;

use crate::api::{CallId, Effect};
use crate::batch::Ticket;
use crate::engine::{Engine, Place, Resident, Timer};
use crate::part::Spill;

/// How a shard stands with this node.
#[derive(Debug)]
pub(crate) struct ShardState {
    lease: Option<(Epoch, Time)>,
    /// When it was taken under this epoch.
    since: Time,
    status: Status,
    edge: Edge,
    loading: Option<Loading>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    /// Not held.
    Absent,
    /// Held; what is running and the schedules are being read.
    Reloading(Option<CallId>),
    /// Held and known.
    Active,
}

#[derive(Debug)]
struct Loading {
    call: CallId,
    until: Time,
    /// Tasks that changed since the load was asked for.
    changed: FxHashSet<Seq>,
    /// A failed load, to be asked for again when its timer fires.
    failed: bool,
}

impl Default for ShardState {
    fn default() -> Self {
        ShardState {
            lease: None,
            since: Time::MIN,
            status: Status::Absent,
            edge: Edge::START,
            loading: None,
        }
    }
}

impl ShardState {
    /// The epoch under which it is held.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.lease.map(|(epoch, _)| epoch)
    }

    /// Whether it is held and its running tasks and schedules are known.
    pub(crate) fn is_active(&self) -> bool {
        self.status == Status::Active
    }

    /// Whether it is held and what runs and is planned is being read.
    pub(crate) fn is_reloading(&self) -> bool {
        matches!(self.status, Status::Reloading(_))
    }

    /// Whether it is held and nothing is under way to read it.
    pub(crate) fn must_be_read(&self) -> bool {
        self.status == Status::Reloading(None)
    }

    fn covers(&self, due: Time, seq: Seq) -> bool {
        self.edge.covers(due, seq) || self.loading.as_ref().is_some_and(|l| due < l.until)
    }
}

impl Engine {
    // ---- leases -----------------------------------------------------------------------

    pub(crate) fn lease_gained(&mut self, shard: Shard, epoch: Epoch, until: Time) {
        let since = self.now.store;
        let state = &mut self.shards[shard.index()];
        state.lease = Some((epoch, until));
        state.since = since;
        self.reload(shard);
    }

    pub(crate) fn lease_renewed(&mut self, shard: Shard, until: Time) {
        let could_start = self.may_start(shard);
        if let Some(lease) = &mut self.shards[shard.index()].lease {
            lease.1 = until;
            if !could_start {
                self.flag_shard(shard);
            }
        }
    }

    pub(crate) fn lease_lost(&mut self, shard: Shard) {
        self.shards[shard.index()] = ShardState::default();
        for other in self.purge_outbox(shard) {
            self.reload(other);
        }
        self.forget_shard(shard);
        self.leave_running(shard);
        self.release_waiting();
    }

    /// Whether an owner before this one may have started the task and died before that was
    /// written. Its start is durable first, or a task that kills its node would do so for ever
    /// without any attempt being counted as lost.
    pub(crate) fn may_have_been_started(&self, shard: Shard, task: &Task) -> bool {
        let since = self.shards[shard.index()].since;
        task.due < since && task.created_at < since
    }

    /// Whether an attempt may start in this shard now.
    pub(crate) fn may_start(&self, shard: Shard) -> bool {
        let state = &self.shards[shard.index()];
        state.is_active()
            && state
                .lease
                .is_some_and(|(_, until)| self.now.store.plus(self.cfg.lease_margin) < until)
    }

    /// The fence for a write to this shard, if it is held.
    pub(crate) fn fence(&self, shard: Shard) -> Option<(Shard, Epoch)> {
        self.shards[shard.index()].epoch().map(|epoch| (shard, epoch))
    }

    fn flag_shard(&mut self, shard: Shard) {
        let partitions: Vec<Partition> =
            self.parts.iter().filter(|(_, p)| p.shard == shard).map(|(k, _)| *k).collect();
        partitions.into_iter().for_each(|p| self.flag(p));
    }

    // ---- forgetting and reloading -------------------------------------------------------

    /// Forgets everything scheduled in the shard. What runs is kept.
    fn forget_shard(&mut self, shard: Shard) {
        let seqs: Vec<Seq> = self
            .resident
            .iter()
            .filter(|(_, r)| self.parts.get(&r.stub.partition).is_some_and(|p| p.shard == shard))
            .map(|(seq, _)| *seq)
            .collect();
        for seq in seqs {
            self.forget(seq);
        }
        for part in self.parts.values_mut().filter(|p| p.shard == shard) {
            part.forget();
        }
        self.batches.forget_early(shard);
        self.forget_schedules(shard);
    }

    /// Takes a task out of memory, giving back what it holds. Answers its stub.
    pub(crate) fn forget(&mut self, seq: Seq) -> Option<Stub> {
        let resident = self.resident.remove(&seq)?;
        self.leave_place(&resident);
        Some(resident.stub)
    }

    /// Undoes what a resident task's place holds: its timer, its line, its slot.
    fn leave_place(&mut self, resident: &Resident) {
        let stub = &resident.stub;
        if let Some(key) = resident.expiry {
            self.wheel.cancel(key);
        }
        match resident.place {
            Place::Wheel(key) => {
                self.wheel.cancel(key);
            }
            Place::Ready => {
                if let Some(part) = self.parts.get_mut(&stub.partition) {
                    part.remove(stub);
                }
                self.unblock(stub);
            }
            Place::Fetching(_, claim) => {
                self.payload_bytes = self.payload_bytes.saturating_sub(u64::from(stub.bytes));
                self.free_slot(stub.partition, stub.concurrency_hash);
                if let Some(reply) = claim {
                    self.claim_item_gone(reply);
                }
            }
            Place::Parked | Place::Held => {}
        }
    }

    /// Takes a task out of the way while a change to it is written.
    pub(crate) fn hold(&mut self, seq: Seq) -> Option<Stub> {
        let resident = self.resident.remove(&seq)?;
        self.leave_place(&resident);
        let stub = resident.stub;
        self.resident.insert(seq, Box::new(Resident::new(stub, Place::Held)));
        Some(stub)
    }

    /// Drops the shard's memory and reads it again, as a takeover does. The one recovery path.
    ///
    /// What is read must be the outcome of every write sent before, so it waits for the batch in
    /// flight, and new writes to the shard wait for it.
    pub(crate) fn reload(&mut self, shard: Shard) {
        let state = &mut self.shards[shard.index()];
        let held = state.lease.is_some();
        state.status = if held { Status::Reloading(None) } else { Status::Absent };
        state.edge = Edge::START;
        state.loading = None;
        for other in self.purge_outbox(shard) {
            self.reload(other);
        }
        self.forget_shard(shard);
        if !held || self.batches.reload_must_wait(shard) {
            return;
        }
        let call = self.call();
        self.shards[shard.index()].status = Status::Reloading(Some(call));
        let mut probe: Vec<Seq> =
            self.running.iter().filter(|(_, r)| r.task.shard == shard).map(|(s, _)| *s).collect();
        probe.sort();
        self.effects.push(Effect::Reload { call, shard, probe });
    }

    /// Reads the shard's window again from its beginning; what is in memory stays.
    pub(crate) fn reread(&mut self, shard: Shard) {
        let state = &mut self.shards[shard.index()];
        state.edge = Edge::START;
        state.loading = None;
        // What left memory may be marked overdue, where the window does not find it.
        for part in self.parts.values_mut().filter(|p| p.shard == shard) {
            let spill = part.spill.get_or_insert_with(Spill::unknown);
            spill.after = None;
            spill.loading = None;
        }
        self.flag_shard(shard);
    }

    pub(crate) fn reloaded(
        &mut self,
        call: CallId,
        shard: Shard,
        probe: &[Seq],
        result: Result<Reloaded, StoreError>,
    ) {
        if self.shards[shard.index()].status != Status::Reloading(Some(call)) {
            return;
        }
        let found = match result {
            Ok(found) => found,
            Err(_) => {
                self.shards[shard.index()].status = Status::Reloading(None);
                let at = self.now.store.plus(100 * MILLI);
                self.set_timer(at, Timer::RetryReads(shard));
                return;
            }
        };
        self.shards[shard.index()].status = Status::Active;
        for (partition, _) in &found.spilled {
            self.part(*partition, shard).spill = Some(Spill::unknown());
            self.flag(*partition);
        }
        self.adopt_schedules(found.schedules);
        self.reconcile(shard, probe, found.probed, found.running);
        self.flag_shard(shard);
        self.release_waiting();
    }

    pub(crate) fn retry_reads(&mut self, shard: Shard) {
        match self.shards[shard.index()].status {
            Status::Reloading(None) => self.reload(shard),
            Status::Active => {
                let state = &mut self.shards[shard.index()];
                if state.loading.as_ref().is_some_and(|l| l.failed) {
                    state.loading = None;
                }
            }
            _ => {}
        }
    }

    /// After a step back: nothing that waits is trusted to be due when memory thinks.
    pub(crate) fn drop_window(&mut self) {
        let mut seqs: Vec<Seq> = self.resident.keys().copied().collect();
        seqs.sort();
        let mut parked = Vec::new();
        // Their timers went with the old wheel.
        self.resident.retain(|_, r| !matches!(r.place, Place::Wheel(_)));
        for resident in self.resident.values_mut() {
            resident.expiry = None;
            if resident.place == Place::Parked && resident.stub.expires < Time::MAX {
                parked.push((resident.stub.expires, resident.stub.seq));
            }
        }
        for seq in seqs {
            if self.resident.get(&seq).is_some_and(|r| r.place == Place::Ready) {
                self.forget(seq);
            }
        }
        parked.sort();
        for (at, seq) in parked {
            let key = self.set_timer(at, Timer::Expire(seq));
            if let Some(resident) = self.resident.get_mut(&seq) {
                resident.expiry = Some(key);
            }
        }
        for shard in Shard::all() {
            if self.shards[shard.index()].is_active() {
                self.reread(shard);
            }
        }
    }

    /// Holds a task's place while a change to it is written although it is not in memory, so
    /// that a load under way does not bring it in and start it.
    pub(crate) fn hold_away(&mut self, seq: Seq, version: u32, partition: Partition, shard: Shard) {
        self.part(partition, shard);
        let stub = Stub {
            seq,
            due: Time::MAX,
            expires: Time::MAX,
            partition,
            version,
            bytes: 0,
            concurrency_hash: 0,
            kind_hash: 0,
            attempt: 0,
            priority: 0,
            flags: StubFlags::default(),
        };
        self.resident.entry(seq).or_insert_with(|| Box::new(Resident::new(stub, Place::Held)));
    }

    // ---- residents --------------------------------------------------------------------

    /// A task that is now scheduled in the store, with this stub: takes it into memory if it
    /// is within the edge. Whatever the caller knew of it before must be forgotten already.
    pub(crate) fn settle(&mut self, shard: Shard, stub: Stub) {
        self.part(stub.partition, shard);
        let state = &mut self.shards[shard.index()];
        if !state.covers(stub.due, stub.seq) {
            return;
        }
        if self.resident.len() < self.cfg.max_resident {
            self.admit(stub);
        } else if stub.due > self.now.store {
            self.pull_back(shard, &stub);
        } else if self.parts[&stub.partition].ready() < self.cfg.overdue_chunk {
            self.admit(stub);
        } else {
            self.spill(shard, vec![stub]);
        }
    }

    /// Puts a task into the wheel or among the ready ones.
    pub(crate) fn admit(&mut self, stub: Stub) {
        let seq = stub.seq;
        if self.resident.contains_key(&seq) || self.running.contains_key(&seq) {
            return;
        }
        if stub.due <= self.now.store {
            self.resident.insert(seq, Box::new(Resident::new(stub, Place::Held)));
            self.make_ready(seq);
        } else {
            let key = self.set_timer(stub.due, Timer::Due(seq));
            self.resident.insert(seq, Box::new(Resident::new(stub, Place::Wheel(key))));
        }
    }

    /// A resident task's time has come.
    pub(crate) fn make_ready(&mut self, seq: Seq) {
        let Some(resident) = self.resident.get_mut(&seq) else { return };
        let stub = resident.stub;
        if stub.due > self.now.store {
            // The wheel rounds up, so this is only after a step back.
            let key = self.set_timer(stub.due, Timer::Due(seq));
            if let Some(resident) = self.resident.get_mut(&seq) {
                resident.place = Place::Wheel(key);
            }
            return;
        }
        resident.place = Place::Ready;
        if stub.expires < Time::MAX && resident.expiry.is_none() {
            let key = self.set_timer(stub.expires, Timer::Expire(seq));
            if let Some(resident) = self.resident.get_mut(&seq) {
                resident.expiry = Some(key);
            }
        }
        if let Some(part) = self.parts.get_mut(&stub.partition) {
            part.insert(&stub);
        }
        self.flag(stub.partition);
    }

    /// A ready task left without a start: what waits for its concurrency key has its turn.
    pub(crate) fn unblock(&mut self, stub: &Stub) {
        if stub.concurrency_hash != 0
            && let Some(part) = self.parts.get_mut(&stub.partition)
            && let Some(rank) = part.unblock_first(stub.concurrency_hash)
        {
            self.back_to_ready(rank.seq);
        }
    }

    /// A task that was taken out of its partition's lines goes back into them.
    pub(crate) fn back_to_ready(&mut self, seq: Seq) {
        let Some(resident) = self.resident.get_mut(&seq) else { return };
        resident.place = Place::Ready;
        let stub = resident.stub;
        if let Some(part) = self.parts.get_mut(&stub.partition) {
            part.insert(&stub);
        }
        self.flag(stub.partition);
    }

    /// A task changed in the store: a load under way may still answer what it was.
    pub(crate) fn tombstone(&mut self, shard: Shard, partition: Partition, seq: Seq) {
        if let Some(loading) = &mut self.shards[shard.index()].loading {
            loading.changed.insert(seq);
        }
        if let Some(part) = self.parts.get_mut(&partition)
            && let Some(spill) = &mut part.spill
            && spill.loading.is_some()
        {
            spill.changed.insert(seq);
        }
    }

    // ---- inbox ------------------------------------------------------------------------

    pub(crate) fn take_inbox(&mut self, rows: Vec<(Shard, Stub)>) {
        let mut by_shard: Vec<(Shard, Vec<Stub>)> = Vec::new();
        for (shard, stub) in rows {
            match by_shard.iter_mut().find(|(s, _)| *s == shard) {
                Some((_, stubs)) => stubs.push(stub),
                None => by_shard.push((shard, vec![stub])),
            }
        }
        for (shard, stubs) in by_shard {
            let Some(fence) = self.fence(shard) else { continue };
            let seqs = stubs.iter().map(|s| s.seq).collect();
            let unit = Unit { fences: vec![fence], writes: vec![Write::TakeIn { shard, seqs }] };
            self.write(unit, Ticket::TakeIn { shard, stubs });
        }
    }
}

//! Group commit: what waits to be written, the batch in flight, and what its answer means.
//!
//! A unit goes out with a ticket that says who cares. At most one batch is in flight; what
//! gathers meanwhile goes out together when it is back, so the fsync is shared under load and
//! nothing waits when idle. A batch that nobody waits for may gather for `linger`. The statistics
//! go with one now and then, or alone when nothing else is to be written.

use tourbillon_store::queries::Located;
use tourbillon_store::{
    Done, Epoch, NewTask, Partition, QueueId, Rank, Refusal, Refused, Seq, Shard, State,
    StoreError, Stub, Time, Unit, UnitResult, Write,
};

use crate::api::{Answer, CallId, Effect, ReplyId, Request, Unavailable};
use crate::attempt::Wrote;
use crate::engine::{Engine, Line};

/// Longest wait after failed commits, in microseconds.
const BACKOFF_MAX: u64 = 5_000_000;

/// Who cares about a unit.
#[derive(Debug)]
pub(crate) enum Ticket {
    /// Nobody.
    Nobody,
    /// Rows of these partitions were marked overdue, from these ranks on.
    Spill(Vec<(Partition, Rank)>),
    /// A creation.
    Accept { reply: ReplyId, replaced: Option<(Seq, Shard, Partition)> },
    /// A task that others inserted was taken in.
    TakeIn { shard: Shard, stubs: Vec<Stub> },
    /// A running task.
    Task { seq: Seq, shard: Shard, wrote: Wrote, planned: Option<Planned> },
    /// A task that ends without an attempt.
    Close {
        seq: Seq,
        stub: Stub,
        shard: Shard,
        to: State,
        reply: Option<ReplyId>,
        planned: Option<Planned>,
    },
    /// The same for a task that is not in memory.
    CloseAway {
        seq: Seq,
        shard: Shard,
        partition: Partition,
        reply: ReplyId,
        planned: Option<Planned>,
    },
    /// A change to a task; the stub after it.
    Edit { stub: Stub, shard: Shard, reply: ReplyId },
    /// A task of history becomes live.
    Redrive { reply: ReplyId },
    /// A queue; one that is being paused does not start anything meanwhile.
    Queue { reply: ReplyId, pausing: Option<QueueId> },
    /// A schedule; nobody waits when it was planned anew by the engine itself.
    Schedule { reply: Option<ReplyId>, uid: u128, planned: Option<Planned> },
}

/// An occurrence that a unit inserts, to be taken in when it is committed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planned {
    pub(crate) uid: u128,
    /// Which write of the unit inserts it.
    pub(crate) insert: Option<usize>,
    /// The occurrence's row, once known.
    pub(crate) seq: Option<Seq>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    outbox: Line<(Unit, Ticket)>,
    outbox_writes: usize,
    /// What concerns a shard that is being read again: sent when that is done, so that what is
    /// read is the outcome of everything sent before, and of nothing else.
    waiting: Line<(Unit, Ticket)>,
    waiting_writes: usize,
    /// Shards to be read again when the batch in flight is back.
    reloads: Vec<Shard>,
    /// Occurrences that were loaded while the batch that may have created them is in flight:
    /// taken in when it is back and they are known to their schedules. With whether they are
    /// marked overdue, which lets them in wherever the edge is.
    early: Vec<(Shard, Stub, bool)>,
    /// Changes to tasks that are not in memory and that the batch in flight may have created:
    /// looked at when it is back. Their writes could not go out before, either.
    later: Vec<Later>,
    dirty: Line<Seq>,
    flight: Option<Flight>,
    /// Somebody waits for what gathers.
    pub(crate) urgent: bool,
    /// Monotonic time when the first of what gathers came.
    since: Option<u64>,
    /// Monotonic time of the first event that the statistics do not have yet.
    uncounted_since: Option<u64>,
    /// Monotonic time before which nothing is sent, after a failure.
    not_before: u64,
    backoff: u64,
}

/// What is asked again when the batch in flight is back.
#[derive(Debug)]
pub(crate) enum Later {
    Request(ReplyId, Request),
    Accept(ReplyId, Vec<NewTask>, Located),
}

#[derive(Debug)]
struct Flight {
    call: CallId,
    tickets: Vec<Ticket>,
    writes: usize,
    shards: Vec<Shard>,
}

impl Batches {
    pub(crate) fn push_dirty(&mut self, seq: Seq, mono: u64) {
        self.dirty.push_back(seq);
        self.since.get_or_insert(mono);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.outbox.is_empty()
            && self.waiting.is_empty()
            && self.dirty.is_empty()
            && self.flight.is_none()
    }

    /// Writes that wait or are in flight.
    pub(crate) fn pending_writes(&self) -> usize {
        self.outbox_writes
            + self.waiting_writes
            + self.dirty.len()
            + self.flight.as_ref().map_or(0, |f| f.writes)
    }

    /// Attempts of which something is still to be sent to the store.
    pub(crate) fn unsent_attempts(&self) -> usize {
        self.dirty.len()
    }

    pub(crate) fn in_outbox(&self) -> usize {
        self.outbox_writes
    }

    /// Whether the batch in flight writes to this shard. Then it is read again when that is
    /// back.
    pub(crate) fn reload_must_wait(&mut self, shard: Shard) -> bool {
        let must_wait = self.in_flight(shard);
        if must_wait {
            self.reloads.push(shard);
        }
        must_wait
    }

    /// The schedules of which something is being written.
    pub(crate) fn schedules(&self) -> impl Iterator<Item = u128> {
        let waiting = self.outbox.iter().chain(&self.waiting).map(|(_, ticket)| ticket);
        let flying = self.flight.iter().flat_map(|flight| &flight.tickets);
        waiting.chain(flying).filter_map(|ticket| match ticket {
            Ticket::Schedule { uid, .. } => Some(*uid),
            _ => None,
        })
    }

    pub(crate) fn ask_later(&mut self, later: Later) {
        self.later.push(later);
    }

    /// Whether the batch in flight writes to this shard.
    pub(crate) fn in_flight(&self, shard: Shard) -> bool {
        self.flight.as_ref().is_some_and(|f| f.shards.contains(&shard))
    }

    /// Puts an occurrence that was loaded aside when the batch in flight may have created it.
    pub(crate) fn put_early_aside(&mut self, shard: Shard, stub: Stub, marked: bool) -> bool {
        let in_flight = self.in_flight(shard);
        if in_flight {
            self.early.push((shard, stub, marked));
        }
        in_flight
    }

    /// Drops what was put aside of a shard: it is read again.
    pub(crate) fn forget_early(&mut self, shard: Shard) {
        self.early.retain(|(s, ..)| *s != shard);
    }
}

impl Engine {
    /// Has a unit written with the next batch.
    pub(crate) fn write(&mut self, unit: Unit, ticket: Ticket) {
        let somebody_waits = !matches!(ticket, Ticket::Nobody | Ticket::Close { reply: None, .. });
        if unit.fences.iter().any(|f| self.shards[f.0.index()].is_reloading()) {
            self.batches.waiting_writes += unit.writes.len();
            self.batches.waiting.push_back((unit, ticket));
            return;
        }
        self.batches.urgent |= somebody_waits;
        self.batches.since.get_or_insert(self.now.mono);
        self.batches.outbox_writes += unit.writes.len();
        self.batches.outbox.push_back((unit, ticket));
    }

    /// Has what waited for shards that were being read go on.
    pub(crate) fn release_waiting(&mut self) {
        self.batches.waiting_writes = 0;
        for (unit, ticket) in std::mem::take(&mut self.batches.waiting) {
            self.write(unit, ticket);
        }
    }

    /// When the batch that gathers has gathered long enough: store time.
    pub(crate) fn next_batch_wake(&self) -> Option<Time> {
        let batches = &self.batches;
        if batches.flight.is_some() {
            return None;
        }
        let linger = if batches.urgent { 0 } else { self.cfg.linger as u64 };
        let gathers = !batches.outbox.is_empty() || !batches.dirty.is_empty();
        let gathered = gathers.then(|| batches.since.unwrap_or(0) + linger);
        let at = [gathered, self.counts_due()].into_iter().flatten().min()?.max(batches.not_before);
        Some(self.now.store.plus(at.saturating_sub(self.now.mono) as i64))
    }

    /// When the statistics are to be written: monotonic time. A row of them per shard and minute
    /// in every batch would cost more than the tasks themselves where batches are small.
    fn counts_due(&self) -> Option<u64> {
        let since = self.batches.uncounted_since?;
        Some(if self.draining { since } else { since + self.cfg.stats_every as u64 })
    }

    /// Sends the next batch, if it is its time.
    pub(crate) fn flush(&mut self) {
        if !self.tally.is_empty() {
            self.batches.uncounted_since.get_or_insert(self.now.mono);
        }
        if self.batches.flight.is_some() {
            return;
        }
        let count = self.counts_due().is_some_and(|at| self.now.mono >= at);
        if self.batches.outbox.is_empty() && self.batches.dirty.is_empty() && !count {
            return;
        }
        let waited = self.now.mono.saturating_sub(self.batches.since.unwrap_or(0));
        let full = self.batches.outbox_writes + self.batches.dirty.len() >= self.cfg.batch_max;
        let due = self.batches.urgent || full || count || waited >= self.cfg.linger as u64;
        if !due || self.now.mono < self.batches.not_before {
            return;
        }
        let max = self.cfg.batch_max;
        let mut units = Vec::new();
        let mut tickets = Vec::new();
        let mut writes = 0;
        while let Some((unit, _)) = self.batches.outbox.front() {
            if writes > 0 && writes + unit.writes.len() > max {
                break;
            }
            let Some((unit, ticket)) = self.batches.outbox.pop_front() else { break };
            self.batches.outbox_writes -= unit.writes.len();
            writes += unit.writes.len();
            units.push(unit);
            tickets.push(ticket);
        }
        let mut after_removal = Line::new();
        while writes < max
            && let Some(seq) = self.batches.dirty.pop_front()
        {
            if !self.batches.outbox.is_empty() && self.is_of_deleted(seq) {
                // It moves its schedule on no more, so the removal must not come after it.
                after_removal.push_back(seq);
            } else if let Some((unit, ticket)) = self.derive_writes(seq) {
                writes += unit.writes.len();
                units.push(unit);
                tickets.push(ticket);
            }
        }
        after_removal.append(&mut self.batches.dirty);
        self.batches.dirty = after_removal;
        if self.batches.outbox.is_empty() && self.batches.dirty.is_empty() {
            self.batches.urgent = false;
            self.batches.since = None;
        }
        if count {
            self.batches.uncounted_since = None;
            let deltas = self.tally.take();
            let writes = deltas.into_iter().map(|d| Write::Stats(Box::new(d))).collect();
            units.push(Unit { fences: Vec::new(), writes });
            tickets.push(Ticket::Nobody);
        }
        if units.is_empty() {
            // Nothing was left to write, and no answer will come that lets them go on.
            self.feed_starved();
            return;
        }
        let call = self.call();
        let shards = shards_of(&units);
        self.batches.flight = Some(Flight { call, tickets, writes, shards });
        self.effects.push(Effect::Commit { call, units });
    }

    pub(crate) fn committed(
        &mut self,
        call: CallId,
        units: Vec<Unit>,
        result: Result<Vec<UnitResult>, StoreError>,
    ) {
        let Some(flight) = self.batches.flight.take_if(|f| f.call == call) else { return };
        match result {
            Ok(results) => {
                self.batches.backoff = 0;
                let mut stale: Vec<Shard> = Vec::new();
                for ((unit, ticket), result) in units.into_iter().zip(flight.tickets).zip(results) {
                    match result {
                        Ok(done) => self.unit_done(unit, ticket, done),
                        Err(refused) => self.unit_refused(&unit, ticket, refused, &mut stale),
                    }
                }
                stale.sort();
                stale.dedup();
                stale.into_iter().for_each(|shard| self.reload(shard));
            }
            Err(error) => self.batch_failed(units, flight.tickets, &error),
        }
        self.feed_starved();
        for shard in std::mem::take(&mut self.batches.reloads) {
            if self.shards[shard.index()].must_be_read() {
                self.reload(shard);
            }
        }
        for (shard, stub, marked) in std::mem::take(&mut self.batches.early) {
            if marked { self.admit(stub) } else { self.settle(shard, stub) }
        }
        for later in std::mem::take(&mut self.batches.later) {
            match later {
                Later::Request(reply, request) => self.request(reply, request),
                Later::Accept(reply, tasks, old) => self.accept(reply, tasks, Some(old)),
            }
        }
    }

    /// Nothing of the batch is known to be committed: those who wait are told so, and every
    /// shard it touched is read again.
    fn batch_failed(&mut self, units: Vec<Unit>, tickets: Vec<Ticket>, error: &StoreError) {
        let base = self.cfg.commit_backoff as u64;
        self.batches.backoff = (self.batches.backoff * 2).clamp(base, BACKOFF_MAX);
        self.batches.not_before = self.now.mono + self.batches.backoff;
        let why = Engine::unavailable(error.kind(), error.to_string());
        for ticket in tickets {
            if let Ticket::Queue { pausing, .. } = &ticket {
                self.pause_over(*pausing);
            }
            if let Some(reply) = ticket.reply() {
                self.refuse(reply, why.clone());
            }
        }
        shards_of(&units).into_iter().for_each(|shard| self.reload(shard));
    }

    fn unit_done(&mut self, unit: Unit, ticket: Ticket, done: Vec<Done>) {
        match ticket {
            Ticket::Nobody => {}
            Ticket::Spill(marked) => {
                for (partition, first) in marked {
                    if let Some(spill) =
                        self.parts.get_mut(&partition).and_then(|p| p.spill.as_mut())
                        && let Some(at) = spill.marking.iter().position(|r| *r == first)
                    {
                        spill.marking.swap_remove(at);
                    }
                    self.flag(partition);
                }
            }
            Ticket::Accept { reply, replaced } => {
                if let Some((seq, shard, partition)) = replaced {
                    self.forget(seq);
                    self.tombstone(shard, partition, seq);
                }
                for (write, done) in unit.writes.iter().zip(&done) {
                    if let (Write::Insert(task), Done::Inserted(seq)) = (write, done) {
                        let queue = task.partition.queue;
                        self.tally.created(task.shard, task.created_at, queue, &task.spec.kind);
                        self.occurrence_inserted(task, *seq);
                        self.settle(task.shard, task.stub(*seq));
                    }
                }
                let done = done.into_iter().filter(|d| !matches!(d, Done::Ok)).collect();
                self.answer(reply, Answer::Accepted(done));
            }
            Ticket::TakeIn { shard, stubs } => {
                for stub in stubs {
                    let known = self.resident.contains_key(&stub.seq);
                    self.settle(shard, stub);
                    if !known && let Some(resident) = self.resident.get_mut(&stub.seq) {
                        resident.unverified = true;
                    }
                }
            }
            Ticket::Task { seq, wrote, planned, .. } => {
                let planned = planned.map(|p| p.with_seq(&done));
                self.task_written(seq, wrote, planned);
            }
            Ticket::Close { seq, stub, shard, to, reply, planned } => {
                self.forget(seq);
                self.closed(seq, shard, stub.partition, to, stub.kind_hash);
                self.plan_done(planned.map(|p| p.with_seq(&done)));
                if let Some(reply) = reply {
                    self.answer(reply, Answer::Cancelled);
                }
            }
            Ticket::CloseAway { seq, shard, partition, reply, planned } => {
                self.forget(seq);
                self.closed(seq, shard, partition, State::Cancelled, 0);
                self.plan_done(planned.map(|p| p.with_seq(&done)));
                self.answer(reply, Answer::Cancelled);
            }
            Ticket::Edit { stub, shard, reply } => {
                self.forget(stub.seq);
                self.tombstone(shard, stub.partition, stub.seq);
                self.occurrence_again(stub.seq, stub.version, stub.attempt);
                self.settle(shard, stub);
                self.answer(reply, Answer::Edited { version: stub.version });
            }
            Ticket::Redrive { reply } => {
                if let Some(Done::Redriven(task)) = done.into_iter().next() {
                    let (shard, stub) = (task.shard, task.stub());
                    self.tombstone(shard, stub.partition, stub.seq);
                    self.occurrence_redriven(&task);
                    self.settle(shard, stub);
                    self.answer(reply, Answer::Redriven(task));
                } else {
                    self.answer(reply, Answer::Changed);
                }
            }
            Ticket::Queue { reply, pausing } => {
                match done.into_iter().next() {
                    Some(Done::Queue(queue)) => {
                        self.set_queue((*queue).clone());
                        self.answer(reply, Answer::Queue(queue));
                    }
                    _ => self.answer(reply, Answer::Changed),
                }
                self.pause_over(pausing);
            }
            Ticket::Schedule { reply, uid, planned } => {
                self.backfilled(&unit, &done);
                self.schedule_written(reply, uid, &unit, planned.map(|p| p.with_seq(&done)));
            }
        }
    }

    fn closed(&mut self, seq: Seq, shard: Shard, partition: Partition, to: State, kind: u64) {
        self.tombstone(shard, partition, seq);
        let at = self.now.store;
        self.tally.closed(shard, at, partition.queue, kind, to);
        self.occurrence_over(seq);
    }

    fn unit_refused(
        &mut self,
        unit: &Unit,
        ticket: Ticket,
        refused: Refused,
        stale: &mut Vec<Shard>,
    ) {
        if refused.why == Refusal::Fenced {
            // Somebody else holds a shard now: nothing is known of it any more. The unit may be
            // from an epoch before the one that is held now; and of several shards it is not
            // said which was lost, so they are read again and the next write tells.
            let held = |f: &&(Shard, Epoch)| self.fence(f.0) == Some(**f);
            let lost: Vec<Shard> = unit.fences.iter().filter(held).map(|f| f.0).collect();
            match lost[..] {
                [shard] if unit.fences.len() == 1 => self.lease_lost(shard),
                _ => stale.extend(lost),
            }
            if let Some(reply) = ticket.reply() {
                self.refuse(reply, Unavailable::NotOwner);
            }
            return;
        }
        if refused.why == Refusal::Exists
            && let Some(planned) = ticket.planned().filter(|p| p.insert == Some(refused.index))
            && let Some(Write::Insert(task)) = unit.writes.get(refused.index)
        {
            self.occurrence_taken(planned.uid, task.schedule.as_ref());
        }
        let shards = unit.fences.iter().map(|f| f.0);
        match ticket {
            // What was refused is the client's business; memory is as it was.
            Ticket::Accept { reply, replaced } => {
                if let Some((seq, shard, _)) = replaced {
                    self.forget(seq);
                    self.reread(shard);
                    self.answer(reply, Answer::Changed);
                } else {
                    self.answer(reply, Answer::Refused { index: refused.index, why: refused.why });
                }
            }
            Ticket::CloseAway { seq, shard, reply, .. } => {
                self.answer(reply, Answer::Changed);
                self.forget(seq);
                if unit.writes.len() > 1 {
                    // A schedule was moved on with it in memory.
                    stale.extend(shards);
                } else {
                    self.reread(shard);
                }
            }
            Ticket::Redrive { reply } => {
                let answer = match refused.why {
                    Refusal::Conflict | Refusal::Illegal => Answer::Changed,
                    why => Answer::Refused { index: refused.index, why },
                };
                self.answer(reply, answer);
            }
            Ticket::Edit { stub, shard, reply } => {
                self.answer(reply, Answer::Changed);
                self.forget(stub.seq);
                self.reread(shard);
            }
            Ticket::Queue { reply, pausing } => {
                self.answer(reply, Answer::Changed);
                self.pause_over(pausing);
            }
            Ticket::Schedule { reply, .. } => {
                let answer = match refused.why {
                    // Its name is taken. (Of a later write it says that an occurrence exists.)
                    Refusal::Exists if refused.index == 0 => {
                        Answer::Refused { index: 0, why: refused.why }
                    }
                    _ => Answer::Changed,
                };
                if let Some(reply) = reply {
                    self.answer(reply, answer);
                }
                stale.extend(shards);
            }
            Ticket::Close { reply, .. } => {
                if let Some(reply) = reply {
                    self.answer(reply, Answer::Changed);
                }
                stale.extend(shards);
            }
            Ticket::Task { shard, .. } => stale.push(shard),
            Ticket::TakeIn { .. } | Ticket::Nobody | Ticket::Spill(_) => stale.extend(shards),
        }
    }

    /// Takes out of the outbox what rests on the shard's memory, which is about to be dropped.
    /// Answers the other shards that it rests on too.
    pub(crate) fn purge_outbox(&mut self, shard: Shard) -> Vec<Shard> {
        let outbox = std::mem::take(&mut self.batches.outbox);
        let waiting = std::mem::take(&mut self.batches.waiting);
        (self.batches.outbox_writes, self.batches.waiting_writes) = (0, 0);
        let mut others = Vec::new();
        for (unit, ticket) in outbox.into_iter().chain(waiting) {
            let rests_on_memory = match &ticket {
                Ticket::Close { .. }
                | Ticket::CloseAway { .. }
                | Ticket::Edit { .. }
                | Ticket::Schedule { .. }
                | Ticket::TakeIn { .. }
                | Ticket::Spill(_) => true,
                Ticket::Accept { replaced, .. } => replaced.is_some(),
                Ticket::Nobody
                | Ticket::Task { .. }
                | Ticket::Redrive { .. }
                | Ticket::Queue { .. } => false,
            };
            if rests_on_memory && unit.fences.iter().any(|f| f.0 == shard) {
                others.extend(unit.fences.iter().map(|f| f.0).filter(|s| *s != shard));
                if let Some(reply) = ticket.reply() {
                    self.refuse(reply, Unavailable::NotOwner);
                }
            } else {
                self.write(unit, ticket);
            }
        }
        others.sort();
        others.dedup();
        others
    }
}

/// The shards that units write to, each once.
fn shards_of(units: &[Unit]) -> Vec<Shard> {
    let mut shards: Vec<Shard> = units.iter().flat_map(|u| u.fences.iter().map(|f| f.0)).collect();
    shards.sort();
    shards.dedup();
    shards
}

impl Ticket {
    fn planned(&self) -> Option<Planned> {
        match self {
            Ticket::Task { planned, .. }
            | Ticket::Close { planned, .. }
            | Ticket::CloseAway { planned, .. }
            | Ticket::Schedule { planned, .. } => *planned,
            _ => None,
        }
    }

    fn reply(&self) -> Option<ReplyId> {
        match self {
            Ticket::Nobody | Ticket::Spill(_) | Ticket::TakeIn { .. } | Ticket::Task { .. } => None,
            Ticket::Close { reply, .. } | Ticket::Schedule { reply, .. } => *reply,
            Ticket::Accept { reply, .. }
            | Ticket::CloseAway { reply, .. }
            | Ticket::Edit { reply, .. }
            | Ticket::Redrive { reply }
            | Ticket::Queue { reply, .. } => Some(*reply),
        }
    }
}

impl Planned {
    /// With the row of the occurrence that was inserted.
    fn with_seq(mut self, done: &[Done]) -> Planned {
        self.seq = self.insert.and_then(|i| match done.get(i) {
            Some(Done::Inserted(seq)) => Some(*seq),
            _ => None,
        });
        self
    }
}

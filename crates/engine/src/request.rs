//! What clients ask: create, cancel, change, try again; and queues.
//!
//! A task to which a change is being written is held: it cannot start until the outcome is
//! known, so an answer of success is never overtaken by a start.

use tourbillon_store::queries::Located;
use tourbillon_store::time::MILLI;
use tourbillon_store::{
    NewTask, QueueRecord, Seq, Shard, State, Stub, Task, TaskSpec, Time, Unit, Write,
};

use crate::api::{Answer, Effect, ReplyId, Request, Unavailable};
use crate::attempt::{Stage, Waiter};
use crate::batch::{Later, Ticket};
use crate::engine::{Engine, Place};

impl Engine {
    // ---- creation -----------------------------------------------------------------------

    pub(crate) fn accept(
        &mut self,
        reply: ReplyId,
        tasks: Vec<NewTask>,
        replaces: Option<Located>,
    ) {
        if self.draining {
            return self.refuse(reply, Unavailable::Draining);
        }
        let waiting = self.batches.pending_writes();
        if waiting > 0 && waiting + tasks.len() > self.cfg.max_pending_writes {
            return self.refuse(reply, Unavailable::Overloaded);
        }
        let replaces = match replaces {
            Some(old) if self.may_be_new(old.seq, old.shard) => {
                return self.batches.ask_later(Later::Accept(reply, tasks, old));
            }
            other => other,
        };
        let mut fences = Vec::new();
        for task in &tasks {
            if fences.iter().any(|(shard, _)| *shard == task.shard) {
                continue;
            }
            match self.fence(task.shard) {
                Some(fence) => fences.push(fence),
                None => return self.refuse(reply, Unavailable::NotOwner),
            }
        }
        let mut writes = Vec::with_capacity(tasks.len() + 1);
        let mut replaced = None;
        if let Some(old) = replaces {
            if !self.shards[old.shard.index()].is_active() {
                return self.refuse(reply, Unavailable::NotOwner);
            }
            if self.running.contains_key(&old.seq) {
                return self.answer(reply, Answer::Running);
            }
            if self.is_held(old.seq) {
                return self.answer(reply, Answer::Changed);
            }
            let held = self.hold(old.seq);
            if held.is_none() {
                self.hold_away(old.seq, old.version, old.partition, old.shard);
            }
            let version = held.map_or(old.version, |stub| stub.version);
            writes.push(Write::Close {
                seq: old.seq,
                version,
                to: State::Cancelled,
                at: self.now.store,
                reason: Some("replaced".to_owned()),
                skipped: None,
            });
            replaced = Some((old.seq, old.shard, old.partition));
        }
        writes.extend(tasks.into_iter().map(|task| Write::Insert(Box::new(task))));
        self.write(Unit { fences, writes }, Ticket::Accept { reply, replaced });
    }

    /// Whether the batch in flight may have created this task, so that nothing is known of it
    /// yet, as what occurrence of which schedule it is.
    fn may_be_new(&self, seq: Seq, shard: Shard) -> bool {
        self.batches.in_flight(shard)
            && !self.resident.contains_key(&seq)
            && !self.running.contains_key(&seq)
            && self.schedules.of(seq).is_none()
    }

    fn is_held(&self, seq: Seq) -> bool {
        self.resident.get(&seq).is_some_and(|r| r.place == Place::Held)
    }

    // ---- requests -----------------------------------------------------------------------

    pub(crate) fn request(&mut self, reply: ReplyId, request: Request) {
        let about = match &request {
            Request::Cancel { at } => Some((at.seq, at.shard)),
            Request::Edit { task, .. } => Some((task.seq, task.shard)),
            _ => None,
        };
        if about.is_some_and(|(seq, shard)| self.may_be_new(seq, shard)) {
            return self.batches.ask_later(Later::Request(reply, request));
        }
        match request {
            Request::Cancel { at } => self.cancel(reply, &at),
            Request::Edit { task, due, spec, unstarted } => {
                self.edit(reply, &task, due, spec, unstarted);
            }
            Request::Redrive { at, namespace, due } => {
                let Some(fence) = self.active_fence(at.shard) else {
                    return self.refuse(reply, Unavailable::NotOwner);
                };
                let write = Write::Redrive { namespace, id: at.id, due: due.ceil_milli() };
                let unit = Unit { fences: vec![fence], writes: vec![write] };
                self.write(unit, Ticket::Redrive { reply });
            }
            Request::PutQueue(record) => self.put_queue(reply, record),
            Request::PutSchedule(record) => self.put_schedule(reply, record),
            Request::DeleteSchedule { shard, uid } => self.delete_schedule(reply, shard, uid),
            Request::PauseSchedule { shard, uid, paused } => {
                self.pause_schedule(reply, shard, uid, paused);
            }
            Request::AwaitCalendars => self.await_calendars(reply),
            Request::Backfill { shard, uid, change } => {
                self.change_backfill(reply, shard, uid, change);
            }
            Request::TriggerSchedule { shard, uid, id } => {
                self.trigger_schedule(reply, shard, uid, id);
            }
        }
    }

    pub(crate) fn active_fence(
        &self,
        shard: tourbillon_store::Shard,
    ) -> Option<(tourbillon_store::Shard, tourbillon_store::Epoch)> {
        if self.shards[shard.index()].is_active() { self.fence(shard) } else { None }
    }

    fn cancel(&mut self, reply: ReplyId, at: &Located) {
        let seq = at.seq;
        let Some(fence) = self.active_fence(at.shard) else {
            return self.refuse(reply, Unavailable::NotOwner);
        };
        if self.running.contains_key(&seq) {
            return self.cancel_running(reply, seq);
        }
        if self.is_held(seq) || at.state != State::Scheduled {
            return self.answer(reply, Answer::Changed);
        }
        let held = self.hold(seq);
        if held.is_none() {
            self.hold_away(seq, at.version, at.partition, at.shard);
        }
        let version = held.map_or(at.version, |stub| stub.version);
        let close = Write::Close {
            seq,
            version,
            to: State::Cancelled,
            at: self.now.store,
            reason: None,
            skipped: None,
        };
        let mut unit = Unit { fences: vec![fence], writes: vec![close] };
        let planned = self.plan_after_close(seq, &mut unit);
        let ticket = match held {
            Some(stub) => Ticket::Close {
                seq,
                stub,
                shard: at.shard,
                to: State::Cancelled,
                reply: Some(reply),
                planned,
            },
            None => {
                Ticket::CloseAway { seq, shard: at.shard, partition: at.partition, reply, planned }
            }
        };
        self.write(unit, ticket);
    }

    /// Asks a running attempt to stop for good. The answer waits until that is durable.
    fn cancel_running(&mut self, reply: ReplyId, seq: Seq) {
        let Some(running) = self.running.get_mut(&seq) else { return };
        if matches!(running.stage, Stage::Over(_)) {
            // It has ended; what it becomes is being written.
            return self.answer(reply, Answer::Changed);
        }
        running.waiters.push(Waiter::Cancel(reply));
        self.stop_running(seq);
    }

    /// Has an attempt stopped, and the task cancelled when it has ended.
    pub(crate) fn stop_running(&mut self, seq: Seq) {
        let Some(running) = self.running.get_mut(&seq) else { return };
        if running.cancel {
            // Already asked. Whoever waits is told now, or when that is durable.
            return self.tell_if_cancel_is_recorded(seq);
        }
        running.cancel = true;
        let nonce = running.open.nonce;
        if running.is_executing_here() {
            self.effects.push(Effect::Stop { seq, nonce });
        }
        self.mark_dirty(seq, true);
    }

    fn edit(
        &mut self,
        reply: ReplyId,
        task: &Task,
        due: Time,
        spec: Box<TaskSpec>,
        unstarted: bool,
    ) {
        let (seq, version, shard) = (task.seq, task.version, task.shard);
        let Some(fence) = self.active_fence(shard) else {
            return self.refuse(reply, Unavailable::NotOwner);
        };
        if self.running.contains_key(&seq) {
            return self.answer(reply, Answer::Running);
        }
        if self.is_held(seq) || self.resident.get(&seq).is_some_and(|r| r.stub.version != version) {
            return self.answer(reply, Answer::Changed);
        }
        if unstarted && task.attempt > 0 {
            return self.answer(reply, Answer::Started);
        }
        if self.hold(seq).is_none() {
            self.hold_away(seq, version, task.partition, shard);
        }
        let due = due.ceil_milli();
        // The store keeps these whatever the new definition says.
        let spec = Box::new(TaskSpec {
            key: task.spec.key.clone(),
            concurrency_key: task.spec.concurrency_key.clone(),
            ..*spec
        });
        let stub = Stub::new(
            seq,
            version + 1,
            due,
            task.partition,
            &spec,
            task.schedule.as_ref(),
            task.attempt,
            task.lost,
        );
        let write = Write::Edit { seq, version, due, spec };
        let unit = Unit { fences: vec![fence], writes: vec![write] };
        self.write(unit, Ticket::Edit { stub, shard, reply });
    }

    /// A pause holds from now on, also while it is being written: if the write fails, the
    /// queue goes on as it was.
    fn put_queue(&mut self, reply: ReplyId, record: Box<QueueRecord>) {
        let pausing = record.config.paused.then_some(record.id);
        if let Some(queue) = pausing {
            self.pause_begins(queue);
        }
        let unit = Unit { fences: Vec::new(), writes: vec![Write::PutQueue { record }] };
        self.write(unit, Ticket::Queue { reply, pausing });
    }

    /// Tasks of a queue that are being read for their start go back: it was paused.
    pub(crate) fn unfetch(&mut self, queue: tourbillon_store::QueueId) {
        let mut seqs: Vec<Seq> = self
            .resident
            .iter()
            .filter(|(_, r)| {
                r.stub.partition.queue == queue && matches!(r.place, Place::Fetching(..))
            })
            .map(|(seq, _)| *seq)
            .collect();
        seqs.sort();
        for seq in seqs {
            self.hold(seq);
            self.make_ready(seq);
        }
    }

    /// Longest time a client should wait before it asks again, in microseconds, when refused.
    pub fn retry_after(&self) -> i64 {
        let waiting = self.batches.pending_writes() as i64;
        // A batch of 8,000 takes about 100 ms.
        (waiting / 80 * MILLI).clamp(100 * MILLI, 5_000 * MILLI)
    }
}

//! An attempt's life: begun, under way, ended, written.
//!
//! What the store must learn of a running task is not kept as a queue of writes but derived
//! when a batch is built, from what is recorded and what is true: a start that was not sent
//! before its end is one write, and a write that failed is simply derived again.

use tourbillon_store::{
    AttemptOutcome, AttemptRecord, Epoch, OpenAttempt, Output, Seq, Shard, State, Stub, StubFlags,
    Task, Then, Time, Unit, Write,
};
use tourbillon_wheel::{Key, TimerQueue};

use crate::api::{Answer, Effect, Ended, Notice, ReplyId, StartOrder, Unavailable};
use crate::batch::{Planned, Ticket};
use crate::engine::Engine;

/// A task whose attempt is under way, or has ended and is not yet written.
#[derive(Debug)]
pub(crate) struct Running {
    /// The task as the store has it after all writes handed out; its payload is not kept.
    pub(crate) task: Task,
    pub(crate) open: OpenAttempt,
    pub(crate) stage: Stage,
    /// Whether the store knows of the start.
    pub(crate) recorded: bool,
    /// Whether it is in the list of tasks with something to write.
    pub(crate) dirty: bool,
    /// Whether it is to be stopped for good, and whether the store knows.
    pub(crate) cancel: bool,
    cancel_recorded: bool,
    /// News of a worker's progress that the store does not know.
    pub(crate) progress: Option<String>,
    /// Whether it counts against its partition's limits.
    pub(crate) has_slot: bool,
    /// Bytes of its payload and definition, and whether they are counted against the bound.
    bytes: u32,
    bytes_counted: bool,
    pub(crate) is_worker: bool,
    /// The timer of a worker's claim.
    pub(crate) claim_timer: Option<Key>,
    /// Who waits for the next write about it.
    pub(crate) waiters: Vec<Waiter>,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// Its start must be durable before it begins; then it is handed out.
    Starting(Box<StartOrder>, Option<ReplyId>),
    /// It is under way.
    Executing,
    /// It is over.
    Over(Box<Over>),
}

/// How an attempt ended and what becomes of its task.
#[derive(Debug)]
pub(crate) struct Over {
    attempt: AttemptRecord,
    output: Option<Box<Output>>,
    then: Then,
}

/// Who waits for a write about a running task.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Waiter {
    /// A cancellation.
    Cancel(ReplyId),
    /// One attempt of a completion.
    Complete(ReplyId, usize),
}

impl Running {
    /// Whether this node's own target makes the attempt now.
    pub(crate) fn is_executing_here(&self) -> bool {
        !self.is_worker && matches!(self.stage, Stage::Executing)
    }
}

/// What a batch says of a running task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrote {
    writes: u32,
    started: bool,
    cancel: bool,
    ended: bool,
}

impl Engine {
    /// Begins an attempt of a task that was just read.
    pub(crate) fn begin(&mut self, mut task: Task, stub: Stub, claim: Option<ReplyId>) {
        let seq = task.seq;
        if let Some(key) = self.resident.remove(&seq).and_then(|r| r.expiry) {
            self.wheel.cancel(key);
        }
        // What a reload says of a payload is nothing; now it is known.
        let bytes = task.spec.weight();
        self.payload_bytes =
            self.payload_bytes.saturating_sub(u64::from(stub.bytes)) + u64::from(bytes);
        let shard = task.shard;
        let epoch = self.shards[shard.index()].epoch().unwrap_or(Epoch(0));
        let is_worker = stub.flags.has(StubFlags::WORKER);
        let timeout = self.timeout_of(&task);
        let open = OpenAttempt {
            n: task.attempt + 1,
            nonce: self.rng.next(),
            epoch,
            node: self.cfg.node.clone(),
            worker: claim.and_then(|reply| self.claim_worker(reply)),
            due: task.due,
            ready_at: task.due.max(task.created_at),
            started_at: self.now.store,
            claim_until: is_worker.then(|| self.now.store.plus(timeout)),
        };
        let order = Box::new(StartOrder { task: task.clone(), open: open.clone(), timeout });
        task.spec.payload = None;
        let durable_first = is_worker
            || stub.flags.has(StubFlags::DURABLE_START)
            || self.may_have_been_started(shard, &task);
        let stage = if durable_first {
            Stage::Starting(order, claim)
        } else {
            self.effects.push(Effect::Start(order));
            Stage::Executing
        };
        let running = Running {
            task,
            open,
            stage,
            recorded: false,
            dirty: false,
            cancel: false,
            cancel_recorded: false,
            progress: None,
            has_slot: true,
            bytes,
            bytes_counted: true,
            is_worker,
            claim_timer: None,
            waiters: Vec::new(),
        };
        self.publish(&running.task, State::Running, running.open.n);
        self.running.insert(seq, running);
        self.occurrence_started(seq);
        self.mark_dirty(seq, durable_first);
    }

    /// Longest attempt of a task: its own, its queue's, or its target's default.
    fn timeout_of(&self, task: &Task) -> i64 {
        use tourbillon_store::task::Target;
        let queue = self.queues.get(&task.partition.queue);
        task.spec.timeout.or_else(|| queue.and_then(|q| q.config.timeout)).unwrap_or(
            match task.spec.target {
                Target::Http(_) => self.cfg.http_timeout,
                Target::Command(_) => self.cfg.command_timeout,
                Target::Worker => self.cfg.claim_timeout,
            },
        )
    }

    /// How long a worker's claim on this running task holds from its last sign of life.
    pub(crate) fn claim_period(&self, seq: Seq) -> i64 {
        self.running.get(&seq).map_or(self.cfg.claim_timeout, |r| self.timeout_of(&r.task))
    }

    /// An attempt of this node has ended.
    pub(crate) fn ended(&mut self, ended: Ended) {
        let matches = self
            .running
            .get(&ended.seq)
            .is_some_and(|r| r.open.nonce == ended.nonce && !matches!(r.stage, Stage::Over(_)));
        if !matches {
            return;
        }
        let held = |r: &Running| self.shards[r.task.shard.index()].epoch().is_some();
        if self.running.get(&ended.seq).is_some_and(held) {
            self.attempt_over(ended);
        } else {
            // Its shard is another's, who takes it for lost.
            self.drop_running(ended.seq);
        }
    }

    /// The attempt is over: decides what becomes of the task, frees its slot, has it written.
    pub(crate) fn attempt_over(&mut self, ended: Ended) {
        let seq = ended.seq;
        let Some(running) = self.running.get(&seq) else { return };
        let then = self.decide(running, &ended);
        let now = self.now.store;
        let Some(running) = self.running.get_mut(&seq) else { return };
        let open = &running.open;
        let (output_bytes, output_truncated) =
            ended.output.as_ref().map_or((0, false), |o| (o.total, o.is_truncated()));
        let attempt = AttemptRecord {
            n: open.n,
            outcome: ended.outcome,
            fence: open.fence(),
            node: open.node.clone(),
            worker: open.worker.clone(),
            due: open.due,
            ready_at: open.ready_at,
            started_at: open.started_at,
            ended_at: now.max(open.started_at),
            error: ended.error,
            http_status: ended.http_status,
            exit_code: ended.exit_code,
            result: ended.result,
            output_bytes,
            output_truncated,
        };
        running.stage = Stage::Over(Box::new(Over { attempt, output: ended.output, then }));
        self.release_slot(seq);
        self.mark_dirty(seq, false);
    }

    fn release_slot(&mut self, seq: Seq) {
        let Some(running) = self.running.get_mut(&seq) else { return };
        if std::mem::take(&mut running.bytes_counted) {
            self.payload_bytes = self.payload_bytes.saturating_sub(u64::from(running.bytes));
        }
        if let Some(key) = running.claim_timer.take() {
            self.wheel.cancel(key);
        }
        if running.has_slot {
            running.has_slot = false;
            let (partition, hash) = (running.task.partition, running.task.spec.concurrency_hash());
            self.free_slot(partition, hash);
        }
    }

    /// What becomes of a task whose attempt ended so.
    fn decide(&self, running: &Running, ended: &Ended) -> Then {
        let task = &running.task;
        let finish = |to, reason: &str| Then::Finish {
            to,
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
        };
        if ended.outcome == AttemptOutcome::Succeeded {
            return finish(State::Succeeded, "");
        }
        if running.cancel {
            return finish(State::Cancelled, "");
        }
        if ended.outcome == AttemptOutcome::Released {
            return Then::Again { due: running.open.due };
        }
        if task.spec.at_most_once && ended.outcome == AttemptOutcome::Lost {
            return finish(State::Failed, "its attempt was lost, and it runs at most once");
        }
        let queue = self.queues.get(&task.partition.queue).map(|q| &q.config.retry);
        let own = &task.spec.retry;
        let now = self.now.store;
        if ended.outcome == AttemptOutcome::Lost {
            let max = own.max_lost.or(queue.and_then(|q| q.max_lost)).unwrap_or(self.cfg.max_lost);
            return if task.lost + 1 >= max {
                finish(State::Failed, "too many attempts were lost")
            } else {
                Then::Again { due: now.ceil_milli() }
            };
        }
        if ended.reject {
            return finish(State::Failed, "the target refused it for good");
        }
        let max_attempts = match own.max_attempts {
            Some(n) => n,
            None if task.spec.at_most_once => 1,
            None => queue.and_then(|q| q.max_attempts).unwrap_or(self.cfg.max_attempts),
        };
        // This one counts, and those before it that were neither lost nor released.
        let counted = running.open.n.saturating_sub(task.lost).saturating_sub(task.released);
        if counted >= max_attempts {
            return finish(State::Failed, "the attempts are used up");
        }
        let wait = match ended.retry_in {
            Some(wait) => wait.max(0),
            None => {
                let backoff = own
                    .backoff
                    .as_ref()
                    .or(queue.and_then(|q| q.backoff.as_ref()))
                    .unwrap_or(&self.cfg.backoff);
                let wait = backoff.wait(counted);
                // The draw is a pure function of attempt and nonce, so deciding needs no state.
                if backoff.full_jitter {
                    crate::rng::Rng::new(running.open.nonce ^ u64::from(counted)).up_to(wait)
                } else {
                    wait
                }
            }
        };
        let due = now.plus(wait).ceil_milli();
        let give_up = own.give_up_after.or(queue.and_then(|q| q.give_up_after));
        if give_up.is_some_and(|after| due > task.first_due.plus(after)) {
            return finish(State::Failed, "the time to give up has come");
        }
        Then::Again { due }
    }

    /// There is something to write about a running task; `urgent` when somebody waits for it.
    pub(crate) fn mark_dirty(&mut self, seq: Seq, urgent: bool) {
        let Some(running) = self.running.get_mut(&seq) else { return };
        if !running.dirty {
            running.dirty = true;
            self.batches.push_dirty(seq, self.now.mono);
        }
        if urgent {
            self.batches.urgent = true;
        }
    }

    /// The writes that the store lacks about a running task, if its shard is held.
    pub(crate) fn derive_writes(&mut self, seq: Seq) -> Option<(Unit, Ticket)> {
        let running = self.running.get_mut(&seq)?;
        if !std::mem::take(&mut running.dirty) {
            // It was listed twice.
            return None;
        }
        let shard = running.task.shard;
        if !self.shards[shard.index()].is_active() {
            // The reload marks it again when it has reconciled.
            return None;
        }
        let fence = self.fence(shard)?;
        let running = self.running.get_mut(&seq)?;
        let mut version = running.task.version;
        let mut writes = Vec::with_capacity(2);
        let mut wrote = Wrote { writes: 0, started: false, cancel: false, ended: false };
        let finishing = match &running.stage {
            Stage::Over(over) => {
                // What it reported just before its end.
                if let Some(progress) = running.progress.take().filter(|_| running.recorded) {
                    writes.push(Write::Progress {
                        seq,
                        version,
                        claim_until: running.open.claim_until,
                        progress: Some(progress),
                    });
                    version += 1;
                }
                writes.push(Write::End {
                    seq,
                    version,
                    attempt: Box::new(over.attempt.clone()),
                    output: over.output.clone(),
                    then: over.then.clone(),
                });
                wrote.ended = true;
                wrote.started = !running.recorded;
                matches!(over.then, Then::Finish { .. })
            }
            _ => {
                if !running.recorded {
                    writes.push(Write::Start {
                        seq,
                        version,
                        open: Box::new(running.open.clone()),
                    });
                    version += 1;
                    wrote.started = true;
                }
                if running.cancel && !running.cancel_recorded {
                    writes.push(Write::RequestCancel { seq, version });
                    version += 1;
                    wrote.cancel = true;
                }
                if let Some(progress) = running.progress.take() {
                    writes.push(Write::Progress {
                        seq,
                        version,
                        claim_until: running.open.claim_until,
                        progress: Some(progress),
                    });
                }
                false
            }
        };
        if writes.is_empty() {
            return None;
        }
        wrote.writes = writes.len() as u32;
        let mut unit = Unit { fences: vec![fence], writes };
        let started = wrote.started;
        let planned = self.plan_after_run(seq, started, finishing, &mut unit);
        Some((unit, Ticket::Task { seq, shard, wrote, planned }))
    }

    /// A batch that spoke of a running task was committed.
    pub(crate) fn task_written(&mut self, seq: Seq, wrote: Wrote, planned: Option<Planned>) {
        self.plan_done(planned);
        let Some(running) = self.running.get_mut(&seq) else { return };
        running.task.version += wrote.writes;
        running.recorded |= wrote.started;
        running.cancel_recorded |= wrote.cancel;
        if wrote.started {
            running.task.attempt = running.task.attempt.max(running.open.n);
        }
        if wrote.cancel || wrote.ended {
            self.notify(seq, wrote.ended);
        }
        if wrote.ended {
            self.finish(seq);
        } else if wrote.started {
            self.start_is_durable(seq);
            self.occurrence_recorded(seq);
        }
    }

    /// Tells who waited for what is durable now: a cancellation, and with `over` the end.
    fn notify(&mut self, seq: Seq, over: bool) {
        let Some(running) = self.running.get_mut(&seq) else { return };
        let mut keep = Vec::new();
        let mut tell = Vec::new();
        for waiter in running.waiters.drain(..) {
            match waiter {
                Waiter::Complete(..) if !over => keep.push(waiter),
                other => tell.push(other),
            }
        }
        running.waiters = keep;
        for waiter in tell {
            match waiter {
                Waiter::Cancel(reply) => self.answer(reply, Answer::Cancelling),
                Waiter::Complete(reply, index) => self.complete_item_done(reply, index),
            }
        }
    }

    /// Another cancellation of a task that is being stopped: told at once when the first is
    /// durable, else with it.
    pub(crate) fn tell_if_cancel_is_recorded(&mut self, seq: Seq) {
        if self.running.get(&seq).is_some_and(|r| r.cancel_recorded) {
            self.notify(seq, false);
        }
    }

    /// A start that had to be durable first is: hand the attempt out.
    fn start_is_durable(&mut self, seq: Seq) {
        let Some(running) = self.running.get_mut(&seq) else { return };
        let Stage::Starting(..) = running.stage else { return };
        let Stage::Starting(order, claim) = std::mem::replace(&mut running.stage, Stage::Executing)
        else {
            return;
        };
        let (nonce, shard, cancelled) = (running.open.nonce, running.task.shard, running.cancel);
        let partition = running.task.partition;
        let paused = self.share(partition).is_some_and(|share| share.paused);
        if cancelled {
            if let Some(reply) = claim {
                self.claim_item_gone(reply);
            }
            self.attempt_over(Ended::new(seq, nonce, AttemptOutcome::Cancelled));
            return;
        }
        if paused || !self.may_start(shard) {
            if let Some(reply) = claim {
                self.claim_item_gone(reply);
            }
            self.attempt_over(Ended::new(seq, nonce, AttemptOutcome::Released));
            return;
        }
        match claim {
            None => self.effects.push(Effect::Start(order)),
            Some(reply) => {
                // The claim's period counts from when the worker gets it.
                let until = self.now.store.plus(order.timeout);
                self.arm_claim(seq, until);
                self.claim_item_ready(reply, *order);
            }
        }
    }

    /// An attempt's end is written: the task goes to history or waits again.
    fn finish(&mut self, seq: Seq) {
        let Some(running) = self.running.remove(&seq) else { return };
        let Stage::Over(over) = running.stage else { return };
        let mut task = running.task;
        let (shard, queue) = (task.shard, task.partition.queue);
        self.tombstone(shard, task.partition, seq);
        self.tally.attempt(shard, queue, &task.spec.kind, &over.attempt);
        match over.then {
            Then::Finish { to, .. } => {
                self.tally.finished(shard, over.attempt.ended_at, queue, &task.spec.kind, to);
                self.publish(&task, to, over.attempt.n);
                self.occurrence_over(seq);
            }
            Then::Again { due } => {
                match over.attempt.outcome {
                    AttemptOutcome::Lost => task.lost += 1,
                    AttemptOutcome::Released => task.released += 1,
                    _ => {}
                }
                task.attempt = task.attempt.max(over.attempt.n);
                task.due = due;
                self.publish(&task, State::Scheduled, over.attempt.n);
                let mut stub = task.stub();
                stub.bytes = stub.bytes.max(running.bytes);
                self.occurrence_again(seq, stub.version, stub.attempt);
                self.settle(shard, stub);
            }
        }
    }

    pub(crate) fn publish(&mut self, task: &Task, state: State, attempt: u32) {
        if self.cfg.publish {
            self.effects.push(Effect::Publish(Notice {
                at: self.now.store,
                id: task.id,
                queue: task.partition.queue,
                kind: task.spec.kind.clone(),
                state,
                attempt,
            }));
        }
    }

    // ---- after a takeover or a reload -----------------------------------------------------

    /// Brings what runs here and what the store says runs together.
    pub(crate) fn reconcile(
        &mut self,
        shard: Shard,
        probe: &[Seq],
        probed: Vec<Option<Task>>,
        rows: Vec<Task>,
    ) {
        for (seq, row) in probe.iter().zip(probed) {
            let Some(running) = self.running.get_mut(seq) else { continue };
            if running.task.shard != shard {
                continue;
            }
            let n = running.open.n;
            let ours = match &row {
                // Its end was committed and the answer lost, or it was never ours.
                None => None,
                Some(row) if row.state == State::Running => {
                    let same = row.open.as_ref().is_some_and(|o| o.nonce == running.open.nonce);
                    same.then_some(true)
                }
                // Its start was not committed, unless the attempt is counted already.
                Some(row) => (row.attempt < n).then_some(false),
            };
            match (ours, row) {
                (Some(recorded), Some(row)) => {
                    running.recorded = recorded;
                    running.cancel_recorded = row.cancel_requested;
                    running.task.version = row.version;
                    self.occurrence_started(*seq);
                    self.mark_dirty(*seq, true);
                    if recorded {
                        // Its commit was not known to have happened.
                        self.start_is_durable(*seq);
                    }
                }
                _ => self.abandon(*seq),
            }
        }
        for row in rows {
            if !self.running.contains_key(&row.seq) {
                self.adopt(row);
            }
        }
    }

    /// A running entry that the store does not know any more: stop it, keep nothing.
    fn abandon(&mut self, seq: Seq) {
        let Some(running) = self.running.get(&seq) else { return };
        let nonce = running.open.nonce;
        let over = matches!(running.stage, Stage::Over(_));
        if running.is_executing_here() {
            self.effects.push(Effect::Stop { seq, nonce });
        }
        let Some(running) = self.remove_running(seq) else { return };
        for waiter in running.waiters {
            match waiter {
                Waiter::Cancel(reply) => self.answer(reply, Answer::Changed),
                // An end whose commit was unknown and that is gone from the live tables was
                // committed.
                Waiter::Complete(reply, index) if over => self.complete_item_done(reply, index),
                Waiter::Complete(reply, index) => self.complete_item_gone(reply, index),
            }
        }
    }

    /// Takes a running entry out of memory, giving back what it holds.
    fn remove_running(&mut self, seq: Seq) -> Option<Running> {
        if let Stage::Starting(_, Some(reply)) = &self.running.get(&seq)?.stage {
            let reply = *reply;
            self.claim_item_gone(reply);
        }
        self.release_slot(seq);
        self.running.remove(&seq)
    }

    /// What runs in a shard that was lost is the next owner's. Attempts that this node makes
    /// itself are remembered until they end: the shard may come back before.
    pub(crate) fn leave_running(&mut self, shard: Shard) {
        let of = self.running.iter().filter(|(_, r)| r.task.shard == shard);
        let mut seqs: Vec<Seq> = of.map(|(seq, _)| *seq).collect();
        seqs.sort();
        for seq in seqs {
            let Some(running) = self.running.get_mut(&seq) else { continue };
            if running.is_executing_here() {
                let waiters = std::mem::take(&mut running.waiters);
                self.send_away(waiters);
            } else {
                self.drop_running(seq);
            }
        }
    }

    /// Forgets a running task of a shard that is not held.
    fn drop_running(&mut self, seq: Seq) {
        if let Some(running) = self.remove_running(seq) {
            self.send_away(running.waiters);
        }
    }

    /// Who waits for a write that will not be made here may ask the shard's owner.
    fn send_away(&mut self, waiters: Vec<Waiter>) {
        for waiter in waiters {
            match waiter {
                Waiter::Cancel(reply) => self.refuse(reply, Unavailable::NotOwner),
                Waiter::Complete(reply, _) => self.complete_refused(reply),
            }
        }
    }

    /// A running attempt of an earlier owner. This node's kind of attempt died with its node; a
    /// worker's goes on and gets one full claim period.
    fn adopt(&mut self, row: Task) {
        let Some(open) = row.open.clone() else { return };
        let seq = row.seq;
        let nonce = open.nonce;
        let is_worker = row.spec.target == tourbillon_store::task::Target::Worker;
        let running = Running {
            cancel: row.cancel_requested,
            cancel_recorded: row.cancel_requested,
            open,
            stage: Stage::Executing,
            recorded: true,
            dirty: false,
            progress: None,
            has_slot: is_worker,
            bytes: 0,
            bytes_counted: false,
            is_worker,
            claim_timer: None,
            waiters: Vec::new(),
            task: row,
        };
        let (partition, shard) = (running.task.partition, running.task.shard);
        let hash = running.task.spec.concurrency_hash();
        self.running.insert(seq, running);
        let part = self.part(partition, shard);
        if is_worker {
            part.take_slot(hash);
            let until = self.now.store.plus(self.claim_period(seq));
            self.arm_claim(seq, until);
        } else {
            let mut ended = Ended::new(seq, nonce, AttemptOutcome::Lost);
            ended.error = Some("the node that made the attempt stopped".to_owned());
            self.attempt_over(ended);
        }
    }

    /// When an attempt that is under way may start being judged lost, for tests.
    #[doc(hidden)]
    pub fn claim_deadline(&self, seq: Seq) -> Option<Time> {
        self.running.get(&seq)?.open.claim_until
    }
}

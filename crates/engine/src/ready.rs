//! Which ready tasks start: by rank, within the queue's limits, judged and read just before.
//!
//! A partition is looked at when something about it changed (it is *flagged*): a task became
//! ready, a slot or a token became free, a limit changed, rows were loaded.

use tourbillon_store::time::MILLI;
use tourbillon_store::{Partition, Seq, State, StoreError, StubFlags, Task, Unit, Write};

use crate::api::{CallId, Effect, ReplyId};
use crate::batch::Ticket;
use crate::engine::{Engine, Place, Timer};
use crate::occurrence::Judgement;

/// Tasks read in one fetch.
const FETCH_MAX: usize = 512;

/// What a look at the first ready task said.
enum Look {
    /// Take it.
    Take,
    /// It left the line; look again.
    Again,
    /// Nothing more can start here now.
    Stop,
}

impl Engine {
    /// Starts what may start in the flagged partitions.
    pub(crate) fn start_ready(&mut self) {
        while let Some(partition) = self.flagged.pop() {
            if let Some(part) = self.parts.get_mut(&partition) {
                part.flagged = false;
            }
            if self.draining {
                continue;
            }
            self.start_partition(partition);
            if self.parts.get(&partition).is_some_and(|p| p.has_pull()) {
                self.serve_claims(partition.queue);
            }
        }
        while !self.fetch.is_empty() {
            let n = self.fetch.len().min(FETCH_MAX);
            let seqs = self.fetch.drain(..n).collect();
            let call = self.fetch_call();
            self.effects.push(Effect::Fetch { call, seqs });
        }
        self.next_fetch = None;
    }

    /// The number of the fetch that gathers in this step.
    fn fetch_call(&mut self) -> CallId {
        let call = self.next_fetch.unwrap_or_else(|| self.call());
        self.next_fetch = Some(call);
        call
    }

    pub(crate) fn fetch_count(&self) -> usize {
        self.resident.values().filter(|r| matches!(r.place, Place::Fetching(..))).count()
    }

    fn start_partition(&mut self, partition: Partition) {
        loop {
            let Some(part) = self.parts.get(&partition) else { return };
            let rank = part.first_push();
            if rank.is_none() && part.spill.is_none() {
                return;
            }
            let Some(rank) = rank.filter(|r| part.in_order(*r)) else {
                if part.spill.is_some() && self.may_start(part.shard) {
                    self.load_overdue(partition);
                }
                return;
            };
            match self.look(partition, rank.seq) {
                Look::Take => self.take(rank.seq, None),
                Look::Again => {}
                Look::Stop => return,
            }
        }
    }

    /// Whether a ready task may start now. May move it out of the line instead.
    fn look(&mut self, partition: Partition, seq: Seq) -> Look {
        let Some(stub) = self.resident.get(&seq).map(|r| r.stub) else {
            debug_assert!(false, "a ready task is resident");
            return Look::Stop;
        };
        let Some(share) = self.share(partition) else { return Look::Stop };
        let part = &self.parts[&partition];
        if share.paused || part.running >= share.concurrency || !self.may_start(part.shard) {
            return Look::Stop;
        }
        if stub.due > self.now.store {
            self.forget_place_and(seq, Engine::make_ready);
            return Look::Again;
        }
        if stub.expires <= self.now.store {
            self.expire(seq);
            return Look::Again;
        }
        if stub.flags.has(StubFlags::OCCURRENCE) {
            match self.judge(seq) {
                Judgement::Run => {}
                Judgement::Gone => return Look::Again,
            }
        }
        let part = self.parts.get_mut(&partition).expect("looked at above");
        if !part.key_has_room(stub.concurrency_hash, share.per_key) {
            part.block(&stub);
            return Look::Again;
        }
        if let Err(at) = part.rate_allows(&share, self.now.store) {
            if part.rate_timer.is_none() {
                let key = self.set_timer(at, Timer::Rate(partition));
                if let Some(part) = self.parts.get_mut(&partition) {
                    part.rate_timer = Some(key);
                }
            }
            return Look::Stop;
        }
        // An ended attempt has given its slot back; its end and its task are in memory until they
        // are written. Where targets are faster than the store, those must not pile up.
        let unsent = self.batches.unsent_attempts() >= self.cfg.max_unsent_attempts;
        let bytes = self.payload_bytes + u64::from(stub.bytes);
        if unsent || (bytes > self.cfg.max_payload_bytes && self.payload_bytes > 0) {
            self.starved.push(partition);
            return Look::Stop;
        }
        part.take_rate(&share, self.now.store);
        Look::Take
    }

    /// Looks again at the partitions that could not start for want of memory.
    pub(crate) fn feed_starved(&mut self) {
        for starved in std::mem::take(&mut self.starved) {
            self.flag(starved);
        }
    }

    /// Takes a resident task out of its place and hands it to `then`.
    fn forget_place_and(&mut self, seq: Seq, then: fn(&mut Engine, Seq)) {
        if let Some(stub) = self.resident.get(&seq).map(|r| r.stub)
            && let Some(part) = self.parts.get_mut(&stub.partition)
        {
            part.remove(&stub);
            self.unblock(&stub);
            then(self, seq);
        }
    }

    /// Takes a ready task's slot and has it read.
    pub(crate) fn take(&mut self, seq: Seq, claim: Option<ReplyId>) {
        let call = self.fetch_call();
        let Some(resident) = self.resident.get_mut(&seq) else { return };
        resident.place = Place::Fetching(call, claim);
        let stub = resident.stub;
        if let Some(part) = self.parts.get_mut(&stub.partition) {
            part.remove(&stub);
            part.take_slot(stub.concurrency_hash);
        }
        self.payload_bytes += u64::from(stub.bytes);
        self.fetch.push(seq);
    }

    /// For claims: the first task of these kinds that may start now, taken for `reply`.
    pub(crate) fn take_for_claim(
        &mut self,
        partition: Partition,
        kinds: &[u64],
        reply: ReplyId,
    ) -> bool {
        loop {
            let Some(part) = self.parts.get(&partition) else { return false };
            let Some(rank) = part.first_pull(kinds) else {
                if part.spill.is_some() && self.may_start(part.shard) {
                    self.load_overdue(partition);
                }
                return false;
            };
            if !part.in_order(rank) {
                if self.may_start(part.shard) {
                    self.load_overdue(partition);
                }
                return false;
            }
            match self.look(partition, rank.seq) {
                Look::Take => {
                    self.take(rank.seq, Some(reply));
                    return true;
                }
                Look::Again => {}
                Look::Stop => return false,
            }
        }
    }

    /// Gives a slot back and lets what waited for it go on.
    pub(crate) fn free_slot(&mut self, partition: Partition, key_hash: u64) {
        let Some(part) = self.parts.get_mut(&partition) else { return };
        if let Some(rank) = part.free_slot(key_hash) {
            self.back_to_ready(rank.seq);
        }
        self.flag(partition);
        self.feed_starved();
    }

    /// Its time to expire has passed before its first start.
    pub(crate) fn expire(&mut self, seq: Seq) {
        self.close_resident(seq, State::Expired, Some("expires_at passed".to_owned()));
    }

    /// Ends a resident task without an attempt, moving its schedule on.
    fn close_resident(&mut self, seq: Seq, to: State, reason: Option<String>) {
        let Some(stub) = self.hold(seq) else { return };
        let shard = self.parts[&stub.partition].shard;
        let Some(fence) = self.fence(shard) else { return };
        let close = Write::Close {
            seq,
            version: stub.version,
            to,
            at: self.now.store,
            reason,
            skipped: None,
        };
        let mut unit = Unit { fences: vec![fence], writes: vec![close] };
        let planned = self.plan_after_close(seq, &mut unit);
        self.write(unit, Ticket::Close { seq, stub, shard, to, reply: None, planned });
    }

    // ---- the answer to a fetch ----------------------------------------------------------

    pub(crate) fn fetched(
        &mut self,
        call: CallId,
        seqs: Vec<Seq>,
        result: Result<Vec<Option<Task>>, StoreError>,
    ) {
        let tasks = match result {
            Ok(tasks) => tasks,
            Err(_) => {
                let at = self.now.store.plus(100 * MILLI);
                for seq in seqs {
                    let Some(resident) = self.resident.get(&seq) else { continue };
                    if !matches!(resident.place, Place::Fetching(by, _) if by == call) {
                        continue;
                    }
                    if let Some(stub) = self.hold(seq) {
                        let key = self.set_timer(at, Timer::Due(seq));
                        if let Some(resident) = self.resident.get_mut(&seq) {
                            resident.place = Place::Wheel(key);
                        }
                        self.flag(stub.partition);
                    }
                }
                return;
            }
        };
        for (seq, task) in seqs.into_iter().zip(tasks) {
            let Some(resident) = self.resident.get(&seq) else { continue };
            // A late answer may be about a time before the task was taken anew.
            let Place::Fetching(by, claim) = resident.place else { continue };
            if by != call {
                continue;
            }
            let stub = resident.stub;
            let shard = self.parts[&stub.partition].shard;
            let unverified = resident.unverified;
            let task = task.filter(|t| t.state == State::Scheduled);
            if unverified && task.as_ref().is_none_or(|t| t.version != stub.version) {
                self.forget(seq);
                if let Some(task) = task {
                    self.settle(shard, task.stub());
                }
                continue;
            }
            let task = task.filter(|t| t.version == stub.version);
            let Some(task) = task else {
                // Memory and store disagree: memory is wrong.
                self.reload(shard);
                continue;
            };
            let expired = stub.expires <= self.now.store;
            if stub.due > self.now.store || expired || self.draining || !self.may_start(shard) {
                self.hold(seq);
                self.make_ready(seq);
                continue;
            }
            self.begin(task, stub, claim);
        }
    }
}

//! Workers: claims that wait, claims that are being filled, completions and signs of life.
//!
//! A claim is answered when every task taken for it has a durable start, so a worker never
//! holds an attempt that the store does not know.

use rustc_hash::FxHashMap;
use tourbillon_store::{AttemptOutcome, AttemptToken, Partition, QueueId, Seq, Time};
use tourbillon_wheel::{Key, TimerQueue};

use crate::api::{
    Answer, Beat, Claim, Completion, Ended, ReplyId, StartOrder, TokenState, Unavailable,
    WorkerOutcome,
};
use crate::attempt::{Running, Stage, Waiter};
use crate::engine::{Engine, Line, Timer};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    lines: FxHashMap<QueueId, Line<(ReplyId, Claim)>>,
    jobs: FxHashMap<ReplyId, Job>,
    completions: FxHashMap<ReplyId, Pending>,
    /// Until when claims wait.
    waits: FxHashMap<ReplyId, Key>,
}

/// A claim for which tasks were taken.
#[derive(Debug)]
struct Job {
    claim: Claim,
    /// Tasks whose start is not durable yet.
    open: usize,
    orders: Vec<StartOrder>,
    abandoned: bool,
}

/// A completion that waits for its writes.
#[derive(Debug)]
struct Pending {
    states: Vec<TokenState>,
    open: usize,
}

impl Workers {
    /// No claim waits longer than until `at`.
    pub(crate) fn wait_until_at_most(&mut self, at: Time) {
        let waiting = self.lines.values_mut().flatten().map(|(_, claim)| claim);
        let filling = self.jobs.values_mut().map(|job| &mut job.claim);
        for claim in waiting.chain(filling) {
            claim.wait_until = claim.wait_until.min(at);
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.lines.values().map(Line::len).sum()
    }
}

impl Engine {
    // ---- claims -------------------------------------------------------------------------

    pub(crate) fn claim(&mut self, reply: ReplyId, claim: Claim) {
        if self.draining {
            return self.refuse(reply, Unavailable::Draining);
        }
        let queue = claim.queue;
        let line = self.workers.lines.entry(queue).or_default();
        if line.len() >= self.cfg.max_waiting_claims {
            return self.refuse(reply, Unavailable::Overloaded);
        }
        let wait_until = claim.wait_until;
        line.push_back((reply, claim));
        self.serve_claims(queue);
        let still_waits =
            self.workers.lines.get(&queue).is_some_and(|l| l.iter().any(|(r, _)| *r == reply));
        if still_waits {
            if wait_until <= self.now.store {
                self.claim_waited(reply);
            } else {
                self.set_wait(reply, wait_until);
            }
        }
    }

    /// Gives ready tasks of a queue to the claims that wait, in order.
    pub(crate) fn serve_claims(&mut self, queue: QueueId) {
        if self.draining {
            return;
        }
        // While claims are served, things change that have them served again: once is enough.
        let Some(mut line) = self.workers.lines.remove(&queue) else { return };
        let mut partitions: Vec<Partition> = self
            .parts
            .iter()
            .filter(|(k, p)| k.queue == queue && (p.has_pull() || p.spill.is_some()))
            .map(|(k, _)| *k)
            .collect();
        partitions.sort();
        let mut waiting = Line::new();
        while let Some((reply, claim)) = line.pop_front() {
            let (max, kinds) = (claim.max, claim.kinds.clone());
            // One open item stands for the filling itself: what was taken may be gone before it
            // is done.
            let job = Job { claim, open: 1, orders: Vec::new(), abandoned: false };
            self.workers.jobs.insert(reply, job);
            let mut taken = 0;
            for &partition in &partitions {
                while taken < max && self.take_for_claim(partition, &kinds, reply) {
                    taken += 1;
                    if let Some(job) = self.workers.jobs.get_mut(&reply) {
                        job.open += 1;
                    }
                }
            }
            if taken > 0 {
                self.claim_item_gone(reply);
            } else if let Some(job) = self.workers.jobs.remove(&reply) {
                waiting.push_back((reply, job.claim));
            }
        }
        if !waiting.is_empty() {
            // A claim may have come back into the line meanwhile.
            let back = self.workers.lines.entry(queue).or_default();
            waiting.append(back);
            *back = waiting;
        }
    }

    fn set_wait(&mut self, reply: ReplyId, until: Time) {
        self.clear_wait(reply);
        let key = self.set_timer(until, Timer::ClaimWait(reply));
        self.workers.waits.insert(reply, key);
    }

    fn clear_wait(&mut self, reply: ReplyId) {
        if let Some(key) = self.workers.waits.remove(&reply) {
            self.wheel.cancel(key);
        }
    }

    /// After a step back, with a new wheel: every claim that waits waits until then.
    pub(crate) fn rearm_waits(&mut self, until: Time) {
        let mut replies: Vec<ReplyId> =
            std::mem::take(&mut self.workers.waits).into_keys().collect();
        replies.sort();
        for reply in replies {
            self.set_wait(reply, until);
        }
    }

    pub(crate) fn claim_waited(&mut self, reply: ReplyId) {
        self.workers.waits.remove(&reply);
        if self.leave_line(reply) {
            self.answer(reply, Answer::Claimed(Vec::new()));
        }
    }

    pub(crate) fn claim_abandoned(&mut self, reply: ReplyId) {
        self.clear_wait(reply);
        self.leave_line(reply);
        if let Some(job) = self.workers.jobs.get_mut(&reply) {
            job.abandoned = true;
        }
    }

    fn leave_line(&mut self, reply: ReplyId) -> bool {
        for line in self.workers.lines.values_mut() {
            if let Some(at) = line.iter().position(|(r, _)| *r == reply) {
                line.remove(at);
                return true;
            }
        }
        false
    }

    /// The worker for which a task was taken.
    pub(crate) fn claim_worker(&self, reply: ReplyId) -> Option<String> {
        self.workers.jobs.get(&reply).map(|job| job.claim.worker.clone())
    }

    /// A task's start is durable: it belongs to the worker.
    pub(crate) fn claim_item_ready(&mut self, reply: ReplyId, order: StartOrder) {
        if let Some(job) = self.workers.jobs.get_mut(&reply) {
            job.orders.push(order);
            job.open -= 1;
            self.claim_item_settled(reply);
        }
    }

    /// A task that was taken will not be the worker's.
    pub(crate) fn claim_item_gone(&mut self, reply: ReplyId) {
        if let Some(job) = self.workers.jobs.get_mut(&reply) {
            job.open -= 1;
            self.claim_item_settled(reply);
        }
    }

    fn claim_item_settled(&mut self, reply: ReplyId) {
        let Some(job) = self.workers.jobs.get(&reply) else { return };
        if job.open > 0 {
            return;
        }
        let Some(mut job) = self.workers.jobs.remove(&reply) else { return };
        self.clear_wait(reply);
        // The others may have taken long: what was lost meanwhile is not handed out, and each
        // claim's period counts from when the worker gets it.
        job.orders.retain(|order| self.is_open(order.task.seq, order.open.nonce));
        for order in &mut job.orders {
            let until = self.now.store.plus(order.timeout);
            self.arm_claim(order.task.seq, until);
            order.open.claim_until = Some(until);
        }
        if job.abandoned {
            // Nobody is there to take them: they go back.
            for order in job.orders {
                let nonce = order.open.nonce;
                let ended = Ended::new(order.task.seq, nonce, AttemptOutcome::Released);
                self.ended(ended);
            }
        } else if !job.orders.is_empty() || job.claim.wait_until <= self.now.store {
            self.answer(reply, Answer::Claimed(job.orders));
        } else {
            let queue = job.claim.queue;
            let wait_until = job.claim.wait_until;
            self.workers.lines.entry(queue).or_default().push_front((reply, job.claim));
            self.set_wait(reply, wait_until);
        }
    }

    // ---- claims that run out ----------------------------------------------------------------

    pub(crate) fn claim_ran_out(&mut self, seq: Seq, nonce: u64) {
        let Some(running) = self.running.get_mut(&seq) else { return };
        if running.open.nonce != nonce || !matches!(running.stage, Stage::Executing) {
            return;
        }
        running.claim_timer = None;
        let until = running.open.claim_until.unwrap_or(self.now.store);
        if until > self.now.store {
            // It was extended meanwhile.
            self.arm_claim(seq, until);
            return;
        }
        let mut ended = Ended::new(seq, nonce, AttemptOutcome::Lost);
        ended.error = Some("the claim ran out without a sign of life".to_owned());
        self.attempt_over(ended);
    }

    /// A worker's claim holds until then unless it is extended.
    pub(crate) fn arm_claim(&mut self, seq: Seq, until: Time) {
        let Some(running) = self.running.get_mut(&seq) else { return };
        running.open.claim_until = Some(until);
        let nonce = running.open.nonce;
        if let Some(key) = running.claim_timer.take() {
            self.wheel.cancel(key);
        }
        let key = self.set_timer(until, Timer::Claim(seq, nonce));
        if let Some(running) = self.running.get_mut(&seq) {
            running.claim_timer = Some(key);
        }
    }

    /// After a step of the clock, forward or back, a claim has a full period from now: that the
    /// clock was set says nothing about the worker. After a step back the old wheel with its
    /// timers is gone.
    pub(crate) fn renew_claims(&mut self, wheel_is_new: bool) {
        let claims = self.running.iter().filter(|(_, r)| r.claim_timer.is_some());
        let mut seqs: Vec<Seq> = claims.map(|(seq, _)| *seq).collect();
        seqs.sort();
        for seq in seqs {
            if wheel_is_new && let Some(running) = self.running.get_mut(&seq) {
                running.claim_timer = None;
            }
            let until = self.now.store.plus(self.claim_period(seq));
            self.arm_claim(seq, until);
        }
    }

    // ---- completions and heartbeats -----------------------------------------------------------

    /// Whether this attempt is under way.
    fn is_open(&self, seq: Seq, nonce: u64) -> bool {
        let under_way = |r: &Running| r.open.nonce == nonce && matches!(r.stage, Stage::Executing);
        self.running.get(&seq).is_some_and(under_way)
    }

    fn holds(&self, token: &AttemptToken) -> bool {
        self.running.get(&token.seq).is_some_and(|r| {
            r.is_worker
                && r.task.shard == token.shard
                && r.open.nonce == token.nonce
                && r.open.n == token.attempt
                && matches!(r.stage, Stage::Executing)
        })
    }

    /// Whether these attempts are known to be the workers', or not to be. Of a shard that is not
    /// held, or is being read, that is not known.
    fn knows(&self, mut tokens: impl Iterator<Item = AttemptToken>) -> bool {
        tokens.all(|t| self.shards[t.shard.index()].is_active() || self.holds(&t))
    }

    pub(crate) fn complete(&mut self, reply: ReplyId, items: Vec<Completion>) {
        if !self.knows(items.iter().map(|i| i.token)) {
            return self.refuse(reply, Unavailable::NotOwner);
        }
        let mut states = vec![TokenState::Gone; items.len()];
        let mut open = 0;
        for (index, item) in items.into_iter().enumerate() {
            if !self.holds(&item.token) {
                continue;
            }
            let seq = item.token.seq;
            let (outcome, reject, retry_in) = match item.outcome {
                WorkerOutcome::Succeeded => (AttemptOutcome::Succeeded, false, None),
                WorkerOutcome::Failed => (AttemptOutcome::Failed, false, None),
                WorkerOutcome::Retry(wait) => (AttemptOutcome::Failed, false, wait),
                WorkerOutcome::Reject => (AttemptOutcome::Failed, true, None),
                WorkerOutcome::Release => (AttemptOutcome::Released, false, None),
            };
            let mut ended = Ended::new(seq, item.token.nonce, outcome);
            ended.reject = reject;
            ended.retry_in = retry_in;
            ended.error = item.error;
            ended.result = item.result;
            ended.output = item.output;
            if let Some(running) = self.running.get_mut(&seq) {
                running.waiters.push(Waiter::Complete(reply, index));
            }
            states[index] = TokenState::Yours;
            open += 1;
            self.attempt_over(ended);
            self.batches.urgent = true;
        }
        if open == 0 {
            self.answer(reply, Answer::Tokens(states));
        } else {
            self.workers.completions.insert(reply, Pending { states, open });
        }
    }

    pub(crate) fn complete_item_done(&mut self, reply: ReplyId, index: usize) {
        self.complete_item(reply, index, TokenState::Yours);
    }

    pub(crate) fn complete_item_gone(&mut self, reply: ReplyId, index: usize) {
        self.complete_item(reply, index, TokenState::Gone);
    }

    fn complete_item(&mut self, reply: ReplyId, index: usize, state: TokenState) {
        let Some(pending) = self.workers.completions.get_mut(&reply) else { return };
        pending.states[index] = state;
        pending.open -= 1;
        if pending.open == 0
            && let Some(pending) = self.workers.completions.remove(&reply)
        {
            self.answer(reply, Answer::Tokens(pending.states));
        }
    }

    /// The shard of one of its attempts was lost before the end was written: all of it is to be
    /// sent again, to the owners.
    pub(crate) fn complete_refused(&mut self, reply: ReplyId) {
        if self.workers.completions.remove(&reply).is_some() {
            self.refuse(reply, Unavailable::NotOwner);
        }
    }

    pub(crate) fn heartbeat(&mut self, reply: ReplyId, items: Vec<Beat>) {
        if !self.knows(items.iter().map(|i| i.token)) {
            return self.refuse(reply, Unavailable::NotOwner);
        }
        let mut states = Vec::with_capacity(items.len());
        for beat in items {
            if !self.holds(&beat.token) {
                states.push(TokenState::Gone);
                continue;
            }
            let seq = beat.token.seq;
            let until = self.now.store.plus(self.claim_period(seq));
            let Some(running) = self.running.get_mut(&seq) else { continue };
            running.open.claim_until = Some(until);
            states.push(if running.cancel { TokenState::Cancelled } else { TokenState::Yours });
            if beat.progress.is_some() {
                running.progress = beat.progress;
                self.mark_dirty(seq, false);
            }
        }
        self.answer(reply, Answer::Tokens(states));
    }
}

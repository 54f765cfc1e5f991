//! Workers: claims that wait, claims that are being filled, completions and signs of life.
//!
//! A claim is answered when every task taken for it has a durable start, so a worker never
//! holds an attempt that the store does not know.

use rustc_hash::FxHashMap;
use tourbillon_store::{AttemptOutcome, AttemptToken, Partition, QueueId, Seq};

use crate::api::{
    Answer, Beat, Claim, Completion, Ended, ReplyId, StartOrder, TokenState, Unavailable,
    WorkerOutcome,
};
use crate::attempt::{Stage, Waiter};
use crate::engine::{Engine, Line, Timer};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    lines: FxHashMap<QueueId, Line<(ReplyId, Claim)>>,
    jobs: FxHashMap<ReplyId, Job>,
    completions: FxHashMap<ReplyId, Pending>,
    /// Partitions that wait for payload bytes.
    pub(crate) starved: Vec<Partition>,
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
                self.set_timer(wait_until, Timer::ClaimWait(reply));
            }
        }
    }

    /// Gives ready tasks of a queue to the claims that wait, in order.
    pub(crate) fn serve_claims(&mut self, queue: QueueId) {
        if self.draining {
            return;
        }
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
            let mut taken = 0;
            for &partition in &partitions {
                while taken < claim.max && self.take_for_claim(partition, &claim.kinds, reply) {
                    taken += 1;
                }
            }
            if taken > 0 {
                let orders = Vec::with_capacity(taken);
                let job = Job { claim, open: taken, orders, abandoned: false };
                self.workers.jobs.insert(reply, job);
            } else {
                waiting.push_back((reply, claim));
            }
        }
        if !waiting.is_empty() {
            // A claim may have come back into the line meanwhile.
            let back = self.workers.lines.entry(queue).or_default();
            waiting.append(back);
            *back = waiting;
        }
    }

    pub(crate) fn claim_waited(&mut self, reply: ReplyId) {
        if self.leave_line(reply) {
            self.answer(reply, Answer::Claimed(Vec::new()));
        }
    }

    pub(crate) fn claim_abandoned(&mut self, reply: ReplyId) {
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
        let Some(job) = self.workers.jobs.remove(&reply) else { return };
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
            self.set_timer(wait_until, Timer::ClaimWait(reply));
        }
    }

    // ---- claims that run out ----------------------------------------------------------------

    pub(crate) fn claim_ran_out(&mut self, seq: Seq, nonce: u64) {
        let Some(running) = self.running.get(&seq) else { return };
        if running.open.nonce != nonce || !matches!(running.stage, Stage::Executing) {
            return;
        }
        let until = running.open.claim_until.unwrap_or(self.now.store);
        if until > self.now.store {
            // It was extended meanwhile.
            self.set_timer(until, Timer::Claim(seq, nonce));
            return;
        }
        let mut ended = Ended::new(seq, nonce, AttemptOutcome::Lost);
        ended.error = Some("the claim ran out without a sign of life".to_owned());
        self.attempt_over(ended);
    }

    /// After a step back a claim has a full period from now.
    pub(crate) fn rearm_claim(&mut self, seq: Seq, nonce: u64) {
        let until = self.now.store.plus(self.claim_period(seq));
        if let Some(running) = self.running.get_mut(&seq)
            && running.open.nonce == nonce
        {
            running.open.claim_until = Some(until);
            self.set_timer(until, Timer::Claim(seq, nonce));
        }
    }

    // ---- completions and heartbeats -----------------------------------------------------------

    fn holds(&self, token: &AttemptToken) -> bool {
        self.running.get(&token.seq).is_some_and(|r| {
            r.is_worker
                && r.open.nonce == token.nonce
                && r.open.n == token.attempt
                && matches!(r.stage, Stage::Executing)
        })
    }

    pub(crate) fn complete(&mut self, reply: ReplyId, items: Vec<Completion>) {
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

    pub(crate) fn heartbeat(&mut self, reply: ReplyId, items: Vec<Beat>) {
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

//! What a node does with tasks: create, cancel, edit, run now, try again, hand to workers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tourbillon_engine::api::{
    Answer, Beat, Claim, Completion, Event, ReplyId, Request, TokenState,
};
use tourbillon_store::id::{partition_index, shard_of};
use tourbillon_store::queries::Located;
use tourbillon_store::task::kind_hash;
use tourbillon_store::{
    Done, NewTask, Partition, QueueRecord, Refusal, Task, TaskId, TaskSpec, Time,
};

use crate::api::{
    BeatAsk, Cancelled, ClaimAsk, Claimed, CompleteAsk, Created, Draft, Due, NodeError, OnConflict,
    TaskPatch, Tokens,
};
use crate::node::{Node, STALE_MAX};

/// Longest a worker's claim may wait, in microseconds.
const CLAIM_WAIT_MAX: i64 = 60_000_000;
/// Most tasks in one claim.
const CLAIM_MAX: usize = 1_000;

impl Node {
    /// Creates tasks, all or none, durably.
    ///
    /// # Errors
    ///
    /// [`NodeError::IdReused`], [`NodeError::KeyTaken`], [`NodeError::Running`] (a replaced task
    /// runs), [`NodeError::Invalid`], or that the node or store cannot take them now.
    pub async fn create(&self, drafts: Vec<Draft>) -> Result<Vec<Created>, NodeError> {
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        let bytes: u64 = drafts.iter().map(|d| u64::from(d.spec.weight())).sum();
        let _budget = AcceptBudget::take(self, bytes)?;
        if drafts.len() == 1 && drafts[0].on_conflict == OnConflict::Replace {
            let draft = drafts.into_iter().next().ok_or(NodeError::Changed)?;
            return self.replace(draft).await.map(|created| vec![created]);
        }
        let mut queue = self.ensure_queue(&drafts[0].namespace, &drafts[0].queue).await?;
        let now = self.now();
        let fresh = drafts.iter().filter(|d| d.id.is_none()).count();
        let mut ids = self.inner.ids.make(now, fresh).into_iter();
        let mut tasks = Vec::with_capacity(drafts.len());
        let mut created = Vec::with_capacity(drafts.len());
        for draft in drafts {
            if queue.name != draft.queue || queue.namespace_name != draft.namespace {
                queue = self.ensure_queue(&draft.namespace, &draft.queue).await?;
            }
            let (id, fingerprint) = match draft.id {
                Some((id, fingerprint)) => (id, Some(fingerprint)),
                None => (ids.next().ok_or(NodeError::Changed)?, None),
            };
            let task = new_task(&queue, id, fingerprint, now, draft, None);
            created.push(Created { id, due: task.due, created_at: now, existing: false });
            tasks.push(task);
        }
        let answer = self.ask(|reply| Event::Accept { reply, tasks, replaces: None }).await?;
        match answer {
            Answer::Accepted(done) => {
                for (created, done) in created.iter_mut().zip(done) {
                    if let Done::Same(id) | Done::Kept(id) = done {
                        created.id = id;
                        created.existing = true;
                    }
                }
                Ok(created)
            }
            Answer::Refused { index, why } => Err(refused(index, &why)),
            _ => Err(NodeError::Changed),
        }
    }

    /// Creates a task in place of the one that holds its key.
    async fn replace(&self, draft: Draft) -> Result<Created, NodeError> {
        let queue = self.ensure_queue(&draft.namespace, &draft.queue).await?;
        let Some(key) = draft.spec.key.clone() else {
            return Err(NodeError::Invalid {
                field: "key".to_owned(),
                message: "`on_conflict: replace` needs a key".to_owned(),
            });
        };
        for round in 0..STALE_MAX {
            pause(round).await;
            let (id, lookup) = (queue.id, key.clone());
            let old = self.query(move |q| q.locate_key(id, &lookup)).await?;
            if let Some((wanted, fingerprint)) = draft.id
                && let Some(old) = &old
                && old.id == wanted
            {
                // The same creation again, after its answer was lost.
                let task = self.task_of(queue.namespace, wanted).await?;
                return match task {
                    Some(task) if task.fingerprint == Some(fingerprint) => Ok(Created {
                        id: wanted,
                        due: task.due,
                        created_at: task.created_at,
                        existing: true,
                    }),
                    Some(_) => Err(NodeError::IdReused { index: 0 }),
                    None => continue,
                };
            }
            if let Some(old) = &old
                && old.concurrency_key != draft.spec.concurrency_key
            {
                return Err(NodeError::Invalid {
                    field: "concurrency_key".to_owned(),
                    message: "a replacement keeps the concurrency key of the task it replaces"
                        .to_owned(),
                });
            }
            let now = self.now();
            let (id, fingerprint) = match draft.id {
                Some((id, fingerprint)) => (id, Some(fingerprint)),
                None => {
                    let made = self.inner.ids.make(now, 1).into_iter().next();
                    (made.ok_or(NodeError::Changed)?, None)
                }
            };
            let partition = old.as_ref().map(|old| old.partition);
            let task = new_task(&queue, id, fingerprint, now, draft.clone(), partition);
            let due = task.due;
            let answer =
                self.ask(|reply| Event::Accept { reply, tasks: vec![task], replaces: old }).await?;
            match answer {
                Answer::Accepted(done) => {
                    let existing = matches!(done.first(), Some(Done::Same(_)));
                    return Ok(Created { id, due, created_at: now, existing });
                }
                Answer::Running => return Err(NodeError::Running),
                Answer::Refused { why: Refusal::KeyTaken(_), .. } | Answer::Changed => {}
                Answer::Refused { index, why } => return Err(refused(index, &why)),
                _ => return Err(NodeError::Changed),
            }
        }
        Err(NodeError::Changed)
    }

    /// Cancels a task. After success it does not start.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotFound`], [`NodeError::Final`], or that it cannot be done now.
    pub async fn cancel(&self, namespace: &str, id: TaskId) -> Result<Cancelled, NodeError> {
        for round in 0..STALE_MAX {
            pause(round).await;
            let at = self.locate(namespace, id).await?;
            if at.state.is_final() {
                return Err(NodeError::Final(at.state));
            }
            let request = Request::Cancel { at };
            match self.ask(|reply| Event::Request { reply, request }).await? {
                Answer::Cancelled => return Ok(Cancelled::Cancelled),
                Answer::Cancelling => return Ok(Cancelled::Cancelling),
                _ => {}
            }
        }
        Err(NodeError::Changed)
    }

    /// Changes a task that has not started.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotFound`], [`NodeError::Final`], [`NodeError::Running`],
    /// [`NodeError::Started`], or that it cannot be done now.
    pub async fn edit(
        &self,
        namespace: &str,
        id: TaskId,
        patch: TaskPatch,
    ) -> Result<(), NodeError> {
        self.change(namespace, id, true, |task, now| {
            let spec = apply(task.spec.clone(), &patch);
            (patch.due.map_or(task.due, |due| due_at(due, now)), spec)
        })
        .await
    }

    /// Makes a scheduled task due now.
    ///
    /// # Errors
    ///
    /// As [`Node::edit`], but a task that waits for another attempt may be run.
    pub async fn run_now(&self, namespace: &str, id: TaskId) -> Result<(), NodeError> {
        self.change(namespace, id, false, |task, now| (now, task.spec.clone())).await
    }

    async fn change(
        &self,
        namespace: &str,
        id: TaskId,
        unstarted: bool,
        change: impl Fn(&Task, Time) -> (Time, TaskSpec),
    ) -> Result<(), NodeError> {
        let namespace = self.namespace_id(namespace).ok_or(NodeError::NotFound("task"))?;
        for round in 0..STALE_MAX {
            pause(round).await;
            let task = self.task_of(namespace, id).await?.ok_or(NodeError::NotFound("task"))?;
            if task.state.is_final() {
                return Err(NodeError::Final(task.state));
            }
            let (due, spec) = change(&task, self.now());
            let request =
                Request::Edit { task: Box::new(task), due, spec: Box::new(spec), unstarted };
            match self.ask(|reply| Event::Request { reply, request }).await? {
                Answer::Edited { .. } => return Ok(()),
                Answer::Running => return Err(NodeError::Running),
                Answer::Started => return Err(NodeError::Started),
                _ => {}
            }
        }
        Err(NodeError::Changed)
    }

    /// Tries a task of history again, now.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotFound`], [`NodeError::NotFinal`], [`NodeError::KeyTaken`], or that it
    /// cannot be done now.
    pub async fn retry(&self, namespace: &str, id: TaskId) -> Result<(), NodeError> {
        let space = self.namespace_id(namespace).ok_or(NodeError::NotFound("task"))?;
        for round in 0..STALE_MAX {
            pause(round).await;
            let at = self.locate(namespace, id).await?;
            if !at.state.is_final() {
                return Err(NodeError::NotFinal(at.state));
            }
            let due = self.now();
            let request = Request::Redrive { at, namespace: space, due };
            match self.ask(|reply| Event::Request { reply, request }).await? {
                Answer::Redriven(_) => return Ok(()),
                Answer::Refused { index, why } => return Err(refused(index, &why)),
                _ => {}
            }
        }
        Err(NodeError::Changed)
    }

    pub(crate) async fn locate(&self, namespace: &str, id: TaskId) -> Result<Located, NodeError> {
        let namespace = self.namespace_id(namespace).ok_or(NodeError::NotFound("task"))?;
        self.query(move |q| q.locate(namespace, id)).await?.ok_or(NodeError::NotFound("task"))
    }

    async fn task_of(
        &self,
        namespace: tourbillon_store::NamespaceId,
        id: TaskId,
    ) -> Result<Option<Task>, NodeError> {
        self.query(move |q| q.task(namespace, id)).await
    }

    // ---- workers --------------------------------------------------------------------------

    /// Hands ready tasks to a worker, waiting for the first. Dropping the future gives up the
    /// wait; tasks that were already taken for it go back.
    ///
    /// # Errors
    ///
    /// When too many claims wait, or the node cannot serve now.
    pub async fn claim(&self, ask: ClaimAsk) -> Result<Vec<Claimed>, NodeError> {
        let queue = self.ensure_queue(&ask.namespace, &ask.queue).await?;
        let claim = Claim {
            queue: queue.id,
            max: ask.max.clamp(1, CLAIM_MAX),
            wait_until: self.now().plus(ask.wait.clamp(0, CLAIM_WAIT_MAX)),
            worker: ask.worker,
            kinds: ask.kinds.iter().map(|k| kind_hash(k)).collect(),
        };
        let reply = self.reply_id();
        let mut guard = AbandonClaim { node: self, reply, done: false };
        let answer = self.ask_as(reply, |reply| Event::Claim { reply, claim }).await;
        guard.done = true;
        match answer? {
            Answer::Claimed(orders) => Ok(orders
                .into_iter()
                .map(|order| Claimed {
                    token: order.open.token(order.task.shard, order.task.seq),
                    period: order.timeout,
                    task: order.task,
                    open: order.open,
                })
                .collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// Takes in how workers' attempts ended, durably.
    ///
    /// # Errors
    ///
    /// When the node cannot serve now.
    pub async fn complete(&self, items: Vec<CompleteAsk>) -> Result<Tokens, NodeError> {
        let items = items
            .into_iter()
            .map(|item| Completion {
                token: item.token,
                outcome: item.outcome,
                result: item.result,
                error: item.error,
                output: self.inner.attempts.take_log(item.token.seq, item.token.attempt),
            })
            .collect();
        match self.ask(|reply| Event::Complete { reply, items }).await? {
            Answer::Tokens(states) => Ok(states),
            _ => Err(NodeError::Changed),
        }
    }

    /// Extends workers' claims.
    ///
    /// # Errors
    ///
    /// When the node cannot serve now.
    pub async fn heartbeat(&self, items: Vec<BeatAsk>) -> Result<Tokens, NodeError> {
        let logs: Vec<_> = items.iter().map(|b| (b.token, b.log.clone())).collect();
        let items = items
            .into_iter()
            .map(|beat| Beat { token: beat.token, progress: beat.progress })
            .collect();
        match self.ask(|reply| Event::Heartbeat { reply, items }).await? {
            Answer::Tokens(states) => {
                for ((token, log), state) in logs.into_iter().zip(&states) {
                    if let Some(log) = log.filter(|_| *state != TokenState::Gone) {
                        self.inner.attempts.log(token.seq, token.attempt, &log);
                    }
                }
                Ok(states)
            }
            _ => Err(NodeError::Changed),
        }
    }
}

/// Tells the engine that nobody waits for a claim any more.
struct AbandonClaim<'a> {
    node: &'a Node,
    reply: ReplyId,
    done: bool,
}

impl Drop for AbandonClaim<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.node.tell(Event::ClaimAbandoned { reply: self.reply });
        }
    }
}

/// Bytes of tasks that are accepted and not yet written.
struct AcceptBudget<'a> {
    node: &'a Node,
    bytes: u64,
}

impl<'a> AcceptBudget<'a> {
    fn take(node: &'a Node, bytes: u64) -> Result<AcceptBudget<'a>, NodeError> {
        let before = node.inner.accept_bytes.fetch_add(bytes, Ordering::Relaxed);
        let budget = AcceptBudget { node, bytes };
        if before > 0 && before + bytes > node.inner.options.max_accept_bytes {
            return Err(NodeError::Busy {
                retry_after_ms: 500,
                why: "too many bytes wait to be written".to_owned(),
            });
        }
        Ok(budget)
    }
}

impl Drop for AcceptBudget<'_> {
    fn drop(&mut self) {
        self.node.inner.accept_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Waits a little before a request is repeated.
pub(crate) async fn pause(round: u32) {
    if round > 0 {
        tokio::time::sleep(Duration::from_millis(u64::from(round.min(10)) * 5)).await;
    }
}

fn due_at(due: Due, now: Time) -> Time {
    match due {
        Due::Now => now,
        Due::At(at) => at,
        Due::In(micros) => now.plus(micros),
    }
}

fn new_task(
    queue: &QueueRecord,
    id: TaskId,
    fingerprint: Option<u64>,
    now: Time,
    draft: Draft,
    partition: Option<Partition>,
) -> NewTask {
    let partition = partition.unwrap_or_else(|| {
        let spec = &draft.spec;
        let index = match (&spec.concurrency_key, &spec.key) {
            _ if queue.config.partitions <= 1 => 0,
            (Some(key), _) | (None, Some(key)) => {
                partition_index(key.as_bytes(), queue.config.partitions)
            }
            _ => partition_index(&id.0.to_be_bytes(), queue.config.partitions),
        };
        Partition { queue: queue.id, index }
    });
    NewTask {
        id,
        fingerprint,
        namespace: queue.namespace,
        partition,
        shard: shard_of(&queue.namespace_name, &queue.name, partition.index),
        due: due_at(draft.due, now).ceil_milli(),
        created_at: now,
        spec: draft.spec,
        schedule: None,
        keep_existing: draft.on_conflict == OnConflict::Keep,
        inbox: false,
    }
}

fn apply(mut spec: TaskSpec, patch: &TaskPatch) -> TaskSpec {
    let patch = patch.clone();
    if let Some(payload) = patch.payload {
        spec.payload = payload;
    }
    if let Some(priority) = patch.priority {
        spec.priority = priority;
    }
    if let Some(timeout) = patch.timeout {
        spec.timeout = timeout;
    }
    if let Some(expires_at) = patch.expires_at {
        spec.expires_at = expires_at;
    }
    if let Some(retry) = patch.retry {
        spec.retry = retry;
    }
    if let Some(tags) = patch.tags {
        spec.tags = tags;
    }
    if let Some(target) = patch.target {
        spec.target = target;
    }
    if let Some(kind) = patch.kind {
        spec.kind = kind;
    }
    spec
}

pub(crate) fn refused(index: usize, why: &Refusal) -> NodeError {
    match why {
        Refusal::IdReused | Refusal::Exists => NodeError::IdReused { index },
        Refusal::KeyTaken(by) => NodeError::KeyTaken { index, by: *by },
        _ => NodeError::Changed,
    }
}

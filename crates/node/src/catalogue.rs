//! What a node does with queues and schedules, and with history as a whole.

use tourbillon_engine::api::{Answer, Event, Request};
use tourbillon_engine::timing::{compile, compile_in};
use tourbillon_store::id::{partition_index, shard_of};
use tourbillon_store::{
    Done, Partition, QueueRecord, Refusal, ScheduleRecord, State, TaskId, Write,
};

use crate::api::{NodeError, PruneReport, PutSchedule, QueueDraft, QueueView, ScheduleDraft};
use crate::node::{Node, STALE_MAX};
use crate::options::kept_from;
use crate::tasks::pause;

/// Rows counted by a dry run.
const PRUNE_COUNT_MAX: u64 = 1_000_000;

impl Node {
    // ---- queues ---------------------------------------------------------------------------

    /// A queue with its counters; `None` when nothing ever used it.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn queue(&self, namespace: &str, name: &str) -> Result<Option<QueueView>, NodeError> {
        let Some(record) = self.known_queue(namespace, name) else { return Ok(None) };
        let counts = self.query(|q| q.counts()).await?;
        Ok(Some(self.view_of((*record).clone(), &counts)))
    }

    /// All queues of a namespace, by name.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn queues(&self, namespace: &str) -> Result<Vec<QueueView>, NodeError> {
        let records = self.known_queues(namespace);
        let counts = self.query(|q| q.counts()).await?;
        Ok(records.into_iter().map(|r| self.view_of((*r).clone(), &counts)).collect())
    }

    fn view_of(
        &self,
        record: QueueRecord,
        counts: &[tourbillon_store::queries::Count],
    ) -> QueueView {
        let count = |state| {
            counts.iter().find(|c| c.queue == record.id && c.state == state).map_or(0, |c| c.count)
        };
        let counts = State::ALL.map(|state| (state, count(state))).to_vec();
        let ready = self.ready_in(record.id);
        QueueView { record, counts, ready }
    }

    /// Gives a queue its configuration, creating it when needed.
    ///
    /// # Errors
    ///
    /// [`NodeError::Invalid`] when a limit cannot be divided over the partitions, or that it
    /// cannot be done now.
    pub async fn put_queue(&self, draft: QueueDraft) -> Result<QueueRecord, NodeError> {
        let partitions = u32::from(draft.config.partitions);
        if draft.config.concurrency < partitions {
            return Err(NodeError::Invalid {
                field: "concurrency".to_owned(),
                message: format!(
                    "given {}; expected at least the number of partitions, {partitions}",
                    draft.config.concurrency
                ),
            });
        }
        if let Some(rate) = &draft.config.rate
            && rate.count.min(rate.burst) < partitions
        {
            return Err(NodeError::Invalid {
                field: "rate".to_owned(),
                message: format!(
                    "count {} and burst {} must each be at least the number of partitions, \
                     {partitions}",
                    rate.count, rate.burst
                ),
            });
        }
        let config = draft.config;
        self.set_queue(&draft.namespace, &draft.name, |record| record.config = config.clone()).await
    }

    /// Pauses or resumes a queue. After a pause has succeeded nothing of it starts.
    ///
    /// # Errors
    ///
    /// When it cannot be done now.
    pub async fn pause_queue(
        &self,
        namespace: &str,
        name: &str,
        paused: bool,
    ) -> Result<QueueRecord, NodeError> {
        self.set_queue(namespace, name, |record| record.config.paused = paused).await
    }

    async fn set_queue(
        &self,
        namespace: &str,
        name: &str,
        set: impl Fn(&mut QueueRecord),
    ) -> Result<QueueRecord, NodeError> {
        for round in 0..STALE_MAX {
            pause(round).await;
            let mut record = (*self.ensure_queue(namespace, name).await?).clone();
            set(&mut record);
            let request = Request::PutQueue(Box::new(record));
            match self.ask(|reply| Event::Request { reply, request }).await? {
                Answer::Queue(record) => {
                    self.remember_queue((*record).clone());
                    return Ok(*record);
                }
                _ => continue,
            }
        }
        Err(NodeError::Changed)
    }

    // ---- schedules ------------------------------------------------------------------------

    /// Creates a schedule or gives it another document. The same document twice changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`NodeError::Invalid`] when the rule makes no sense, or that it cannot be done now.
    pub async fn put_schedule(&self, draft: ScheduleDraft) -> Result<PutSchedule, NodeError> {
        compile(&draft.doc, &draft.name).map_err(bad_schedule)?;
        let queue = self.ensure_queue(&draft.namespace, &draft.queue).await?;
        for round in 0..STALE_MAX {
            pause(round).await;
            // A calendar that it names may go meanwhile.
            compile_in(&draft.doc, &draft.name, queue.namespace, &self.calendars())
                .map_err(bad_schedule)?;
            let now = self.now();
            let known = self.schedule_of(&draft.namespace, &draft.name).await?;
            let uid = known.as_ref().map_or_else(|| self.inner.ids.uid(), |k| k.uid);
            let index = match &draft.doc.task.concurrency_key {
                Some(key) => partition_index(key.as_bytes(), queue.config.partitions),
                None => partition_index(&uid.to_be_bytes(), queue.config.partitions),
            };
            // A schedule keeps its partition while its queue and key stay.
            let partition = match &known {
                Some(k)
                    if k.partition.queue == queue.id
                        && k.doc.task.concurrency_key == draft.doc.task.concurrency_key =>
                {
                    k.partition
                }
                _ => Partition { queue: queue.id, index },
            };
            if let Some(known) = &known
                && known.doc == draft.doc
                && known.paused == draft.paused
                && known.partition == partition
            {
                return Ok(PutSchedule { record: known.clone(), created: false, changed: false });
            }
            let created = known.is_none();
            let record = ScheduleRecord {
                uid,
                namespace: queue.namespace,
                name: draft.name.clone(),
                partition,
                shard: shard_of(&queue.namespace_name, &queue.name, partition.index),
                version: known.as_ref().map_or(0, |k| k.version),
                paused: draft.paused,
                created_at: known.as_ref().map_or(now, |k| k.created_at),
                updated_at: now,
                doc: draft.doc.clone(),
                cursor: known.map(|k| k.cursor).unwrap_or_default(),
            };
            let request = Request::PutSchedule(Box::new(record));
            match self.ask(|reply| Event::Request { reply, request }).await? {
                Answer::Schedule(record) => {
                    return Ok(PutSchedule { record: *record, created, changed: true });
                }
                Answer::BadSchedule(why) => return Err(bad_schedule(why)),
                // Created by somebody else meanwhile, or moved on: look again.
                _ => {}
            }
        }
        Err(NodeError::Changed)
    }

    /// Pauses or resumes a schedule. After a pause has succeeded nothing of it starts.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotFound`], or that it cannot be done now.
    pub async fn pause_schedule(
        &self,
        namespace: &str,
        name: &str,
        paused: bool,
    ) -> Result<ScheduleRecord, NodeError> {
        let make = |record: &ScheduleRecord| Request::PauseSchedule {
            shard: record.shard,
            uid: record.uid,
            paused,
        };
        match self.ask_schedule(namespace, name, make).await? {
            Answer::Schedule(record) => Ok(*record),
            _ => Err(NodeError::Changed),
        }
    }

    /// Removes a schedule and its waiting occurrence. What runs goes on.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotFound`], or that it cannot be done now.
    pub async fn delete_schedule(&self, namespace: &str, name: &str) -> Result<(), NodeError> {
        let make = |record: &ScheduleRecord| Request::DeleteSchedule {
            shard: record.shard,
            uid: record.uid,
        };
        self.ask_schedule(namespace, name, make).await.map(|_| ())
    }

    /// Runs a schedule's task now, beside its plan. Answers the task's id.
    ///
    /// # Errors
    ///
    /// [`NodeError::NotFound`], or that it cannot be done now.
    pub async fn trigger_schedule(&self, namespace: &str, name: &str) -> Result<TaskId, NodeError> {
        let made = self.inner.ids.make(self.now(), 1).into_iter().next();
        let id = made.ok_or(NodeError::Changed)?;
        let make = |record: &ScheduleRecord| Request::TriggerSchedule {
            shard: record.shard,
            uid: record.uid,
            id,
        };
        match self.ask_schedule(namespace, name, make).await? {
            Answer::Accepted(_) => Ok(id),
            Answer::Refused { why: Refusal::Exists | Refusal::IdReused, .. } => Ok(id),
            _ => Err(NodeError::Changed),
        }
    }

    /// Asks something of a schedule until its owner's memory and the record agree.
    pub(crate) async fn ask_schedule(
        &self,
        namespace: &str,
        name: &str,
        make: impl Fn(&ScheduleRecord) -> Request,
    ) -> Result<Answer, NodeError> {
        for round in 0..STALE_MAX {
            pause(round).await;
            let record = self.schedule_of(namespace, name).await?;
            let record = record.ok_or(NodeError::NotFound("schedule"))?;
            let request = make(&record);
            match self.ask(|reply| Event::Request { reply, request }).await? {
                Answer::Changed | Answer::NoSchedule => {}
                answer => return Ok(answer),
            }
        }
        Err(NodeError::Changed)
    }

    pub(crate) async fn schedule_of(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ScheduleRecord>, NodeError> {
        let Some(namespace) = self.namespace_id(namespace) else { return Ok(None) };
        let name = name.to_owned();
        self.query(move |q| q.schedule(namespace, &name)).await
    }

    // ---- history ----------------------------------------------------------------------------

    /// Deletes what retention no longer keeps, or counts it.
    ///
    /// # Errors
    ///
    /// When the store cannot do it now.
    pub async fn prune(&self, dry_run: bool) -> Result<PruneReport, NodeError> {
        let now = self.now();
        let options = &self.inner.options;
        let mut report = PruneReport::default();
        for succeeded in [true, false] {
            let keep = if succeeded { options.keep_succeeded } else { options.keep_others };
            let before = kept_from(now, keep);
            let count = if succeeded { &mut report.succeeded } else { &mut report.others };
            if dry_run {
                *count =
                    self.query(move |q| q.prunable(succeeded, before, PRUNE_COUNT_MAX)).await?;
                continue;
            }
            loop {
                let limit = options.prune_chunk;
                match self.write_aside(Write::Prune { succeeded, before, limit }).await? {
                    Done::Pruned(0) => break,
                    Done::Pruned(n) => *count += u64::from(n),
                    _ => break,
                }
            }
        }
        Ok(report)
    }
}

pub(crate) fn bad_schedule(why: String) -> NodeError {
    let field = why.split(':').next().unwrap_or("schedule").trim();
    let field = if field.len() < 20 && !field.contains(' ') { field } else { "schedule" };
    NodeError::Invalid { field: field.to_owned(), message: why.clone() }
}

//! A store with one queue and one held shard, and short ways to write to it.

use std::cell::Cell;
use std::sync::Arc;

use crate::task::{HttpTarget, ScheduleLink, Target};
use crate::time::{MINUTE, SECOND};
use crate::{
    AttemptOutcome, AttemptRecord, Done, Epoch, Fence, LeaseAsk, NamespaceId, NewTask, OpenAttempt,
    Partition, Queries, QueueRecord, Refusal, Refused, Seq, Shard, State, Store, Task, TaskId,
    TaskSpec, Then, Time, Unit, UnitResult, Write,
};

/// When everything happens: a whole minute in 2026.
pub const T0: Time = Time(29_500_000 * MINUTE);

/// A store under test. Panics wherever the store does not do what it must.
pub struct World {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The same store's queries.
    pub queries: Arc<dyn Queries>,
    /// Queue `default` of namespace `default`.
    pub queue: QueueRecord,
    /// The shard of that queue's only partition, held by node `n1` since [`T0`].
    pub shard: Shard,
    /// Its epoch.
    pub epoch: Epoch,
    next_id: Cell<u128>,
}

impl World {
    /// Makes the queue and takes the shard.
    pub fn new(store: Arc<dyn Store>, queries: Arc<dyn Queries>) -> World {
        let shard = Shard(7);
        let ensure = Write::EnsureQueue { namespace: "default".into(), name: "default".into() };
        let unit = Unit { fences: Vec::new(), writes: vec![ensure] };
        let results = store.commit(&[unit]).expect("commit");
        let [Ok(done)] = results.as_slice() else { panic!("{results:?}") };
        let [Done::Queue(queue)] = done.as_slice() else { panic!("{done:?}") };
        let queue = (**queue).clone();
        let held = store.leases(&acquire("n1", &[shard], T0)).expect("leases");
        assert_eq!(held.len(), 1, "a fresh shard is free");
        let epoch = held[0].epoch;
        World { store, queries, queue, shard, epoch, next_id: Cell::new(1) }
    }

    /// The namespace of the queue.
    pub fn namespace(&self) -> NamespaceId {
        self.queue.namespace
    }

    /// The queue's only partition.
    pub fn partition(&self) -> Partition {
        Partition { queue: self.queue.id, index: 0 }
    }

    /// A task nobody created yet, due at `due`.
    pub fn new_task(&self, due: Time) -> NewTask {
        let id = self.next_id.replace(self.next_id.get() + 1);
        NewTask {
            // Shaped like version 7, growing.
            id: TaskId(id << 80 | 7 << 76 | 0b10 << 62 | id),
            fingerprint: None,
            namespace: self.namespace(),
            partition: self.partition(),
            shard: self.shard,
            due,
            created_at: T0,
            spec: spec("work"),
            schedule: None,
            keep_existing: false,
            inbox: false,
        }
    }

    /// The same with a key.
    pub fn new_keyed(&self, key: &str) -> NewTask {
        let mut new = self.new_task(T0);
        new.spec.key = Some(key.to_owned());
        new
    }

    /// Another queue.
    pub fn ensure_queue(&self, namespace: &str, name: &str) -> QueueRecord {
        let write = Write::EnsureQueue { namespace: namespace.into(), name: name.into() };
        let Ok(Done::Queue(queue)) = self.write(write) else { panic!("no queue") };
        *queue
    }

    /// A unit under the held shard.
    pub fn unit(&self, writes: Vec<Write>) -> Unit {
        Unit { fences: vec![(self.shard, self.epoch)], writes }
    }

    /// Commits units.
    pub fn commit(&self, units: &[Unit]) -> Vec<UnitResult> {
        let results = self.store.commit(units).expect("commit");
        assert_eq!(results.len(), units.len());
        for (unit, result) in units.iter().zip(&results) {
            match result {
                Ok(done) => assert_eq!(done.len(), unit.writes.len()),
                Err(refused) => assert!(refused.index < unit.writes.len().max(1)),
            }
        }
        results
    }

    /// Commits one write under the held shard.
    pub fn write(&self, write: Write) -> Result<Done, Refusal> {
        match self.commit(&[self.unit(vec![write])]).remove(0) {
            Ok(mut done) => Ok(done.remove(0)),
            Err(Refused { why, .. }) => Err(why),
        }
    }

    /// Commits one write that must be applied.
    pub fn must(&self, write: Write) -> Done {
        let told = format!("{write:?}");
        self.write(write).unwrap_or_else(|why| panic!("{why:?}: {told}"))
    }

    /// Creates a task.
    pub fn insert(&self, new: &NewTask) -> Seq {
        match self.must(Write::Insert(Box::new(new.clone()))) {
            Done::Inserted(seq) => seq,
            done => panic!("{done:?}"),
        }
    }

    /// Creates a task due at `due`.
    pub fn insert_due(&self, due: Time) -> Task {
        let new = self.new_task(due);
        self.insert(&new);
        self.task(new.id)
    }

    /// A task that exists.
    pub fn task(&self, id: TaskId) -> Task {
        self.find(id).unwrap_or_else(|| panic!("{id} is gone"))
    }

    /// A task.
    pub fn find(&self, id: TaskId) -> Option<Task> {
        self.queries.task(self.namespace(), id).expect("task")
    }

    /// Starts its next attempt.
    pub fn start(&self, task: &Task) -> Task {
        let open = Box::new(open(task, self.epoch));
        self.must(Write::Start { seq: task.seq, version: task.version, open });
        self.task(task.id)
    }

    /// Ends its attempt, the one under way or one whose start was not written.
    pub fn end(&self, task: &Task, outcome: AttemptOutcome, then: Then) -> Task {
        self.must(end(task, self.epoch, outcome, then));
        self.task(task.id)
    }

    /// Ends it with this final state.
    pub fn finish(&self, task: &Task, to: State) -> Task {
        let outcome = match to {
            State::Succeeded => AttemptOutcome::Succeeded,
            State::Cancelled => AttemptOutcome::Cancelled,
            _ => AttemptOutcome::Failed,
        };
        self.end(task, outcome, Then::Finish { to, reason: None })
    }

    /// Puts a fresh task into this state.
    pub fn in_state(&self, state: State) -> Task {
        let task = self.insert_due(T0);
        match state {
            State::Scheduled => task,
            State::Running => self.start(&task),
            State::Succeeded | State::Failed => self.finish(&task, state),
            _ => {
                self.must(close(&task, state));
                self.task(task.id)
            }
        }
    }
}

/// A small worker task.
pub fn spec(kind: &str) -> TaskSpec {
    TaskSpec {
        kind: kind.to_owned(),
        key: None,
        target: Target::Worker,
        payload: Some("{\"a\":1}".to_owned()),
        priority: 0,
        timeout: None,
        expires_at: None,
        at_most_once: false,
        retry: Default::default(),
        concurrency_key: None,
        tags: Vec::new(),
    }
}

/// An `http` target.
pub fn http() -> Target {
    Target::Http(HttpTarget {
        method: "POST".into(),
        url: "https://example.test/hook".into(),
        headers: vec![("X-A".into(), "b".into())],
    })
}

/// A link to an occurrence.
pub fn link(uid: u128, origin: &str, logical: Time) -> ScheduleLink {
    ScheduleLink { uid, name: "daily".into(), origin: origin.into(), logical }
}

/// The next attempt of a task.
pub fn open(task: &Task, epoch: Epoch) -> OpenAttempt {
    OpenAttempt {
        n: task.attempt + 1,
        nonce: 0xfeed,
        epoch,
        node: "n1".into(),
        worker: Some("w1".into()),
        due: task.due,
        ready_at: task.due,
        started_at: task.due.plus(3),
        claim_until: Some(task.due.plus(60 * SECOND)),
    }
}

/// The end of the attempt under way, or of the next one.
pub fn end(task: &Task, epoch: Epoch, outcome: AttemptOutcome, then: Then) -> Write {
    let open = task.open.clone().unwrap_or_else(|| open(task, epoch));
    let attempt = Box::new(AttemptRecord {
        n: open.n,
        outcome,
        fence: Fence::new(epoch, open.n),
        node: open.node,
        worker: open.worker,
        due: open.due,
        ready_at: open.ready_at,
        started_at: open.started_at,
        ended_at: open.started_at.plus(SECOND),
        error: (outcome != AttemptOutcome::Succeeded).then(|| "it \"broke\"".to_owned()),
        http_status: None,
        exit_code: Some(-1),
        result: Some("[1,2]".into()),
        output_bytes: 3,
        output_truncated: false,
    });
    Write::End { seq: task.seq, version: task.version, attempt, output: None, then }
}

/// Closes a task.
pub fn close(task: &Task, to: State) -> Write {
    Write::Close {
        seq: task.seq,
        version: task.version,
        to,
        at: T0.plus(SECOND),
        reason: Some("because".into()),
        skipped: None,
    }
}

/// Asks for shards, for ten seconds.
pub fn acquire(node: &str, shards: &[Shard], now: Time) -> LeaseAsk {
    LeaseAsk {
        node: node.into(),
        acquire: shards.to_vec(),
        renew: Vec::new(),
        release: Vec::new(),
        now,
        period: 10 * SECOND,
    }
}

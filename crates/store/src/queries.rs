//! Reading for people: lists, records, counts. Nothing here is used to run tasks.
//!
//! Lists are keyset pages by creation sequence, newest first, over live tables and history
//! together, or by due time. No query looks at more than [`SCAN_MAX`] rows, but for one thing: a
//! list by due time looks at whole buckets of due time.

use crate::calendar::CalendarRecord;
use crate::error::StoreError;
use crate::id::{NamespaceId, Partition, QueueId, Seq, Shard, TaskId};
use crate::schedule::ScheduleRecord;
use crate::state::State;
use crate::stats::StatsRow;
use crate::task::{Output, Task};
use crate::time::Time;

/// Rows one page may look at.
pub const SCAN_MAX: usize = 50_000;

/// Which tasks a list shows. All conditions must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TaskFilter {
    /// The namespace.
    pub namespace: NamespaceId,
    /// The queue.
    pub queue: Option<QueueId>,
    /// One of these states; empty for all.
    pub states: Vec<State>,
    /// The kind.
    pub kind: Option<String>,
    /// The key.
    pub key: Option<String>,
    /// The schedule's uid.
    pub schedule: Option<u128>,
    /// Due at or after. A due range needs `states` to be `[Scheduled]`, which the caller sees to,
    /// and orders by due time, soonest first.
    pub due_after: Option<Time>,
    /// Due before.
    pub due_before: Option<Time>,
}

impl TaskFilter {
    /// Whether a task is one of them.
    pub fn matches(&self, task: &Task) -> bool {
        task.namespace == self.namespace
            && self.queue.is_none_or(|queue| task.queue() == queue)
            && (self.states.is_empty() || self.states.contains(&task.state))
            && self.kind.as_ref().is_none_or(|kind| task.spec.kind == *kind)
            && self.key.as_ref().is_none_or(|key| task.spec.key.as_ref() == Some(key))
            && self.schedule.is_none_or(|uid| task.schedule.as_ref().is_some_and(|s| s.uid == uid))
            && self.due_after.is_none_or(|from| task.due >= from)
            && self.due_before.is_none_or(|to| task.due < to)
    }

    /// Whether the list goes by due time instead of creation.
    pub fn by_due(&self) -> bool {
        self.due_after.is_some() || self.due_before.is_some()
    }
}

/// Where a page ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cursor {
    /// Before this sequence, newest first.
    Seq(Seq),
    /// After this due time and sequence, soonest first.
    Due(Time, Seq),
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The tasks, payloads left out.
    pub tasks: Vec<Task>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
    /// Whether the page is short because it looked at [`SCAN_MAX`] rows.
    pub cut: bool,
}

/// Where a task is, for requests about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Its row.
    pub seq: Seq,
    /// Its id.
    pub id: TaskId,
    /// Its shard.
    pub shard: Shard,
    /// Its partition.
    pub partition: Partition,
    /// Its version.
    pub version: u32,
    /// Its state.
    pub state: State,
    /// Its concurrency key.
    pub concurrency_key: Option<String>,
}

/// Tasks of one queue by state. `Scheduled` includes the ready ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The queue.
    pub queue: QueueId,
    /// The state.
    pub state: State,
    /// How many.
    pub count: u64,
}

/// Read-only questions. All calls block.
pub trait Queries: Send + Sync {
    /// A namespace's id; `None` when nothing was ever created in it.
    fn namespace(&self, name: &str) -> Result<Option<NamespaceId>, StoreError>;

    /// The names of all namespaces.
    fn namespaces(&self) -> Result<Vec<(NamespaceId, String)>, StoreError>;

    /// A task with everything, live or in history.
    fn task(&self, namespace: NamespaceId, id: TaskId) -> Result<Option<Task>, StoreError>;

    /// What was kept of what an attempt printed or answered.
    fn output(&self, seq: Seq, attempt: u32) -> Result<Option<Output>, StoreError>;

    /// Where a task is.
    fn locate(&self, namespace: NamespaceId, id: TaskId) -> Result<Option<Located>, StoreError>;

    /// The live task that holds a key.
    fn locate_key(&self, queue: QueueId, key: &str) -> Result<Option<Located>, StoreError>;

    /// A page of tasks; `limit` is 1 or more.
    fn list(
        &self,
        filter: &TaskFilter,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError>;

    /// Kept counters of every queue and state that ever had tasks, history as far as it is still
    /// kept, in order of (queue, state). A count of 0 may be absent.
    fn counts(&self) -> Result<Vec<Count>, StoreError>;

    /// Schedules of a namespace in order of name, after `after`.
    fn schedules(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ScheduleRecord>, StoreError>;

    /// One schedule.
    fn schedule(
        &self,
        namespace: NamespaceId,
        name: &str,
    ) -> Result<Option<ScheduleRecord>, StoreError>;

    /// Exclusion calendars of a namespace in order of name, after `after`.
    fn calendars(
        &self,
        namespace: NamespaceId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<CalendarRecord>, StoreError>;

    /// One exclusion calendar.
    fn calendar(
        &self,
        namespace: NamespaceId,
        name: &str,
    ) -> Result<Option<CalendarRecord>, StoreError>;

    /// The names of the first `limit` schedules, in order of name, that name a calendar.
    fn calendar_users(
        &self,
        namespace: NamespaceId,
        calendar: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError>;

    /// The latest created of a schedule's final tasks, newest first, payloads left out.
    fn last_runs(&self, uid: u128, limit: usize) -> Result<Vec<Task>, StoreError>;

    /// Statistics by minute over `[from, to)`, summed over shards, in order of minute; the rows
    /// of a minute in order of (queue, kind). Minutes without any are absent.
    fn series(
        &self,
        from_minute: i64,
        to_minute: i64,
    ) -> Result<Vec<(i64, Vec<StatsRow>)>, StoreError>;

    /// How many rows [`crate::Write::Prune`] would delete, counted up to `limit`.
    fn prunable(&self, succeeded: bool, before: Time, limit: u64) -> Result<u64, StoreError>;
}

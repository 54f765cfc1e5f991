//! What a node takes and gives: the types of [`crate::Node`]'s methods.

use std::fmt;
use std::sync::Arc;

use tourbillon_engine::api::{TokenState, WorkerOutcome};
use tourbillon_schedule::Exclusion;
use tourbillon_store::{
    AttemptToken, CalendarDoc, CalendarRecord, OpenAttempt, QueueConfig, QueueRecord, ScheduleDoc,
    ScheduleRecord, State, Task, TaskId, TaskSpec, Time,
};

/// When a task is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// As soon as it is accepted.
    Now,
    /// At an instant, in store time.
    At(Time),
    /// So many microseconds after it is accepted.
    In(i64),
}

/// What happens when a task's key is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// The creation is refused.
    #[default]
    Reject,
    /// The existing task is answered.
    Keep,
    /// The existing task is cancelled and the new one created, in one transaction.
    Replace,
}

/// A task that somebody wants created. All bounds have been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Namespace name.
    pub namespace: String,
    /// Queue name.
    pub queue: String,
    /// The id the client chose, with a hash of everything it asked.
    pub id: Option<(TaskId, u64)>,
    /// When.
    pub due: Due,
    /// What.
    pub spec: TaskSpec,
    /// What happens when the key is taken.
    pub on_conflict: OnConflict,
}

/// A created (or existing) task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    /// Its id.
    pub id: TaskId,
    /// Its due time; what was asked when it existed before.
    pub due: Time,
    /// When it was accepted.
    pub created_at: Time,
    /// Whether it existed before: same id and body, or kept by key. Read it to show it.
    pub existing: bool,
}

/// A change to a task that has not started. Absent fields stay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskPatch {
    /// When.
    pub due: Option<Due>,
    /// JSON text; `Some(None)` removes the payload.
    pub payload: Option<Option<String>>,
    /// −8 to 7.
    pub priority: Option<i8>,
    /// Microseconds.
    pub timeout: Option<Option<i64>>,
    /// When it expires.
    pub expires_at: Option<Option<Time>>,
    /// Retry policy as a whole.
    pub retry: Option<tourbillon_store::task::Retry>,
    /// Labels as a whole.
    pub tags: Option<Vec<(String, String)>>,
    /// Target as a whole.
    pub target: Option<tourbillon_store::task::Target>,
    /// Kind.
    pub kind: Option<String>,
}

/// What became of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It will not start.
    Cancelled,
    /// Its attempt is being stopped.
    Cancelling,
}

/// A schedule that somebody wants. All bounds have been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleDraft {
    /// Namespace name.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Queue name.
    pub queue: String,
    /// Whether it is to be paused.
    pub paused: bool,
    /// What.
    pub doc: ScheduleDoc,
}

/// What became of putting a schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct PutSchedule {
    /// As it is now.
    pub record: ScheduleRecord,
    /// Whether it is new.
    pub created: bool,
    /// Whether anything changed.
    pub changed: bool,
}

/// A backfill that somebody wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackfillDraft {
    /// Its id.
    pub id: String,
    /// The first instant of the span.
    pub from: Time,
    /// The end of the span, itself not included.
    pub until: Time,
    /// Occurrences that may be live at once.
    pub in_flight: u32,
    /// The most occurrences that a span may have.
    pub occurrences_max: u64,
    /// Whether they are only to be counted.
    pub dry_run: bool,
}

/// What a backfill has to do, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackfillView {
    /// Occurrences of the span.
    pub occurrences: u64,
    /// The first of them.
    pub first: Option<Time>,
    /// The last of them.
    pub last: Option<Time>,
    /// Occurrences created so far.
    pub created: u64,
    /// Occurrences that may be live at once.
    pub in_flight: u32,
}

/// An exclusion calendar that somebody wants. All bounds have been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarDraft {
    /// Namespace name.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What was written.
    pub doc: CalendarDoc,
    /// The days that it means.
    pub days: Arc<Exclusion>,
}

/// What became of putting a calendar.
#[derive(Debug, Clone, PartialEq)]
pub struct PutCalendar {
    /// As it is now.
    pub record: CalendarRecord,
    /// Whether it is new.
    pub created: bool,
    /// Whether anything changed.
    pub changed: bool,
}

/// A task handed to a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// Entitles to heartbeat and complete.
    pub token: AttemptToken,
    /// The task, with its payload.
    pub task: Task,
    /// The attempt.
    pub open: OpenAttempt,
    /// How long the claim holds from each sign of life, in microseconds.
    pub period: i64,
}

/// What a worker asks.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimAsk {
    /// Namespace name.
    pub namespace: String,
    /// Queue name.
    pub queue: String,
    /// At most so many.
    pub max: usize,
    /// Microseconds to wait for the first.
    pub wait: i64,
    /// The worker's name.
    pub worker: String,
    /// Kinds it handles; empty for all.
    pub kinds: Vec<String>,
}

/// How a worker's attempt ended; see [`WorkerOutcome`].
#[derive(Debug, Clone, PartialEq)]
pub struct CompleteAsk {
    /// Which attempt.
    pub token: AttemptToken,
    /// How.
    pub outcome: WorkerOutcome,
    /// JSON text.
    pub result: Option<String>,
    /// One line.
    pub error: Option<String>,
}

/// A sign of life.
#[derive(Debug, Clone, PartialEq)]
pub struct BeatAsk {
    /// Which attempt.
    pub token: AttemptToken,
    /// JSON text.
    pub progress: Option<String>,
    /// Lines to append to the attempt's output.
    pub log: Option<String>,
}

/// How each attempt stands.
pub type Tokens = Vec<TokenState>;

/// A queue with its counters.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueView {
    /// The queue.
    pub record: QueueRecord,
    /// Tasks by state.
    pub counts: Vec<(State, u64)>,
    /// Of the scheduled ones, how many are ready in memory on this node.
    pub ready: u64,
}

/// A queue that somebody wants configured.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueDraft {
    /// Namespace name.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its configuration.
    pub config: QueueConfig,
}

/// What an attempt has printed so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveOutput {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes.
    pub tail: Vec<u8>,
    /// Bytes in all.
    pub total: u64,
    /// Whether the attempt is over.
    pub finished: bool,
}

/// A node's health and numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Its name.
    pub node: String,
    /// When it started.
    pub started_at: Time,
    /// Whether it takes work; else why not.
    pub ready: Result<(), String>,
    /// Shards it holds.
    pub shards: usize,
    /// The epoch of its shards (the highest).
    pub epoch: u32,
    /// Stubs in memory.
    pub resident: usize,
    /// Attempts under way.
    pub running: usize,
    /// Writes that wait.
    pub backlog: usize,
    /// Tasks in memory whose time has come.
    pub ready_tasks: usize,
    /// Claims of workers that wait.
    pub waiting_claims: usize,
    /// The store.
    pub store: tourbillon_store::StoreInfo,
    /// The store's numbers.
    pub gauges: tourbillon_store::StoreGauges,
}

/// What retention deleted, or would.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneReport {
    /// Succeeded tasks.
    pub succeeded: u64,
    /// All other finished tasks.
    pub others: u64,
}

/// Why a node did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeError {
    /// There is no such task, queue, schedule or calendar.
    NotFound(&'static str),
    /// The task is over.
    Final(State),
    /// The task is running.
    Running,
    /// The task has had an attempt.
    Started,
    /// The task is not over.
    NotFinal(State),
    /// The id exists with another body.
    IdReused {
        /// Which task of the batch.
        index: usize,
    },
    /// The key is taken.
    KeyTaken {
        /// Which task of the batch.
        index: usize,
        /// By whom.
        by: TaskId,
    },
    /// Schedules name it.
    InUse {
        /// What is named.
        what: &'static str,
        /// The first schedules that name it, in order.
        by: Vec<String>,
        /// Whether there are others.
        more: bool,
    },
    /// It changed while it was read; ask again.
    Changed,
    /// A field makes no sense in this place.
    Invalid {
        /// The field.
        field: String,
        /// What is wrong and what would be right.
        message: String,
    },
    /// Too much to do; ask again after so many milliseconds.
    Busy {
        /// Milliseconds.
        retry_after_ms: u64,
        /// Why.
        why: String,
    },
    /// The disk is full.
    Full,
    /// The store failed.
    Store(String),
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::NotFound(what) => write!(f, "no such {what}"),
            NodeError::Final(state) => write!(f, "the task is over: {}", state.as_str()),
            NodeError::Running => f.write_str("the task is running"),
            NodeError::Started => f.write_str("the task has had an attempt already"),
            NodeError::NotFinal(state) => write!(f, "the task is not over: {}", state.as_str()),
            NodeError::IdReused { index } => {
                write!(f, "task {index}: its id exists with another body")
            }
            NodeError::KeyTaken { index, by } => {
                write!(f, "task {index}: its key is held by the live task {by}")
            }
            NodeError::InUse { what, by, more } => {
                let more = if *more { " and others" } else { "" };
                write!(f, "the {what} is named by the schedules {}{more}", by.join(", "))
            }
            NodeError::Changed => f.write_str("it changed meanwhile; ask again"),
            NodeError::Invalid { field, message } => write!(f, "{field}: {message}"),
            NodeError::Busy { why, .. } => write!(f, "not now: {why}"),
            NodeError::Full => f.write_str("the disk is full"),
            NodeError::Store(why) => write!(f, "the store failed: {why}"),
        }
    }
}

impl std::error::Error for NodeError {}

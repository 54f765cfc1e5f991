//! A task as the server shows it: what was given, with defaults filled in, and what became of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::json::present;
use crate::task::is_false;
use crate::{Duration, Json, NewTask, Pairs, Retry, Target, Timestamp};

/// A task and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    /// Its id.
    pub id: Uuid,
    /// The separate world of names it lives in.
    pub namespace: String,
    /// The queue it waits in.
    pub queue: String,
    /// What sort of work it is.
    pub kind: String,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it is in its life; `ready` is a scheduled task whose due time has come.
    pub state: TaskState,
    /// Whether a running task is being stopped because it was cancelled.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancelling: bool,
    /// How its attempts are made; values of headers given as secrets show as their reference.
    pub target: Target,
    /// Its payload. Absent in lists.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// When it is or was due; after a failed attempt, when the next one is.
    pub due_at: Timestamp,
    /// From -8 to 7, higher starts first among the ready.
    #[serde(default)]
    pub priority: i32,
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// When it has not started by then it becomes `expired`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Never attempted twice.
    #[serde(default, skip_serializing_if = "is_false")]
    pub at_most_once: bool,
    /// What happens after an attempt that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Counts against the queue's `per_key_concurrency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_key: Option<String>,
    /// Free names and values to find it by.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub tags: Pairs,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it last became ready to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_at: Option<Timestamp>,
    /// When it became final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How many attempts have started.
    #[serde(default)]
    pub attempt: u32,
    /// How many attempts were lost.
    #[serde(default)]
    pub lost: u32,
    /// The name of the schedule that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The planned time of the occurrence it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_time: Option<Timestamp>,
    /// `plan`, `backfill:<id>` or `trigger:<id>`, when it comes from a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The run of skipped occurrences that this one record stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
    /// What its worker last reported.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
    /// What its last attempt gave back.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Why it is in its final state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome_reason: Option<String>,
    /// Grows with every change.
    pub version: u64,
    /// Its attempts, oldest first. Absent in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
}

impl From<Task> for NewTask {
    /// The document that would create a task like it, due at the same time. A list shows no
    /// payload: take the task by itself.
    fn from(task: Task) -> NewTask {
        NewTask {
            id: Some(task.id),
            namespace: Some(task.namespace),
            queue: Some(task.queue),
            kind: Some(task.kind),
            key: task.key,
            payload: task.payload,
            due_at: Some(task.due_at),
            priority: task.priority,
            timeout: task.timeout,
            expires_at: task.expires_at,
            at_most_once: task.at_most_once,
            retry: task.retry,
            concurrency_key: task.concurrency_key,
            tags: task.tags,
            ..NewTask::new(task.target)
        }
    }
}

/// Where a task is in its life, `ready` derived.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Its due time has not come.
    Scheduled,
    /// Its due time has come; it waits to start.
    Ready,
    /// An attempt is under way.
    Running,
    /// An attempt succeeded.
    Succeeded,
    /// The attempts are used up: a dead letter.
    Failed,
    /// Cancelled on request.
    Cancelled,
    /// `expires_at` passed before its first start.
    Expired,
    /// Not run because of a misfire or overlap policy.
    Skipped,
}

impl TaskState {
    /// Every state, in the order of a life.
    pub const ALL: [TaskState; 8] = [
        TaskState::Scheduled,
        TaskState::Ready,
        TaskState::Running,
        TaskState::Succeeded,
        TaskState::Failed,
        TaskState::Cancelled,
        TaskState::Expired,
        TaskState::Skipped,
    ];

    /// The word in documents and filters.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskState::Scheduled => "scheduled",
            TaskState::Ready => "ready",
            TaskState::Running => "running",
            TaskState::Succeeded => "succeeded",
            TaskState::Failed => "failed",
            TaskState::Cancelled => "cancelled",
            TaskState::Expired => "expired",
            TaskState::Skipped => "skipped",
        }
    }

    /// Whether the task is over.
    pub fn is_final(self) -> bool {
        !matches!(self, TaskState::Scheduled | TaskState::Ready | TaskState::Running)
    }
}

impl std::fmt::Display for TaskState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for TaskState {
    type Err = String;

    fn from_str(text: &str) -> Result<TaskState, String> {
        TaskState::ALL.into_iter().find(|s| s.as_str() == text).ok_or_else(|| {
            let all: Vec<&str> = TaskState::ALL.iter().map(|s| s.as_str()).collect();
            format!("`{text}` is not a state; expected one of {}", all.join(", "))
        })
    }
}

/// A run of occurrences that were skipped, as one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Skipped {
    /// The first planned time of the run.
    pub from: Timestamp,
    /// The last planned time of the run.
    pub to: Timestamp,
    /// How many occurrences there were.
    pub count: u64,
    /// Why they were skipped.
    pub reason: String,
}

/// One try at running a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// Its number, from 1.
    pub n: u32,
    /// How it ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AttemptOutcome>,
    /// The node that made it.
    pub node: String,
    /// The worker that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Its start minus the due time, in milliseconds.
    pub lateness_ms: i64,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The status that an `http` target answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The exit status of a `command` target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The fence number its target was given, as text because it does not fit a JSON number in
    /// every language.
    pub fence: String,
    /// What it printed; absent when there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputInfo>,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// It did what it was to do.
    Succeeded,
    /// It did not.
    Failed,
    /// It took longer than its timeout, or its claim ran out.
    TimedOut,
    /// Its node or worker died.
    Lost,
    /// It was stopped on request.
    Cancelled,
    /// Its worker gave it back unstarted.
    Released,
}

impl AttemptOutcome {
    /// The word in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            AttemptOutcome::Succeeded => "succeeded",
            AttemptOutcome::Failed => "failed",
            AttemptOutcome::TimedOut => "timed_out",
            AttemptOutcome::Lost => "lost",
            AttemptOutcome::Cancelled => "cancelled",
            AttemptOutcome::Released => "released",
        }
    }
}

impl std::fmt::Display for AttemptOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Where an attempt's output is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutputInfo {
    /// How much was printed in all.
    pub bytes: u64,
    /// Whether the middle was dropped: the head and the tail are kept.
    pub truncated: bool,
    /// Where to get it, relative to the server.
    pub url: String,
}

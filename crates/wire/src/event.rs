//! What happens, as it happens: the data of server-sent events.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{AttemptOutcome, TaskState, Timestamp};

/// Something that happened. The server-sent event's `event` field is its kind, its `id` is `seq`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Grows by one with each event of a node; a jump means that events were missed.
    pub seq: u64,
    /// When it happened, in store time.
    pub at: Timestamp,
    /// What happened.
    pub kind: EventKind,
    /// The separate world of names it happened in.
    pub namespace: String,
    /// The queue it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The task it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<Uuid>,
    /// That task's kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_kind: Option<String>,
    /// That task's state now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// The attempt it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// How that attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AttemptOutcome>,
    /// The schedule it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The exclusion calendar it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<String>,
    /// The node it happened on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The worker it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Who asked for it, when it follows from a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// More, for people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub enum EventKind {
    /// A task was created.
    #[serde(rename = "task.created")]
    TaskCreated,
    /// A task was edited, or is to run now.
    #[serde(rename = "task.changed")]
    TaskChanged,
    /// A task became final.
    #[serde(rename = "task.finished")]
    TaskFinished,
    /// A final task is to run again.
    #[serde(rename = "task.retried")]
    TaskRetried,
    /// An attempt started.
    #[serde(rename = "attempt.started")]
    AttemptStarted,
    /// An attempt reported progress or output.
    #[serde(rename = "attempt.progress")]
    AttemptProgress,
    /// An attempt ended.
    #[serde(rename = "attempt.ended")]
    AttemptEnded,
    /// A schedule was created, replaced, paused, resumed or triggered.
    #[serde(rename = "schedule.changed")]
    ScheduleChanged,
    /// A schedule was removed.
    #[serde(rename = "schedule.removed")]
    ScheduleRemoved,
    /// Occurrences of a schedule were skipped.
    #[serde(rename = "schedule.skipped")]
    ScheduleSkipped,
    /// A schedule has not succeeded within the time expected of it.
    #[serde(rename = "schedule.overdue")]
    ScheduleOverdue,
    /// A queue was changed, paused, resumed or purged.
    #[serde(rename = "queue.changed")]
    QueueChanged,
    /// A calendar was changed or removed.
    #[serde(rename = "calendar.changed")]
    CalendarChanged,
    /// A node joined, left, or owns other shards now.
    #[serde(rename = "node.changed")]
    NodeChanged,
    /// The clock was stepped.
    #[serde(rename = "clock.stepped")]
    ClockStepped,
    /// A kind of event that this version does not know.
    #[serde(other, rename = "other")]
    Other,
}

impl EventKind {
    /// The word in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::TaskCreated => "task.created",
            EventKind::TaskChanged => "task.changed",
            EventKind::TaskFinished => "task.finished",
            EventKind::TaskRetried => "task.retried",
            EventKind::AttemptStarted => "attempt.started",
            EventKind::AttemptProgress => "attempt.progress",
            EventKind::AttemptEnded => "attempt.ended",
            EventKind::ScheduleChanged => "schedule.changed",
            EventKind::ScheduleRemoved => "schedule.removed",
            EventKind::ScheduleSkipped => "schedule.skipped",
            EventKind::ScheduleOverdue => "schedule.overdue",
            EventKind::QueueChanged => "queue.changed",
            EventKind::CalendarChanged => "calendar.changed",
            EventKind::NodeChanged => "node.changed",
            EventKind::ClockStepped => "clock.stepped",
            EventKind::Other => "other",
        }
    }
}

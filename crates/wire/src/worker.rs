//! What workers say and hear: claim, heartbeat, complete.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::json::present;
use crate::{Duration, Json, Pairs, Timestamp};

/// Ask a queue for ready tasks with a `worker` target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// The most tasks to hand out. Default: 1.
    #[serde(default = "one")]
    #[schema(minimum = 1, default = 1)]
    pub max: u32,
    /// How long to wait for the first one when there is none. Default: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Duration>,
    /// A name for the worker, for people to find it by. Default: the address it calls from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Only tasks of these kinds. Default: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

fn one() -> u32 {
    1
}

/// The tasks handed out; none when nothing became ready in time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct ClaimReply {
    /// The tasks, each with its token.
    pub tasks: Vec<ClaimedTask>,
}

/// A task held by a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimedTask {
    /// The task; the same for all its attempts.
    pub id: Uuid,
    /// Entitles to heartbeat and complete this attempt.
    pub token: String,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// Grows with every attempt of the task, so that what it writes to can refuse a stale one;
    /// as text because it does not fit a JSON number in every language.
    pub fence: String,
    /// The queue it came from.
    pub queue: String,
    /// What sort of work it is.
    pub kind: String,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its payload.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub tags: Pairs,
    /// When it was due.
    pub due_at: Timestamp,
    /// The schedule that created it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The planned time of the occurrence it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_time: Option<Timestamp>,
    /// The claim runs out this long after it was handed out or last extended by a heartbeat.
    pub claim_period: Duration,
}

/// A worker is still at it. The body is an array of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatItem {
    /// The attempt's token.
    pub token: String,
    /// Any JSON to show as the task's progress. Default: stays as it is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub progress: Option<Json>,
    /// Text to add to the attempt's output. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// An attempt has ended. The body is an array of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CompleteItem {
    /// The attempt's token.
    pub token: String,
    /// How it ended.
    pub outcome: CompleteOutcome,
    /// Any JSON to keep as the task's result. Default: none.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// Why it failed. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// With `retry`: wait this long. Default: by the task's backoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_in: Option<Duration>,
}

/// How a worker's attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompleteOutcome {
    /// It did what it was to do.
    Succeeded,
    /// It did not; what follows is decided by the task's retry policy.
    Failed,
    /// It did not; try again after `retry_in`.
    Retry,
    /// Never again: the task becomes `failed`.
    Reject,
    /// Given back; the attempt does not count.
    Release,
}

/// What became of one token. The reply is an array of these, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HoldReply {
    /// The attempt's token.
    pub token: String,
    /// Whether the worker still holds it.
    pub status: HoldStatus,
}

/// Whether a worker holds an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldStatus {
    /// Heartbeat: carry on. Complete: the result counts.
    Yours,
    /// The task was cancelled: stop, then complete or let go.
    Cancelled,
    /// The claim ran out or was never made: stop; no result counts.
    Gone,
}

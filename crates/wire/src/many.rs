//! Cancelling and retrying: one task's reply, and many tasks by filter.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::task::is_false;
use crate::{TaskState, Timestamp};

/// What `DELETE` of a task answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelReply {
    /// The task.
    pub id: Uuid,
    /// Whether it is over already.
    pub state: CancelState,
}

/// How far a cancellation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelState {
    /// It will not start (status 200).
    Cancelled,
    /// An attempt is running and is being stopped (status 202).
    Cancelling,
}

/// Which tasks. Everything given must hold; at least one field must be given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskFilter {
    /// These tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Uuid>,
    /// In this queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// In this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// Of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// With this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Created by this schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Due at or after this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_after: Option<Timestamp>,
    /// Due before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_before: Option<Timestamp>,
}

/// Cancel or retry many tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ManyRequest {
    /// Which tasks.
    pub filter: TaskFilter,
    /// Only count them. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

/// What became of many tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ManyReply {
    /// How many matched.
    pub matched: u64,
    /// How many were changed (0 with `dry_run`).
    pub changed: u64,
    /// How many are still being stopped.
    #[serde(default)]
    pub cancelling: u64,
    /// How many were refused: meanwhile final, or their key taken.
    #[serde(default)]
    pub refused: u64,
    /// Whether more may match: one request changes a bounded number. Ask again.
    #[serde(default)]
    pub more: bool,
    /// Whether nothing was changed because that was asked for.
    #[serde(default)]
    pub dry_run: bool,
}

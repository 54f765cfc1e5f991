//! Deleting history that has been kept long enough.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::task::is_false;

/// Delete history older than it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneRequest {
    /// Only count. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
}

/// What was deleted, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PruneReply {
    /// Tasks that succeeded.
    pub succeeded: u64,
    /// Tasks with another outcome.
    pub other: u64,
    /// Whether there are more: one request deletes a bounded number. Ask again.
    #[serde(default)]
    pub more: bool,
    /// Whether nothing was deleted because that was asked for.
    #[serde(default)]
    pub dry_run: bool,
}

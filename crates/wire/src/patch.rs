//! A change to a task that has not started.
//!
//! What is absent stays as it is. Where a value can be taken away, `null` does so; that is why
//! those fields are an option in an option.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::json::present;
use crate::{Duration, Json, Pairs, Retry, Target, Timestamp};

/// What to change. Namespace, queue, key, concurrency key and id cannot be changed: they decide
/// where the task lives.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskPatch {
    /// Refuse with 409 unless the task still has this version. Default: whatever it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Due this long from now. Not together with `due_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    /// Due at this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// Another kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Another target, as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// Another payload, as a whole; `null` is the payload `null`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// Another priority, from -8 to 7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = -8, maximum = 7)]
    pub priority: Option<i32>,
    /// Another timeout; `null` takes the queue's default.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Duration>)]
    pub timeout: Option<Option<Duration>>,
    /// Another expiry; `null` for never.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Timestamp>)]
    pub expires_at: Option<Option<Timestamp>>,
    /// Another retry policy, as a whole; `null` takes the queue's default.
    #[serde(default, deserialize_with = "nullable", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Retry>)]
    pub retry: Option<Option<Retry>>,
    /// Other tags, as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Pairs>,
}

impl TaskPatch {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        TaskPatch { version: None, ..self.clone() } == TaskPatch::default()
    }
}

/// An absent field is `None`, `null` is `Some(None)`.
fn nullable<'de, T, D>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

//! Queues: limits as given, and with counts as shown.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Duration, Retry, StateCounts};

/// A queue's limits and defaults. `PUT` replaces all of them: what is absent takes its default.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewQueue {
    /// Its name; in a request it may be left to the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many attempts may run at once. Default: 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How many attempts may start per period. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How many attempts with one `concurrency_key` may run at once. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_key_concurrency: Option<u32>,
    /// How many partitions it is split in; concerns new tasks only. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub partitions: Option<u32>,
    /// Whether nothing starts. Default: stays as it is; false for a new queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// What tasks get that do not say. Default: the server's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<QueueDefaults>,
}

/// How many attempts may start per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// The period.
    pub per: Duration,
    /// How many starts each period adds.
    #[schema(minimum = 1)]
    pub count: u32,
    /// How many starts may be saved up. Default: the same as `count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
}

/// What a queue's tasks get that do not say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueDefaults {
    /// How long one attempt may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// What happens after an attempt that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// A queue as shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// The separate world of names it lives in.
    pub namespace: String,
    /// How many attempts may run at once.
    pub concurrency: u32,
    /// How many attempts may start per period; absent without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How many attempts with one `concurrency_key` may run at once; absent without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_key_concurrency: Option<u32>,
    /// How many partitions it is split in.
    pub partitions: u32,
    /// Whether nothing starts.
    pub paused: bool,
    /// What its tasks get that do not say.
    #[serde(default)]
    pub defaults: QueueDefaults,
    /// How many tasks it has in each state; final ones as long as history is kept.
    pub counts: StateCounts,
}

/// What `purge` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PurgeReply {
    /// How many waiting tasks were cancelled.
    pub cancelled: u64,
    /// Whether there are more: one request changes a bounded number. Ask again.
    #[serde(default)]
    pub more: bool,
}

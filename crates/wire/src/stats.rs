//! Counts, and percentiles of lateness and duration.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;

/// How many tasks there are in each state, from kept counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct StateCounts {
    /// Waiting for their due time.
    pub scheduled: u64,
    /// Due, waiting to start.
    pub ready: u64,
    /// With an attempt under way.
    pub running: u64,
    /// Succeeded, as long as history is kept.
    pub succeeded: u64,
    /// Failed, as long as history is kept.
    pub failed: u64,
    /// Cancelled, as long as history is kept.
    pub cancelled: u64,
    /// Expired, as long as history is kept.
    pub expired: u64,
    /// Skipped, as long as history is kept.
    pub skipped: u64,
}

/// Percentiles of a time in milliseconds, from log-bucketed histograms.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Percentiles {
    /// How many values.
    pub count: u64,
    /// Half were no longer than this.
    pub p50: f64,
    /// 90 of 100 were no longer than this.
    pub p90: f64,
    /// 95 of 100 were no longer than this.
    pub p95: f64,
    /// 99 of 100 were no longer than this.
    pub p99: f64,
    /// None was longer than this.
    pub max: f64,
}

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stats {
    /// The server's time.
    pub now: Timestamp,
    /// The start of the span that outcomes and percentiles cover; it ends now.
    pub since: Timestamp,
    /// Tasks by state, over all queues.
    pub counts: StateCounts,
    /// Attempts started in the span.
    pub started: u64,
    /// Attempt start minus due time, in milliseconds.
    pub lateness_ms: Percentiles,
    /// How long attempts took, in milliseconds.
    pub duration_ms: Percentiles,
    /// How many schedules there are.
    #[serde(default)]
    pub schedules: u64,
    /// Per queue.
    pub queues: Vec<QueueStats>,
    /// Per queue and kind, the busiest first.
    pub kinds: Vec<KindStats>,
}

/// How one queue is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueStats {
    /// The queue.
    pub queue: String,
    /// Whether nothing starts.
    #[serde(default)]
    pub paused: bool,
    /// Its limit of running attempts.
    #[serde(default)]
    pub concurrency: u32,
    /// Tasks by state.
    pub counts: StateCounts,
    /// Attempts started in the span.
    pub started: u64,
    /// Attempts that succeeded in the span.
    pub succeeded: u64,
    /// Attempts that did not, in the span.
    pub failed: u64,
    /// Attempt start minus due time, in milliseconds.
    pub lateness_ms: Percentiles,
    /// How long attempts took, in milliseconds.
    pub duration_ms: Percentiles,
}

/// How one kind of task of one queue is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KindStats {
    /// The queue.
    pub queue: String,
    /// The kind; `other` stands for kinds beyond the bound.
    pub kind: String,
    /// Attempts started in the span.
    pub started: u64,
    /// Attempts that succeeded in the span.
    pub succeeded: u64,
    /// Attempts that did not, in the span.
    pub failed: u64,
    /// Attempt start minus due time, in milliseconds.
    pub lateness_ms: Percentiles,
    /// How long attempts took, in milliseconds.
    pub duration_ms: Percentiles,
}

/// Figures over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Series {
    /// How long each point covers, in seconds.
    pub step_secs: u64,
    /// The points, earliest first; a point in which nothing happened is there with zeros.
    pub points: Vec<SeriesPoint>,
}

/// Figures of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeriesPoint {
    /// The start of the step.
    pub at: Timestamp,
    /// Tasks created.
    #[serde(default)]
    pub created: u64,
    /// Attempts started.
    pub started: u64,
    /// Attempts that succeeded.
    pub succeeded: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Attempts that timed out.
    #[serde(default)]
    pub timed_out: u64,
    /// Attempts that were lost.
    #[serde(default)]
    pub lost: u64,
    /// Attempts or tasks that were cancelled.
    #[serde(default)]
    pub cancelled: u64,
    /// Occurrences that were skipped.
    #[serde(default)]
    pub skipped: u64,
    /// Attempt start minus due time, in milliseconds.
    pub lateness_ms: Percentiles,
    /// How long attempts took, in milliseconds.
    pub duration_ms: Percentiles,
}

//! A queue: a named line of work with its own limits.

use serde::{Deserialize, Serialize};

use crate::id::{NamespaceId, QueueId};
use crate::task::Retry;

/// Attempts of one queue that may be under way, unless configured.
pub const DEFAULT_CONCURRENCY: u32 = 64;

/// Tokens per period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// The period, in microseconds; positive.
    pub per: i64,
    /// Starts allowed in a period; positive.
    pub count: u32,
    /// Starts that may be saved up; at least 1.
    pub burst: u32,
}

/// What a user sets of a queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueConfig {
    /// Attempts under way at once, over all partitions; at least 1.
    pub concurrency: u32,
    /// Starts per time.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Attempts under way at once for one concurrency key.
    #[serde(default)]
    pub per_key_concurrency: Option<u32>,
    /// Partitions of new tasks; at least 1.
    pub partitions: u16,
    /// Whether nothing starts.
    #[serde(default)]
    pub paused: bool,
    /// Attempt timeout where the task gives none, in microseconds.
    #[serde(default)]
    pub timeout: Option<i64>,
    /// Retry policy where the task gives none.
    #[serde(default)]
    pub retry: Retry,
}

impl Default for QueueConfig {
    fn default() -> Self {
        QueueConfig {
            concurrency: DEFAULT_CONCURRENCY,
            rate: None,
            per_key_concurrency: None,
            partitions: 1,
            paused: false,
            timeout: None,
            retry: Retry::default(),
        }
    }
}

/// A queue as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueRecord {
    /// Its interned id.
    pub id: QueueId,
    /// The namespace's interned id.
    pub namespace: NamespaceId,
    /// The namespace's name.
    pub namespace_name: String,
    /// Its name.
    pub name: String,
    /// Grows with every change.
    pub version: u32,
    /// The most partitions it ever had: tasks may still live in the higher ones.
    pub partitions_ever: u16,
    /// What the user set.
    pub config: QueueConfig,
}

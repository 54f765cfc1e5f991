//! Nodes and workers: who is there.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Timestamp;

/// One server process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Its name.
    pub id: String,
    /// The address other nodes and clients reach it at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The version of its program.
    pub version: String,
    /// When it started.
    pub started_at: Timestamp,
    /// When its leases were last renewed.
    pub last_seen_at: Timestamp,
    /// Whether this is the node that answers.
    #[serde(default)]
    pub this: bool,
    /// Whether it takes on no more work because it is shutting down.
    #[serde(default)]
    pub draining: bool,
    /// How many shards it owns.
    pub shards: u32,
    /// How many shards there are.
    pub shards_total: u32,
    /// The latest shard epoch it holds.
    #[serde(default)]
    pub epoch: u64,
    /// How many attempts run on it or are claimed through it.
    #[serde(default)]
    pub running: u64,
    /// The store it uses: `memory`, `sqlite` or `postgres`.
    #[serde(default)]
    pub store: String,
}

/// A client that claims tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    /// The name it gives.
    pub worker: String,
    /// The queues it claims from.
    pub queues: Vec<String>,
    /// The kinds it asks for; empty for any.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// When it first claimed since the node started.
    pub first_seen_at: Timestamp,
    /// When it last claimed, sent a heartbeat or completed.
    pub last_seen_at: Timestamp,
    /// How many attempts it holds.
    pub running: u64,
    /// How many attempts it completed since the node started.
    #[serde(default)]
    pub completed: u64,
}

//! What a node is told at its start, with every default.

use std::path::PathBuf;
use std::time::Duration;

use tourbillon_engine::EngineConfig;
use tourbillon_store::Time;

/// Settings of a node.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Its name, in every attempt it makes. Default: host name and process id.
    pub name: String,
    /// Its data folder, where secrets are looked up. Default none.
    pub data_dir: Option<PathBuf>,
    /// Whether `http` targets may call private, loopback and link-local addresses. Default no.
    pub allow_private_targets: bool,
    /// Bytes of tasks that are accepted and not yet written. Default 256 MiB.
    pub max_accept_bytes: u64,
    /// How long succeeded tasks are kept in history. Default 7 days.
    pub keep_succeeded: Duration,
    /// How long all other finished tasks are kept. Default 30 days.
    pub keep_others: Duration,
    /// How long statistics are kept, a row per minute and shard in which something happened.
    /// Default 7 days.
    pub keep_statistics: Duration,
    /// Rows deleted between two batches by retention. Default 500.
    pub prune_chunk: u32,
    /// Messages kept for a watcher that falls behind; older ones are dropped. Default 4,096.
    pub max_notices: usize,
    /// The engine's bounds and defaults.
    pub engine: EngineConfig,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            name: default_name(),
            data_dir: None,
            allow_private_targets: false,
            max_accept_bytes: 256 << 20,
            keep_succeeded: Duration::from_secs(7 * 24 * 3_600),
            keep_others: Duration::from_secs(30 * 24 * 3_600),
            keep_statistics: Duration::from_secs(7 * 24 * 3_600),
            prune_chunk: 500,
            max_notices: 4_096,
            engine: EngineConfig::default(),
        }
    }
}

/// What finished before this moment is kept no longer.
pub(crate) fn kept_from(now: Time, keep: Duration) -> Time {
    now.plus(-i64::try_from(keep.as_micros()).unwrap_or(i64::MAX))
}

fn default_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "node" } else { host };
    format!("{host}-{}", std::process::id())
}

//! The engine's bounds and defaults, each in one place.

use tourbillon_store::task::{Backoff, BackoffShape};
use tourbillon_store::time::{MILLI, MINUTE, SECOND};

/// What an engine is told at its birth. Durations are microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineConfig {
    /// The node's name, written into every attempt.
    pub node: String,
    /// How far ahead of now tasks are loaded, and further to the end of the store's bucket.
    /// Default 10 min.
    pub window: i64,
    /// Stubs held in memory. Default 1,000,000. Overdue backlogs may go past it by
    /// [`EngineConfig::overdue_chunk`] per busy partition.
    pub max_resident: usize,
    /// Stubs read in one load. Default 100,000.
    pub load_chunk: usize,
    /// Overdue stubs of a partition read at once, and kept ready beyond `max_resident`; while
    /// memory is full, four times as many are read of all and marked at once. Default 4,096.
    pub overdue_chunk: usize,
    /// Bytes of payloads of attempts under way and about to start. Default 256 MiB.
    pub max_payload_bytes: u64,
    /// Writes in one batch; a larger atomic request is a batch of its own. Default 8,000.
    pub batch_max: usize,
    /// How long a batch that nobody waits for may gather. Default 2 ms.
    pub linger: i64,
    /// Writes that may wait before new work is refused. Default 100,000.
    pub max_pending_writes: usize,
    /// Attempts of which the start or the end waits to be written, beyond which none is started.
    /// Default 16,000.
    pub max_unsent_attempts: usize,
    /// Waiting claims per queue. Default 1,000.
    pub max_waiting_claims: usize,
    /// Timers handled in one step. Default 10,000.
    pub timer_budget: usize,
    /// An attempt is not started when its shard's lease ends within this. Default 500 ms.
    pub lease_margin: i64,
    /// Longest `http` attempt where neither task nor queue says. Default 30 s.
    pub http_timeout: i64,
    /// Longest `command` attempt where neither task nor queue says. Default 1 h.
    pub command_timeout: i64,
    /// How long a worker's claim holds where neither task nor queue says. Default 60 s.
    pub claim_timeout: i64,
    /// Attempts where neither task nor queue says. Default 5.
    pub max_attempts: u32,
    /// Lost attempts where neither task nor queue says. Default 3.
    pub max_lost: u32,
    /// Backoff where neither task nor queue says. Default 1 s × 2 up to 1 h, full jitter.
    pub backoff: Backoff,
    /// Kinds told apart per queue in the statistics; further ones count as `other`. Default
    /// 1,000.
    pub max_kinds: usize,
    /// Longest time between an event and the statistics that count it being written. What was not
    /// written is not counted after a crash. Default 1 s.
    pub stats_every: i64,
    /// First wait after a failed commit, doubled up to 5 s. Default 50 ms.
    pub commit_backoff: i64,
    /// Seed of jitter and nonces. The same seed and events give the same effects.
    pub seed: u64,
    /// Whether [`crate::api::Effect::Publish`] is wanted.
    pub publish: bool,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            node: "node".to_owned(),
            window: 10 * MINUTE,
            max_resident: 1_000_000,
            load_chunk: 100_000,
            overdue_chunk: 4_096,
            max_payload_bytes: 256 << 20,
            batch_max: 8_000,
            linger: 2 * MILLI,
            max_pending_writes: 100_000,
            max_unsent_attempts: 16_000,
            max_waiting_claims: 1_000,
            timer_budget: 10_000,
            lease_margin: 500 * MILLI,
            http_timeout: 30 * SECOND,
            command_timeout: 60 * MINUTE,
            claim_timeout: 60 * SECOND,
            max_attempts: 5,
            max_lost: 3,
            backoff: Backoff {
                shape: BackoffShape::Exponential,
                initial: SECOND,
                factor: 2.0,
                max: 60 * MINUTE,
                full_jitter: true,
            },
            max_kinds: 1_000,
            stats_every: SECOND,
            commit_backoff: 50 * MILLI,
            seed: 0,
            publish: false,
        }
    }
}

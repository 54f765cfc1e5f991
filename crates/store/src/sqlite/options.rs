//! How a SQLite store is opened. Every bound is a field with its default.

use std::time::Duration;

/// When SQLite waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// Never: a power failure may lose or destroy everything. For tests of the tests.
    Off,
    /// At checkpoints: a power failure may lose what was acknowledged.
    Normal,
    /// At every commit.
    #[default]
    Full,
}

impl Synchronous {
    /// The number that SQLite reads back.
    pub(super) fn code(self) -> i64 {
        match self {
            Synchronous::Off => 0,
            Synchronous::Normal => 1,
            Synchronous::Full => 2,
        }
    }
}

/// Options of a SQLite store; the defaults are right for use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    /// When to wait for the disk. Anything but `Full` is reported as not durable.
    pub synchronous: Synchronous,
    /// A registered SQLite VFS to use instead of the platform's.
    pub vfs: Option<String>,
    /// Page cache of the writer, in bytes. Default 64 MiB.
    pub writer_cache_bytes: u64,
    /// Page cache of each reader, in bytes. Default 8 MiB.
    pub reader_cache_bytes: u64,
    /// Connections for reading. Default 4, at least 1.
    pub readers: usize,
    /// Longest question, and longest wait for a free reader. Default 2 s.
    pub read_max: Duration,
    /// Longest wait for a lock of SQLite's. Default 5 s.
    pub busy_max: Duration,
    /// Longest time between a commit and the next checkpoint. Default 1 s.
    pub checkpoint_every: Duration,
    /// Write-ahead log from which a checkpoint starts at once, in bytes. Default 16 MiB.
    pub wal_checkpoint_bytes: u64,
    /// Write-ahead log at which the writer pauses between batches until it starts anew, in
    /// bytes. Default 256 MiB.
    pub wal_pause_bytes: u64,
    /// Write-ahead log at which commits are refused as busy, in bytes, before the batch that
    /// would grow it. Default 512 MiB.
    pub wal_max_bytes: u64,
    /// Largest database, in bytes; beyond it commits fail as on a full disk. Default none.
    pub database_max_bytes: Option<u64>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        SqliteOptions {
            synchronous: Synchronous::default(),
            vfs: None,
            writer_cache_bytes: 64 << 20,
            reader_cache_bytes: 8 << 20,
            readers: 4,
            read_max: Duration::from_secs(2),
            busy_max: Duration::from_secs(5),
            checkpoint_every: Duration::from_secs(1),
            wal_checkpoint_bytes: 16 << 20,
            wal_pause_bytes: 256 << 20,
            wal_max_bytes: 512 << 20,
            database_max_bytes: None,
        }
    }
}

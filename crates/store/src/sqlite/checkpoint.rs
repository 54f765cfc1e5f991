//! Keeping the write-ahead log small without making commits wait.
//!
//! A thread moves the log's pages into the database (a PASSIVE checkpoint: it waits for nobody)
//! some time after each commit, or at once when the log has grown. Under steady load that alone
//! never lets the log start anew, so from a size on the writer pauses between two batches for a
//! RESTART. Readers are bounded in time, so that ends soon; if it does not, and the log reaches its
//! bound, commits are refused as busy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

use crate::error::{StoreError, StoreErrorKind};

/// Bytes of a log frame beside its page.
const FRAME_HEADER: u64 = 24;

/// How long the end of the store may wait for the last readers.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// The bounds, in bytes and time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) every: Duration,
    pub(super) nudge_bytes: u64,
    pub(super) pause_bytes: u64,
    pub(super) max_bytes: u64,
}

#[derive(Debug, Default)]
struct Signal {
    dirty: bool,
    nudged: bool,
    stop: bool,
}

struct Shared {
    conn: Mutex<Connection>,
    signal: Mutex<Signal>,
    changed: Condvar,
    bounds: Bounds,
    frame_bytes: u64,
    frames: Arc<AtomicU64>,
    finished: AtomicU64,
}

/// See the module. Dropping it stops the thread and empties the log, in bounded time.
pub(super) struct Checkpointer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Checkpointer {
    /// Starts the thread. `frames` is how long the log is, as the writer's commits tell.
    pub(super) fn start(
        conn: Connection,
        bounds: Bounds,
        frames: Arc<AtomicU64>,
    ) -> Result<Checkpointer, StoreError> {
        let page_size: i64 = conn.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        let shared = Arc::new(Shared {
            conn: Mutex::new(conn),
            signal: Mutex::default(),
            changed: Condvar::new(),
            bounds,
            frame_bytes: page_size.unsigned_abs() + FRAME_HEADER,
            frames,
            finished: AtomicU64::new(0),
        });
        let worker = shared.clone();
        let thread = std::thread::Builder::new()
            .name("sqlite-checkpoint".to_owned())
            .spawn(move || worker.run())
            .map_err(|error| {
                StoreError::new(StoreErrorKind::Io, format!("cannot start a thread: {error}"))
            })?;
        Ok(Checkpointer { shared, thread: Some(thread) })
    }

    /// Bytes of the write-ahead log.
    pub(super) fn wal_bytes(&self) -> u64 {
        self.shared.frames.load(Ordering::Relaxed) * self.shared.frame_bytes
    }

    /// Checkpoints that moved everything.
    pub(super) fn finished(&self) -> u64 {
        self.shared.finished.load(Ordering::Relaxed)
    }

    /// Called by the writer before a batch, outside any transaction.
    pub(super) fn make_room(&self) -> Result<(), StoreError> {
        if self.wal_bytes() < self.shared.bounds.pause_bytes {
            return Ok(());
        }
        if self.shared.checkpoint(CheckpointMode::RESTART) {
            // The next frame is the log's first.
            self.shared.frames.store(0, Ordering::Relaxed);
        } else if self.wal_bytes() >= self.shared.bounds.max_bytes {
            return Err(StoreError::new(
                StoreErrorKind::Busy,
                format!(
                    "sqlite: the write-ahead log has reached its bound of {} bytes and cannot \
                     start anew",
                    self.shared.bounds.max_bytes
                ),
            ));
        }
        Ok(())
    }

    /// Called by the writer after a batch.
    pub(super) fn committed(&self) {
        let nudged = self.wal_bytes() >= self.shared.bounds.nudge_bytes;
        let mut signal = lock(&self.shared.signal);
        let idle = !signal.dirty;
        signal.dirty = true;
        signal.nudged |= nudged;
        drop(signal);
        if idle || nudged {
            self.shared.changed.notify_one();
        }
    }
}

impl Shared {
    fn run(&self) {
        loop {
            {
                let signal = lock(&self.signal);
                let signal = self
                    .changed
                    .wait_while(signal, |s| !s.stop && !s.dirty)
                    .unwrap_or_else(PoisonError::into_inner);
                let (mut signal, _) = self
                    .changed
                    .wait_timeout_while(signal, self.bounds.every, |s| !s.stop && !s.nudged)
                    .unwrap_or_else(PoisonError::into_inner);
                if signal.stop {
                    return;
                }
                (signal.dirty, signal.nudged) = (false, false);
            }
            if !self.checkpoint(CheckpointMode::PASSIVE) {
                // A reader was in the way: once more after the usual time.
                lock(&self.signal).dirty = true;
            }
        }
    }

    /// Runs a checkpoint; answers whether everything was moved. What fails here is tried again,
    /// and a disk that fails for good shows in the next commit.
    fn checkpoint(&self, mode: CheckpointMode) -> bool {
        let conn = lock(&self.conn);
        match conn.wal_checkpoint_v2(None::<&str>, mode) {
            Ok((log, moved)) if log == moved => {
                self.finished.fetch_add(1, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        lock(&self.shared.signal).stop = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It panics only if SQLite's binding does; there is nothing to save then.
            let _ = thread.join();
        }
        let _ = lock(&self.shared.conn).busy_timeout(LAST_WAIT);
        self.shared.checkpoint(CheckpointMode::TRUNCATE);
    }
}

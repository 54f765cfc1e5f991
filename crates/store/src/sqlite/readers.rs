//! A bounded pool of connections that only read.
//!
//! A question gets a connection to itself and one snapshot, for a bounded time: SQLite's progress
//! handler ends what takes longer, because an old snapshot keeps the write-ahead log from being
//! started anew. Walks that may be long give their snapshot up between steps ([`Reader::renew`]).

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::error::{StoreError, StoreErrorKind};
use crate::task::kind_hash;

use super::catalog::Kinds;

/// Virtual machine steps between looks at the clock: about a millisecond.
const STEPS: i32 = 20_000;

/// Kind hashes one reader remembers.
const HASHES_MAX: usize = 10_000;

/// One connection.
pub(super) struct Reader {
    pub(super) conn: Connection,
    pub(super) kinds: Kinds,
    hashes: HashMap<u32, u64>,
    started: Instant,
    /// Milliseconds after `started` when the question is ended.
    deadline: Arc<AtomicU64>,
    max: Duration,
}

impl Reader {
    /// A reader on a connection that may only read.
    pub(super) fn new(mut conn: Connection, max: Duration) -> Result<Reader, StoreError> {
        conn.set_prepared_statement_cache_capacity(64);
        let started = Instant::now();
        let deadline = Arc::new(AtomicU64::new(u64::MAX));
        let seen = deadline.clone();
        let late = move || started.elapsed().as_millis() as u64 > seen.load(Ordering::Relaxed);
        conn.progress_handler(STEPS, Some(late))?;
        let (kinds, hashes) = (Kinds::default(), HashMap::new());
        Ok(Reader { conn, kinds, hashes, started, deadline, max })
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        let end = self.started.elapsed() + self.max;
        self.deadline.store(end.as_millis() as u64, Ordering::Relaxed);
        self.conn.prepare_cached("BEGIN")?.execute([])?;
        Ok(())
    }

    fn end(&mut self) {
        self.deadline.store(u64::MAX, Ordering::Relaxed);
        if !self.conn.is_autocommit() {
            // Nothing was written; a connection that cannot even end its snapshot says so next.
            let _ = self.conn.execute_batch("COMMIT");
        }
    }

    /// Between two steps of a long walk: a new snapshot and a new deadline when the old one has
    /// used a quarter of its time. Answers whether it did.
    pub(super) fn renew(&mut self) -> Result<bool, StoreError> {
        let now = self.started.elapsed().as_millis() as u64;
        let left = self.deadline.load(Ordering::Relaxed).saturating_sub(now);
        if u128::from(left) > self.max.as_millis() * 3 / 4 {
            return Ok(false);
        }
        self.end();
        self.begin()?;
        Ok(true)
    }

    /// The hash of a kind that a committed row has.
    pub(super) fn kind_hash(&mut self, id: u32) -> Result<u64, StoreError> {
        if let Some(hash) = self.hashes.get(&id) {
            return Ok(*hash);
        }
        let hash = kind_hash(&self.kinds.name(&self.conn, id)?);
        if self.hashes.len() >= HASHES_MAX {
            self.hashes.clear();
        }
        self.hashes.insert(id, hash);
        Ok(hash)
    }
}

/// See the module.
pub(super) struct Readers {
    idle: Mutex<Vec<Reader>>,
    returned: Condvar,
    max: Duration,
}

/// A reader for one question, inside a snapshot. Goes back to the pool when dropped.
pub(super) struct Question<'a> {
    reader: Option<Reader>,
    pool: &'a Readers,
}

impl Readers {
    /// A pool of these connections, 1 or more.
    pub(super) fn new(idle: Vec<Reader>, max: Duration) -> Readers {
        Readers { idle: Mutex::new(idle), returned: Condvar::new(), max }
    }

    /// Waits for a free reader and begins a snapshot.
    pub(super) fn question(&self) -> Result<Question<'_>, StoreError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut idle, _) = self
            .returned
            .wait_timeout_while(idle, self.max, |idle| idle.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let reader = idle.pop();
        drop(idle);
        let busy = || StoreError::new(StoreErrorKind::Busy, "sqlite: all readers are busy");
        let mut question = Question { reader: Some(reader.ok_or_else(busy)?), pool: self };
        question.begin()?;
        Ok(question)
    }
}

impl Deref for Question<'_> {
    type Target = Reader;
    fn deref(&self) -> &Reader {
        self.reader.as_ref().expect("a question has its reader until it is dropped")
    }
}

impl DerefMut for Question<'_> {
    fn deref_mut(&mut self) -> &mut Reader {
        self.reader.as_mut().expect("a question has its reader until it is dropped")
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        if let Some(mut reader) = self.reader.take() {
            reader.end();
            self.pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            self.pool.returned.notify_one();
        }
    }
}

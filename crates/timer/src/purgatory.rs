//! Operations that wait for a condition or for a deadline, whichever comes first.
//!
//! ```text
//!   watch(operation, keys, limit)          check(key)
//!            |                                 |  something has changed under this key
//!            v                                 v
//!   satisfied already? --no--> watched under its keys  <--- looked at again, in order
//!            |                     |              |
//!            yes                 limit passes   satisfied now
//!            v                     v              v
//!          complete(Satisfied)   complete(Expired)   complete(Satisfied)        exactly one of them
//! ```
//!
//! # What always holds
//!
//! - **Exactly once.** An operation is completed once, or given back once by [`cancel`](Purgatory::cancel).
//!   Who takes it out of its entry, under the entry's lock, is the one.
//! - **No change is missed.** An operation is looked at after it is watched under all of its keys; a check
//!   that finds it being looked at has it looked at once more.
//! - **Nothing stays.** A completed operation is out of all lists and out of the timer's wheel at once.
//! - **No lock is held while an operation completes**, and none but its own while it is asked whether it
//!   is satisfied.
//!
//! The idea is Kafka's, which keeps requests that wait for data or for acknowledgements this way.
//! Deliberately absent: a reaper for what completed early, since that is not kept.

use std::borrow::Borrow;
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use crate::sync::relock;
use crate::timer::{JobHandle, Refused, Timer};

/// Parts of the key space with a lock each.
const PARTS: usize = 16;

/// What waits in a [`Purgatory`].
pub trait Operation: Send + 'static {
    /// Whether what it waits for is there. Called when it is watched and with each check of one of its
    /// keys, by one thread at a time, under a lock of its own. It may use the purgatory; a check of
    /// its own keys from here has it asked once more, so it must come to an end.
    fn is_satisfied(&mut self) -> bool;

    /// It is over: called exactly once, on the thread that saw to it, and by the timer's
    /// [workers](crate::Builder::workers) when its limit has passed.
    fn complete(self, how: Completion);
}

/// Why an operation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// It was satisfied.
    Satisfied,
    /// Its limit has passed.
    Expired,
}

/// What became of an operation that was to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// It was satisfied and has been completed.
    Completed,
    /// It waits.
    Waiting,
}

/// Operations under keys, each until it is satisfied or its limit has passed.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::time::Duration;
/// use tourbillon::Timer;
/// use tourbillon::purgatory::{Completion, Operation, Purgatory, Watch};
///
/// /// Answers a reader when a log has grown to what it asked for.
/// struct Fetch { log: Arc<AtomicU64>, wanted: u64 }
///
/// impl Operation for Fetch {
///     fn is_satisfied(&mut self) -> bool {
///         self.log.load(Ordering::SeqCst) >= self.wanted
///     }
///     fn complete(self, how: Completion) {
///         println!("{} of {}: {how:?}", self.log.load(Ordering::SeqCst), self.wanted);
///     }
/// }
///
/// let purgatory = Purgatory::new(Timer::new());
/// let log = Arc::new(AtomicU64::new(0));
/// let fetch = Fetch { log: log.clone(), wanted: 2 };
/// assert_eq!(purgatory.watch(fetch, ["orders"], Duration::from_secs(30))?, Watch::Waiting);
///
/// for _ in 0..2 {
///     log.fetch_add(1, Ordering::SeqCst);
///     purgatory.check("orders"); // the second one completes it
/// }
/// assert_eq!(purgatory.len(), 0);
/// # Ok::<(), tourbillon::purgatory::NotWatched<Fetch>>(())
/// ```
pub struct Purgatory<K, O> {
    shared: Arc<Shared<K, O>>,
    timer: Timer,
}

struct Shared<K, O> {
    parts: Box<[Mutex<Part<K, O>>]>,
    hasher: RandomState,
    next: AtomicU64,
    len: AtomicUsize,
}

/// The operations under a key, in the order in which they came.
type Watchers<K, O> = BTreeMap<u64, Arc<Entry<K, O>>>;

type Part<K, O> = HashMap<K, Watchers<K, O>>;

struct Entry<K, O> {
    number: u64,
    keys: Vec<K>,
    /// The operation, until somebody has taken it out to complete it.
    operation: Mutex<Option<O>>,
    /// It is to be looked at once more by whoever is at it. So nobody may hold the operation's lock but
    /// to ask it, or to take it out.
    again: AtomicBool,
    /// The operation has been taken out.
    over: AtomicBool,
    /// The timer's job for its limit.
    limit: Mutex<Option<JobHandle<()>>>,
}

impl<K, O> Purgatory<K, O>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    O: Operation,
{
    /// An empty one whose limits are kept by this timer.
    #[must_use]
    pub fn new(timer: Timer) -> Self {
        let parts = (0..PARTS).map(|_| Mutex::new(HashMap::new())).collect();
        let shared = Shared {
            parts,
            hasher: RandomState::new(),
            next: AtomicU64::new(0),
            len: AtomicUsize::new(0),
        };
        Self { shared: Arc::new(shared), timer }
    }

    /// Completes an operation that is satisfied; otherwise watches it under these keys for at most
    /// `limit`. A key that is given twice counts once.
    ///
    /// # Errors
    ///
    /// When the timer refuses the limit: then the operation comes back and is not watched.
    pub fn watch(
        &self,
        operation: O,
        keys: impl IntoIterator<Item = K>,
        limit: Duration,
    ) -> Result<Watch, NotWatched<O>> {
        let mut operation = operation;
        if operation.is_satisfied() {
            operation.complete(Completion::Satisfied);
            return Ok(Watch::Completed);
        }
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let entry = Arc::new(Entry {
            number,
            keys: keys.into_iter().collect(),
            operation: Mutex::new(Some(operation)),
            again: AtomicBool::new(false),
            over: AtomicBool::new(false),
            limit: Mutex::new(None),
        });
        self.shared.len.fetch_add(1, Ordering::Relaxed);
        let (shared, expiring) = (Arc::clone(&self.shared), Arc::clone(&entry));
        let armed = self.timer.after(limit, move || {
            if let Some(operation) = shared.take(&expiring) {
                operation.complete(Completion::Expired);
            }
        });
        match armed {
            Ok(job) => *relock(&entry.limit) = Some(job),
            Err(why) => {
                let operation = self.shared.take(&entry);
                // Nobody else knows it yet.
                return operation
                    .map_or(Ok(Watch::Completed), |operation| Err(NotWatched { operation, why }));
            }
        }
        for key in &entry.keys {
            let mut part = self.shared.part(key);
            part.entry(key.clone()).or_default().insert(number, Arc::clone(&entry));
        }
        // What changed before it was watched is seen here; what changes from here on is checked.
        let completed = self.shared.attempt(&entry);
        // Whoever completed it while it was being watched may have come before some of the lists.
        if !completed && entry.over.load(Ordering::SeqCst) {
            self.shared.forget(&entry);
        }
        Ok(if completed { Watch::Completed } else { Watch::Waiting })
    }

    /// Something has changed under this key: asks the operations that are watched under it, in the order
    /// in which they came, and completes those that are satisfied. Gives their number.
    pub fn check<Q>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let watchers: Vec<_> = match self.shared.part(key).get(key) {
            Some(watchers) => watchers.values().cloned().collect(),
            None => return 0,
        };
        watchers.iter().filter(|entry| self.shared.attempt(entry)).count()
    }

    /// Takes out the operations that are watched under this key, also from under their other keys. They
    /// are not completed.
    pub fn cancel<Q>(&self, key: &Q) -> Vec<O>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let watchers: Vec<_> = match self.shared.part(key).get(key) {
            Some(watchers) => watchers.values().cloned().collect(),
            None => return Vec::new(),
        };
        watchers.iter().filter_map(|entry| self.shared.take(entry)).collect()
    }

    /// How many operations wait.
    pub fn len(&self) -> usize {
        self.shared.len.load(Ordering::Relaxed)
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many operations are watched under this key.
    pub fn watched<Q>(&self, key: &Q) -> usize
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shared.part(key).get(key).map_or(0, BTreeMap::len)
    }

    /// How many keys operations are watched under. Looks at all parts one after the other.
    pub fn keys(&self) -> usize {
        self.shared.parts.iter().map(|part| relock(part).len()).sum()
    }
}

impl<K, O> Shared<K, O>
where
    K: Hash + Eq,
    O: Operation,
{
    fn part<Q>(&self, key: &Q) -> std::sync::MutexGuard<'_, Part<K, O>>
    where
        Q: Hash + ?Sized,
    {
        relock(&self.parts[self.hasher.hash_one(key) as usize % PARTS])
    }

    /// Asks an operation whether it is satisfied, and completes it then. True when this call did.
    fn attempt(&self, entry: &Entry<K, O>) -> bool {
        entry.again.store(true, Ordering::SeqCst);
        loop {
            let mut held = match entry.operation.try_lock() {
                Ok(held) => held,
                Err(TryLockError::Poisoned(held)) => held.into_inner(),
                // Whoever is at it looks at `again` when it has let go.
                Err(TryLockError::WouldBlock) => return false,
            };
            while entry.again.swap(false, Ordering::SeqCst) {
                if held.as_mut().is_some_and(Operation::is_satisfied) {
                    let operation = held.take();
                    drop(held);
                    if let Some(operation) = operation {
                        self.leave(entry);
                        operation.complete(Completion::Satisfied);
                    }
                    return true;
                }
            }
            let over = held.is_none();
            drop(held);
            if over || !entry.again.load(Ordering::SeqCst) {
                return false;
            }
        }
    }

    /// Takes an operation out, for whoever comes first.
    fn take(&self, entry: &Entry<K, O>) -> Option<O> {
        let operation = relock(&entry.operation).take()?;
        self.leave(entry);
        Some(operation)
    }

    /// An operation was taken out: its limit and its places in the lists go.
    fn leave(&self, entry: &Entry<K, O>) {
        entry.over.store(true, Ordering::SeqCst);
        self.len.fetch_sub(1, Ordering::Relaxed);
        let limit = relock(&entry.limit).take();
        if let Some(limit) = limit {
            limit.cancel();
        }
        self.forget(entry);
    }

    fn forget(&self, entry: &Entry<K, O>) {
        for key in &entry.keys {
            let mut part = self.part(key);
            if let Some(watchers) = part.get_mut(key) {
                watchers.remove(&entry.number);
                if watchers.is_empty() {
                    part.remove(key);
                }
            }
        }
    }
}

impl<K, O> Clone for Purgatory<K, O> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), timer: self.timer.clone() }
    }
}

impl<K, O> fmt::Debug for Purgatory<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Purgatory")
            .field("len", &self.shared.len.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

/// An operation that is not watched, because the timer refused to keep its limit.
pub struct NotWatched<O> {
    /// The operation.
    pub operation: O,
    /// Why.
    pub why: Refused,
}

impl<O> fmt::Debug for NotWatched<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotWatched").field("why", &self.why).finish_non_exhaustive()
    }
}

impl<O> fmt::Display for NotWatched<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the operation is not watched: {}", self.why)
    }
}

impl<O> Error for NotWatched<O> {}

//! A queue whose items can be taken when their time has come: by threads, by tasks, by many of each.
//!
//! [`DelayQueue`] is what `java.util.concurrent.DelayQueue` and tokio-util's `DelayQueue` are, in one:
//! shared by all who insert and all who consume, blocking or asynchronous, without a runtime. Retries,
//! expiring sessions, orders that nobody paid: insert them with their delay, and let workers
//! [`poll`](DelayQueue::poll).
//!
//! ```text
//!   producers                     the queue, one lock                  consumers
//!
//!   insert  ------.      +-------------------------------+
//!   insert_at -----+---->|  items, by deadline           |
//!   reset, remove -'     |  12:00:03  12:00:07  12:00:09 |
//!                        +-------------------------------+
//!     an item that becomes the first one         ^
//!     wakes the leader, and nobody else          |
//!                                   sleeps until 12:00:03
//!                        +-----------+   +-----------+   +-----------+
//!                        |  leader   |   | follower  |   | follower  |
//!                        |  thread   |   |  task     |   |  thread   |
//!                        +-----------+   +-----------+   +-----------+
//!                    takes the first item       sleep until they lead
//!                        and leaves  ------------->  the next one leads
//! ```
//!
//! # What always holds
//!
//! - **Never early.** A tick is a microsecond; deadlines are rounded up to ticks and the present is
//!   rounded down. What has no delay is due in the tick in which it comes. Any instant and any duration
//!   is legal, `Duration::MAX` included.
//! - **In order.** What is taken is the item with the earliest deadline of all that are in the queue,
//!   and of those with the same deadline (the same microsecond) the one that was inserted or reset
//!   first. So each consumer sees deadlines in order, except for what was inserted with an earlier
//!   deadline after its last item.
//! - **Once.** An item leaves the queue once, under the lock: for one consumer, for whoever removes
//!   it, or with the queue. [`remove`](DelayQueue::remove) gives the value back exactly when nobody
//!   has got it and nobody will, also when the item is due already.
//! - **No stranger is hit.** A key names one item. When that has gone, the key does nothing.
//! - **No wake-up is lost, and no herd wakes.** While consumers wait, one leads: it sleeps until the
//!   first deadline, and the others have none. An insertion or a reset that makes the first deadline
//!   earlier wakes the leader only. When the leader leaves, with an item, out of patience or because its
//!   future was dropped, the one who has waited longest leads, and is woken if there is something
//!   to wait for. A removal wakes nobody; the leader may wake once for nothing.
//! - **Nobody holds more than one item for others.** An item is handed to a consumer that takes it that
//!   moment. There are no batches that would be out of reach while their owner is slow.
//! - **No idle work.** Nothing ticks. An empty queue sleeps for ever, and one with an item an hour away
//!   sleeps for an hour.
//! - **Bounded.** [`max_len`](Builder::max_len) bounds the items; a refusal gives the value back.
//!
//! A consumer that does not need to wait does not queue up: it takes what is due although others are
//! waiting and about to be woken. That keeps busy consumers busy, and costs those who wait at most their
//! turn.
//!
//! # Which time
//!
//! The machine's monotonic time, which stands still while the machine is suspended; or a
//! [manual clock](Builder::manual_clock), for tests. A thread sleeps by itself. When the leader is a task,
//! one thread that all queues of the process share sleeps for it; it starts with the first task that
//! waits.
//!
//! # What it costs
//!
//! Inserting, removing, resetting and taking are O(1) on a [timing
//! wheel](tourbillon_wheel::HierarchicalWheel), under a lock held for about 100 ns. No call that moves
//! many items within the wheel keeps the lock for more than some 4,000 of them. Only items inserted for
//! a time before that of an item which was taken already stand in an ordered map, in O(log n).
//!
//! # Deliberately absent
//!
//! A way to block the inserter until there is room; a way to take an item before its time, other than
//! by its key or all at once; keys chosen by the caller; comparison of values. Waiting ends with
//! [`close`](DelayQueue::close), not with an interrupt and not when the last producer is dropped.

mod after;
mod alarm;
mod builder;
mod consume;
mod expired;
mod key;
mod late;
mod next;
mod refused;
mod shared;
mod state;
mod store;
mod time;
mod waiters;

pub use builder::Builder;
pub use expired::Expired;
pub use key::Key;
pub use next::{Expirations, Next};
pub use refused::Refused;
#[doc(inline)]
pub use tourbillon_clock::ManualClock;

use refused::Reason;
use shared::Shared;
use state::{Closed, State};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Items that can be taken when their delay has passed, in the order of their deadlines. Cloning gives
/// another way to the same queue. See the [module](self) for what holds and how it works.
///
/// ```
/// use std::thread;
/// use std::time::{Duration, Instant};
/// use tourbillon::DelayQueue;
/// use tourbillon::delay_queue::Refused;
///
/// let queue = DelayQueue::new();
/// let start = Instant::now();
/// queue.insert("second", Duration::from_millis(4))?;
/// let third = queue.insert("third", Duration::from_millis(3))?;
/// queue.insert("first", Duration::from_millis(2))?;
///
/// assert!(queue.reset(third, Duration::from_millis(6)));
/// queue.close(); // so that the workers end when all has been taken
///
/// let workers: Vec<_> = (0..2)
///     .map(|_| {
///         let queue = queue.clone();
///         thread::spawn(move || {
///             let mut taken = Vec::new();
///             while let Some(due) = queue.poll() {
///                 assert!(due.deadline() <= Instant::now());
///                 taken.push(due.into_inner());
///             }
///             taken
///         })
///     })
///     .collect();
///
/// let mut taken: Vec<_> = workers.into_iter().flat_map(|it| it.join().unwrap()).collect();
/// taken.sort();
/// assert_eq!(taken, ["first", "second", "third"]);
/// assert!(start.elapsed() >= Duration::from_millis(6));
/// # Ok::<(), Refused<&str>>(())
/// ```
pub struct DelayQueue<T> {
    shared: Arc<Shared<T>>,
}

impl<T> DelayQueue<T> {
    /// An empty queue without a bound, by the machine's monotonic time.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A queue to be configured and built.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }

    /// Adds an item that can be taken after `delay`. Any duration is legal; with `Duration::ZERO` the
    /// item is due at once.
    ///
    /// # Errors
    ///
    /// [`Refused`], with the value in it, when [`max_len`](Builder::max_len) items are in the queue or
    /// it is [closed](Self::close).
    #[inline]
    pub fn insert(&self, value: T, delay: Duration) -> Result<Key, Refused<T>> {
        self.insert_tick(value, self.shared.time.tick_after(delay))
    }

    /// Adds an item that can be taken from `deadline` on. Any instant is legal; with one that has passed
    /// the item is due, before all items with a later deadline. (One that passed less than a microsecond
    /// ago counts as passed at the end of that microsecond.)
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_at(&self, value: T, deadline: Instant) -> Result<Key, Refused<T>> {
        self.insert_tick(value, self.shared.time.tick_at(deadline))
    }

    #[inline]
    fn insert_tick(&self, value: T, tick: u64) -> Result<Key, Refused<T>> {
        let max_len = self.shared.max_len;
        self.shared.change(|state| {
            if state.closed != Closed::Open {
                return Err(Refused::new(value, Reason::Closed));
            }
            if state.store.len() >= max_len {
                return Err(Refused::new(value, Reason::Full { max_len }));
            }
            Ok(Key(state.store.insert(tick, value)))
        })
    }

    /// Removes an item, due or not, and gives its value back: exactly when nobody has taken it, and
    /// then nobody will. `None` for a stale key.
    pub fn remove(&self, key: Key) -> Option<T> {
        self.shared.change(|state| state.store.remove(key.0))
    }

    /// Has an item become due after `delay` from now, whatever it was before, due included. Its key
    /// and value stay; among the items of its new deadline it is the last. False for a stale key:
    /// then somebody has taken or removed it.
    pub fn reset(&self, key: Key, delay: Duration) -> bool {
        let tick = self.shared.time.tick_after(delay);
        self.shared.change(|state| state.store.reset(key.0, tick))
    }

    /// As [`reset`](Self::reset), with an instant.
    pub fn reset_at(&self, key: Key, deadline: Instant) -> bool {
        let tick = self.shared.time.tick_at(deadline);
        self.shared.change(|state| state.store.reset(key.0, tick))
    }

    /// When an item is due, rounded up to a microsecond; `None` for a stale key.
    pub fn deadline(&self, key: Key) -> Option<Instant> {
        let tick = self.shared.read(|state| state.store.deadline(key.0))?;
        Some(self.shared.time.instant_of(tick))
    }

    /// The number of items, due ones included.
    pub fn len(&self) -> usize {
        self.shared.read(|state| state.store.len())
    }

    /// Whether there is no item, due or not.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many items may be in the queue.
    pub fn max_len(&self) -> usize {
        self.shared.max_len
    }

    /// Key and deadline of the first item, due or not.
    ///
    /// Exact, under the lock. Mostly O(1); when the first item is far away, it is found among those that
    /// share its slot of the wheel, which may be many.
    pub fn peek(&self) -> Option<(Key, Instant)> {
        self.peek_with(|key, deadline, _| (key, deadline))
    }

    /// Shows key, deadline and value of the first item, due or not, to `look`, and answers what that
    /// answers. Costs what [`peek`](Self::peek) costs.
    ///
    /// `look` runs under the lock: others wait meanwhile, and if it uses the queue it waits for
    /// itself for ever. It may panic.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tourbillon::DelayQueue;
    ///
    /// let queue = DelayQueue::new();
    /// queue.insert(String::from("order 42"), Duration::from_secs(60)).unwrap();
    /// assert_eq!(queue.peek_with(|_key, _deadline, order| order.clone()).unwrap(), "order 42");
    /// assert_eq!(queue.len(), 1);
    /// ```
    pub fn peek_with<R>(&self, look: impl FnOnce(Key, Instant, &T) -> R) -> Option<R> {
        self.shared.read(|state| {
            let (key, tick, value) = state.store.peek()?;
            Some(look(Key(key), self.shared.time.instant_of(tick), value))
        })
    }

    /// Keys and deadlines of all items, due or not, as they are at one moment, in no particular
    /// order. Holds the lock for a few nanoseconds an item, and for those for which memory is held.
    pub fn snapshot(&self) -> Vec<(Key, Instant)> {
        let mut items = Vec::new();
        self.for_each(|key, deadline, _| items.push((key, deadline)));
        items
    }

    /// Shows key, deadline and value of each item, due or not, in no particular order, to `look`.
    ///
    /// `look` runs under the lock: others wait until all have been shown, and if it uses the queue it
    /// waits for itself for ever. It may panic. Where the values are not needed,
    /// [`snapshot`](Self::snapshot) holds the lock for the shortest time.
    pub fn for_each(&self, mut look: impl FnMut(Key, Instant, &T)) {
        self.shared.read(|state| {
            for (key, tick, value) in state.store.iter() {
                look(Key(key), self.shared.time.instant_of(tick), value);
            }
        });
    }

    /// Removes all items, due or not, also from a closed queue, and gives their deadlines and values, in
    /// the order of deadlines; those of one deadline in any order.
    pub fn drain(&self) -> Vec<(Instant, T)> {
        let mut items = self.shared.change(|state| state.store.drain());
        items.sort_by_key(|(tick, _)| *tick);
        items.into_iter().map(|(tick, value)| (self.shared.time.instant_of(tick), value)).collect()
    }

    /// Removes and drops all items, due or not, and gives their memory back.
    pub fn clear(&self) {
        drop(self.shared.change(|state| state.store.drain()));
    }

    /// Gives back what memory can be given back without moving an item.
    pub fn compact(&self) {
        self.shared.change(|state| state.store.compact());
    }

    /// Closes the queue for new items. Those that are in it can be taken when they are due, as before;
    /// when the last one has gone, the queue has come to its *end*: all who wait, and whoever asks later,
    /// get `None`, and streams end.
    pub fn close(&self) {
        self.close_at_least(Closed::In);
    }

    /// Closes the queue and brings it to its *end* at once: all who wait, and whoever asks later, get
    /// `None`, and streams end, although items may be left. Those can still be removed and
    /// [drained](Self::drain).
    pub fn close_now(&self) {
        self.close_at_least(Closed::InAndOut);
    }

    fn close_at_least(&self, how: Closed) {
        self.shared.change(|state| {
            if state.closed != Closed::InAndOut {
                state.closed = how;
            }
        });
    }

    /// Whether the queue takes no more items.
    pub fn is_closed(&self) -> bool {
        self.shared.read(|state| state.closed != Closed::Open)
    }

    /// The present by the queue's clock.
    pub fn now(&self) -> Instant {
        self.shared.time.now_instant()
    }

    /// How many consumers wait at this moment: threads in a call, and futures and streams that were
    /// polled and got nothing.
    pub fn waiting(&self) -> usize {
        self.shared.read(|state| state.waiters.len())
    }

    /// How many times a waiting consumer was woken, for an item or because of the end. For tests.
    #[doc(hidden)]
    pub fn signals(&self) -> u64 {
        self.shared.read(|state| state.waiters.signals())
    }

    /// Panics, saying what is wrong, when the queue is damaged. For tests; takes time in proportion to
    /// the number of items.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.shared.read(State::check_invariants);
    }
}

impl<T> Clone for DelayQueue<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> Default for DelayQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for DelayQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever prints a queue from under its lock gets less instead of waiting for itself.
        let seen = self.shared.try_read(|state| (state.store.len(), state.waiters.len()));
        f.debug_struct("DelayQueue")
            .field("len", &seen.map(|(len, _)| len))
            .field("waiting", &seen.map(|(_, waiting)| waiting))
            .field("max_len", &self.shared.max_len)
            .finish_non_exhaustive()
    }
}

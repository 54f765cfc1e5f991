//! Several wheels side by side: any thread arms and cancels, one thread fires.
//!
//! A *lane* is a [hierarchical wheel](tourbillon_wheel::HierarchicalWheel) behind a lock of its own,
//! together with the tick it is *armed* for, which can be read without the lock. [`Lanes`] is the
//! side of those who arm and cancel; the [`Driver`], of which there is one, fires what is due.
//!
//! ```text
//!   any thread                                        one thread
//!   insert_at, cancel, reset                          advance, prepare_sleep
//!        |        |        |                                |
//!        v        v        v                                |  looks at the ticks,
//!   +--------+--------+--------+                            |  takes a lock only where
//!   | lane 0 | lane 1 | lane 2 |  ...                       |  something is due
//!   | 1,040  | never  | 1,007  |  armed for  <--------------'
//!   | wheel  | wheel  | wheel  |  locked
//!   +--------+--------+--------+
//! ```
//!
//! # What always holds
//!
//! - **One decision.** A timer leaves its lane once, under the lane's lock: for its canceller or for
//!   the driver. So [`cancel`](Lanes::cancel) gives the value exactly when the timer never fires,
//!   and says so at once, from any thread; the timer's memory is free by then.
//! - **Nobody waits for a callback.** The driver takes due timers out in small batches and fires
//!   them when it has let go of the lock. A callback may insert, cancel and reset as it likes.
//! - **Who arms takes a free lane.** A thread has a lane it tries first, and goes on to the next
//!   when that one is held, by the driver or by another thread.
//! - **No wake-up is lost, and none is given twice.** A deadline earlier than what the driver sleeps
//!   for wakes it, and a burst of such deadlines wakes it once (see [`Driver::prepare_sleep`]).
//!   Arming for a later time writes nothing that another lane's users read.
//!
//! # Order
//!
//! Timers fire tick by tick over all lanes, those of one tick in the order of their lanes, and in a
//! lane in the order in which they were inserted. A timer that is overdue when it is inserted counts
//! for the tick that the driver is at (overdue ones of one lane fire before what becomes due after
//! them, the earlier deadline first where the driver had passed both without looking into the lane).
//! What other threads insert while the driver is at work fires in this round or in the next.
//!
//! Deliberately absent: clocks, threads, and a way to wait. Ticks come from the caller, and so does
//! the closure that wakes the thread on which the driver runs.

mod builder;
mod driver;
mod full;
mod handle;
pub(crate) mod hint;
mod lane;
mod sleep;
#[cfg(all(test, not(loom)))]
mod tests;

pub use builder::Builder;
pub use driver::Driver;
pub use full::Full;
pub use handle::Handle;

use crate::sync::Arc;
use lane::{Held, Lane};
use sleep::Sleep;
use std::fmt;
use tourbillon_wheel::{Snapshot, TimerQueue};

/// Pending timers that any thread may add to, cancel and reset. Cloning gives another way to the
/// same timers. See the [module](self) for how it works.
///
/// ```
/// use std::sync::OnceLock;
/// use std::thread::{self, Thread};
/// use tourbillon::lanes::{Full, Lanes};
///
/// // The thread that drives parks; whoever arms for an earlier time unparks it.
/// static DRIVING: OnceLock<Thread> = OnceLock::new();
/// let (lanes, mut driver) = Lanes::builder().build(|| {
///     if let Some(thread) = DRIVING.get() {
///         thread.unpark();
///     }
/// });
/// let driving = thread::spawn(move || {
///     DRIVING.get_or_init(thread::current);
///     let now = 10; // read from a clock, rounded down
///     let mut fired = Vec::new();
///     while fired.len() < 2 {
///         driver.advance(now, 1_000, |_handle, _deadline, value| fired.push(value));
///         match driver.prepare_sleep() {
///             Some(tick) if tick <= now => {}
///             // With a clock, `park_timeout` until the tick that was given.
///             _ if fired.len() < 2 => thread::park(),
///             _ => {}
///         }
///     }
///     fired
/// });
/// lanes.insert_at(3, "first")?;
/// lanes.insert_at(7, "second")?;
/// let mut fired = driving.join().expect("no panic");
/// fired.sort();
/// assert_eq!(fired, ["first", "second"]);
/// # Ok::<(), Full<&str>>(())
/// ```
pub struct Lanes<T> {
    shared: Arc<Shared<T>>,
}

/// What lanes and driver have in common.
struct Shared<T> {
    /// A power of two of them.
    lanes: Box<[Lane<T>]>,
    max_pending: usize,
    sleep: Sleep,
}

impl<T> Lanes<T> {
    /// Lanes to be configured and built.
    pub fn builder() -> Builder<T> {
        Builder::new()
    }

    /// Adds a timer that fires at the tick `deadline`. Any `u64` is a legal deadline; one that has
    /// passed fires the next time that the driver advances.
    ///
    /// Takes the first lane from the thread's own onwards that nobody holds, and waits only when
    /// all are held, then no longer than the driver takes for one batch.
    ///
    /// # Errors
    ///
    /// [`Full`], with the value in it, when [`max_pending`](Builder::max_pending) timers are pending.
    #[inline]
    pub fn insert_at(&self, deadline: u64, value: T) -> Result<Handle, Full<T>> {
        let lanes = &self.shared.lanes;
        let first = hint::get();
        for step in 0..lanes.len() {
            let number = first.wrapping_add(step) & (lanes.len() - 1);
            if let Some(held) = lanes[number].try_hold()
                && held.has_room()
            {
                if step > 0 {
                    hint::set(number);
                }
                return Ok(self.insert_into(number, held, deadline, value));
            }
        }
        self.insert_waiting(first, deadline, value)
    }

    /// Like [`insert_at`](Self::insert_at), and takes no notice of `max_pending`: for what goes back
    /// into the lanes after it was counted once. The value comes back when the wheels themselves
    /// are full.
    #[cfg(not(loom))]
    pub(crate) fn insert_anyway(&self, deadline: u64, value: T) -> Result<Handle, T> {
        let lanes = &self.shared.lanes;
        let first = hint::get();
        for step in 0..lanes.len() {
            let number = first.wrapping_add(step) & (lanes.len() - 1);
            let held = lanes[number].hold();
            if held.wheel.len() < lane::LANE_MAX {
                return Ok(self.insert_into(number, held, deadline, value));
            }
        }
        Err(value)
    }

    /// Gives a pending timer's value to `change`, under its lane's lock; nothing for a stale handle.
    #[cfg(not(loom))]
    #[inline]
    pub(crate) fn change<R>(&self, handle: Handle, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut held = self.shared.lanes.get(handle.lane())?.hold();
        held.wheel.get_mut(handle.key()).map(change)
    }

    /// Removes the timers whose values `pick` picks, lane by lane. Each lane is held for as long as it
    /// takes to look at all that is in it.
    #[cfg(not(loom))]
    pub(crate) fn take_where(&self, mut pick: impl FnMut(&T) -> bool) -> Vec<(Handle, u64, T)> {
        let mut taken = Vec::new();
        for (number, lane) in self.shared.lanes.iter().enumerate() {
            let mut held = lane.hold();
            let picked = held.wheel.iter().filter(|(_, _, value)| pick(value));
            let keys: Vec<_> = picked.map(|(key, deadline, _)| (key, deadline)).collect();
            for (key, deadline) in keys {
                if let Some(value) = held.cancel(key) {
                    taken.push((Handle::new(number, key), deadline, value));
                }
            }
        }
        taken
    }

    /// How many lanes there are: a power of two.
    #[cfg(not(loom))]
    pub(crate) fn count(&self) -> usize {
        self.shared.lanes.len()
    }

    /// Whether the driver said that it is going to sleep and was not woken since.
    #[cfg(not(loom))]
    pub(crate) fn driver_sleeps(&self) -> bool {
        self.shared.sleep.lasts()
    }

    /// Every lane was held or full: asks them once more, waiting for each.
    #[cold]
    fn insert_waiting(&self, first: usize, deadline: u64, value: T) -> Result<Handle, Full<T>> {
        let lanes = &self.shared.lanes;
        for step in 0..lanes.len() {
            let number = first.wrapping_add(step) & (lanes.len() - 1);
            let held = lanes[number].hold();
            if held.has_room() {
                return Ok(self.insert_into(number, held, deadline, value));
            }
        }
        Err(Full::new(value, self.shared.max_pending))
    }

    #[inline]
    fn insert_into(&self, number: usize, mut held: Held<'_, T>, deadline: u64, value: T) -> Handle {
        let (key, earlier) = held.insert(deadline, value);
        drop(held);
        if earlier {
            self.shared.sleep.armed(deadline);
        }
        Handle::new(number, key)
    }

    /// Removes a pending timer and gives its value back: exactly when it has not fired, and then it
    /// never will. `None` for a stale handle.
    ///
    /// The driver takes due timers out in [batches](Builder::batch); one that is in a batch counts
    /// as fired, also while callbacks of the batch before it still run.
    #[inline]
    pub fn cancel(&self, handle: Handle) -> Option<T> {
        self.shared.lanes.get(handle.lane())?.hold().cancel(handle.key())
    }

    /// Gives a pending timer another deadline, keeping its handle and value. True when it was
    /// pending, false for a stale handle: then it has fired or was cancelled. Among the timers of
    /// its lane with the new deadline it fires last.
    #[inline]
    pub fn reset(&self, handle: Handle, deadline: u64) -> bool {
        let Some(lane) = self.shared.lanes.get(handle.lane()) else { return false };
        let done = lane.hold().reset(handle.key(), deadline);
        if done == Some(true) {
            self.shared.sleep.armed(deadline);
        }
        done.is_some()
    }

    /// The deadline that a pending timer was given; `None` for a stale handle.
    pub fn deadline(&self, handle: Handle) -> Option<u64> {
        self.shared.lanes.get(handle.lane())?.hold().wheel.deadline(handle.key())
    }

    /// The number of pending timers. Takes no lock: each lane's count is exact, but they are read
    /// one after the other, so the sum is exact while nothing changes.
    pub fn len(&self) -> usize {
        self.shared.lanes.iter().map(Lane::len).sum()
    }

    /// Whether no timer is pending; see [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.shared.lanes.iter().all(|lane| lane.len() == 0)
    }

    /// How many timers may be pending.
    pub fn max_pending(&self) -> usize {
        self.shared.max_pending
    }

    /// The tick at which the next timer fires, or one before it; `None` when none is pending. Takes
    /// no lock. Too early only after timers were cancelled or reset, and advancing to it then
    /// makes it later.
    pub fn next_deadline(&self) -> Option<u64> {
        self.shared.earliest()
    }

    /// Gives back what memory can be given back without moving a timer. Locks the lanes one after
    /// the other, each in proportion to what is in it.
    pub fn compact(&self) {
        for lane in &self.shared.lanes {
            lane.hold().wheel.compact();
        }
    }

    /// What is where, one snapshot for each lane, taken one after the other.
    pub fn snapshot(&self) -> Vec<Snapshot> {
        self.shared.lanes.iter().map(|lane| lane.hold().wheel.snapshot()).collect()
    }

    /// Removes all timers and gives them to `take`, lane by lane, in no particular order within
    /// a lane. None of them fires. No lock is held while `take` runs; when it panics, the timers
    /// of that lane that it was not yet given are dropped, and those of later lanes stay.
    pub fn drain(&self, mut take: impl FnMut(Handle, u64, T)) {
        for (number, lane) in self.shared.lanes.iter().enumerate() {
            let mut timers = Vec::new();
            lane.hold().drain(|key, deadline, value| timers.push((key, deadline, value)));
            for (key, deadline, value) in timers {
                take(Handle::new(number, key), deadline, value);
            }
        }
    }

    /// Removes and drops all timers and gives their memory back. None of them fires.
    pub fn clear(&self) {
        self.drain(|_, _, value| drop(value));
        self.compact();
    }

    /// Panics, saying what is wrong, when a lane is damaged. For tests; takes time in proportion to
    /// the number of timers.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        for lane in &self.shared.lanes {
            lane.hold().check_invariants();
        }
    }
}

impl<T> Shared<T> {
    /// The earliest tick that any lane is armed for.
    fn earliest(&self) -> Option<u64> {
        self.lanes.iter().filter_map(Lane::armed).min()
    }
}

impl<T> Clone for Lanes<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<T> fmt::Debug for Lanes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes")
            .field("lanes", &self.shared.lanes.len())
            .field("len", &self.len())
            .field("next_deadline", &self.next_deadline())
            .field("sleep", &self.shared.sleep)
            .finish_non_exhaustive()
    }
}

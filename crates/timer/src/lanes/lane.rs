//! One lane: a wheel under a lock, and what can be known of it without the lock.
//!
//! # What always holds, whenever nobody holds the lock
//!
//! - `armed` is not later than the tick at which the wheel's next timer fires, and `u64::MAX` when
//!   the wheel is empty. It may be too early, after a timer was cancelled or reset.
//! - `len` is the number of timers in the wheel.
//!
//! Both are written under the lock only, so whoever holds it may read, decide and write. No code of
//! the user runs under the lock, not even the destructor of a value. What the lane lacks is the
//! driver: it knows neither who sleeps nor what other lanes hold.

use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering, lock, try_lock};
use tourbillon_wheel::{Budget, HierarchicalWheel, Key, TimerQueue};

/// What `armed` says when there is nothing the driver must know of.
const NEVER: u64 = u64::MAX;

/// A wheel holds at most so many timers.
pub(super) const LANE_MAX: usize = u32::MAX as usize - 255;

/// A wheel that many threads may use. Lanes lie two cache lines apart, since processors fetch lines
/// in pairs.
#[repr(align(128))]
pub(super) struct Lane<T> {
    wheel: Mutex<HierarchicalWheel<T>>,
    armed: AtomicU64,
    len: AtomicUsize,
    /// The most timers it may hold, at most [`LANE_MAX`].
    room: usize,
}

/// The lane while its lock is held.
pub(super) struct Held<'a, T> {
    lane: &'a Lane<T>,
    pub(super) wheel: MutexGuard<'a, HierarchicalWheel<T>>,
}

impl<T> Lane<T> {
    pub(super) fn new(start: u64, room: usize) -> Self {
        Self {
            wheel: Mutex::new(HierarchicalWheel::starting_at(start)),
            armed: AtomicU64::new(NEVER),
            len: AtomicUsize::new(0),
            room: room.min(LANE_MAX),
        }
    }

    /// Waits for the lock.
    #[inline]
    pub(super) fn hold(&self) -> Held<'_, T> {
        Held { lane: self, wheel: lock(&self.wheel) }
    }

    /// Takes the lock if nobody holds it.
    #[inline]
    pub(super) fn try_hold(&self) -> Option<Held<'_, T>> {
        Some(Held { lane: self, wheel: try_lock(&self.wheel)? })
    }

    /// Pending timers.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// The tick at which the next timer fires, or one before it; `None` when there is none.
    #[inline]
    pub(super) fn armed(&self) -> Option<u64> {
        match self.armed.load(Ordering::Relaxed) {
            // Either nothing, or timers at the end of time.
            NEVER if self.len() == 0 => None,
            tick => Some(tick),
        }
    }
}

impl<T> Held<'_, T> {
    pub(super) fn has_room(&self) -> bool {
        self.wheel.len() < self.lane.room
    }

    /// Inserts a timer. True when the driver has to be told of the deadline.
    #[inline]
    pub(super) fn insert(&mut self, deadline: u64, value: T) -> (Key, bool) {
        let key = self.wheel.insert_at(deadline, value);
        self.count();
        (key, self.arm(deadline))
    }

    #[inline]
    pub(super) fn cancel(&mut self, key: Key) -> Option<T> {
        let value = self.wheel.cancel(key)?;
        self.count();
        Some(value)
    }

    /// Resets a pending timer; `None` for a stale key. True when the driver has to be told of the
    /// deadline.
    #[inline]
    pub(super) fn reset(&mut self, key: Key, deadline: u64) -> Option<bool> {
        if !self.wheel.reset(key, deadline) {
            return None;
        }
        if self.wheel.len() == 1 {
            // Nothing is left of the deadline it had: spares the driver a look for nothing.
            let before = self.lane.armed.load(Ordering::Relaxed);
            self.lane.armed.store(deadline, Ordering::Relaxed);
            return Some(deadline < before);
        }
        Some(self.arm(deadline))
    }

    /// Takes due timers out, in order, and gives them to `take`: at most so many, and no more once
    /// the budget has run out. All of them have this tick in the order of firing: no lane is armed
    /// for an earlier one.
    pub(super) fn pop(
        &mut self,
        tick: u64,
        timers_max: usize,
        units: &mut Budget,
        mut take: impl FnMut(Key, u64, T),
    ) {
        let mut left = timers_max;
        while left > 0
            && let Some((key, deadline, value)) = self.wheel.pop(tick, units)
        {
            left -= 1;
            take(key, deadline, value);
        }
        self.count();
        if let Some(next) = self.wheel.next_deadline() {
            // When everything due has fired, what is left comes later, whatever the bound says.
            let finished = left > 0 && !units.ran_out();
            let next = if finished { next.max(tick.saturating_add(1)) } else { next };
            self.lane.armed.store(next, Ordering::Relaxed);
        }
    }

    /// Takes all timers out.
    pub(super) fn drain(&mut self, mut take: impl FnMut(Key, u64, T)) {
        self.wheel.drain(&mut take);
        self.count();
    }

    /// Lowers `armed` to the deadline; true when it was later.
    #[inline]
    fn arm(&mut self, deadline: u64) -> bool {
        let earlier = deadline < self.lane.armed.load(Ordering::Relaxed);
        if earlier {
            self.lane.armed.store(deadline, Ordering::Relaxed);
        }
        earlier
    }

    /// Writes down how many timers there are.
    #[inline]
    fn count(&mut self) {
        let len = self.wheel.len();
        self.lane.len.store(len, Ordering::Relaxed);
        if len == 0 {
            self.lane.armed.store(NEVER, Ordering::Relaxed);
        }
    }

    /// Panics when the lane is damaged. For tests.
    pub(super) fn check_invariants(&self) {
        self.wheel.check_invariants();
        assert_eq!(self.lane.len(), self.wheel.len(), "the count of the lane");
        assert!(self.wheel.len() <= self.lane.room, "more than the lane's share");
        let armed = self.lane.armed.load(Ordering::Relaxed);
        match self.wheel.peek() {
            None => assert_eq!(armed, NEVER, "an empty lane is armed"),
            Some((_, deadline, _)) => {
                let fires = deadline.max(self.wheel.now());
                assert!(armed <= fires, "armed for {armed}, but a timer fires at {fires}");
            }
        }
    }
}

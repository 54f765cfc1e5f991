//! The contract that every timer queue here keeps.
//!
//! Time is an argument: a queue moves only when it is advanced, in ticks whose length is the
//! caller's business. What the trait promises holds for all implementations alike, and the
//! conformance suite in `tests/` checks it on each of them. It deliberately lacks clocks,
//! threads, locks, callbacks kept in the queue, and a bound on the number of timers (the
//! layers above have those).

use crate::{Advance, Budget, Key, Snapshot};

/// Pending timers ordered by deadline; see the [crate documentation](crate) for the
/// structures to choose from.
///
/// # What always holds
///
/// - **Order.** Timers fire in order of deadline, and those of one deadline in the order in
///   which they were inserted. A timer inserted with a deadline at or before
///   [`now`](Self::now) is *overdue*: it fires at the next advance, as if its deadline were
///   `now`, in insertion order with the others of that tick. It keeps the deadline it was
///   given all the same, so lateness can be measured. A [`reset`](Self::reset) counts as a
///   new insertion.
/// - **Never early.** `advance(t)` fires no timer with a deadline after `t`.
/// - **Time never runs backwards.** `advance(t)` with `t` before `now` does nothing. `now`
///   never passes a deadline that has not been fired: when a budget runs out, `now` stays
///   where the work stopped.
/// - **Every `u64` is a legal deadline**, `u64::MAX` included.
/// - **Stale keys are recognised.** A key whose timer has fired or was cancelled does nothing.
///
/// # Firing and changing at once
///
/// [`advance`](Self::advance) lends the queue out while it fires. To insert, cancel or reset
/// in answer to a timer that fires, take timers one by one with [`pop`](Self::pop): between two
/// calls the queue is free for any use. A timer inserted at or before `now` meanwhile
/// fires in the same round, after those already due at that tick, as long as the budget lasts,
/// which is also what ends a round that keeps feeding itself.
///
/// ```
/// use tourbillon_wheel::{Budget, HierarchicalWheel, TimerQueue};
///
/// // A periodic timer: the next deadline comes from the planned one, so it never drifts.
/// let mut wheel = HierarchicalWheel::new();
/// wheel.insert_at(10, "tick");
/// let mut seen = Vec::new();
/// let mut budget = Budget::new(100);
/// while let Some((_key, deadline, value)) = wheel.pop(35, &mut budget) {
///     seen.push(deadline);
///     wheel.insert_at(deadline + 10, value);
/// }
/// assert_eq!(seen, [10, 20, 30]);
/// assert_eq!(wheel.next_deadline(), Some(40));
/// ```
pub trait TimerQueue {
    /// What a timer carries.
    type Value;

    /// The tick up to which everything has fired, overdue timers excepted. Starts where the
    /// queue was made to start and only grows, by [`pop`](Self::pop) and
    /// [`advance`](Self::advance).
    fn now(&self) -> u64;

    /// The number of pending timers.
    fn len(&self) -> usize;

    /// Whether no timer is pending.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a timer that fires at the tick `deadline`.
    ///
    /// # Panics
    ///
    /// When the queue is full: about four billion timers are pending already (each structure
    /// says its exact bound). Callers are expected to bound their queue long before.
    fn insert_at(&mut self, deadline: u64, value: Self::Value) -> Key;

    /// Adds a timer that fires `delay` ticks after [`now`](Self::now), at `u64::MAX` at the
    /// latest.
    ///
    /// This counts from the queue's own time. When the queue lags behind the caller's clock,
    /// because it has not been advanced for a while or a budget ran out, the timer would fire
    /// early by that lag: add the delay to the clock's reading and use
    /// [`insert_at`](Self::insert_at) then.
    ///
    /// # Panics
    ///
    /// As [`insert_at`](Self::insert_at).
    fn insert(&mut self, delay: u64, value: Self::Value) -> Key {
        self.insert_at(self.now().saturating_add(delay), value)
    }

    /// Removes a pending timer and gives its value back; `None` for a stale key.
    ///
    /// A timer that is due but has not been fired yet is still pending: it is removed and does
    /// not fire.
    fn cancel(&mut self, key: Key) -> Option<Self::Value>;

    /// Gives a pending timer another deadline, keeping its key and value. True when it was
    /// pending, false for a stale key. Among timers of the new deadline it fires last, also
    /// when the deadline is the one it had.
    fn reset(&mut self, key: Key, deadline: u64) -> bool;

    /// The deadline that a pending timer was given; `None` for a stale key.
    fn deadline(&self, key: Key) -> Option<u64>;

    /// The value of a pending timer; `None` for a stale key.
    fn get(&self, key: Key) -> Option<&Self::Value>;

    /// The value of a pending timer, to be changed in place; `None` for a stale key.
    fn get_mut(&mut self, key: Key) -> Option<&mut Self::Value>;

    /// The timer that would fire next, with its deadline; `None` when the queue is empty.
    /// Exact, and may have to look through a whole slot.
    fn peek(&self) -> Option<(Key, u64, &Self::Value)>;

    /// The tick at which the next timer fires, or one before it; `None` exactly when the queue
    /// is empty.
    ///
    /// That is the earliest deadline, or [`now`](Self::now) when a timer is overdue. It is
    /// exact as long as nothing was cancelled or reset and the last advance finished.
    /// Otherwise it may be too early, never too late, so a caller may sleep until then. It is
    /// never before `now`, and advancing to it makes progress: it fires a timer or sharpens
    /// the bound, so a timer costs at most a few needless wake-ups.
    fn next_deadline(&self) -> Option<u64>;

    /// Fires the next timer due at or before `now`: removes it and gives its key (stale from
    /// here on), its deadline and its value.
    ///
    /// `None` when nothing more is due, and [`now`](Self::now) has become `now`; or when the
    /// budget ran out, which [`Budget::ran_out`] tells; or when `now` lies before the queue's
    /// own. Called again with the same or a later tick it goes on where it stopped.
    fn pop(&mut self, now: u64, budget: &mut Budget) -> Option<(Key, u64, Self::Value)>;

    /// Fires everything due at or before `now`, in order, handling at most `budget` timers.
    ///
    /// `fire` gets each timer's key (already stale), deadline and value. When it panics, the
    /// timer it was given is gone and the queue is sound. `budget` counts fired and moved
    /// timers; use `usize::MAX` for no bound. See [`pop`](Self::pop) for changing the queue
    /// while it fires.
    fn advance<F>(&mut self, now: u64, budget: usize, mut fire: F) -> Advance
    where
        Self: Sized,
        F: FnMut(Key, u64, Self::Value),
    {
        let mut budget = Budget::new(budget);
        while let Some((key, deadline, value)) = self.pop(now, &mut budget) {
            fire(key, deadline, value);
        }
        budget.into()
    }

    /// Removes all timers and gives them to `take`, in no particular order. Time stays where
    /// it is. When `take` panics, the timers not yet given are dropped.
    fn drain<F>(&mut self, take: F)
    where
        Self: Sized,
        F: FnMut(Key, u64, Self::Value);

    /// Removes and drops all timers and gives their memory back. Time stays where it is, and
    /// old keys stay stale.
    fn clear(&mut self);

    /// The number of timers for which memory is held, pending ones included.
    fn capacity(&self) -> usize;

    /// Gives back what memory can be given back without moving a timer. Keys stay valid.
    fn compact(&mut self);

    /// What is where, for people and dashboards.
    fn snapshot(&self) -> Snapshot;

    /// Panics, saying what is wrong, when the structure is damaged. For tests; takes time in
    /// proportion to the queue's size.
    #[doc(hidden)]
    fn check_invariants(&self) {}
}

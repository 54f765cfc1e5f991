//! The hashed timing wheel: one ring of slots, and rounds.
//!
//! A timer lies in the slot `deadline mod slots`; how many turns of the ring it still waits,
//! its *rounds*, is the rest of the division and is not stored. Always:
//!
//! 1. Timers with a deadline after `now` lie in the slot of their deadline. Those due at `now`,
//!    overdue ones included, lie in the slot of `now`.
//! 2. While something may be due, `cursor` is the first timer of that slot that has not been
//!    looked at; otherwise it is `NIL` and every pending timer is later than `now`. `now`
//!    moves only in that second state.
//! 3. All timers of one deadline lie in one list in order of insertion, and the cursor walks
//!    from front to back, so they fire in that order.
//!
//! A textbook ring walks every timer of each slot it passes. Here a slot knows a bound on its
//! earliest deadline and is walked only when that has come. What remains of the fault is that a
//! walk which finds one timer due looks at the others of the slot too, and pays for it from the
//! budget. It deliberately does not grow its ring.

mod ring;

use crate::list::Timer;
use crate::slab::{NIL, Slab};
use crate::snapshot::{LevelSnapshot, SlotSnapshot, Totals};
use crate::{Budget, Key, Snapshot, TimerQueue};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::num::NonZeroU32;
use ring::Ring;

/// A hashed timing wheel: one ring of slots of one tick each, for deadlines that mostly lie
/// within one turn.
///
/// Insertion, cancelling and resetting take constant time. Firing a timer looks at all timers
/// of its slot, those of later rounds too: with many more pending timers than slots, or
/// deadlines spread over many turns, the [`HierarchicalWheel`](crate::HierarchicalWheel) is
/// better. [`next_deadline`](TimerQueue::next_deadline) takes time in proportion to the slots,
/// [`peek`](TimerQueue::peek) to the pending timers. Holds at most 2^32 - 256 timers.
///
/// ```
/// use std::num::NonZeroU32;
/// use tourbillon_wheel::{HashedWheel, TimerQueue};
///
/// let mut wheel = HashedWheel::new(NonZeroU32::new(60).unwrap());
/// wheel.insert_at(75, "in the second round");
/// wheel.insert_at(15, "in the same slot, one round earlier");
///
/// let mut fired = Vec::new();
/// wheel.advance(74, usize::MAX, |_key, deadline, _value| fired.push(deadline));
/// assert_eq!(fired, [15]);
/// assert_eq!(wheel.next_deadline(), Some(75));
/// ```
pub struct HashedWheel<T> {
    now: u64,
    slab: Slab<Timer<T>>,
    ring: Ring,
    /// The next timer to look at in the slot of `now`, or `NIL` when nothing is due.
    cursor: u32,
    /// No deadline among the timers that the cursor has passed is earlier.
    passed_min: u64,
    totals: Totals,
}

impl<T> HashedWheel<T> {
    /// An empty wheel at tick 0 with so many slots (any number), which take 24 bytes each.
    pub fn new(slots: NonZeroU32) -> Self {
        Self::starting_at(0, slots)
    }

    /// An empty wheel at tick `now` with so many slots.
    pub fn starting_at(now: u64, slots: NonZeroU32) -> Self {
        Self {
            now,
            slab: Slab::new(),
            ring: Ring::new(slots.get() as usize),
            cursor: NIL,
            passed_min: u64::MAX,
            totals: Totals::ZERO,
        }
    }

    /// The number of slots in the ring.
    pub fn slots(&self) -> usize {
        self.ring.len()
    }

    /// The slot of a pending timer, or of one to be put in now.
    fn slot_of(&self, deadline: u64) -> usize {
        (deadline.max(self.now) % self.ring.len() as u64) as usize
    }

    fn current(&self) -> usize {
        self.slot_of(self.now)
    }

    /// Puts a timer that is in the slab and in no list where it belongs.
    fn link(&mut self, index: u32, deadline: u64) {
        let slot = self.slot_of(deadline);
        if deadline <= self.now && self.cursor == NIL {
            // The timers before it have been looked at, at this tick or an earlier one.
            self.passed_min = self.ring.slot(slot).min;
            self.cursor = index;
        }
        self.ring.push_back(slot, &mut self.slab, index);
    }

    fn unlink(&mut self, index: u32) {
        let (_, _, timer) = self.slab.at(index);
        let (slot, next) = (self.slot_of(timer.deadline), timer.next);
        self.ring.unlink(slot, &mut self.slab, index);
        if index == self.cursor {
            self.move_cursor(next);
        }
    }

    fn move_cursor(&mut self, to: u32) {
        self.cursor = to;
        if to == NIL {
            self.ring.set_min(self.current(), self.passed_min);
        }
    }

    /// The first tick after now at which a slot has to be looked at. Looks no farther than
    /// `until`, so what it gives may be missing or later than that.
    fn next_visit(&self, until: u64) -> Option<u64> {
        let mut later = None;
        for (distance, slot) in self.ring.around(self.current()) {
            let tick = self.now.saturating_add(distance as u64);
            if tick > until {
                return None;
            }
            let min = self.ring.slot(slot).min;
            if min <= tick {
                return Some(tick);
            }
            later = Some(later.map_or(min, |later| min.min(later)));
        }
        later
    }
}

impl<T> TimerQueue for HashedWheel<T> {
    type Value = T;

    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.slab.len()
    }

    fn insert_at(&mut self, deadline: u64, value: T) -> Key {
        let key = self.slab.insert(0, Timer::unlinked(deadline, value));
        self.link(key.index(), deadline);
        self.totals.inserted = self.totals.inserted.wrapping_add(1);
        key
    }

    fn cancel(&mut self, key: Key) -> Option<T> {
        self.slab.get(key)?;
        self.unlink(key.index());
        let (_, _, timer) = self.slab.remove_at(key.index());
        self.totals.cancelled = self.totals.cancelled.wrapping_add(1);
        Some(timer.value)
    }

    fn reset(&mut self, key: Key, deadline: u64) -> bool {
        if self.slab.get(key).is_none() {
            return false;
        }
        self.unlink(key.index());
        self.slab.at_mut(key.index()).1.deadline = deadline;
        self.link(key.index(), deadline);
        true
    }

    fn deadline(&self, key: Key) -> Option<u64> {
        Some(self.slab.get(key)?.deadline)
    }

    fn get(&self, key: Key) -> Option<&T> {
        Some(&self.slab.get(key)?.value)
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        Some(&mut self.slab.get_mut(key)?.value)
    }

    fn peek(&self) -> Option<(Key, u64, &T)> {
        let mut first: Option<(u64, u32)> = None;
        for slot in self.ring.iter_from(0) {
            let list = self.ring.slot(slot);
            if first.is_some_and(|(tick, _)| tick < list.min) {
                continue;
            }
            for index in list.iter(&self.slab) {
                let tick = self.slab.at(index).2.deadline.max(self.now);
                if first.is_none_or(|(earliest, _)| tick < earliest) {
                    first = Some((tick, index));
                }
            }
        }
        let (key, _, timer) = self.slab.at(first?.1);
        Some((key, timer.deadline, &timer.value))
    }

    fn next_deadline(&self) -> Option<u64> {
        if self.cursor != NIL {
            return Some(self.now);
        }
        self.next_visit(u64::MAX)
    }

    fn pop(&mut self, now: u64, budget: &mut Budget) -> Option<(Key, u64, T)> {
        if now < self.now {
            return None;
        }
        loop {
            while self.cursor != NIL {
                let index = self.cursor;
                let (_, _, timer) = self.slab.at(index);
                let (deadline, next) = (timer.deadline, timer.next);
                if deadline <= self.now {
                    if !budget.pay_fired() {
                        return None;
                    }
                    self.totals.fired = self.totals.fired.wrapping_add(1);
                    self.unlink(index);
                    let (key, _, timer) = self.slab.remove_at(index);
                    return Some((key, deadline, timer.value));
                }
                if !budget.pay_moved() {
                    return None;
                }
                self.totals.moved = self.totals.moved.wrapping_add(1);
                self.passed_min = self.passed_min.min(deadline);
                self.move_cursor(next);
            }
            match self.next_visit(now) {
                Some(tick) if tick <= now => {
                    self.now = tick;
                    self.passed_min = u64::MAX;
                    self.cursor = self.ring.slot(self.current()).head;
                }
                _ => {
                    self.now = now;
                    return None;
                }
            }
        }
    }

    fn drain<F>(&mut self, mut take: F)
    where
        F: FnMut(Key, u64, T),
    {
        self.ring.clear();
        self.cursor = NIL;
        for (key, timer) in self.slab.take_all() {
            take(key, timer.deadline, timer.value);
        }
    }

    fn clear(&mut self) {
        self.drain(|_, _, value| drop(value));
    }

    fn capacity(&self) -> usize {
        self.slab.capacity()
    }

    fn compact(&mut self) {
        self.slab.compact();
    }

    fn snapshot(&self) -> Snapshot {
        let occupied: Vec<SlotSnapshot> = self
            .ring
            .around(self.current())
            .map(|(distance, slot)| SlotSnapshot {
                slot,
                start: if slot == self.current() && self.cursor != NIL {
                    self.now
                } else {
                    self.now.saturating_add(distance as u64)
                },
                len: self.ring.slot(slot).len as usize,
            })
            .collect();
        let ring = LevelSnapshot {
            level: 0,
            slots: self.ring.len(),
            slot_ticks: 1,
            len: self.len(),
            occupied,
        };
        Snapshot {
            now: self.now,
            len: self.len(),
            capacity: self.capacity(),
            next_deadline: self.next_deadline(),
            totals: self.totals,
            levels: if self.is_empty() { Vec::new() } else { vec![ring] },
        }
    }

    fn check_invariants(&self) {
        self.slab.check_invariants();
        self.ring.check_invariants(&self.slab);
        let mut listed = 0;
        for slot in self.ring.iter_from(0) {
            let mut ahead_of_cursor = true;
            for index in self.ring.slot(slot).iter(&self.slab) {
                let (_, _, timer) = self.slab.at(index);
                assert_eq!(self.slot_of(timer.deadline), slot, "slot of timer {index}");
                if index == self.cursor {
                    assert_eq!(slot, self.current(), "the cursor is not in the slot of now");
                    ahead_of_cursor = false;
                }
                if ahead_of_cursor {
                    assert!(timer.deadline > self.now, "timer {index} was passed over");
                    if slot == self.current() && self.cursor != NIL {
                        assert!(self.passed_min <= timer.deadline, "bound of what was passed");
                    }
                }
                listed += 1;
            }
            if slot == self.current() {
                assert_eq!(ahead_of_cursor, self.cursor == NIL, "the cursor is in no list");
            }
        }
        assert_eq!(listed, self.slab.len(), "timers in lists");
    }
}

impl<T> fmt::Debug for HashedWheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashedWheel")
            .field("now", &self.now)
            .field("slots", &self.slots())
            .field("len", &self.len())
            .field("next_deadline", &self.next_deadline())
            .finish_non_exhaustive()
    }
}

//! The hierarchical timing wheel: eight levels of 256 slots over all of `u64`.
//!
//! # What always holds
//!
//! 1. A timer lies in the slot [`Place::of`] its deadline at the present `now`. The one
//!    exception is the slot being cascaded, below.
//! 2. So every occupied slot lies ahead of `now`, except the slot of `now` itself, which
//!    holds what is due: the timers of this tick and the overdue ones.
//! 3. The lowest occupied level holds the earliest timers, and in it the lowest occupied slot.
//!    `now` moves only when the slot of `now` is empty and no cascade is under way, and then
//!    to the start of the next occupied slot or to the target, whichever comes first. By
//!    `a_place_stays_the_same_until_its_span_begins` (tests of `place`), 1 stays true.
//!
//! # Why equal deadlines fire in insertion order
//!
//! The place is a function of deadline and `now`, so at any moment all timers of one
//! deadline lie in one list, and new ones join at its end. It remains to see that cascading
//! a slot keeps their order. When `now` reaches the start of a slot of level k, all levels
//! below k are empty, for what was in them was earlier and has fired. The slot's timers are
//! taken from the front, one by one, and put at the end of their new lists: those were empty, so
//! the order of the old list is the order of the new ones.
//!
//! A budget may stop this midway. Then timers of one deadline are in two lists, the moved ones
//! in their new list and the rest in the old, and a new one must go behind both. Hence the
//! rule: until the cascade is done, a timer with a deadline up to the end of the slot's span,
//! overdue ones included, joins the slot being cascaded, and reaches its list behind all the
//! others. Lists below level k meanwhile receive timers from nowhere else. Timers that the
//! cascade has brought into the slot of `now` fire at once; they are ahead of all that is still
//! in the cascading slot, where nothing can be due earlier than `now` and nothing due at `now`
//! was inserted before them.
//!
//! # What it lacks
//!
//! Clocks, threads, a bound on pending timers below 2^32 - 256, and slack: it does not
//! coalesce deadlines.

mod inspect;
mod level;
mod place;

use crate::list::{List, Timer};
use crate::slab::Slab;
use crate::snapshot::Totals;
use crate::{Budget, Key, Snapshot, TimerQueue};
use alloc::boxed::Box;
use core::fmt;
use level::Level;
use place::{LEVELS, Place, current};

/// A hierarchical timing wheel: insertion, cancelling and resetting in constant time, whatever
/// the deadline and however many timers are pending.
///
/// A timer is moved at most seven times before it fires, and mostly far less often. Any stretch
/// of time in which nothing is due is crossed in a few steps, be it years. Levels take their
/// memory (6 KiB each) when they are first used. The wheel holds at most 2^32 - 256 timers.
///
/// [`next_deadline`](TimerQueue::next_deadline) takes constant time: each slot knows a bound on
/// its earliest deadline, which is exact until a timer is cancelled, reset or (when a budget
/// ran out) fired out of the slot. [`peek`](TimerQueue::peek) may look through one slot.
///
/// ```
/// use tourbillon_wheel::{HierarchicalWheel, TimerQueue};
///
/// let mut wheel = HierarchicalWheel::new();
/// wheel.insert_at(30, "tea");
/// let eggs = wheel.insert_at(12, "eggs");
/// wheel.insert_at(u64::MAX, "the end of time");
///
/// assert_eq!(wheel.next_deadline(), Some(12));
/// assert!(wheel.reset(eggs, 40));
///
/// let mut fired = Vec::new();
/// let done = wheel.advance(50, usize::MAX, |_key, deadline, what| fired.push((deadline, what)));
/// assert_eq!(fired, [(30, "tea"), (40, "eggs")]);
/// assert!(done.finished);
/// assert_eq!((wheel.now(), wheel.len()), (50, 1));
/// ```
pub struct HierarchicalWheel<T> {
    now: u64,
    slab: Slab<Timer<T>>,
    levels: [Option<Box<Level>>; LEVELS],
    /// Bit n is set when level n holds timers.
    occupied: u8,
    /// The slot whose timers are being moved to finer levels. Not empty when present.
    cascade: Option<Cascade>,
    totals: Totals,
}

#[derive(Clone, Copy, Debug)]
struct Cascade {
    place: Place,
    /// The last tick of the slot's span.
    end: u64,
}

impl<T> HierarchicalWheel<T> {
    /// An empty wheel at tick 0. Takes no memory until the first insertion.
    pub const fn new() -> Self {
        Self::starting_at(0)
    }

    /// An empty wheel at tick `now`.
    pub const fn starting_at(now: u64) -> Self {
        Self {
            now,
            slab: Slab::new(),
            levels: [const { None }; LEVELS],
            occupied: 0,
            cascade: None,
            totals: Totals::ZERO,
        }
    }

    /// The place of a timer put in now.
    fn place_of(&self, deadline: u64) -> Place {
        match self.cascade {
            Some(cascade) if deadline <= cascade.end => cascade.place,
            _ => Place::of(deadline, self.now),
        }
    }

    fn list(&self, place: Place) -> Option<&List> {
        Some(self.levels[place.level()].as_ref()?.slot(place.slot()))
    }

    /// The index of the timer at the front of a place.
    fn front(&self, place: Place) -> Option<u32> {
        let list = self.list(place)?;
        (!list.is_empty()).then_some(list.head)
    }

    /// Puts a timer that is in the slab and in no list at the end of a place's list.
    fn link(&mut self, index: u32, place: Place) {
        *self.slab.at_mut(index).0 = place.label();
        let level = self.levels[place.level()].get_or_insert_with(|| Box::new(Level::EMPTY));
        level.push_back(place.slot(), &mut self.slab, index);
        self.occupied |= 1 << place.level();
    }

    /// Takes a timer out of the list of its place.
    fn unlink(&mut self, index: u32) {
        let place = Place::from_label(self.slab.at(index).1);
        let Some(level) = &mut self.levels[place.level()] else {
            unreachable!("timer {index} lies in a level that does not exist");
        };
        level.unlink(place.slot(), &mut self.slab, index);
        if level.occupied.is_empty() {
            self.occupied &= !(1 << place.level());
        }
        if self.cascade.is_some_and(|c| c.place == place) && level.slot(place.slot()).is_empty() {
            self.cascade = None;
        }
    }

    /// The occupied slot that comes first, the one being cascaded left aside.
    fn first_occupied(&self) -> Option<Place> {
        let mut levels = self.occupied;
        while levels != 0 {
            let level = levels.trailing_zeros() as usize;
            levels &= levels - 1;
            let mut occupied = self.levels[level].as_ref()?.occupied;
            if let Some(cascade) = self.cascade
                && cascade.place.level() == level
            {
                occupied.remove(cascade.place.slot());
            }
            if let Some(slot) = occupied.first() {
                return Some(Place::new(level, slot));
            }
        }
        None
    }

    /// Moves the timers of the cascading slot to where they belong, until the slot is empty,
    /// something due has come to light, or the budget has run out (then false).
    fn cascade(&mut self, place: Place, budget: &mut Budget) -> bool {
        while let Some(index) = self.front(place) {
            if !budget.pay_moved() {
                return false;
            }
            self.totals.moved = self.totals.moved.wrapping_add(1);
            let to = Place::of(self.slab.at(index).2.deadline, self.now);
            self.unlink(index);
            self.link(index, to);
            if to == current(self.now) {
                break;
            }
        }
        true
    }

    /// The timer of a place that fires first, and the tick that counts for its order.
    fn first_of(&self, place: Place) -> Option<(u64, u32)> {
        self.list(place)?
            .iter(&self.slab)
            .map(|index| (self.slab.at(index).2.deadline.max(self.now), index))
            .min_by_key(|(tick, _)| *tick)
    }

    fn forget_all(&mut self) {
        self.levels = [const { None }; LEVELS];
        self.occupied = 0;
        self.cascade = None;
    }
}

impl<T> TimerQueue for HierarchicalWheel<T> {
    type Value = T;

    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.slab.len()
    }

    fn insert_at(&mut self, deadline: u64, value: T) -> Key {
        let place = self.place_of(deadline);
        let key = self.slab.insert(place.label(), Timer::unlinked(deadline, value));
        self.link(key.index(), place);
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
        let place = self.place_of(deadline);
        self.link(key.index(), place);
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
        let moved = self.first_occupied().and_then(|place| self.first_of(place));
        let waiting = self.cascade.and_then(|cascade| self.first_of(cascade.place));
        let index = match (moved, waiting) {
            // What the cascade has moved is ahead of what it has not, at the same tick.
            (Some((tick, index)), Some((other, _))) if tick <= other => index,
            (_, Some((_, index))) | (Some((_, index)), None) => index,
            (None, None) => return None,
        };
        let (key, _, timer) = self.slab.at(index);
        Some((key, timer.deadline, &timer.value))
    }

    fn next_deadline(&self) -> Option<u64> {
        let places = [self.first_occupied(), self.cascade.map(|cascade| cascade.place)];
        let bounds = places.into_iter().flatten().filter_map(|place| Some(self.list(place)?.min));
        Some(bounds.min()?.max(self.now))
    }

    fn pop(&mut self, now: u64, budget: &mut Budget) -> Option<(Key, u64, T)> {
        if now < self.now {
            return None;
        }
        loop {
            if let Some(index) = self.front(current(self.now)) {
                if !budget.pay_fired() {
                    return None;
                }
                self.totals.fired = self.totals.fired.wrapping_add(1);
                self.unlink(index);
                let (key, _, timer) = self.slab.remove_at(index);
                return Some((key, timer.deadline, timer.value));
            }
            if let Some(cascade) = self.cascade {
                if !self.cascade(cascade.place, budget) {
                    return None;
                }
                continue;
            }
            let Some(place) = self.first_occupied() else {
                self.now = now;
                return None;
            };
            let start = place.start(self.now);
            if start > now {
                self.now = now;
                return None;
            }
            if place.level() > 0 {
                self.cascade = Some(Cascade { place, end: place.end(self.now) });
            }
            self.now = start;
        }
    }

    fn drain<F>(&mut self, mut take: F)
    where
        F: FnMut(Key, u64, T),
    {
        self.forget_all();
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
        for (number, level) in self.levels.iter_mut().enumerate() {
            if self.occupied >> number & 1 == 0 {
                *level = None;
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        self.take_snapshot()
    }

    fn check_invariants(&self) {
        self.check_all();
    }
}

impl<T> Default for HierarchicalWheel<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for HierarchicalWheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HierarchicalWheel")
            .field("now", &self.now)
            .field("len", &self.len())
            .field("next_deadline", &self.next_deadline())
            .finish_non_exhaustive()
    }
}

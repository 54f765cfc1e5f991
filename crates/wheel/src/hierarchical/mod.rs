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

mod chunks;
mod inspect;
mod level;
mod place;
mod sweep;

use crate::slab::Slab;
use crate::snapshot::Totals;
use crate::{Budget, Key, Snapshot, TimerQueue};
use alloc::boxed::Box;
use chunks::{Chunks, Record};
use core::fmt;
use level::{Level, Slot};
use place::{LEVELS, Place, current};
use sweep::Sweep;

/// A hierarchical timing wheel: insertion, cancelling and resetting in constant time, whatever
/// the deadline and however many timers are pending.
///
/// A timer is moved at most seven times before it fires, and mostly far less often. Any stretch
/// of time in which nothing is due is crossed in a few steps, be it years. Levels take their
/// memory (10 KiB each) when they are first used. The wheel holds at most 2^32 - 256 timers.
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
    /// Nothing happens before this tick: it is `now` when something is due or being cascaded, else
    /// the start of the first occupied slot or before.
    next: u64,
    /// The timers. The label of each is that of the record that stands for it.
    slab: Slab<Timer<T>>,
    levels: [Option<Box<Level>>; LEVELS],
    chunks: Chunks,
    /// Records in the lines of all slots, dead ones included.
    records: usize,
    /// Bit n is set when level n holds records.
    occupied: u8,
    /// The slot whose records are being moved to finer levels. Not empty when present.
    cascade: Option<Cascade>,
    sweep: Sweep,
    totals: Totals,
}

/// A pending timer.
struct Timer<T> {
    deadline: u64,
    value: T,
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
            next: u64::MAX,
            slab: Slab::new(),
            levels: [const { None }; LEVELS],
            chunks: Chunks::new(),
            records: 0,
            occupied: 0,
            cascade: None,
            sweep: Sweep::START,
            totals: Totals::ZERO,
        }
    }

    /// The place of a timer put in now.
    #[inline]
    fn place_of(&self, deadline: u64) -> Place {
        match self.cascade {
            Some(cascade) if deadline <= cascade.end => cascade.place,
            _ => Place::of(deadline, self.now),
        }
    }

    fn slot(&self, place: Place) -> Option<&Slot> {
        Some(self.levels[place.level()].as_ref()?.slot(place.slot()))
    }

    /// The record at the front of a place.
    #[inline]
    fn front(&self, place: Place) -> Option<Record> {
        self.slot(place)?.front(&self.chunks)
    }

    /// Adds a record at the end of a place's line.
    #[inline]
    fn push(&mut self, place: Place, record: Record) {
        let level = self.levels[place.level()].get_or_insert_with(|| Box::new(Level::EMPTY));
        level.push(place.slot(), &mut self.chunks, record);
        self.occupied |= 1 << place.level();
        self.records += 1;
    }

    /// Takes the record at the front of a place, which is not empty, out of its line.
    #[inline]
    fn pop_front(&mut self, place: Place) {
        let Some(level) = &mut self.levels[place.level()] else { return };
        self.records -= 1;
        if level.pop(place.slot(), &mut self.chunks) {
            self.sweep.leave(place);
            if level.occupied.is_empty() {
                self.occupied &= !(1 << place.level());
            }
            if self.cascade.is_some_and(|c| c.place == place) && level.slot(place.slot()).is_empty()
            {
                self.cascade = None;
            }
        }
    }

    /// Adds the record of a timer that is in the slab, behind all others of its place.
    #[inline]
    fn line_up(&mut self, index: u32, label: u32, deadline: u64) {
        let place = self.place_of(deadline);
        self.next = self.next.min(place.start(self.now));
        self.push(place, Record { deadline, index, label });
    }

    /// A record of this deadline no longer stands for a timer.
    #[inline]
    fn one_dead(&mut self, deadline: u64) {
        if self.slab.len() == 0 {
            return self.forget_all();
        }
        let place = self.place_of(deadline);
        if let Some(level) = &mut self.levels[place.level()] {
            let slot = &mut level.slots[usize::from(place.slot())];
            slot.dead = slot.count.min(slot.dead + 1);
        }
        self.pay_for_dead();
    }

    /// Takes a dead record at the front of a place out of its line.
    fn drop_dead(&mut self, place: Place) {
        if let Some(level) = &mut self.levels[place.level()] {
            let slot = &mut level.slots[usize::from(place.slot())];
            slot.dead = slot.dead.saturating_sub(1);
        }
        self.pop_front(place);
    }

    fn lives(&self, record: Record) -> bool {
        self.slab.has_label(record.index, record.label)
    }

    /// The occupied slot that comes first, the one being cascaded left aside.
    fn first_occupied(&self) -> Option<Place> {
        self.occupied_places().next()
    }

    /// The occupied slots in the order of time, the one being cascaded left aside.
    fn occupied_places(&self) -> impl Iterator<Item = Place> {
        let mut levels = self.occupied;
        let levels = core::iter::from_fn(move || {
            let level = (levels != 0).then(|| levels.trailing_zeros() as usize)?;
            levels &= levels - 1;
            Some(level)
        });
        let places = levels.flat_map(|level| {
            let slots = self.levels[level].as_ref().map(|level| level.occupied.iter());
            slots.into_iter().flatten().map(move |slot| Place::new(level, slot))
        });
        places.filter(|place| self.cascade.is_none_or(|cascade| cascade.place != *place))
    }

    /// Moves the records of the cascading slot to where they belong, until the slot is empty,
    /// something due has come to light, or the budget has run out (then false).
    ///
    /// Records that come to level 0 are looked at: the dead are dropped, and the timers of the
    /// others are brought into the cache, where they will be needed soon. On higher levels that
    /// is worth its cache misses only if the slot is known to hold dead ones.
    fn cascade(&mut self, place: Place, budget: &mut Budget) -> bool {
        while let Some(record) = self.front(place) {
            if !budget.pay_moved() {
                return false;
            }
            self.totals.moved = self.totals.moved.wrapping_add(1);
            let to = Place::of(record.deadline, self.now);
            let look = to.level() == 0 || self.slot(place).is_some_and(|slot| slot.dead > 0);
            if look && !self.lives(record) {
                self.drop_dead(place);
                continue;
            }
            self.pop_front(place);
            self.push(to, record);
            if to == current(self.now) {
                break;
            }
        }
        true
    }

    /// The living record of a place whose timer fires first, and the tick that counts for its
    /// order.
    fn first_of(&self, place: Place) -> Option<(u64, Record)> {
        self.slot(place)?
            .records(&self.chunks)
            .filter(|record| self.lives(*record))
            .map(|record| (record.deadline.max(self.now), record))
            .min_by_key(|(tick, _)| *tick)
    }

    /// [`TimerQueue::pop`] when there may be something to do.
    fn pop_due(&mut self, now: u64, budget: &mut Budget) -> Option<(Key, u64, T)> {
        loop {
            let here = current(self.now);
            while let Some(record) = self.front(here) {
                self.next = self.now;
                if !self.lives(record) {
                    if !budget.pay_moved() {
                        return None;
                    }
                    self.totals.moved = self.totals.moved.wrapping_add(1);
                    self.drop_dead(here);
                    continue;
                }
                if !budget.pay_fired() {
                    return None;
                }
                self.totals.fired = self.totals.fired.wrapping_add(1);
                self.pop_front(here);
                let (key, _, timer) = self.slab.remove_at(record.index);
                if self.slab.len() == 0 {
                    self.forget_all();
                }
                return Some((key, timer.deadline, timer.value));
            }
            if let Some(cascade) = self.cascade {
                self.next = self.now;
                if !self.cascade(cascade.place, budget) {
                    return None;
                }
                continue;
            }
            let Some(place) = self.first_occupied() else {
                (self.now, self.next) = (now, u64::MAX);
                return None;
            };
            let start = place.start(self.now);
            if start > now {
                (self.now, self.next) = (now, start);
                return None;
            }
            if place.level() > 0 {
                self.sweep.leave(place);
                self.cascade = Some(Cascade { place, end: place.end(self.now) });
            }
            self.now = start;
        }
    }

    /// Forgets all records. Rings and a few chunks are kept.
    fn forget_all(&mut self) {
        if self.records > 0 {
            for level in self.levels.iter_mut().flatten() {
                for slot in level.occupied.iter() {
                    let slot = &mut level.slots[usize::from(slot)];
                    self.chunks.give_line(slot.head);
                    *slot = Slot::EMPTY;
                }
                level.occupied = crate::bitmap::Bitmap256::EMPTY;
            }
        }
        self.records = 0;
        self.occupied = 0;
        self.cascade = None;
        self.sweep = Sweep::START;
        self.next = u64::MAX;
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

    #[inline]
    fn insert_at(&mut self, deadline: u64, value: T) -> Key {
        let key = self.slab.insert_with(Timer { deadline, value }, Key::generation);
        self.line_up(key.index(), key.generation(), deadline);
        self.totals.inserted = self.totals.inserted.wrapping_add(1);
        key
    }

    #[inline]
    fn cancel(&mut self, key: Key) -> Option<T> {
        self.slab.get(key)?;
        let (_, _, timer) = self.slab.remove_at(key.index());
        self.one_dead(timer.deadline);
        self.totals.cancelled = self.totals.cancelled.wrapping_add(1);
        Some(timer.value)
    }

    fn reset(&mut self, key: Key, deadline: u64) -> bool {
        if self.slab.get(key).is_none() {
            return false;
        }
        let fresh = self.slab.next_generation().get();
        let (label, timer) = self.slab.at_mut(key.index());
        *label = fresh;
        let before = core::mem::replace(&mut timer.deadline, deadline);
        self.line_up(key.index(), fresh, deadline);
        self.one_dead(before);
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
        let moved = self.occupied_places().find_map(|place| self.first_of(place));
        let waiting = self.cascade.and_then(|cascade| self.first_of(cascade.place));
        let record = match (moved, waiting) {
            // What the cascade has moved is ahead of what it has not, at the same tick.
            (Some((tick, record)), Some((other, _))) if tick <= other => record,
            (_, Some((_, record))) | (Some((_, record)), None) => record,
            (None, None) => return None,
        };
        let (key, _, timer) = self.slab.at(record.index);
        Some((key, timer.deadline, &timer.value))
    }

    fn next_deadline(&self) -> Option<u64> {
        let places = [self.first_occupied(), self.cascade.map(|cascade| cascade.place)];
        let bounds = places.into_iter().flatten().filter_map(|place| Some(self.slot(place)?.min));
        Some(bounds.min()?.max(self.now))
    }

    #[inline]
    fn pop(&mut self, now: u64, budget: &mut Budget) -> Option<(Key, u64, T)> {
        if now < self.next {
            self.now = self.now.max(now);
            return None;
        }
        self.pop_due(now, budget)
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
        self.sweep_all();
        self.slab.compact();
        self.chunks.compact();
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

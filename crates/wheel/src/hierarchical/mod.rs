//! The hierarchical timing wheel: eight levels of 256 slots over all of `u64`.
//!
//! # What is where
//!
//! A timer is kept in the slab, where its key leads, and stays in place until it fires. That it
//! waits is said by a *record* of 16 bytes, which names its deadline and its place in the slab. A
//! slot is a line of records, kept in chunks; moving a timer means copying its record, and a line
//! is read as a stream. Cancelling frees the timer at once and leaves the record in line, *dead*:
//! the label that it carries is no longer that of the slab's entry. The dead are dropped when
//! their slot's time comes, or by the sweep (`sweep`) when they are too many. A slot of level 1
//! that holds few records does not go through level 0: it becomes the near ones (`near`).
//!
//! # What always holds
//!
//! 1. The record of a timer lies in the slot [`Place::of`] its deadline at the present `now`. The
//!    exceptions are the slot being cascaded, below, and the near ones.
//! 2. So every occupied slot lies ahead of `now`, except the slot of `now` itself, which
//!    holds what is due: the timers of this tick and the overdue ones.
//! 3. The lowest occupied level holds the earliest timers, and in it the lowest occupied slot;
//!    the near ones would be in slots of level 0, and are earlier than all of level 1. `now`
//!    moves only when the slot of `now` is empty, no near one is due and no cascade is under way,
//!    and then to the next near one, to the start of the next occupied slot or to the target,
//!    whichever comes first. By `a_place_stays_the_same_until_its_span_begins` (tests of `place`),
//!    1 stays true.
//!
//! # Why equal deadlines fire in insertion order
//!
//! The place is a function of deadline and `now`, so at any moment the records of all timers of
//! one deadline lie in one line, and new ones join at its end. It remains to see that cascading
//! a slot keeps their order. When `now` reaches the start of a slot of level k, all levels
//! below k are empty, for what was in them was earlier and has fired. The slot's records are
//! taken from the front, one by one, and put at the end of their new lines: those were empty, so
//! the order of the old line is the order of the new ones.
//!
//! A budget may stop this midway. Then timers of one deadline are in two lines, the moved ones
//! in their new line and the rest in the old, and a new one must go behind both. Hence the
//! rule: until the cascade is done, a timer with a deadline up to the end of the slot's span,
//! overdue ones included, joins the slot being cascaded, and reaches its line behind all the
//! others. Lines below level k meanwhile receive records from nowhere else. Timers that the
//! cascade has brought into the slot of `now` fire first; they are ahead of all that is still
//! in the cascading slot, where nothing can be due earlier than `now` and nothing due at `now`
//! was inserted before them.
//!
//! The near ones are sorted by deadline without changing the order of equals, all at one moment
//! at which level 0 is empty. What is inserted later goes to the slots. So at one tick the near
//! ones go first, then the slot.
//!
//! # What it lacks
//!
//! Clocks, threads, a bound on pending timers below 2^32 - 256, and slack: it does not
//! coalesce deadlines.

mod chunks;
mod inspect;
mod level;
mod near;
mod place;
mod sweep;

use crate::slab::{NIL, Slab};
use crate::snapshot::Totals;
use crate::{Advance, Budget, Key, Snapshot, TimerQueue};
use alloc::boxed::Box;
use chunks::{Chunks, Record};
use core::fmt;
use level::{Level, Slot};
use near::{NEAR, Near};
use place::{LEVELS, Place, current};
use sweep::Sweep;

/// A hierarchical timing wheel: insertion, cancelling and resetting in constant time, whatever
/// the deadline and however many timers are pending.
///
/// A timer is moved at most seven times before it fires, and mostly far less often. Any stretch
/// of time in which nothing is due is crossed in a few steps, be it years. Levels take their
/// memory (8 KiB each) when they are first used. The wheel holds at most 2^32 - 256 timers.
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
    /// Nothing happens in the slots before this tick: it is `now` when something there is due or
    /// being cascaded, else the start of the first occupied slot or before.
    next: u64,
    near: Near,
    /// The timers. The label of each is that of the record that stands for it.
    slab: Slab<Timer<T>>,
    levels: [Option<Box<Level>>; LEVELS],
    chunks: Chunks,
    /// Dead records in the lines of all slots and among the near ones.
    dead: usize,
    /// Bit n is set when level n holds records.
    occupied: u8,
    /// The slot whose records are being moved to finer levels. Not empty when present.
    cascade: Option<Cascade>,
    sweep: Sweep,
    /// What is inserted is not counted, but follows from the other counts.
    totals: Totals,
    /// Timers that `drain` and `clear` removed.
    drained: u64,
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

/// When the last timer is cancelled, tables of more chunks or pages than this are given back.
const TABLE_KEPT: usize = 64;

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
            near: Near::new(),
            slab: Slab::new(),
            levels: [const { None }; LEVELS],
            chunks: Chunks::new(),
            dead: 0,
            occupied: 0,
            cascade: None,
            sweep: Sweep::START,
            totals: Totals::ZERO,
            drained: 0,
        }
    }

    /// The pending timers with their deadlines, in no particular order. Takes time in proportion to
    /// [`capacity`](TimerQueue::capacity).
    ///
    /// ```
    /// use tourbillon_wheel::{HierarchicalWheel, TimerQueue};
    ///
    /// let mut wheel = HierarchicalWheel::new();
    /// let tea = wheel.insert_at(30, "tea");
    /// let eggs = wheel.insert_at(12, "eggs");
    /// wheel.cancel(eggs);
    /// assert_eq!(wheel.iter().collect::<Vec<_>>(), [(tea, 30, &"tea")]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (Key, u64, &T)> {
        self.slab.iter().map(|(key, timer)| (key, timer.deadline, &timer.value))
    }

    /// The place of a timer put in now.
    #[inline(always)]
    fn place_of(&self, deadline: u64) -> Place {
        match self.cascade {
            Some(cascade) if deadline <= cascade.end => cascade.place,
            _ => Place::of(deadline, self.now),
        }
    }

    #[inline]
    fn slot(&self, place: Place) -> Option<&Slot> {
        Some(self.levels[place.level()].as_ref()?.slot(place.slot()))
    }

    /// The record at the front of a place.
    #[inline]
    fn front(&self, place: Place) -> Option<Record> {
        self.slot(place)?.front(&self.chunks)
    }

    /// Adds a record at the end of a place's line.
    #[inline(always)]
    fn push(&mut self, place: Place, record: Record) {
        match &mut self.levels[place.level()] {
            Some(level) => {
                if level.push(place.slot(), &mut self.chunks, record) {
                    self.occupied |= 1 << place.level();
                }
            }
            None => self.open(place, record),
        }
    }

    /// Adds the first record of a level that has no memory yet.
    #[cold]
    fn open(&mut self, place: Place, record: Record) {
        let level = self.levels[place.level()].insert(Box::new(Level::EMPTY));
        level.push(place.slot(), &mut self.chunks, record);
        self.occupied |= 1 << place.level();
    }

    /// Takes so many records of the first chunk of a place out of its line.
    #[inline]
    fn pop_some(&mut self, place: Place, count: usize) {
        let Some(level) = &mut self.levels[place.level()] else { return };
        if level.pop(place.slot(), &mut self.chunks, count) {
            self.chunk_left(place);
        }
    }

    /// The first chunk of a place's line is no longer there.
    #[inline]
    fn chunk_left(&mut self, place: Place) {
        self.sweep.leave(place);
        let Some(level) = &self.levels[place.level()] else { return };
        if level.occupied.is_empty() {
            self.occupied &= !(1 << place.level());
        }
        if self.cascade.is_some_and(|c| c.place == place) && level.slot(place.slot()).is_empty() {
            self.cascade = None;
        }
    }

    /// Adds the record of a timer that is in the slab, behind all others of its place.
    #[inline(always)]
    fn line_up(&mut self, index: u32, label: u32, deadline: u64) {
        let place = self.place_of(deadline);
        // A later deadline belongs to no slot that starts before the first one.
        if deadline <= self.next {
            self.next = self.next.min(place.start(self.now));
        }
        self.push(place, Record::new(deadline, index, label));
    }

    /// One more record no longer stands for a timer.
    #[inline]
    fn one_dead(&mut self) {
        self.dead += 1;
        if self.slab.len() == 0 {
            self.forget_all();
            // The tables of what there was once. Whoever made them large has paid for this.
            if self.chunks.numbers() > TABLE_KEPT || self.slab.pages() > TABLE_KEPT {
                self.compact();
            }
        } else {
            self.pay_for_dead();
        }
    }

    #[inline]
    fn lives(&self, record: Record) -> bool {
        // The deadline is sure to agree. It is read because an entry may lie in two cache lines, and
        // whoever asks is mostly about to use the timer: both lines are fetched at once.
        self.slab.holds(record.index(), record.label(), |timer| timer.deadline == record.deadline)
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

    /// Moves the records of the cascading slot to where they belong, chunk by chunk, until the
    /// slot is empty, something due has come to light, or the budget has run out (then false).
    ///
    /// Records that come to level 0 are looked at: the dead are dropped, and the timers of the
    /// others are brought into the cache, where they will be needed soon. On higher levels moving
    /// a dead one costs less than the cache miss of looking.
    fn cascade(&mut self, place: Place, budget: &mut Budget) -> bool {
        while let Some(slot) = self.slot(place).copied().filter(|slot| !slot.is_empty()) {
            slot.settle(&mut self.chunks);
            let mut chunk = self.chunks.lift(slot.head);
            chunk.fetch();
            let records = &mut chunk.records[slot.first as usize..chunk.len as usize];
            let paid = budget.pay_moved_up_to(records.len());
            let records = &mut records[..paid];
            let kept = if place.level() == 1 { self.keep_living(records) } else { records.len() };
            let here = current(self.now);
            let mut due = false;
            for record in &records[..kept] {
                let to = Place::of(record.deadline, self.now);
                due |= to == here;
                self.push(to, *record);
            }
            self.chunks.put_back(slot.head, chunk);
            self.pop_some(place, paid);
            self.dead -= paid - kept;
            self.totals.moved = self.totals.moved.wrapping_add(paid as u64);
            if paid == 0 {
                return false;
            }
            if due {
                break;
            }
        }
        true
    }

    /// Brings those records to the front that stand for a timer, keeping their order; answers how
    /// many they are. No branch depends on what is found, so that the processor looks at many of
    /// them at once.
    #[inline]
    fn keep_living(&self, records: &mut [Record]) -> usize {
        let mut kept = 0;
        for n in 0..records.len() {
            let record = records[n];
            records[kept] = record;
            kept += usize::from(self.lives(record));
        }
        kept
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

    /// Brings what is due first into the slot of `now`, which is empty, or among the near ones:
    /// goes on cascading, or moves `now` to the next occupied slot. False when nothing is due up
    /// to `target` or the budget has run out.
    fn step(&mut self, target: u64, budget: &mut Budget) -> bool {
        if let Some(cascade) = self.cascade {
            return self.cascade(cascade.place, budget);
        }
        let Some((place, level)) = self.first_level() else {
            self.next = u64::MAX;
            return self.near.len() > 0 && self.near.next() <= target;
        };
        self.next = place.start(self.now);
        if self.near.next() <= self.next && self.near.len() > 0 {
            return self.near.next() <= target;
        }
        if self.next > target {
            return false;
        }
        self.now = self.next;
        if level > 0 {
            self.sweep.leave(place);
            if level > 1 || !self.draw_near(place, budget) {
                self.cascade = Some(Cascade { place, end: place.end(self.now) });
            }
        }
        true
    }

    /// Makes the timers of a slot of level 1, whose time has come, the near ones. Answers false,
    /// having done nothing, when they are too many for that or for the budget.
    fn draw_near(&mut self, place: Place, budget: &mut Budget) -> bool {
        let Some(slot) = self.slot(place).copied() else { return false };
        let count = slot.count();
        if count > NEAR || count > budget.left() {
            return false;
        }
        let moved = budget.pay_moved_up_to(count);
        self.totals.moved = self.totals.moved.wrapping_add(moved as u64);
        slot.settle(&mut self.chunks);
        let (mut number, mut first) = (slot.head, slot.first as usize);
        let mut rest = slot;
        while number != NIL {
            let mut chunk = self.chunks.lift(number);
            chunk.fetch();
            let kept = self.keep_living(&mut chunk.records[first..chunk.len as usize]);
            chunk.len = (first + kept) as u32;
            rest.tail_len = chunk.len;
            let next = chunk.next;
            self.chunks.put_back(number, chunk);
            (number, first) = (next, 0);
        }
        self.near.fill(rest.pieces(&self.chunks));
        self.dead -= count - self.near.len();
        self.chunks.give_line(slot.head);
        if let Some(level) = &mut self.levels[place.level()] {
            level.empty(place.slot());
        }
        self.chunk_left(place);
        true
    }

    /// The first occupied slot, and its level.
    #[inline]
    fn first_level(&self) -> Option<(Place, usize)> {
        let level = self.occupied.trailing_zeros() as usize;
        let slot = self.levels.get(level)?.as_ref()?.occupied.first()?;
        Some((Place::new(level, slot), level))
    }

    /// Forgets all records. Rings and a few chunks are kept.
    fn forget_all(&mut self) {
        if self.occupied != 0 {
            for level in self.levels.iter_mut().flatten() {
                for slot in level.occupied.iter() {
                    let slot = &mut level.slots[usize::from(slot)];
                    self.chunks.give_line(slot.head);
                    *slot = Slot::EMPTY;
                }
                level.occupied = crate::bitmap::Bitmap256::EMPTY;
            }
        }
        self.near.clear();
        self.dead = 0;
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
        key
    }

    #[inline]
    fn cancel(&mut self, key: Key) -> Option<T> {
        let timer = self.slab.remove(key)?;
        self.one_dead();
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
        timer.deadline = deadline;
        self.line_up(key.index(), fresh, deadline);
        self.one_dead();
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
        let near = self.near.rest().iter().find(|record| self.lives(**record));
        let near = near.map(|record| (record.deadline, *record));
        let moved = self.occupied_places().find_map(|place| self.first_of(place));
        let waiting = self.cascade.and_then(|cascade| self.first_of(cascade.place));
        // At one tick the near ones come first, and what a cascade has moved before what it has
        // not: the first of the least.
        let all = [near, moved, waiting].into_iter().flatten();
        let (_, record) = all.min_by_key(|(tick, _)| *tick)?;
        let (key, _, timer) = self.slab.at(record.index());
        Some((key, timer.deadline, &timer.value))
    }

    fn next_deadline(&self) -> Option<u64> {
        let places = [self.first_occupied(), self.cascade.map(|cascade| cascade.place)];
        let bounds = places.into_iter().flatten().filter_map(|place| Some(self.slot(place)?.min));
        let near = self.near.front().map(|record| record.deadline);
        Some(bounds.chain(near).min()?.max(self.now))
    }

    #[inline]
    fn pop(&mut self, now: u64, budget: &mut Budget) -> Option<(Key, u64, T)> {
        while self.next.min(self.near.next()) <= now {
            // At one tick the near ones come first: what is in the slot was inserted after them.
            let near = match self.near.front() {
                Some(record) if record.deadline <= self.next => Some(record),
                _ => None,
            };
            let here = current(self.now);
            let Some(record) = near.or_else(|| self.front(here)) else {
                if self.step(now, budget) {
                    continue;
                }
                if budget.ran_out() {
                    return None;
                }
                break;
            };
            if budget.left() == 0 {
                let _ = budget.pay_fired();
                return None;
            }
            let removed = self.slab.remove_labelled(record.index(), record.label());
            if near.is_some() {
                self.now = record.deadline;
                self.near.pop();
            } else {
                self.next = self.now;
                self.pop_some(here, 1);
            }
            let Some((key, timer)) = removed else {
                self.dead -= 1;
                let _ = budget.pay_moved();
                self.totals.moved = self.totals.moved.wrapping_add(1);
                continue;
            };
            let _ = budget.pay_fired();
            self.totals.fired = self.totals.fired.wrapping_add(1);
            if self.slab.len() == 0 {
                self.forget_all();
            }
            return Some((key, timer.deadline, timer.value));
        }
        self.now = self.now.max(now);
        None
    }

    #[inline]
    fn advance<F>(&mut self, now: u64, budget: usize, mut fire: F) -> Advance
    where
        F: FnMut(Key, u64, T),
    {
        if now < self.next.min(self.near.next()) {
            self.now = self.now.max(now);
            return Advance { fired: 0, moved: 0, finished: true };
        }
        let mut budget = Budget::new(budget);
        while let Some((key, deadline, value)) = self.pop(now, &mut budget) {
            fire(key, deadline, value);
        }
        budget.into()
    }

    fn drain<F>(&mut self, mut take: F)
    where
        F: FnMut(Key, u64, T),
    {
        self.forget_all();
        self.drained = self.drained.wrapping_add(self.slab.len() as u64);
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
        self.near.compact();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A million timers that were all cancelled kept tables of a megabyte, until something else
    /// compacted them (netty#2541 and its like kept the timers themselves).
    #[test]
    fn the_last_cancellation_gives_everything_back() {
        let mut wheel = HierarchicalWheel::new();
        for round in 0..3 {
            let keys: alloc::vec::Vec<Key> =
                (0..200_000_u64).map(|n| wheel.insert_at(n * 977 % 3_600_000, n)).collect();
            for key in keys {
                assert!(wheel.cancel(key).is_some());
            }
            assert_eq!(wheel.capacity(), 0, "round {round}");
            assert_eq!((wheel.chunks.numbers(), wheel.slab.pages()), (0, 0), "round {round}");
        }
        // A population that swings around nothing keeps what it needs.
        let key = wheel.insert_at(9, 0);
        wheel.cancel(key);
        assert!(wheel.capacity() > 0);
    }
}

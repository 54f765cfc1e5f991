//! Sweeping: giving back the memory of records whose timers are gone.
//!
//! Cancelling a timer frees it at once but leaves its record in line, because taking that out
//! would cost the cache misses that the layout avoids. When there are half as many dead records
//! again as the slab has room for timers, every cancellation pays for looking at a few records: a
//! sweep goes around all slots, a chunk at a time, and closes the gaps it finds. No operation
//! sweeps more than a few chunks, and the dead take no more memory than the slab.
//!
//! The slab's room counts and not the timers in it: while all of many timers are cancelled one
//! by one, most of the slab's pages stay until near the end, and sweeping meanwhile would be for
//! nothing when the last one goes. Should the end be a few timers that stay, the last
//! cancellations sweep many chunks each.

use super::HierarchicalWheel;
use super::chunks::CHUNK;
use super::level::Slot;
use super::place::{LEVELS, Place};
use crate::slab::NIL;

/// Dead records that may be left whatever the number of timers.
const LEAVE: usize = 4 * CHUNK;

/// Chunks that one cancellation sweeps at most: some ten microseconds.
const MOST: usize = 64;

/// Where the sweep is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    /// The slot in work, or looked at last.
    place: Place,
    /// The chunk before `at`, swept already.
    prev: u32,
    /// The chunk to sweep next; none when a slot is to be chosen.
    at: u32,
    /// Records that have been paid for.
    credit: usize,
}

impl Sweep {
    pub(super) const START: Self = Self { place: Place::new(0, 0), prev: NIL, at: NIL, credit: 0 };

    /// A chunk of this slot went away, or the slot is not to be swept on.
    #[inline]
    pub(super) fn leave(&mut self, place: Place) {
        if self.place == place {
            self.at = NIL;
        }
    }
}

impl<T> HierarchicalWheel<T> {
    /// Pays for one more dead record.
    #[inline]
    pub(super) fn pay_for_dead(&mut self) {
        let held = self.slab.capacity();
        if self.dead > held + held / 2 + LEAVE + self.near.len() {
            self.sweep_some(held);
        }
    }

    #[inline(never)]
    fn sweep_some(&mut self, held: usize) {
        // The more are dead, the more of what is looked at can go.
        self.sweep.credit += match self.dead {
            dead if dead < 2 * held => 2,
            dead if dead < 4 * held => CHUNK,
            _ => MOST * CHUNK,
        };
        while self.sweep.credit >= CHUNK {
            self.sweep.credit -= CHUNK;
            self.sweep_chunk();
        }
    }

    /// Sweeps all slots.
    pub(super) fn sweep_all(&mut self) {
        self.sweep.at = NIL;
        for level in 0..LEVELS {
            let Some(ring) = &self.levels[level] else { continue };
            for slot in ring.occupied.iter() {
                if self.cascade.is_some_and(|c| c.place == Place::new(level, slot)) {
                    continue;
                }
                self.enter(Place::new(level, slot));
                while self.sweep.at != NIL {
                    self.sweep_chunk();
                }
            }
        }
    }

    fn enter(&mut self, place: Place) {
        let head = self.slot(place).map_or(NIL, |slot| slot.head);
        self.sweep.place = place;
        (self.sweep.prev, self.sweep.at) = (NIL, head);
    }

    /// Chooses the next slot around the wheel.
    fn choose(&mut self) {
        let mut place = self.sweep.place;
        for _ in 0..2 {
            place = self.next_occupied(place);
            if self.cascade.is_some_and(|cascade| cascade.place == place) {
                continue;
            }
            self.enter(place);
            return;
        }
    }

    /// The next place around the wheel that holds records, or the same.
    fn next_occupied(&self, place: Place) -> Place {
        let after = |level: usize, slot: Option<u8>| {
            let occupied = self.levels[level].as_ref()?.occupied;
            let next = slot.map_or(occupied.first(), |slot| occupied.first_after(slot))?;
            Some(Place::new(level, next))
        };
        after(place.level(), Some(place.slot()))
            .or_else(|| (1..=LEVELS).find_map(|n| after((place.level() + n) % LEVELS, None)))
            .unwrap_or(place)
    }

    /// Sweeps the next chunk: what lives moves up, into the chunk before it as far as there is
    /// room.
    fn sweep_chunk(&mut self) {
        if self.sweep.at == NIL {
            self.choose();
            if self.sweep.at == NIL {
                return;
            }
        }
        let (place, at, prev) = (self.sweep.place, self.sweep.at, self.sweep.prev);
        let Some(level) = &mut self.levels[place.level()] else { return };
        let slot = &mut level.slots[usize::from(place.slot())];
        slot.settle(&mut self.chunks);
        let count = slot.count();
        let chunk = self.chunks.get_mut(at);
        chunk.fetch();
        let first = if prev == NIL { core::mem::take(&mut slot.first) as usize } else { 0 };
        let len = chunk.len as usize;
        chunk.records.copy_within(first..len, 0);
        let mut kept = 0;
        for n in 0..len - first {
            let record = chunk.records[n];
            chunk.records[kept] = record;
            kept += usize::from(self.slab.holds(record.index(), record.label(), |_| true));
        }
        let removed = len - first - kept;
        chunk.len = kept as u32;
        let next = chunk.next;
        self.dead -= removed;
        if prev != NIL && kept > 0 {
            let records = chunk.records;
            let before = self.chunks.get_mut(prev);
            let there = before.len as usize;
            let moved = kept.min(CHUNK - there);
            before.records[there..there + moved].copy_from_slice(&records[..moved]);
            before.len += moved as u32;
            kept -= moved;
            let chunk = self.chunks.get_mut(at);
            chunk.records.copy_within(moved..moved + kept, 0);
            chunk.len = kept as u32;
        }
        if kept > 0 {
            self.sweep.prev = at;
        } else {
            match prev {
                NIL => slot.head = next,
                _ => self.chunks.get_mut(prev).next = next,
            }
            if next == NIL {
                slot.tail = prev;
            }
            self.chunks.give(at);
        }
        self.sweep.at = next;
        if slot.tail != NIL {
            slot.tail_len = self.chunks.get(slot.tail).len;
            slot.before = count - removed + slot.first as usize - slot.tail_len as usize;
        }
        if slot.is_empty() {
            *slot = Slot::EMPTY;
            level.occupied.remove(place.slot());
            if level.occupied.is_empty() {
                self.occupied &= !(1 << place.level());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, TimerQueue};
    use alloc::vec::Vec;

    /// A wheel of which all timers but each `keep`th are cancelled, in an order without pattern.
    fn cancelled(timers: u64, keep: u64) -> HierarchicalWheel<u64> {
        let mut wheel = HierarchicalWheel::new();
        let keys: Vec<Key> =
            (0..timers).map(|n| wheel.insert_at(n * 7919 % 3_600_000, n)).collect();
        for n in 0..timers {
            // A step prime to the number of timers visits each of them.
            let n = n * 104_729 % timers;
            if !n.is_multiple_of(keep) {
                assert_eq!(wheel.cancel(keys[n as usize]), Some(n));
            }
        }
        wheel.check_all();
        wheel
    }

    /// netty#2541 and others, with survivors: when the last of the cancellations goes by, nobody
    /// is left to pay for sweeping.
    #[test]
    fn a_survivor_does_not_keep_the_memory_of_the_others() {
        let wheel = cancelled(300_000, 300_000);
        assert_eq!(wheel.len(), 1);
        assert!(wheel.dead <= 4 * wheel.capacity(), "{} dead records are kept", wheel.dead);
        let wheel = cancelled(300_000, 1_000);
        assert_eq!(wheel.len(), 300);
        assert!(wheel.dead <= 4 * wheel.capacity(), "{} dead records are kept", wheel.dead);
    }

    #[test]
    fn compacting_sweeps_everything() {
        let mut wheel = cancelled(100_000, 10);
        wheel.compact();
        assert_eq!(wheel.dead, 0);
        wheel.check_all();
    }

    #[test]
    fn churn_keeps_the_dead_within_the_memory_that_is_held() {
        let mut wheel = HierarchicalWheel::new();
        let mut keys: Vec<Key> =
            (0..5_000).map(|n| wheel.insert_at(30_000 + n % 30_000, n)).collect();
        for n in 0..200_000u64 {
            let at = (n * 104_729 % 5_000) as usize;
            assert!(wheel.cancel(keys[at]).is_some());
            keys[at] = wheel.insert_at(30_000 + n * 31 % 30_000, n);
            assert!(wheel.dead <= 2 * wheel.capacity() + LEAVE, "{} dead", wheel.dead);
        }
        wheel.check_all();
    }
}

//! The near timers: one coarse slot's records, put in order all at once.
//!
//! A slot of level 1 that holds few records is not spread over the slots of level 0, where most
//! would lie alone in a chunk of their own: its records are sorted by tick into one array, which
//! is then fired from front to back. Always: the array is sorted by deadline, records of one
//! deadline are in the order of insertion, and all deadlines lie in the 256 ticks of `now`'s slot
//! of level 1. Nothing is added until the array is used up.

use super::chunks::Record;
use super::place::SLOTS;
use alloc::vec::Vec;

/// Records that are worth it at most: 64 KiB. Fuller slots make good use of the chunks of level 0.
pub(super) const NEAR: usize = 4096;

/// Below this, ordering by insertion is quicker than counting; the library's stable sort does
/// that up to here, without taking memory.
const FEW: usize = 20;

#[derive(Debug)]
pub(super) struct Near {
    records: Vec<Record>,
    /// The first record that is still to fire.
    at: usize,
    /// Its deadline; `u64::MAX` when there is none.
    next: u64,
}

impl Near {
    pub(super) const fn new() -> Self {
        Self { records: Vec::new(), at: 0, next: u64::MAX }
    }

    /// The tick of the first record, `u64::MAX` when there is none.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The first record.
    #[inline]
    pub(super) fn front(&self) -> Option<Record> {
        self.records.get(self.at).copied()
    }

    /// Takes the first record off, if there is one.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.at += 1;
        match self.records.get(self.at) {
            Some(record) => self.next = record.deadline,
            None => self.clear(),
        }
    }

    /// The records that are still to fire, in order.
    pub(super) fn rest(&self) -> &[Record] {
        &self.records[self.at..]
    }

    pub(super) fn len(&self) -> usize {
        self.records.len() - self.at
    }

    /// Fills the array, which must be used up, from records in the order of insertion that all
    /// belong to the same 256 ticks. They may be asked for twice.
    pub(super) fn fill<'a, I>(&mut self, records: I)
    where
        I: Iterator<Item = &'a [Record]> + Clone,
    {
        let total: usize = records.clone().map(<[Record]>::len).sum();
        if total <= FEW {
            records.for_each(|some| self.records.extend_from_slice(some));
            self.records.sort_by_key(|record| record.deadline);
        } else {
            self.fill_by_counting(total, records);
        }
        self.next = self.records.first().map_or(u64::MAX, |record| record.deadline);
    }

    fn fill_by_counting<'a>(
        &mut self,
        total: usize,
        records: impl Iterator<Item = &'a [Record]> + Clone,
    ) {
        // Where the records of each tick begin.
        let mut starts = [0u16; SLOTS];
        for piece in records.clone() {
            for record in piece {
                starts[usize::from(record.deadline as u8)] += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += core::mem::replace(start, sum);
        }
        self.records.resize(total, Record::NONE);
        for piece in records {
            for record in piece {
                let to = &mut starts[usize::from(record.deadline as u8)];
                self.records[usize::from(*to)] = *record;
                *to += 1;
            }
        }
    }

    /// Forgets all records.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.records.clear();
        (self.at, self.next) = (0, u64::MAX);
    }

    /// Gives back the memory that is not in use.
    pub(super) fn compact(&mut self) {
        self.records.shrink_to_fit();
    }

    /// Panics when something is wrong.
    pub(super) fn check_invariants(&self, now: u64) {
        assert!(self.records.len() <= NEAR, "too many near records");
        assert_eq!(self.next, self.front().map_or(u64::MAX, |r| r.deadline), "next near tick");
        assert!(self.records.is_sorted_by_key(|record| record.deadline), "order of near records");
        let window = now / SLOTS as u64;
        for record in self.rest() {
            assert!(record.deadline >= now, "{record:?} is late");
            assert_eq!(record.deadline / SLOTS as u64, window, "{record:?} is not near");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        // Few records are ordered in another way than many: both are stable sorts.
        #[test]
        fn filling_is_a_stable_sort(pieces in vec(vec(any::<u8>(), 0..30), 0..5), window: u32) {
            let mut index = 0;
            let mut record = |low: u8| {
                index += 1;
                Record::new(u64::from(window) << 8 | u64::from(low), index, 0)
            };
            let pieces: Vec<Vec<Record>> = pieces
                .into_iter()
                .map(|piece| piece.into_iter().map(&mut record).collect())
                .collect();
            let mut expected = pieces.concat();
            expected.sort_by_key(|record| record.deadline);
            let mut near = Near::new();
            near.fill(pieces.iter().map(Vec::as_slice));
            near.check_invariants(u64::from(window) << 8);
            prop_assert_eq!(near.rest(), &expected[..]);
            for record in expected {
                prop_assert_eq!(near.front(), Some(record));
                prop_assert_eq!(near.next(), record.deadline);
                near.pop();
            }
            prop_assert_eq!((near.len(), near.front()), (0, None));
        }
    }
}

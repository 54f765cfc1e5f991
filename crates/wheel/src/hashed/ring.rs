//! A ring of any number of slots, and which of them hold timers.
//!
//! Always: a slot's bit is set exactly when its list is not empty.

use crate::list::{List, Timer};
use crate::slab::Slab;
use alloc::vec;
use alloc::vec::Vec;

pub(super) struct Ring {
    slots: Vec<List>,
    /// One bit for each slot.
    words: Vec<u64>,
}

impl Ring {
    pub(super) fn new(slots: usize) -> Self {
        Self { slots: vec![List::EMPTY; slots], words: vec![0; slots.div_ceil(64)] }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slot(&self, slot: usize) -> &List {
        &self.slots[slot]
    }

    /// Says that no deadline in a slot is before `min`.
    pub(super) fn set_min(&mut self, slot: usize, min: u64) {
        let list = &mut self.slots[slot];
        list.min = if list.is_empty() { u64::MAX } else { min };
    }

    pub(super) fn push_back<T>(&mut self, slot: usize, slab: &mut Slab<Timer<T>>, index: u32) {
        self.slots[slot].push_back(slab, index);
        self.words[slot / 64] |= 1 << (slot % 64);
    }

    pub(super) fn unlink<T>(&mut self, slot: usize, slab: &mut Slab<Timer<T>>, index: u32) {
        let list = &mut self.slots[slot];
        list.unlink(slab, index);
        if list.is_empty() {
            self.words[slot / 64] &= !(1 << (slot % 64));
        }
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(List::EMPTY);
        self.words.fill(0);
    }

    /// The first occupied slot at or after `from`, without going around.
    fn occupied_from(&self, from: usize) -> Option<usize> {
        let mut number = from / 64;
        let mut word = self.words.get(number)? & (u64::MAX << (from % 64));
        while word == 0 {
            number += 1;
            word = *self.words.get(number)?;
        }
        Some(number * 64 + word.trailing_zeros() as usize)
    }

    /// All occupied slots once around, starting behind `slot` and ending with it, each with
    /// its distance 1..=slots from `slot`.
    pub(super) fn around(&self, slot: usize) -> impl Iterator<Item = (usize, usize)> {
        let behind = self.iter_from(slot + 1).map(move |at| (at - slot, at));
        let wrapped = self
            .iter_from(0)
            .take_while(move |at| *at <= slot)
            .map(move |at| (at + self.len() - slot, at));
        behind.chain(wrapped)
    }

    /// The occupied slots at or after `from`, in the order of their numbers.
    pub(super) fn iter_from(&self, from: usize) -> impl Iterator<Item = usize> {
        let mut from = from;
        core::iter::from_fn(move || {
            let slot = self.occupied_from(from)?;
            from = slot + 1;
            Some(slot)
        })
    }

    pub(super) fn check_invariants<T>(&self, slab: &Slab<Timer<T>>) {
        for (number, list) in self.slots.iter().enumerate() {
            list.check_invariants(slab);
            assert_eq!(
                self.words[number / 64] >> (number % 64) & 1 == 1,
                !list.is_empty(),
                "bit and list of slot {number} disagree"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn goes_once_around(
            size in 1usize..200,
            start: usize,
            picks in proptest::collection::vec(any::<usize>(), 0..40),
        ) {
            let mut slab = Slab::new();
            let mut ring = Ring::new(size);
            for pick in picks {
                let key = slab.insert(0, Timer::unlinked(0, ()));
                ring.push_back(pick % size, &mut slab, key.index());
            }
            let start = start % size;
            let expected: Vec<_> = (1..=size)
                .map(|distance| (distance, (start + distance) % size))
                .filter(|(_, slot)| !ring.slot(*slot).is_empty())
                .collect();
            prop_assert_eq!(ring.around(start).collect::<Vec<_>>(), expected);
            ring.check_invariants(&slab);
        }
    }
}

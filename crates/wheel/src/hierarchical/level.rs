//! One ring of 256 slots, and which of them hold timers.
//!
//! Always: a slot's bit is set exactly when its list is not empty.

use super::place::SLOTS;
use crate::bitmap::Bitmap256;
use crate::list::{List, Timer};
use crate::slab::Slab;

pub(super) struct Level {
    pub(super) occupied: Bitmap256,
    slots: [List; SLOTS],
}

impl Level {
    pub(super) const EMPTY: Self = Self { occupied: Bitmap256::EMPTY, slots: [List::EMPTY; SLOTS] };

    pub(super) fn slot(&self, slot: u8) -> &List {
        &self.slots[usize::from(slot)]
    }

    pub(super) fn push_back<T>(&mut self, slot: u8, slab: &mut Slab<Timer<T>>, index: u32) {
        self.slots[usize::from(slot)].push_back(slab, index);
        self.occupied.insert(slot);
    }

    pub(super) fn unlink<T>(&mut self, slot: u8, slab: &mut Slab<Timer<T>>, index: u32) {
        let list = &mut self.slots[usize::from(slot)];
        list.unlink(slab, index);
        if list.is_empty() {
            self.occupied.remove(slot);
        }
    }

    /// Timers in all slots.
    pub(super) fn len(&self) -> usize {
        self.occupied.iter().map(|slot| self.slot(slot).len as usize).sum()
    }

    pub(super) fn check_invariants<T>(&self, slab: &Slab<Timer<T>>) {
        self.occupied.check_invariants();
        for (number, list) in self.slots.iter().enumerate() {
            list.check_invariants(slab);
            assert_eq!(
                self.occupied.contains(number as u8),
                !list.is_empty(),
                "bit and list of slot {number} disagree"
            );
        }
    }
}

//! std's `BinaryHeap` with lazy deletion, as one would write it by hand: the strongest plain peer.
//!
//! An entry is (deadline, slot, generation); cancelling makes the slot's generation another one and
//! leaves the entry. The heap is rebuilt without its dead when they outnumber the living, so it
//! takes memory for at most twice as many entries as there are timers, and a thousand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::wheel::subject::Subject;

/// Fewer dead entries than this are not worth a rebuild.
const DEAD_MIN: usize = 1_024;

#[derive(Default)]
pub(super) struct LazyHeap {
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    dead: usize,
}

#[derive(Clone, Copy)]
struct Slot {
    generation: u32,
    value: u64,
}

impl LazyHeap {
    /// Ends what is in a slot, whose generation becomes another one.
    fn end(&mut self, index: u32) -> u64 {
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        slot.value
    }

    fn pop_due(&mut self, now: u64) -> Option<u64> {
        while let Some(&Reverse((deadline, index, generation))) = self.heap.peek() {
            let alive = self.slots[index as usize].generation == generation;
            if alive && deadline > now {
                return None;
            }
            self.heap.pop();
            if alive {
                return Some(self.end(index));
            }
            self.dead -= 1;
        }
        None
    }
}

impl Subject for LazyHeap {
    /// Slot and generation.
    type Handle = (u32, u32);
    const NAME: &'static str = "BinaryHeap";

    fn new() -> Self {
        LazyHeap::default()
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> (u32, u32) {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(Slot { generation: 0, value });
                (self.slots.len() - 1) as u32
            }
        };
        let slot = &mut self.slots[index as usize];
        slot.value = value;
        let generation = slot.generation;
        self.heap.push(Reverse((deadline, index, generation)));
        (index, generation)
    }

    #[inline]
    fn cancel(&mut self, (index, generation): (u32, u32)) -> Option<u64> {
        if self.slots[index as usize].generation != generation {
            return None;
        }
        let value = self.end(index);
        self.dead += 1;
        if self.dead > self.heap.len() / 2 && self.dead > DEAD_MIN {
            let slots = &self.slots;
            self.heap.retain(|Reverse((_, index, generation))| {
                slots[*index as usize].generation == *generation
            });
            self.dead = 0;
        }
        Some(value)
    }

    #[inline]
    fn advance(&mut self, to: u64, fired: &mut impl FnMut(u64, u64)) {
        while let Some(value) = self.pop_due(to) {
            fired(to, value);
        }
    }
}

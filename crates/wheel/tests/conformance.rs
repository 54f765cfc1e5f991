//! Runs the conformance suite on every structure.

mod suite;

use std::num::NonZeroU32;
use tourbillon_wheel::{BinaryHeapQueue, HashedWheel, HierarchicalWheel};

fn hashed<const SLOTS: u32>(now: u64) -> HashedWheel<u64> {
    HashedWheel::starting_at(now, NonZeroU32::new(SLOTS).expect("at least one slot"))
}

conformance!(hierarchical_wheel, HierarchicalWheel::starting_at);
conformance!(binary_heap_queue, BinaryHeapQueue::starting_at);
conformance!(hashed_wheel_of_one_slot, hashed::<1>);
conformance!(hashed_wheel_of_7_slots, hashed::<7>);
conformance!(hashed_wheel_of_512_slots, hashed::<512>);

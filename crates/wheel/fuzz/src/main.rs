//! Fuzzing of the three timer queues: bytes become operations, and each queue has to do what a model
//! of it says, step by step. `cargo xtask fuzz` builds and runs it.
//!
//! The queues get the same bytes, one after the other. An input is any bytes at all: the first few
//! say how the queues are made, the rest are operations until they run out.
#![no_main]

mod input;
mod model;

use input::Input;
use libfuzzer_sys::fuzz_target;
use std::num::NonZeroU32;
use tourbillon_wheel::{BinaryHeapQueue, HashedWheel, HierarchicalWheel};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let slots = [1, 7, 64, 512][usize::from(input.byte()) % 4];
    let start = input.tick_after(0);
    model::run(HierarchicalWheel::starting_at(start), input.clone());
    let slots = NonZeroU32::new(slots).expect("at least one slot");
    model::run(HashedWheel::starting_at(start, slots), input.clone());
    model::run(BinaryHeapQueue::starting_at(start), input);
});

//! Which lane a thread tries first.
//!
//! Threads are numbered as they come, so they spread over the lanes evenly; a thread that found its
//! lane held moves to the one that it got instead. It is a hint and no more: any number is right,
//! and lanes of different sizes share it, each taking the lower bits.

use std::cell::Cell;

/// Not yet numbered.
const NONE: usize = usize::MAX;

#[cfg(not(loom))]
thread_local! {
    static HINT: Cell<usize> = const { Cell::new(NONE) };
}

#[cfg(loom)]
loom::thread_local! {
    static HINT: Cell<usize> = Cell::new(NONE);
}

/// The present thread's number.
#[inline]
pub(crate) fn get() -> usize {
    HINT.with(|hint| match hint.get() {
        NONE => {
            let number = number();
            hint.set(number);
            number
        }
        number => number,
    })
}

/// Makes the present thread try the lane `number` first.
#[inline]
pub(super) fn set(number: usize) {
    HINT.with(|hint| hint.set(number));
}

#[cfg(not(loom))]
#[cold]
fn number() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed) % NONE
}

/// Under loom all threads begin at the same lane: the worst case, and the same in every run.
#[cfg(loom)]
fn number() -> usize {
    0
}

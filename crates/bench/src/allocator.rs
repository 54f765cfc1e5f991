//! The allocator of the bench program: the product's, which can count.
//!
//! Always: everything goes to mimalloc as it came; counting changes no address and no size. What is
//! counted are the bytes that callers asked for, so a figure says what a structure takes and not how
//! an allocator rounds. While nobody counts, the cost is one relaxed load of a flag that does not
//! change. It deliberately lacks counts by thread: whoever counts lets nothing else run.
//!
//! `unsafe` is allowed in this file because an allocator is an unsafe trait. Each call passes its
//! arguments on unchanged, so what the caller promised to this allocator it promised to mimalloc.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mimalloc::MiMalloc;

/// mimalloc, counted while a [`Count`] exists.
pub(crate) struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static LIVE: AtomicIsize = AtomicIsize::new(0);
static TURN: Mutex<()> = Mutex::new(());

/// Counts what is allocated less what is freed, from its making on. There is one at a time: a second
/// waits for the first to be dropped.
pub(crate) struct Count {
    _turn: MutexGuard<'static, ()>,
}

impl Count {
    pub(crate) fn start() -> Count {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        LIVE.store(0, Ordering::Relaxed);
        ON.store(true, Ordering::Relaxed);
        Count { _turn: turn }
    }

    /// Bytes allocated since the start and not freed; negative when older memory was freed.
    pub(crate) fn live(&self) -> isize {
        LIVE.load(Ordering::Relaxed)
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        ON.store(false, Ordering::Relaxed);
    }
}

#[inline]
fn add(bytes: isize) {
    if ON.load(Ordering::Relaxed) {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every method hands over to mimalloc, an allocator, with the arguments it was given; the
// counting between touches two numbers and neither allocates nor panics. No layout is larger than
// `isize::MAX`, so the sizes fit.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, passed on.
        let block = unsafe { MiMalloc.alloc(layout) };
        if !block.is_null() {
            add(layout.size() as isize);
        }
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, passed on.
        let block = unsafe { MiMalloc.alloc_zeroed(layout) };
        if !block.is_null() {
            add(layout.size() as isize);
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the caller's promise, passed on.
        unsafe { MiMalloc.dealloc(block, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise, passed on.
        let moved = unsafe { MiMalloc.realloc(block, layout, size) };
        if !moved.is_null() {
            add(size as isize - layout.size() as isize);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tests allocate at the same time, so amounts are large and compared roughly.
    #[test]
    fn counts_what_is_alive_through_growth_and_release() {
        const BIG: usize = 1 << 30;
        let near = |live: isize, bytes: usize| live.abs_diff(bytes as isize) < BIG / 4;
        let count = Count::start();
        let mut block: Vec<u8> = Vec::with_capacity(BIG);
        assert!(near(count.live(), BIG), "{} after {BIG}", count.live());
        block.reserve_exact(2 * BIG);
        assert!(near(count.live(), 2 * BIG), "{} after growing", count.live());
        drop(block);
        assert!(near(count.live(), 0), "{} after freeing", count.live());
    }
}

//! The primitives by which threads meet: the standard library's, or loom's under `--cfg loom`.
//!
//! Everything in this crate that threads share is made of what is named here, so that the tests
//! under loom see every step. A lock whose holder panicked panics for the next one too: nobody's
//! code but the wheel's runs under a lock, so that was a broken invariant.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering, fence},
};

use std::sync::TryLockError;

/// Waits for the lock.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.lock() {
        Ok(guard) => guard,
        Err(_) => poisoned(),
    }
}

/// Takes the lock if nobody holds it.
#[inline]
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Poisoned(_)) => poisoned(),
    }
}

#[cold]
fn poisoned() -> ! {
    panic!("a wheel panicked while it was changed: its lane can no longer be trusted")
}

/// Waits for a lock that a panic does not damage: what it guards is changed in single steps, and
/// nobody's code but ours runs under it.
#[cfg(not(loom))]
#[inline]
pub(crate) fn relock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

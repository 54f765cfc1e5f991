//! Until when the driver sleeps, and who wakes it.
//!
//! # Why no wake-up is lost
//!
//! The driver writes the tick until which it will sleep and then looks at what every lane is armed
//! for. Who arms a lane writes what it is armed for and then looks until when the driver sleeps.
//! Each side has a sequentially consistent fence between its write and its look, so at least one of
//! them sees what the other wrote: either the driver sees the new deadline and does not sleep past
//! it, or the one who armed sees a sleep that is too long and ends it. (Fences, and not sequentially
//! consistent loads and stores, because those are what loom can check.)
//!
//! # Why one is enough
//!
//! To wake the driver is to replace its tick by [`AWAKE`], by compare-and-exchange. Of many who see
//! the same sleep one succeeds, and it alone calls the waker. The others need not: the driver looks
//! at all lanes before it sleeps again.
//!
//! It deliberately lacks any way to wait. The driver waits as it likes, and the waker must reach it
//! also when it has not yet begun to wait: thread tokens and event counters do that.

use crate::sync::{AtomicU64, Ordering, fence};
use std::fmt;

/// No deadline is earlier, so nobody wakes a driver that is awake.
const AWAKE: u64 = 0;

/// The driver's sleep, in a cache line of its own.
#[repr(align(128))]
pub(super) struct Sleep {
    until: AtomicU64,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Sleep {
    pub(super) fn new(wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { until: AtomicU64::new(AWAKE), wake }
    }

    /// The driver is going to sleep until this tick. It has to look at the lanes once more.
    pub(super) fn announce(&self, until: u64) {
        self.until.store(until, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The driver is awake and will look at the lanes before it sleeps. Whatever it was woken for
    /// is visible from here on.
    pub(super) fn end(&self) {
        // Mostly it was woken by somebody who has written this already.
        if self.until.load(Ordering::Acquire) != AWAKE {
            self.until.store(AWAKE, Ordering::Relaxed);
        }
    }

    /// Whether the driver was not woken since it announced its sleep.
    #[cfg(not(loom))]
    pub(super) fn lasts(&self) -> bool {
        self.until.load(Ordering::Relaxed) != AWAKE
    }

    /// A lane was armed for this deadline, which is earlier than all that the driver knows of in
    /// this lane: wakes the driver if it would sleep too long and nobody else has woken it.
    pub(super) fn armed(&self, deadline: u64) {
        fence(Ordering::SeqCst);
        let mut until = self.until.load(Ordering::Relaxed);
        while deadline < until {
            let swap = self.until.compare_exchange_weak(
                until,
                AWAKE,
                Ordering::Release,
                Ordering::Relaxed,
            );
            match swap {
                Ok(_) => return (self.wake)(),
                Err(seen) => until = seen,
            }
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("until", &self.until).finish_non_exhaustive()
    }
}

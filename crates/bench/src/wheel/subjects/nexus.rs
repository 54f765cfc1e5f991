//! nexus-timer's `Wheel`, growable, with the chunks of its documentation's example.
//!
//! It is polled with rebalancing, without which each poll walks coarse slots whole. Handles must be
//! given back, also those of timers that have fired. Deadlines and time are both rounded down to its
//! tick, a whole millisecond to the tick before: polled between two milliseconds, as it is not here,
//! it fires early by up to one.

use std::time::{Duration, Instant};

use nexus_timer::{TimerHandle, Wheel};

use crate::wheel::subject::Subject;

/// Entries in a chunk of its storage.
const CHUNK: usize = 4_096;

pub(super) struct Nexus {
    wheel: Wheel<u64>,
    start: Instant,
    due: Vec<u64>,
}

impl Subject for Nexus {
    type Handle = Option<TimerHandle<u64>>;
    const NAME: &'static str = "nexus-timer";

    fn new() -> Self {
        let start = Instant::now();
        Nexus { wheel: Wheel::unbounded(CHUNK, start), start, due: Vec::new() }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Option<TimerHandle<u64>> {
        Some(self.wheel.schedule(self.start + Duration::from_millis(deadline), value))
    }

    #[inline]
    fn insert_and_forget(&mut self, deadline: u64, value: u64) {
        self.wheel.schedule_forget(self.start + Duration::from_millis(deadline), value);
    }

    #[inline]
    fn cancel(&mut self, handle: Option<TimerHandle<u64>>) -> Option<u64> {
        self.wheel.cancel(handle?)
    }

    #[inline]
    fn release(&mut self, handle: Option<TimerHandle<u64>>) {
        if let Some(handle) = handle {
            self.wheel.free(handle);
        }
    }

    #[inline]
    fn advance(&mut self, to: u64, fired: &mut impl FnMut(u64, u64)) {
        self.wheel.poll_and_rebalance(self.start + Duration::from_millis(to), &mut self.due);
        for value in self.due.drain(..) {
            fired(to, value);
        }
    }
}

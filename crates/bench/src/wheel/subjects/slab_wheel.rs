//! slab-wheel's `TimingWheel` with its own policy for milliseconds.

use std::time::{Duration, Instant};

use slab_wheel::{Key, Millis, TimingWheel};

use crate::wheel::subject::Subject;

pub(super) struct Slab {
    wheel: TimingWheel<u64, Millis>,
    start: Instant,
    due: Vec<(Key, u64)>,
}

impl Subject for Slab {
    type Handle = Option<Key>;
    const NAME: &'static str = "slab-wheel";

    fn new() -> Self {
        let start = Instant::now();
        Slab { wheel: TimingWheel::starting_at(start), start, due: Vec::new() }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Option<Key> {
        Some(self.wheel.insert(self.start + Duration::from_millis(deadline), value))
    }

    #[inline]
    fn cancel(&mut self, handle: Option<Key>) -> Option<u64> {
        self.wheel.remove(handle?)
    }

    #[inline]
    fn advance(&mut self, to: u64, fired: &mut impl FnMut(u64, u64)) {
        self.wheel.advance_to(self.start + Duration::from_millis(to));
        self.wheel.drain_expired_into(&mut self.due);
        for (_, value) in self.due.drain(..) {
            fired(to, value);
        }
    }
}

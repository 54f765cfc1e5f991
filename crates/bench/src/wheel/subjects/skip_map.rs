//! crossbeam's `SkipMap` from (deadline, sequence) to value: a skip list, which is also what a sorted
//! set of Redis is.
//!
//! It may be shared between threads, and pays for that also when it is not. What is removed is freed
//! a little later, when no thread can see it any more.

use crossbeam_skiplist::SkipMap;

use crate::wheel::subject::Subject;

pub(super) struct Skip {
    timers: SkipMap<(u64, u64), u64>,
    sequence: u64,
}

impl Subject for Skip {
    type Handle = (u64, u64);
    const NAME: &'static str = "SkipMap";

    fn new() -> Self {
        Skip { timers: SkipMap::new(), sequence: 0 }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> (u64, u64) {
        self.sequence += 1;
        let key = (deadline, self.sequence);
        self.timers.insert(key, value);
        key
    }

    #[inline]
    fn cancel(&mut self, handle: (u64, u64)) -> Option<u64> {
        self.timers.remove(&handle).map(|entry| *entry.value())
    }

    #[inline]
    fn advance(&mut self, to: u64, fired: &mut impl FnMut(u64, u64)) {
        while let Some(first) = self.timers.front() {
            if first.key().0 > to {
                break;
            }
            fired(to, *first.value());
            first.remove();
        }
    }
}

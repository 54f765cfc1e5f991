//! The queues of `tourbillon-wheel`, through the trait that they share.
//!
//! They are advanced without a budget, as the peers have none.

use std::num::NonZeroU32;

use tourbillon_wheel::{BinaryHeapQueue, HashedWheel, HierarchicalWheel, Key, TimerQueue};

use crate::wheel::subject::Subject;

/// Slots of the hashed wheel, which has no size by default: a turn takes a good minute, so connection
/// timeouts stay within one and an hour takes 55.
const HASHED_SLOTS: NonZeroU32 = NonZeroU32::new(65_536).unwrap();

/// One of our queues.
pub(super) struct Ours<Q>(Q);

/// How one of our queues is made, and what it is called.
pub(super) trait Queue: TimerQueue<Value = u64> {
    const NAME: &'static str;

    fn empty() -> Self;
}

impl Queue for HierarchicalWheel<u64> {
    const NAME: &'static str = "HierarchicalWheel";

    fn empty() -> Self {
        HierarchicalWheel::new()
    }
}

impl Queue for HashedWheel<u64> {
    const NAME: &'static str = "HashedWheel";

    fn empty() -> Self {
        HashedWheel::new(HASHED_SLOTS)
    }
}

impl Queue for BinaryHeapQueue<u64> {
    const NAME: &'static str = "BinaryHeapQueue";

    fn empty() -> Self {
        BinaryHeapQueue::new()
    }
}

impl<Q: Queue> Subject for Ours<Q> {
    type Handle = Option<Key>;
    const NAME: &'static str = Q::NAME;

    fn new() -> Self {
        Ours(Q::empty())
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Option<Key> {
        Some(self.0.insert_at(deadline, value))
    }

    #[inline]
    fn cancel(&mut self, handle: Option<Key>) -> Option<u64> {
        self.0.cancel(handle?)
    }

    #[inline]
    fn advance(&mut self, to: u64, fired: &mut impl FnMut(u64, u64)) {
        self.0.advance(to, usize::MAX, |_key, _deadline, value| fired(to, value));
    }
}

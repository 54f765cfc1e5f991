//! The name of one item in one queue.
//!
//! It is the key that the queue's wheel gave out and shares what is said of
//! [`wheel::Key`](tourbillon_wheel::Key): one that has become stale is recognised, and it is not given
//! out again before 2^32 further insertions. It knows nothing of the queue it came from.

use std::fmt;

/// Names an item from its insertion until it is taken or removed.
///
/// After that the key is *stale*: every operation recognises it and does nothing, also when the
/// memory behind it holds another item. Using it on another queue is not detected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub(super) tourbillon_wheel::Key);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

//! An item that was due and now belongs to its consumer.
//!
//! It lacks any way back into the queue: insert the value again.

use super::Key;
use std::time::Instant;

/// An item taken out of a [`DelayQueue`](super::DelayQueue) after its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired<T> {
    key: Key,
    deadline: Instant,
    value: T,
}

impl<T> Expired<T> {
    pub(super) fn new(key: Key, deadline: Instant, value: T) -> Self {
        Self { key, deadline, value }
    }

    /// The key that the insertion gave. It is stale by now.
    pub fn key(&self) -> Key {
        self.key
    }

    /// When the item was due, rounded up to a microsecond.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The value.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// The value, to be changed.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// The value, to be kept.
    pub fn into_inner(self) -> T {
        self.value
    }
}

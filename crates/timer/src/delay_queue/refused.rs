//! The refusal of an item, with the reason and the item's value.
//!
//! It says nothing about when there will be room: that is when items are taken or removed.

use std::fmt;

/// An item was not inserted: the queue holds as many as it may, or it is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused<T> {
    value: T,
    reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Full { max_len: usize },
    Closed,
}

impl<T> Refused<T> {
    pub(super) fn new(value: T, reason: Reason) -> Self {
        Self { value, reason }
    }

    /// The value that was to be inserted.
    pub fn into_value(self) -> T {
        self.value
    }

    /// Whether [`max_len`](super::Builder::max_len) items are in the queue; there is room again
    /// when one is taken or removed.
    pub fn is_full(&self) -> bool {
        matches!(self.reason, Reason::Full { .. })
    }

    /// Whether the queue was closed, so that it will never take another item.
    pub fn is_closed(&self) -> bool {
        self.reason == Reason::Closed
    }
}

impl<T> fmt::Debug for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("reason", &self.reason).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Full { max_len } => write!(
                f,
                "no room for another item: the queue holds {max_len}, which is the most allowed (max_len)"
            ),
            Reason::Closed => f.write_str("the queue is closed and takes no more items"),
        }
    }
}

impl<T> std::error::Error for Refused<T> {}

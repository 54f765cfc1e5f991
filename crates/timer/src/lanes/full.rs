//! The refusal of a timer for which there is no room.
//!
//! It gives the value back, so nothing is lost by asking. It says nothing about when there will be
//! room: that is when timers fire or are cancelled.

use std::fmt;

/// A timer was not inserted, because as many are pending as the lanes were made for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T> {
    value: T,
    max_pending: usize,
}

impl<T> Full<T> {
    pub(super) fn new(value: T, max_pending: usize) -> Self {
        Self { value, max_pending }
    }

    /// The value that was to be inserted.
    pub fn into_value(self) -> T {
        self.value
    }

    /// How many timers may be pending.
    pub fn max_pending(&self) -> usize {
        self.max_pending
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("max_pending", &self.max_pending).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no room for another timer: {} are pending, which is the most allowed (max_pending)",
            self.max_pending
        )
    }
}

impl<T> std::error::Error for Full<T> {}

//! The name of one pending timer in one set of lanes.
//!
//! It is a lane's number and the key that the lane's wheel gave out, and shares what is said of
//! [`Key`]: one that has become stale is recognised, and it is not given out again before 2^32
//! further insertions into its lane. It knows nothing of the lanes it came from.

use std::fmt;
use tourbillon_wheel::Key;

/// Names one timer in one set of [`Lanes`](super::Lanes), from its insertion until it fires or is
/// cancelled; after that it is *stale*, and every operation does nothing with it.
///
/// Twelve bytes, and so is `Option<Handle>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    key: Key,
    lane: u32,
}

impl Handle {
    pub(super) fn new(lane: usize, key: Key) -> Self {
        // There are at most 64 lanes.
        Self { key, lane: lane as u32 }
    }

    /// The number of the lane that the timer is in, from 0.
    pub fn lane(self) -> usize {
        self.lane as usize
    }

    /// Its key in the lane's wheel.
    pub(super) fn key(self) -> Key {
        self.key
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({}:{}v{})", self.lane, self.key.index(), self.key.generation())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn is_twelve_bytes_also_when_optional() {
        assert_eq!(size_of::<Handle>(), 12);
        assert_eq!(size_of::<Option<Handle>>(), 12);
    }
}

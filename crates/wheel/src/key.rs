//! The name of one pending timer: an index into the queue's storage and a generation.
//!
//! A key is eight bytes, and so is `Option<Key>`. The generation comes from one counter per
//! queue, so a key is not given out a second time before 2^32 further insertions, whatever
//! was cancelled, cleared or compacted in between. A key knows nothing of the queue it came
//! from: using it on another queue is not detected.

use core::fmt;
use core::num::NonZeroU32;

/// Names one timer in one queue, from its insertion until it fires or is cancelled.
///
/// After that the key is *stale*: every operation recognises it and does nothing, also when
/// the storage behind it has been given to another timer.
///
/// ```
/// use tourbillon_wheel::{HierarchicalWheel, Key, TimerQueue};
///
/// let mut wheel = HierarchicalWheel::new();
/// let key = wheel.insert_at(5, "a");
/// assert_eq!(Key::from_u64(key.to_u64()), Some(key));
/// assert_eq!(wheel.cancel(key), Some("a"));
/// assert_eq!(wheel.cancel(key), None); // stale
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    index: u32,
    generation: NonZeroU32,
}

impl Key {
    #[inline]
    pub(crate) const fn new(index: u32, generation: NonZeroU32) -> Self {
        Self { index, generation }
    }

    /// The position in the queue's storage; at no time do two pending timers share one.
    #[inline]
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Tells apart the timers that have used the same index. Never zero.
    #[inline]
    pub const fn generation(self) -> u32 {
        self.generation.get()
    }

    /// The key as one number: generation in the high half, index in the low half.
    pub const fn to_u64(self) -> u64 {
        (self.generation.get() as u64) << 32 | self.index as u64
    }

    /// The key that [`to_u64`](Self::to_u64) turned into `bits`, or `None` when no key has
    /// that number (its generation would be zero).
    pub const fn from_u64(bits: u64) -> Option<Self> {
        match NonZeroU32::new((bits >> 32) as u32) {
            Some(generation) => Some(Self::new(bits as u32, generation)),
            None => None,
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}v{})", self.index, self.generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_way_through_a_number() {
        for (index, generation) in [(0, 1), (7, 9), (u32::MAX - 1, u32::MAX)] {
            let key = Key::new(index, NonZeroU32::new(generation).unwrap());
            assert_eq!(Key::from_u64(key.to_u64()), Some(key));
            assert_eq!((key.index(), key.generation()), (index, generation));
        }
        assert_eq!(Key::from_u64(0), None);
        assert_eq!(Key::from_u64(12), None);
    }

    #[test]
    fn is_eight_bytes_also_when_optional() {
        assert_eq!(size_of::<Key>(), 8);
        assert_eq!(size_of::<Option<Key>>(), 8);
    }
}

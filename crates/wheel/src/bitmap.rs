//! Which of a level's 256 slots hold timers.
//!
//! A word of 64 bits for each quarter, and a summary with one bit for each word that is not
//! zero, so the first occupied slot takes two bit scans and no loop.

/// A set of numbers 0..=255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bitmap256 {
    words: [u64; 4],
    summary: u8,
}

impl Bitmap256 {
    pub(crate) const EMPTY: Self = Self { words: [0; 4], summary: 0 };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.summary == 0
    }

    #[inline]
    pub(crate) fn contains(&self, bit: u8) -> bool {
        self.words[usize::from(bit >> 6)] & (1 << (bit & 63)) != 0
    }

    #[inline]
    pub(crate) fn insert(&mut self, bit: u8) {
        let word = bit >> 6;
        self.words[usize::from(word)] |= 1 << (bit & 63);
        self.summary |= 1 << word;
    }

    #[inline]
    pub(crate) fn remove(&mut self, bit: u8) {
        let word = bit >> 6;
        self.words[usize::from(word)] &= !(1 << (bit & 63));
        if self.words[usize::from(word)] == 0 {
            self.summary &= !(1 << word);
        }
    }

    /// The smallest member.
    #[inline]
    pub(crate) fn first(&self) -> Option<u8> {
        if self.summary == 0 {
            return None;
        }
        let word = self.summary.trailing_zeros() as u8;
        let bit = self.words[usize::from(word & 3)].trailing_zeros() as u8;
        Some(word << 6 | bit)
    }

    /// The smallest member above `bit`.
    #[inline]
    pub(crate) fn first_after(&self, bit: u8) -> Option<u8> {
        let next = bit.checked_add(1)?;
        let word = self.words[usize::from(next >> 6)] & (u64::MAX << (next & 63));
        if word != 0 {
            return Some((next & !63) | word.trailing_zeros() as u8);
        }
        let number = (self.summary & (0xfe << (next >> 6))).trailing_zeros() as u8;
        let word = self.words.get(usize::from(number))?;
        Some(number << 6 | word.trailing_zeros() as u8)
    }

    /// All members, smallest first.
    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        let mut rest = self;
        core::iter::from_fn(move || {
            let bit = rest.first()?;
            rest.remove(bit);
            Some(bit)
        })
    }

    /// Panics when the summary disagrees with the words.
    pub(crate) fn check_invariants(&self) {
        for (number, word) in self.words.iter().enumerate() {
            assert_eq!(
                self.summary >> number & 1 == 1,
                *word != 0,
                "summary bit {number} disagrees with its word"
            );
        }
        assert_eq!(self.summary >> 4, 0, "summary has bits without words");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_set(ops in vec((any::<bool>(), any::<u8>()), 0..600)) {
            let mut map = Bitmap256::EMPTY;
            let mut model = BTreeSet::new();
            for (add, bit) in ops {
                if add {
                    map.insert(bit);
                    model.insert(bit);
                } else {
                    map.remove(bit);
                    model.remove(&bit);
                }
                map.check_invariants();
                prop_assert_eq!(map.first(), model.first().copied());
                prop_assert_eq!(map.is_empty(), model.is_empty());
                prop_assert_eq!(map.contains(bit), model.contains(&bit));
                let after = bit.checked_add(1).and_then(|next| model.range(next..).next().copied());
                prop_assert_eq!(map.first_after(bit), after);
            }
            prop_assert_eq!(map.iter().collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>());
        }
    }
}

//! From bytes to choices: numbers, ticks, budgets.
//!
//! Every string of bytes is a legal input; one that has run out gives zeros, so a choice always has
//! an answer. Ticks are drawn so that edges are frequent: powers of two and their neighbours, the end
//! of time, the recent past.

/// Bytes that have not been used.
#[derive(Clone)]
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    pub(crate) fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn long(&mut self) -> u64 {
        (0..4).fold(0, |number, _| number << 16 | u64::from(self.short()))
    }

    /// Any tick, mostly somewhere around or after `now`.
    pub(crate) fn tick_after(&mut self, now: u64) -> u64 {
        let how = self.byte();
        let small = u64::from(how >> 4);
        match how % 16 {
            0..=3 => now.saturating_add(small),
            4..=6 => now.saturating_add(u64::from(self.byte())),
            7 | 8 => now.saturating_add(u64::from(self.short())),
            9 => now.saturating_sub(u64::from(self.byte())),
            // A power of two from now, and the start of a span of that length, with neighbours.
            10 => now.saturating_add(1 << (self.byte() % 64)).saturating_add_signed(near(small)),
            11 | 12 => {
                let span = 1_u64 << (self.byte() % 64);
                (now - now % span).saturating_add(span).saturating_add_signed(near(small))
            }
            13 => (1_u64 << (self.byte() % 64)).saturating_add_signed(near(small)),
            14 => u64::MAX - small,
            _ => self.long(),
        }
    }

    /// How much may be handled: mostly little, sometimes everything.
    pub(crate) fn budget(&mut self) -> usize {
        match self.byte() {
            255 => usize::MAX,
            units @ 0..=127 => usize::from(units % 16),
            units => usize::from(units - 128) * 4,
        }
    }
}

/// -1, 0 or 1.
fn near(small: u64) -> i64 {
    [0, 1, -1][small as usize % 3]
}

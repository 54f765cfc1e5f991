//! A small seeded random source (SplitMix64, Steele, Lea and Flood 2014), so that the same
//! events give the same effects. Nonces only have to be unguessable as far as their seed is.

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly from `0..=max`, for `max` of 0 or more.
    pub(crate) fn up_to(&mut self, max: i64) -> i64 {
        let span = max.max(0) as u128 + 1;
        ((u128::from(self.next()) * span) >> 64) as i64
    }
}

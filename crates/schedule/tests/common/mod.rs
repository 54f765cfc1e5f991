//! A seeded random source for tests, and where its seed comes from.
//!
//! Runs are the same each time unless `TOURBILLON_SEED` names another seed; failures print it.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded() -> (u64, Self) {
        let seed = std::env::var("TOURBILLON_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok())
            .unwrap_or(20_261_130);
        (seed, Self(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn within(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    /// True once in `n`.
    pub(crate) fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

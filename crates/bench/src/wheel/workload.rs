//! The work that all subjects get, the same in every run: deadlines, orders, random choices.
//!
//! Everything comes from splitmix64 of an index, so the work of a round is that of every other round
//! and of every other subject. A tick is one millisecond.

/// Ticks in an hour, over which most deadlines are spread.
pub(crate) const HOUR_MS: u64 = 3_600_000;
/// By this tick all connection timeouts have come.
pub(crate) const TIMEOUTS_END_MS: u64 = 62_000;
/// After this many pairs of cancelling and inserting, a millisecond passes.
pub(crate) const PAIRS_PER_MS: u64 = 1_000;

/// splitmix64 after Steele, Lea and Flood.
#[inline]
pub(crate) fn mix(index: u64) -> u64 {
    let mut z = index.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// How deadlines are spread, counted from the moment of insertion.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spread {
    /// Even over an hour.
    Hour,
    /// Even over a minute.
    Minute,
    /// Connection timeouts: even between 30 s and 60 s.
    Timeouts,
    /// All at ten seconds sharp.
    Sharp,
}

impl Spread {
    /// The deadline that a random number stands for.
    #[inline]
    pub(crate) fn deadline(self, random: u64) -> u64 {
        match self {
            Spread::Hour => 1 + random % HOUR_MS,
            Spread::Minute => 1 + random % 60_000,
            Spread::Timeouts => 30_000 + random % 30_001,
            Spread::Sharp => 10_000,
        }
    }

    /// The deadlines of n timers, in order of insertion.
    pub(crate) fn deadlines(self, n: usize) -> Vec<u32> {
        (0..n as u64).map(|i| self.deadline(mix(i)) as u32).collect()
    }
}

/// Brings items into a random order, the same for all arrays of one length (Fisher and Yates).
pub(crate) fn shuffle<T>(items: &mut [T]) {
    for i in (1..items.len()).rev() {
        let j = mix(0xC0_FFEE ^ i as u64) % (i as u64 + 1);
        items.swap(i, j as usize);
    }
}

/// One step of churn: which of n timers goes, and when the one that takes its place is due, counted
/// from now.
#[inline]
pub(crate) fn pair(index: u64, n: usize) -> (usize, u64) {
    let random = mix(0xABCD_0000_0000 + index);
    let goes = ((random >> 32) * n as u64) >> 32;
    (goes as usize, Spread::Timeouts.deadline(random & 0xffff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_lie_ahead_and_within_their_spread() {
        for (spread, first, last) in [
            (Spread::Hour, 1, HOUR_MS),
            (Spread::Minute, 1, 60_000),
            (Spread::Timeouts, 30_000, 60_000),
            (Spread::Sharp, 10_000, 10_000),
        ] {
            for deadline in spread.deadlines(10_000) {
                assert!((first..=last).contains(&u64::from(deadline)), "{spread:?}: {deadline}");
            }
        }
    }

    #[test]
    fn shuffling_keeps_every_item_and_moves_most() {
        let mut items: Vec<usize> = (0..1_000).collect();
        shuffle(&mut items);
        assert!(items.iter().enumerate().filter(|(i, item)| i == *item).count() < 10);
        items.sort_unstable();
        assert!(items.iter().enumerate().all(|(i, item)| i == *item));
    }

    #[test]
    fn pairs_reach_every_timer() {
        let mut seen = [false; 100];
        for index in 0..2_000 {
            let (goes, delay) = pair(index, seen.len());
            seen[goes] = true;
            assert!((30_000..=60_000).contains(&delay));
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}

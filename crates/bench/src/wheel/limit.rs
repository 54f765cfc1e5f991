//! Timed loops that give up.
//!
//! What takes longer than the limit is cut and has no time at all: nothing is ever estimated from a
//! part. The limit is looked at between blocks, so looking costs nothing. A single call that never
//! ends is not helped.

use std::time::{Duration, Instant};

use super::subject::Subject;

/// Operations between two looks at the clock.
const BLOCK: usize = 8_192;
/// The same in ticks, for time that is stepped through.
const BLOCK_MS: u64 = 1_000;

/// How long one timed part of a measurement may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit(pub(crate) Duration);

impl Limit {
    /// Calls `act` with each of `0..n`.
    #[inline]
    pub(crate) fn each(self, n: usize, mut act: impl FnMut(usize)) -> Option<Duration> {
        let begun = Instant::now();
        let mut next = 0;
        loop {
            let end = (next + BLOCK).min(n);
            for index in next..end {
                act(index);
            }
            next = end;
            let took = self.kept(begun)?;
            if next == n {
                return Some(took);
            }
        }
    }

    /// Steps a subject from tick to tick.
    #[inline]
    pub(crate) fn step<S: Subject>(
        self,
        subject: &mut S,
        from: u64,
        to: u64,
        mut fired: impl FnMut(u64, u64),
    ) -> Option<Duration> {
        let begun = Instant::now();
        let mut now = from;
        loop {
            let end = (now + BLOCK_MS).min(to);
            subject.step(now, end, &mut fired);
            now = end;
            let took = self.kept(begun)?;
            if now == to {
                return Some(took);
            }
        }
    }

    /// What is left of it for further parts of one measurement.
    pub(crate) fn less(self, took: Duration) -> Limit {
        Limit(self.0.saturating_sub(took))
    }

    /// The time since `begun`, if it is within the limit.
    pub(crate) fn kept(self, begun: Instant) -> Option<Duration> {
        let took = begun.elapsed();
        (took <= self.0).then_some(took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_comes_once_whatever_the_blocks() {
        for n in [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 1] {
            let mut next = 0;
            let took = Limit(Duration::from_secs(600)).each(n, |index| {
                assert_eq!(index, next);
                next += 1;
            });
            assert_eq!((took.is_some(), next), (true, n));
        }
    }

    #[test]
    fn what_is_cut_has_no_time() {
        let mut done = 0;
        assert_eq!(Limit(Duration::ZERO).each(10 * BLOCK, |_| done += 1), None);
        assert_eq!(done, BLOCK);
    }
}

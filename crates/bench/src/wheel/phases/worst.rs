//! The worst single operation: one step of a millisecond, or one pair of cancelling and inserting.
//!
//! Each is timed by itself, which costs some 25 ns, so this is apart from the averages. The work of
//! a pass is the same as that of the next, operation by operation; what the machine does meanwhile is
//! not. So the passes are laid over each other, of each operation the least time counts, and the
//! worst is that of the operation which was slow every time.

use std::hint::black_box;
use std::time::Instant;

use super::churn::Churn;
use super::{Work, fill};
use crate::wheel::subject::Subject;
use crate::wheel::workload::{HOUR_MS, Spread};

/// Least times in nanoseconds, one an operation.
struct Least(Vec<u32>);

impl Least {
    fn of(operations: usize) -> Least {
        Least(vec![u32::MAX; operations])
    }

    /// Times an operation that ended now and began at `begun`; gives the moment.
    #[inline]
    fn note(&mut self, operation: usize, begun: Instant) -> Instant {
        let now = Instant::now();
        let took = (now - begun).as_nanos().min(u128::from(u32::MAX)) as u32;
        self.0[operation] = self.0[operation].min(took);
        now
    }

    fn worst_us(&self) -> Option<f64> {
        self.0.iter().max().map(|ns| f64::from(*ns) / 1e3)
    }
}

/// Microseconds of the worst step with deadlines within an hour.
pub(super) fn hour<S: Subject>(work: &Work) -> Option<f64> {
    step::<S>(work, Spread::Hour, HOUR_MS)
}

/// Microseconds of the worst step with deadlines within a minute.
pub(super) fn minute<S: Subject>(work: &Work) -> Option<f64> {
    step::<S>(work, Spread::Minute, 60_000)
}

fn step<S: Subject>(work: &Work, spread: Spread, steps: u64) -> Option<f64> {
    let mut least = Least::of(steps as usize);
    for _ in 0..work.passes {
        let mut subject: S = fill::without_handles(work.n, spread, work.limit)?;
        let mut sum = 0;
        let begun = Instant::now();
        let mut last = begun;
        for now in 0..steps {
            subject.advance(now + 1, &mut |_, value| sum ^= value);
            last = least.note(now as usize, last);
            if last - begun > work.limit.0 {
                fill::leave(subject, Vec::new());
                return None;
            }
        }
        black_box(sum);
    }
    least.worst_us()
}

/// Microseconds of the worst pair.
pub(super) fn pair<S: Subject>(work: &Work) -> Option<f64> {
    let mut least = Least::of(work.pairs);
    let mut places = fill::places(work.n);
    for _ in 0..work.passes {
        let mut churn = Churn::<S>::start(places, work.limit)?;
        let begun = Instant::now();
        let mut last = begun;
        for index in 0..work.pairs {
            churn.pair();
            last = least.note(index, last);
            if churn.is_time() {
                churn.tick();
                last = Instant::now();
            }
            if last - begun > work.limit.0 {
                churn.leave();
                return None;
            }
        }
        places = churn.end();
    }
    least.worst_us()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_the_passes_counts_and_the_worst_of_those() {
        let mut least = Least(vec![7_000, 90_000, 4_000]);
        let long_ago = Instant::now() - std::time::Duration::from_secs(1);
        least.note(0, long_ago);
        assert_eq!(least.0, [7_000, 90_000, 4_000]);
        least.note(1, Instant::now());
        assert!(least.0[1] < 90_000);
        assert!(least.worst_us().is_some_and(|us| us >= 7.0));
    }
}

//! Time that passes while nothing is pending.
//!
//! The structure has had a thousand timers, so it is empty but not new, and has nothing left to
//! clear away.

use std::time::{Duration, Instant};

use super::ns_each;
use crate::wheel::subject::Subject;
use crate::wheel::workload::{HOUR_MS, Spread};

/// The spans of time, and how often each is crossed in a row. Crates that count nanoseconds in 64
/// bits reach 584 years.
const SPANS: [(u64, usize); 3] = [(1, 10_000), (HOUR_MS, 10_000), (10 * 365 * 24 * HOUR_MS, 50)];
/// Structures for each span.
const STRUCTURES: usize = 20;
const TIMERS: usize = 1_000;

/// Nanoseconds of an advance: the average for each span, and of those the worst.
pub(super) fn idle<S: Subject>() -> Option<f64> {
    SPANS.iter().map(|(span, times)| average::<S>(*span, *times)).max_by(f64::total_cmp)
}

fn average<S: Subject>(span: u64, times: usize) -> f64 {
    let mut took = Duration::ZERO;
    let mut fired = 0;
    for _ in 0..STRUCTURES {
        let mut subject = S::new();
        for deadline in Spread::Hour.deadlines(TIMERS) {
            subject.insert_and_forget(deadline.into(), 0);
        }
        let mut now = HOUR_MS;
        subject.advance(now, &mut |_, _| fired += 1);
        let begun = Instant::now();
        for _ in 0..times {
            now += span;
            subject.advance(now, &mut |_, _| fired += 1);
        }
        took += begun.elapsed();
    }
    assert_eq!(fired, STRUCTURES * TIMERS, "fired before it was idle");
    ns_each(took, times * STRUCTURES)
}

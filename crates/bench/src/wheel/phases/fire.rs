//! Firing: all n through an hour of one-millisecond steps, and all n at one tick.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{Work, fill, ns_each};
use crate::wheel::subject::Subject;
use crate::wheel::workload::{HOUR_MS, Spread};

/// Steps after the hour, for what fires late.
const AFTER_MS: u64 = 1_000;

/// Nanoseconds of a timer's way out: all the time of all the steps, cascades and empty ones
/// included, divided by n.
pub(super) fn through_the_hour<S: Subject>(work: &Work) -> Option<f64> {
    let mut subject: S = fill::without_handles(work.n, Spread::Hour, work.limit)?;
    let (mut fired, mut sum) = (0, 0_u64);
    let took = work.limit.step(&mut subject, 0, HOUR_MS + AFTER_MS, |_, value| {
        fired += 1;
        sum ^= value;
    });
    black_box(sum);
    fill::leave(subject, Vec::new());
    let took = took?;
    assert_eq!(fired, work.n, "fired within the hour");
    Some(ns_each(took, work.n))
}

/// Nanoseconds of a timer when all have one deadline and one advance, from the start, fires them. Few
/// timers are measured on several structures, one after the other.
pub(super) fn at_once<S: Subject>(work: &Work) -> Option<f64> {
    let mut sum = Duration::ZERO;
    for _ in 0..work.structures() {
        let mut subject: S = fill::without_handles(work.n, Spread::Sharp, work.limit)?;
        let (mut fired, mut values) = (0, 0_u64);
        let begun = Instant::now();
        subject.advance(Spread::Sharp.deadline(0), &mut |_, value| {
            fired += 1;
            values ^= value;
        });
        sum += work.limit.kept(begun)?;
        black_box(values);
        assert_eq!(fired, work.n, "fired at once");
        fill::leave_large(subject, work);
    }
    Some(ns_each(sum, work.n * work.structures()))
}

//! Inserting n timers into an empty structure, and cancelling all of them in random order.
//!
//! The structure grows from its default size, so growth is in the figure. For the cancellation the
//! handles are brought into their random order beforehand: the caller walks them in line, and what
//! misses the cache is the structure's. Few timers are measured on several structures, one after the
//! other.

use std::hint::black_box;
use std::mem::take;
use std::time::Duration;

use super::{Work, fill, ns_each};
use crate::wheel::subject::Subject;
use crate::wheel::workload::{Spread, shuffle};

/// Nanoseconds of an insertion and of a cancellation.
pub(super) fn insert_and_cancel<S: Subject>(work: &Work) -> (Option<f64>, Option<f64>) {
    let deadlines = Spread::Hour.deadlines(work.n);
    let mut places = fill::places::<S::Handle>(work.n);
    let (mut inserted, mut cancelled) = (Some(Duration::ZERO), Some(Duration::ZERO));
    for _ in 0..work.structures() {
        let mut subject = S::new();
        let took = work.limit.each(work.n, |i| {
            places[i] = subject.insert(deadlines[i].into(), i as u64);
        });
        let Some(took) = took else {
            fill::leave(subject, places);
            return (None, None);
        };
        inserted = inserted.map(|sum| sum + took);
        shuffle(&mut places);
        let took = cancel_all(&mut subject, &mut places, work);
        cancelled = cancelled.zip(took).map(|(sum, took)| sum + took);
        fill::leave_large(subject, work);
    }
    let each = |took: Option<Duration>| took.map(|took| ns_each(took, work.n * work.structures()));
    (each(inserted), each(cancelled))
}

fn cancel_all<S: Subject>(
    subject: &mut S,
    places: &mut [S::Handle],
    work: &Work,
) -> Option<Duration> {
    let (mut gone, mut sum) = (0, 0_u64);
    let took = work.limit.each(work.n, |i| {
        if let Some(value) = subject.cancel(take(&mut places[i])) {
            gone += 1;
            sum ^= value;
        }
    })?;
    black_box(sum);
    assert_eq!(gone, work.n, "cancelled");
    Some(took)
}

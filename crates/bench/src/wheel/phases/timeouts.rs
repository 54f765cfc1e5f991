//! The life of connection timeouts: n are set, after 15 s nine in ten are cancelled because an answer
//! came, and the rest fire.

use std::hint::black_box;
use std::mem::take;

use super::{Work, fill, ns_each};
use crate::wheel::subject::Subject;
use crate::wheel::workload::{Spread, TIMEOUTS_END_MS, shuffle};

/// When the answers come.
const ANSWERED_MS: u64 = 15_000;

/// Nanoseconds for each of the n: setting, cancelling, firing and all steps between.
pub(super) fn timeouts<S: Subject>(work: &Work) -> Option<f64> {
    let Work { n, limit, .. } = *work;
    let deadlines = Spread::Timeouts.deadlines(n);
    let mut places = fill::places::<S::Handle>(n);
    let mut subject = S::new();
    let answered = n / 10 * 9;
    let (mut fired, mut gone, mut sum) = (0, 0, 0_u64);

    let set = limit.each(n, |i| places[i] = subject.insert(deadlines[i].into(), i as u64))?;
    let limit = limit.less(set);
    let waited = limit.step(&mut subject, 0, ANSWERED_MS, |_, _| fired += 1)?;
    assert_eq!(fired, 0, "fired before its time");
    shuffle(&mut places);
    let limit = limit.less(waited);
    let cancelled = limit.each(answered, |i| {
        if let Some(value) = subject.cancel(take(&mut places[i])) {
            gone += 1;
            sum ^= value;
        }
    })?;
    assert_eq!(gone, answered, "cancelled");
    let limit = limit.less(cancelled);
    let expired = limit.step(&mut subject, ANSWERED_MS, TIMEOUTS_END_MS, |_, value| {
        fired += 1;
        sum ^= value;
    })?;
    assert_eq!(fired, n - answered, "fired");
    // Nothing for most; a duty for those whose handles hold memory.
    let limit = limit.less(expired);
    let released =
        limit.each(n - answered, |i| subject.release(take(&mut places[answered + i])))?;
    black_box(sum);
    fill::leave(subject, places);
    Some(ns_each(set + waited + cancelled + expired + released, n))
}

//! Memory: what a timer takes, and what churn leaves behind.
//!
//! Counted are the bytes that the structure asked the allocator for and has not given back, from
//! before it was made: the fixed part of it is in the figure. What a crate sets up once in a process
//! is not. Handles are the caller's.

use super::churn::Churn;
use super::{Work, fill};
use crate::allocator::Count;
use crate::wheel::subject::Subject;
use crate::wheel::workload::Spread;

/// Pairs of churn for each pending timer, and at most.
const PAIRS_EACH: usize = 10;
const PAIRS_MAX: usize = 10_000_000;

/// Bytes a timer, after n insertions.
pub(super) fn per_entry<S: Subject>(work: &Work) -> Option<f64> {
    warm_up::<S>();
    let deadlines = Spread::Hour.deadlines(work.n);
    let count = Count::start();
    let mut subject = S::new();
    let took =
        work.limit.each(work.n, |i| subject.insert_and_forget(deadlines[i].into(), i as u64));
    let live = count.live();
    drop(count);
    fill::leave(subject, Vec::new());
    took.map(|_| live as f64 / work.n as f64)
}

/// Live bytes after churn, divided by those before.
pub(super) fn after_churn<S: Subject>(work: &Work) -> Option<f64> {
    warm_up::<S>();
    let places = fill::places(work.n);
    let count = Count::start();
    let mut churn = Churn::<S>::start(places, work.limit)?;
    let before = count.live();
    let done = churn.run((PAIRS_EACH * work.n).min(PAIRS_MAX), work.limit);
    let after = count.live();
    drop(count);
    churn.leave();
    done.map(|_| after as f64 / before as f64)
}

/// Has the crate set up what it sets up once.
fn warm_up<S: Subject>() {
    let mut subject = S::new();
    let handle = subject.insert(1, 0);
    subject.cancel(handle);
}

//! Making and filling structures, before or outside of what is timed.

use std::hint::black_box;

use super::Work;
use crate::wheel::limit::Limit;
use crate::wheel::subject::Subject;
use crate::wheel::workload::Spread;

/// Places for n handles, in memory that has been touched: its page faults are no structure's.
pub(super) fn places<H: Default>(n: usize) -> Vec<H> {
    // Without the black box this may become memory that is zeroed when it is first used.
    (0..n).map(|_| black_box(H::default())).collect()
}

/// A structure with n timers that nobody will cancel.
pub(super) fn without_handles<S: Subject>(n: usize, spread: Spread, limit: Limit) -> Option<S> {
    let deadlines = spread.deadlines(n);
    let mut subject = S::new();
    limit.each(n, |i| subject.insert_and_forget(deadlines[i].into(), i as u64))?;
    Some(subject)
}

/// A structure with a timer for each of the places, which get the handles.
pub(super) fn with_handles<S: Subject>(
    places: &mut [S::Handle],
    spread: Spread,
    limit: Limit,
) -> Option<S> {
    let deadlines = spread.deadlines(places.len());
    let mut subject = S::new();
    limit.each(places.len(), |i| {
        places[i] = subject.insert(deadlines[i].into(), i as u64);
    })?;
    Some(subject)
}

/// Lets go of a structure without tearing it down: the process ends soon, and taking millions of
/// timers apart is not measured.
pub(super) fn leave<S: Subject>(subject: S, places: Vec<S::Handle>) {
    std::mem::forget((subject, places));
}

/// The same, unless more structures follow: then the next gets this one's memory.
pub(super) fn leave_large<S: Subject>(subject: S, work: &Work) {
    if work.structures() == 1 {
        leave(subject, Vec::new());
    }
}

//! Churn: n connection timeouts are pending, one at random is cancelled, a new one takes its place,
//! and now and then a millisecond passes. None of them fires.

use std::hint::black_box;
use std::mem::take;
use std::time::Duration;

use super::{Work, fill, ns_each};
use crate::wheel::limit::Limit;
use crate::wheel::subject::Subject;
use crate::wheel::workload::{PAIRS_PER_MS, Spread, pair};

/// A structure under churn.
pub(super) struct Churn<S: Subject> {
    subject: S,
    places: Vec<S::Handle>,
    now: u64,
    pairs: u64,
    sum: u64,
}

impl<S: Subject> Churn<S> {
    /// The structure with a timer for each of the places.
    pub(super) fn start(mut places: Vec<S::Handle>, limit: Limit) -> Option<Churn<S>> {
        let subject = fill::with_handles(&mut places, Spread::Timeouts, limit)?;
        Some(Churn { subject, places, now: 0, pairs: 0, sum: 0 })
    }

    /// Cancels one and inserts one.
    #[inline]
    pub(super) fn pair(&mut self) {
        let (place, delay) = pair(self.pairs, self.places.len());
        self.pairs += 1;
        let place = &mut self.places[place];
        let gone = self.subject.cancel(take(place));
        self.sum ^= gone.unwrap_or(u64::MAX);
        *place = self.subject.insert(self.now + delay, self.pairs);
    }

    /// Whether a millisecond is to pass before the next pair.
    #[inline]
    pub(super) fn is_time(&self) -> bool {
        self.pairs.is_multiple_of(PAIRS_PER_MS)
    }

    /// Lets a millisecond pass.
    #[inline]
    pub(super) fn tick(&mut self) {
        let mut fired = 0;
        self.subject.advance(self.now + 1, &mut |_, _| fired += 1);
        self.now += 1;
        assert_eq!(fired, 0, "a timeout fired {} ms after its insertion", self.now);
    }

    /// So many pairs, with the milliseconds between them.
    #[inline]
    pub(super) fn run(&mut self, pairs: usize, limit: Limit) -> Option<Duration> {
        limit.each(pairs, |_| {
            self.pair();
            if self.is_time() {
                self.tick();
            }
        })
    }

    /// Takes the structure down and gives its places back for the next one.
    pub(super) fn end(mut self) -> Vec<S::Handle> {
        black_box(self.sum);
        for place in &mut self.places {
            self.subject.release(take(place));
        }
        self.places
    }

    /// Lets go of the structure where the process ends soon.
    pub(super) fn leave(self) {
        black_box(self.sum);
        fill::leave(self.subject, self.places);
    }
}

/// Nanoseconds of a pair.
pub(super) fn mix<S: Subject>(work: &Work) -> Option<f64> {
    let mut churn = Churn::<S>::start(fill::places(work.n), work.limit)?;
    let took = churn.run(work.pairs, work.limit);
    churn.leave();
    Some(ns_each(took?, work.pairs))
}

//! What a structure under measurement can do.
//!
//! Time is in whole ticks of one millisecond from 0, values are numbers. Every crate is behind this
//! one trait, with an adapter of its own under `subjects/` that does what its documentation says a
//! user does, and nothing more. Calls are resolved at compile time. The trait deliberately lacks
//! what not all of them have: resetting, peeking, budgets.

/// A timer queue to be measured.
pub(crate) trait Subject: Sized {
    /// What an insertion gives and a cancellation takes. Its default stands for none: with it a place
    /// for each can be made, and its memory touched, before a clock runs.
    type Handle: Default;

    /// The name of its row.
    const NAME: &'static str;

    /// Whether it can be told, by one call of its own, that time has passed while it was empty.
    const IDLES: bool = true;

    /// An empty one at tick 0, of the size it has by default.
    fn new() -> Self;

    /// Adds a timer for a tick that lies ahead.
    fn insert(&mut self, deadline: u64, value: u64) -> Self::Handle;

    /// Adds a timer that nobody will cancel.
    fn insert_and_forget(&mut self, deadline: u64, value: u64) {
        self.insert(deadline, value);
    }

    /// Takes a pending timer out. Its value, or 0 where the crate does not give it back; nothing
    /// when it was not pending.
    fn cancel(&mut self, handle: Self::Handle) -> Option<u64>;

    /// Gives up the handle of a timer that has fired, where that is a duty.
    fn release(&mut self, handle: Self::Handle) {
        drop(handle);
    }

    /// Moves from where time is to the tick `to` in one go. `fired` gets, for each timer that was
    /// due, the tick at which it came out and its value.
    fn advance(&mut self, to: u64, fired: &mut impl FnMut(u64, u64));

    /// Moves from the tick `from`, where time is, to `to`, one tick at a time.
    fn step(&mut self, from: u64, to: u64, fired: &mut impl FnMut(u64, u64)) {
        for now in from + 1..=to {
            self.advance(now, fired);
        }
    }
}

//! The side that fires: takes due timers out of the lanes, tick by tick, and says how long to sleep.
//!
//! # What always holds
//!
//! - There is one driver, and it is not cloned: between two looks at the lanes only others' inserts
//!   make a lane armed for an earlier tick.
//! - A lane is locked only when it is armed for a tick that has come, and for one batch at most.
//! - A batch is of one tick. So what a callback inserts for the next tick, into whichever lane, is in
//!   its place in the order.
//! - What was taken out fires: if a callback panics, the rest of its batch is fired by the next
//!   [`advance`](Driver::advance).
//!
//! It deliberately lacks a clock and a loop: both are the caller's.

use super::{Handle, Lanes};
use std::collections::VecDeque;
use std::fmt;
use tourbillon_wheel::{Advance, Budget};

/// How many timers may be moved within a wheel while its lane is held, besides those that are taken
/// out. A wheel that may move a whole slot at once has a faster way of doing so, for slots of up
/// to so many.
const MOVES_MAX: usize = 4096;

/// Fires what is due in a set of [`Lanes`]. Made together with them, once.
///
/// Dropping it fires nothing; the timers stay pending, and nobody is left to fire them.
pub struct Driver<T> {
    lanes: Lanes<T>,
    /// The tick that is being fired, or the one up to which everything has fired.
    now: u64,
    /// The most timers to take out while a lane is held.
    batch_max: usize,
    /// Taken out of a lane and about to be fired; all due at `now`.
    batch: VecDeque<(Handle, u64, T)>,
}

impl<T> Driver<T> {
    pub(super) fn new(lanes: Lanes<T>, now: u64, batch_max: usize) -> Self {
        Self { lanes, now, batch_max, batch: VecDeque::new() }
    }

    /// The lanes that this driver fires.
    pub fn lanes(&self) -> &Lanes<T> {
        &self.lanes
    }

    /// The tick up to which everything has fired, except what was overdue when it was inserted and
    /// what a budget left behind. Only grows.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Fires everything due at or before `now`, in the order that the [module](super) describes,
    /// handling at most `budget` timers (fired, or moved within a wheel; `usize::MAX` for no bound).
    /// With a `now` before the driver's own it does nothing.
    ///
    /// `fire` gets each timer's handle (already stale), deadline and value. No lock is held while
    /// it runs, so it may use the lanes as it likes; a timer that it inserts for a tick that
    /// has come fires in the same round. When it panics, the timer that it was given is gone, and the
    /// next call goes on with the one after it.
    ///
    /// When the answer is not `finished`, the same call again goes on where this one stopped.
    pub fn advance<F>(&mut self, now: u64, budget: usize, mut fire: F) -> Advance
    where
        F: FnMut(Handle, u64, T),
    {
        self.lanes.shared.sleep.end();
        let mut done = Advance { fired: 0, moved: 0, finished: true };
        if now < self.now {
            return done;
        }
        let mut left = budget;
        loop {
            while left > 0
                && let Some((handle, deadline, value)) = self.batch.pop_front()
            {
                left -= 1;
                done.fired += 1;
                fire(handle, deadline, value);
            }
            // Only what a panic has left behind can be more than the budget.
            if !self.batch.is_empty() {
                done.finished = false;
                return done;
            }
            let Some((tick, number)) = self.first_due(now) else { break };
            self.now = tick;
            let mut units = Budget::new(left.min(self.batch_max.saturating_add(MOVES_MAX)));
            let mut held = self.lanes.shared.lanes[number].hold();
            held.pop(tick, self.batch_max, &mut units, |key, deadline, value| {
                self.batch.push_back((Handle::new(number, key), deadline, value));
            });
            drop(held);
            left -= units.moved();
            done.moved += units.moved();
            if units.ran_out() && left == 0 {
                done.finished = false;
                return done;
            }
        }
        self.now = now;
        done
    }

    /// Says that the driver is going to sleep, and until which tick it may: `None` when no timer is
    /// pending, so that it may sleep until it is woken.
    ///
    /// From here until the next [`advance`](Self::advance), a timer inserted or reset to an earlier
    /// tick calls the closure that was given to [`build`](super::Builder::build): of all that do so,
    /// the first. When the tick has come already, do not sleep, and advance. A sleep may end early
    /// for nothing, since timers are cancelled and the closure may be called late; so loop over
    /// `advance`, `prepare_sleep` and the sleep.
    ///
    /// A timer at `u64::MAX` wakes nobody: that tick does not come.
    pub fn prepare_sleep(&mut self) -> Option<u64> {
        if !self.batch.is_empty() {
            return Some(self.now);
        }
        let shared = &*self.lanes.shared;
        let known = shared.earliest();
        shared.sleep.announce(known.unwrap_or(u64::MAX));
        // What was armed before the announcement could be seen is seen now.
        match (known, shared.earliest()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The lane to be fired from next, with the tick that its next timers count for.
    fn first_due(&self, now: u64) -> Option<(u64, usize)> {
        let mut first: Option<(u64, usize)> = None;
        for (number, lane) in self.lanes.shared.lanes.iter().enumerate() {
            if let Some(armed) = lane.armed()
                && armed <= now
            {
                let tick = armed.max(self.now);
                if first.is_none_or(|(earliest, _)| tick < earliest) {
                    first = Some((tick, number));
                }
            }
        }
        first
    }
}

impl<T> fmt::Debug for Driver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("now", &self.now)
            .field("lanes", &self.lanes)
            .finish_non_exhaustive()
    }
}

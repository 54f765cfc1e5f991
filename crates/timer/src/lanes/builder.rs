//! How many lanes, how many timers, and from which tick on.
//!
//! Every setting has a default that is right for most; what is out of range is brought to the
//! nearest value that is in it. It lacks a tick length: ticks are whatever the caller counts.

use super::lane::{LANE_MAX, Lane};
use super::sleep::Sleep;
use super::{Driver, Lanes, Shared};
use crate::sync::Arc;
use std::marker::PhantomData;
use std::thread;

/// More lanes than this only make the driver's look at them longer.
const LANES_MAX: usize = 64;

/// Settings of [`Lanes`], which [`build`](Self::build) makes.
#[derive(Clone, Debug)]
pub struct Builder<T> {
    lanes: Option<usize>,
    batch: usize,
    max_pending: usize,
    start: u64,
    value: PhantomData<fn(T)>,
}

impl<T> Builder<T> {
    pub(super) fn new() -> Self {
        Self { lanes: None, batch: 64, max_pending: usize::MAX, start: 0, value: PhantomData }
    }

    /// How many lanes: rounded up to a power of two, at least 1 and at most 64. Default: as many as
    /// the machine runs threads at once.
    ///
    /// About as many as there are threads that arm at the same time, so that they do not meet.
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.lanes = Some(lanes);
        self
    }

    /// How many timers the driver takes out while it holds a lane; at least 1. Default: 64, some
    /// microseconds.
    ///
    /// So many timers of one tick are beyond cancelling while the first of them is fired, and so long
    /// may others wait for the lane. The wait is longer, a tenth of a millisecond or so, when the
    /// lane's wheel has thousands of timers to move from a coarse slot to finer ones.
    pub fn batch(mut self, timers: usize) -> Self {
        self.batch = timers.max(1);
        self
    }

    /// How many timers may be pending. Default: no bound but that of the wheels, 2^32 - 256 a lane.
    ///
    /// Each lane gets an equal share of it, so that there is no counter that all threads write.
    /// There are never more timers pending than this, and one is refused only when its thread has
    /// seen the share of every lane used up: while nothing is removed at the same time, exactly
    /// when so many are pending.
    pub fn max_pending(mut self, timers: usize) -> Self {
        self.max_pending = timers;
        self
    }

    /// The tick at which time begins. Default: 0.
    pub fn starting_at(mut self, tick: u64) -> Self {
        self.start = tick;
        self
    }

    /// Makes the lanes and their driver.
    ///
    /// `wake` is called, by the thread that armed, when a deadline is earlier than what the driver
    /// [sleeps](Driver::prepare_sleep) for. It must not be lost on a driver that is just about
    /// to sleep, which [`Thread::unpark`](std::thread::Thread::unpark) and event counters see to;
    /// and it may come when the driver is awake already. It runs outside of all locks.
    pub fn build(self, wake: impl Fn() + Send + Sync + 'static) -> (Lanes<T>, Driver<T>) {
        let wanted =
            self.lanes.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into));
        let count = wanted.clamp(1, LANES_MAX).next_power_of_two();
        let max_pending = self.max_pending.min(LANE_MAX.saturating_mul(count));
        let (share, over) = (max_pending / count, max_pending % count);
        let lanes = (0..count).map(|n| Lane::new(self.start, share + usize::from(n < over)));
        let shared =
            Shared { lanes: lanes.collect(), max_pending, sleep: Sleep::new(Box::new(wake)) };
        let lanes = Lanes { shared: Arc::new(shared) };
        let driver = Driver::new(lanes.clone(), self.start, self.batch);
        (lanes, driver)
    }
}

//! tokio-util's `DelayQueue`, on a runtime of one thread whose clock is paused.
//!
//! A step advances tokio's clock by the tick and polls the queue until it is pending. The clock and
//! the driver of tokio's own timers are a part of every step, some 200 ns of it, and nothing is
//! subtracted: without them the queue does not fire. A single step enters the runtime besides; a run
//! of steps enters it once. Insertion and cancellation read no clock, but for a new earliest
//! deadline, so that the clock is paused tells little there.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::unconstrained;
use tokio::time::Instant;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use crate::wheel::subject::Subject;

thread_local! {
    /// Made once and kept for good, with its thread inside: the queue makes timers of the runtime's
    /// when it likes, and a guard for each call would be measured with it.
    static RUNTIME: &'static Runtime = {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime: &'static Runtime =
            Box::leak(Box::new(runtime.expect("a runtime without a driver for input and output")));
        std::mem::forget(runtime.enter());
        runtime
    };
}

pub(super) struct Delays {
    runtime: &'static Runtime,
    queue: DelayQueue<u64>,
    start: Instant,
    now: u64,
}

impl Subject for Delays {
    type Handle = Option<Key>;
    const NAME: &'static str = "DelayQueue";
    /// What would be measured is tokio's clock.
    const IDLES: bool = false;

    fn new() -> Self {
        let runtime = RUNTIME.with(|runtime| *runtime);
        Delays { runtime, queue: DelayQueue::new(), start: Instant::now(), now: 0 }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Option<Key> {
        Some(self.queue.insert_at(value, self.start + Duration::from_millis(deadline)))
    }

    #[inline]
    fn cancel(&mut self, handle: Option<Key>) -> Option<u64> {
        self.queue.try_remove(&handle?).map(|expired| expired.into_inner())
    }

    fn advance(&mut self, to: u64, fired: &mut impl FnMut(u64, u64)) {
        let Delays { runtime, queue, now, .. } = self;
        runtime.block_on(unconstrained(pass(queue, now, to, fired)));
    }

    fn step(&mut self, from: u64, to: u64, fired: &mut impl FnMut(u64, u64)) {
        let Delays { runtime, queue, now, .. } = self;
        runtime.block_on(unconstrained(async {
            for tick in from + 1..=to {
                pass(queue, now, tick, fired).await;
            }
        }));
    }
}

/// Lets time pass and takes out what is due.
async fn pass(
    queue: &mut DelayQueue<u64>,
    now: &mut u64,
    to: u64,
    fired: &mut impl FnMut(u64, u64),
) {
    tokio::time::advance(Duration::from_millis(to - *now)).await;
    *now = to;
    while let Poll::Ready(Some(expired)) =
        poll_fn(|context| Poll::Ready(queue.poll_expired(context))).await
    {
        fired(to, expired.into_inner());
    }
}

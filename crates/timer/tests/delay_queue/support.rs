//! What these tests share: an executor of one future, wakers that count, waiting for a condition.
#![allow(dead_code)]

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tourbillon::DelayQueue;
use tourbillon::delay_queue::{Expirations, Expired, ManualClock};

pub(crate) fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A queue and the clock that it lives by.
pub(crate) fn manual<T: Send + 'static>() -> (DelayQueue<T>, ManualClock) {
    let clock = ManualClock::new(1_000_000);
    (DelayQueue::builder().manual_clock(&clock).build(), clock)
}

/// Polls a condition that another thread makes true. Fails when that takes absurdly long.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        thread::yield_now();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// The next item of a stream, as a future.
pub(crate) fn next_of<T: Send + 'static>(
    stream: &mut Expirations<T>,
) -> impl Future<Output = Option<Expired<T>>> + '_ {
    use futures_core::Stream;
    std::future::poll_fn(move |cx| Pin::new(&mut *stream).poll_next(cx))
}

/// A future that is polled by hand, with a waker that counts.
pub(crate) struct Task<F> {
    future: Pin<Box<F>>,
    wakes: Arc<Wakes>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl<F: Future> Task<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Box::pin(future), wakes: Arc::default() }
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(self.wakes.clone());
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Polls it by a waker other than before.
    pub(crate) fn poll_elsewhere(&mut self) -> Poll<F::Output> {
        self.wakes = Arc::default();
        self.poll()
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::SeqCst)
    }
}

/// The value of what a poll gave.
pub(crate) fn value<T>(found: Poll<Option<Expired<T>>>) -> Option<T> {
    match found {
        Poll::Ready(Some(expired)) => Some(expired.into_inner()),
        Poll::Ready(None) => panic!("the queue has ended"),
        Poll::Pending => None,
    }
}

/// A small generator of numbers, the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % n
    }
}

//! The consumers' side of a queue: taking what is due, with and without waiting.
//!
//! Whoever takes an item takes the first one of all, whichever way it came to wait. It lacks ways to
//! take an item that is not due: [`remove`](DelayQueue::remove) and [`drain`](DelayQueue::drain)
//! have that.

use super::shared::Taken;
use super::state::Look;
use super::time::NEVER;
use super::{DelayQueue, Expirations, Expired, Key, Next};
use std::time::Duration;

/// How many items are taken while the lock is held: some microseconds.
const BATCH: usize = 64;

impl<T> DelayQueue<T> {
    /// Takes the first item if it is due. Never waits for an item.
    #[inline]
    pub fn try_poll(&self) -> Option<Expired<T>> {
        self.shared.take().map(|taken| self.expired(taken))
    }

    /// Takes the first item, waiting until it is due. `None` when the queue was closed and has come
    /// to its [end](Self::close).
    ///
    /// Of all threads that wait only the leader sleeps until a time; see the [module](super).
    #[inline]
    pub fn poll(&self) -> Option<Expired<T>> {
        self.shared.wait(NEVER).map(|taken| self.expired(taken))
    }

    /// Takes the first item, waiting until it is due, but no longer than `patience`. `None` when
    /// nothing became due in that time, or the queue has come to its [end](Self::close).
    ///
    /// With `Duration::ZERO` it is [`try_poll`](Self::try_poll); `Duration::MAX` is for ever.
    pub fn poll_timeout(&self, patience: Duration) -> Option<Expired<T>> {
        let limit = self.shared.time.tick_after(patience);
        self.shared.wait(limit).map(|taken| self.expired(taken))
    }

    /// A future of the first item, when it is due; of `None` when the queue was closed and has come to
    /// its [end](Self::close). Needs no runtime of any kind.
    ///
    /// It can be used in a `select`: dropping it, in whatever state, loses no item and hands its
    /// turn to the next who waits. Once polled it has its place among those who wait. One that
    /// was woken and is then neither polled nor dropped keeps its turn from the others.
    ///
    /// # Panics
    ///
    /// The first task of a process that waits starts a thread, which sleeps on behalf of all; polling
    /// panics when the operating system refuses it.
    ///
    /// ```
    /// # use std::{future::Future, pin::pin, task::{Context, Poll, Waker}, time::Duration};
    /// # use tourbillon::DelayQueue;
    /// # fn block_on<F: Future>(future: F) -> F::Output {
    /// #     let mut future = pin!(future);
    /// #     loop {
    /// #         match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
    /// #             Poll::Ready(output) => return output,
    /// #             Poll::Pending => std::thread::yield_now(),
    /// #         }
    /// #     }
    /// # }
    /// # block_on(async {
    /// let queue = DelayQueue::new();
    /// queue.insert("refresh the cache", Duration::from_millis(2)).unwrap();
    /// queue.close(); // nothing else comes in
    ///
    /// while let Some(due) = queue.next().await {
    ///     assert_eq!(due.into_inner(), "refresh the cache");
    /// }
    /// # });
    /// ```
    pub fn next(&self) -> Next<T>
    where
        T: Send + 'static,
    {
        Next::new(self.clone())
    }

    /// A [`Stream`](futures_core::Stream) of items as they become due. It ends when the queue was
    /// closed and has come to its [end](Self::close), not when the queue is empty. Any number of
    /// streams share a queue: each item goes to one of them. What is said of [`next`](Self::next)
    /// holds for the stream between two items.
    pub fn stream(&self) -> Expirations<T>
    where
        T: Send + 'static,
    {
        Expirations::new(self.clone())
    }

    /// Takes what is due and appends it to `out`, in order, but no more than `max` items. Answers how
    /// many. Never waits for an item.
    ///
    /// Holds the lock for 64 items at a time. It takes what is due at the moment: what becomes due
    /// while it is at work may come along.
    pub fn drain_expired(&self, max: usize, out: &mut Vec<Expired<T>>) -> usize {
        let before = out.len();
        loop {
            let wanted = (max - (out.len() - before)).min(BATCH);
            if wanted == 0 {
                break;
            }
            out.reserve(wanted);
            let more = self.shared.change(|state| {
                for _ in 0..wanted {
                    match state.look(&self.shared.time) {
                        Look::Item(key, deadline, value) => {
                            out.push(self.expired((key, deadline, value)));
                        }
                        Look::Busy => return true,
                        Look::Later(_) | Look::Ended => return false,
                    }
                }
                true
            });
            if !more {
                break;
            }
        }
        out.len() - before
    }

    #[inline]
    pub(super) fn expired(&self, (key, deadline, value): Taken<T>) -> Expired<T> {
        Expired::new(Key(key), self.shared.time.instant_of(deadline), value)
    }
}

//! How tasks wait: a future for one item and a stream of all.
//!
//! # What always holds
//!
//! - An item leaves the queue only in a poll that answers with it. So a future that is dropped, in
//!   whatever state, takes nothing with it.
//! - What has been polled and is not done has its place among the waiters. If it is dropped while it
//!   leads, the next one leads.
//! - A waker is cloned and dropped without the lock.
//!
//! It lacks a runtime. The wakers of any will do.

use super::after::After;
use super::alarm::{self, Ring};
use super::shared::Shared;
use super::state::{Look, State};
use super::waiters::{How, Ticket};
use super::{DelayQueue, Expired};
use futures_core::Stream;
use futures_core::stream::FusedStream;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

/// The future of [`DelayQueue::next`]: one item, or `None` when the queue has come to its end.
///
/// Dropping it loses no item and hands its turn on. Polled again after it is done, it waits for a
/// further item.
#[must_use = "futures do nothing unless polled"]
pub struct Next<T: Send + 'static> {
    waiting: Waiting<T>,
}

/// The stream of [`DelayQueue::stream`]: items as they become due, until the queue has come to its end.
///
/// Dropping it loses no item and hands its turn on.
#[must_use = "streams do nothing unless polled"]
pub struct Expirations<T: Send + 'static> {
    waiting: Waiting<T>,
    ended: bool,
}

impl<T: Send + 'static> Next<T> {
    pub(super) fn new(queue: DelayQueue<T>) -> Self {
        Self { waiting: Waiting { queue, ticket: None } }
    }
}

impl<T: Send + 'static> Expirations<T> {
    pub(super) fn new(queue: DelayQueue<T>) -> Self {
        Self { waiting: Waiting { queue, ticket: None }, ended: false }
    }
}

impl<T: Send + 'static> Future for Next<T> {
    type Output = Option<Expired<T>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.waiting.poll(cx)
    }
}

impl<T: Send + 'static> Stream for Expirations<T> {
    type Item = Expired<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let found = self.waiting.poll(cx);
        self.ended = matches!(found, Poll::Ready(None));
        found
    }
}

impl<T: Send + 'static> FusedStream for Expirations<T> {
    fn is_terminated(&self) -> bool {
        self.ended
    }
}

/// A task's place in the queue, if it has one.
struct Waiting<T: Send + 'static> {
    queue: DelayQueue<T>,
    ticket: Option<Ticket>,
}

impl<T: Send + 'static> Waiting<T> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Expired<T>>> {
        let shared = &*self.queue.shared;
        let mut fresh = None;
        loop {
            let mut after = After::default();
            let mut state = shared.lock();
            let found = match state.look(&shared.time) {
                Look::Item(key, deadline, value) => Some((key, deadline, value)),
                Look::Ended => None,
                Look::Busy => {
                    // Others have a turn, of the lock and of this thread.
                    drop(state);
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Look::Later(_) => {
                    let known = self.ticket.is_some_and(|it| state.waiters.looked(it, cx.waker()));
                    if !known {
                        let Some(waker) = fresh.take() else {
                            drop(state);
                            alarm::start();
                            fresh = Some(cx.waker().clone());
                            continue;
                        };
                        wait_by(
                            &mut self.ticket,
                            &self.queue.shared,
                            &mut state,
                            waker,
                            &mut after,
                        );
                    }
                    shared.unlock(state, after);
                    return Poll::Pending;
                }
            };
            if let Some(ticket) = self.ticket.take() {
                state.waiters.leave(ticket, &mut after);
            }
            shared.unlock(state, after);
            return Poll::Ready(found.map(|taken| self.queue.expired(taken)));
        }
    }
}

/// Has the task reached by this waker from now on.
fn wait_by<T: Send + 'static>(
    ticket: &mut Option<Ticket>,
    shared: &Arc<Shared<T>>,
    state: &mut State<T>,
    waker: Waker,
    after: &mut After,
) {
    match *ticket {
        Some(ticket) => state.waiters.reach_by(ticket, waker, after),
        None => {
            if state.alarm.queue.is_none() {
                let queue: Weak<dyn Ring> = Arc::<Shared<T>>::downgrade(shared);
                state.alarm.queue = Some(queue);
            }
            *ticket = Some(state.waiters.enter(How::Task(Some(waker))));
        }
    }
}

impl<T: Send + 'static> Drop for Waiting<T> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let mut state = self.queue.shared.lock();
            let mut after = After::default();
            state.waiters.leave(ticket, &mut after);
            self.queue.shared.unlock(state, after);
        }
    }
}

impl<T: Send + 'static> fmt::Debug for Next<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("queue", &self.waiting.queue).finish_non_exhaustive()
    }
}

impl<T: Send + 'static> fmt::Debug for Expirations<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expirations").field("queue", &self.waiting.queue).finish_non_exhaustive()
    }
}

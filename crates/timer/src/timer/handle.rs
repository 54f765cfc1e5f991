//! The handle of a job that runs once: its result, its deadline, and the way to cancel it.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::core::Door;
use super::entry::unwatch;
use super::error::JoinError;
use crate::block::{block_on, block_until};
use crate::lanes::Handle;
use crate::time::tick;

/// The handle has cancelled its job.
const CANCELLED: u8 = 1;
/// Somebody waits for the result, so there may be a row in the watches.
const POLLED: u8 = 2;
/// The result has been given out.
const TAKEN: u8 = 4;
/// Somebody cancels, or has tried to.
const CLAIMED: u8 = 8;

/// A job that a [`Timer`](super::Timer) was given to run once: to wait for its result (blocking by
/// [`join`](Self::join), or with `.await`), to cancel it, or to give it another deadline.
///
/// Dropping the handle leaves the job as it is. A handle is 24 bytes, and costs nothing beside its
/// place in the wheel while the job is pending.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::Timer;
///
/// let timer = Timer::new();
/// let answer = timer.after(Duration::from_millis(1), || 6 * 7)?;
/// assert_eq!(answer.join()?, 42);
///
/// let timeout = timer.after(Duration::from_secs(30), || println!("no answer in 30 s"))?;
/// assert!(timeout.cancel()); // the answer came: the closure is dropped and never runs
/// assert!(timeout.join().unwrap_err().is_cancelled());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "to let the job run by itself, drop the handle with `let _ =` or `drop`"]
pub struct JobHandle<R> {
    door: Arc<Door>,
    handle: Handle,
    state: AtomicU8,
    result: PhantomData<fn() -> R>,
}

impl<R> JobHandle<R> {
    #[inline]
    pub(crate) fn new(door: Arc<Door>, handle: Handle) -> Self {
        Self { door, handle, state: AtomicU8::new(0), result: PhantomData }
    }

    /// Cancels the job: true exactly when this call is why it does not run. A pending job's closure has
    /// been dropped then, and its timer is out of the wheel; that of one that was due and waited for a
    /// worker is dropped when its turn comes.
    ///
    /// A job that has begun is not interrupted, and the answer is false. O(1).
    #[inline]
    pub fn cancel(&self) -> bool {
        // Of threads that cancel at the same time one goes on: where the job is does not tell the others
        // whether it was cancelled or has begun.
        if self.state.fetch_or(CLAIMED, Ordering::AcqRel) & (CLAIMED | TAKEN) != 0 {
            return false;
        }
        let core = &self.door.core;
        match core.lanes.cancel(self.handle) {
            Some(entry) => {
                let before = self.note(CANCELLED);
                drop(entry);
                if before & POLLED != 0 {
                    core.watches.wake(self.handle);
                }
                true
            }
            None => self.cancel_due(),
        }
    }

    /// Adds to the state, and gives what it was. Of several threads that share the handle only the one
    /// that cancels gets here, the others add nothing to what it has claimed, and whoever polls has the
    /// handle to itself: so the two steps need not be one.
    #[inline]
    fn note(&self, more: u8) -> u8 {
        let before = self.state.load(Ordering::Relaxed);
        self.state.store(before | more, Ordering::Relaxed);
        before
    }

    #[cold]
    fn cancel_due(&self) -> bool {
        let watches = &self.door.core.watches;
        let cancelled = watches.cancel(self.handle);
        if cancelled {
            self.note(CANCELLED);
            watches.wake(self.handle);
        }
        cancelled
    }

    /// Makes the job due in `delay` from now instead. True when it was pending; false when it is due,
    /// runs or is over. O(1).
    pub fn reset(&self, delay: Duration) -> bool {
        let core = &self.door.core;
        core.lanes.reset(self.handle, core.time.tick_after(delay))
    }

    /// Makes the job due at `deadline` instead; see [`reset`](Self::reset).
    pub fn reset_at(&self, deadline: Instant) -> bool {
        let core = &self.door.core;
        core.lanes.reset(self.handle, tick(core.time.nanos_at(deadline)))
    }

    /// When it is due, rounded up to a microsecond; `None` when it is due already, runs or is over.
    pub fn deadline(&self) -> Option<Instant> {
        let core = &self.door.core;
        core.lanes.deadline(self.handle).map(|tick| core.time.instant_of(tick))
    }

    /// Whether it is over: it has run to its end, panicked or was cancelled.
    pub fn is_finished(&self) -> bool {
        self.state.load(Ordering::Relaxed) & (CANCELLED | TAKEN) != 0
            || self.door.core.watches.is_over(self.handle)
    }

    /// Waits, blocking the thread, and gives the result.
    ///
    /// # Errors
    ///
    /// Why there is none: see [`JoinError`]. In a job on the timer's only worker this waits for ever
    /// when the other job has not run.
    pub fn join(self) -> Result<R, JoinError>
    where
        R: 'static,
    {
        block_on(self)
    }

    /// Waits for at most `at_most`; `None` when it is not over by then.
    pub fn join_timeout(&mut self, at_most: Duration) -> Option<Result<R, JoinError>>
    where
        R: 'static,
    {
        block_until(self, Instant::now().checked_add(at_most))
    }
}

impl<R: 'static> Future for JobHandle<R> {
    type Output = Result<R, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let before = self.note(POLLED);
        if before & TAKEN != 0 {
            return Poll::Ready(Err(JoinError::Taken));
        }
        let output = match before & CANCELLED {
            0 => std::task::ready!(self.door.core.watches.poll(self.handle, cx.waker())),
            _ => Err(JoinError::Cancelled),
        };
        self.note(TAKEN);
        // The box was made by a closure that gives an `R`.
        let result = output.map(|result| result.downcast::<R>().map(|result| *result));
        Poll::Ready(result.and_then(|result| result.map_err(JoinError::Panicked)))
    }
}

impl<R> Drop for JobHandle<R> {
    #[inline]
    fn drop(&mut self) {
        let state = *self.state.get_mut();
        if state & (CANCELLED | TAKEN) != 0 {
            return;
        }
        let core = &self.door.core;
        let pending = core.lanes.change(self.handle, unwatch);
        match pending {
            Some(()) if state & POLLED != 0 => core.watches.forget(self.handle),
            Some(()) => {}
            None => core.watches.detach(self.handle),
        }
    }
}

impl<R> fmt::Debug for JobHandle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobHandle")
            .field("deadline", &self.deadline())
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_24_bytes() {
        assert_eq!(size_of::<JobHandle<String>>(), 24);
    }
}

//! The handle of a job: its result, its deadline, and the way to cancel it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::core::{Core, Door};
use super::error::JoinError;
use crate::block::{block_on, block_until};

/// What a handle may ask of its job.
pub(crate) trait Job<R>: Send + Sync {
    /// True exactly when no run begins from here on and this call saw to it.
    fn cancel(&self, core: &Core) -> bool;
    /// Another deadline, in nanoseconds of the core's time.
    fn reset(&self, core: &Core, nanos: u64) -> bool;
    /// The tick it waits for; none while it runs and when it is over.
    fn tick(&self) -> Option<u64>;
    fn is_over(&self) -> bool;
    /// Takes the result, or has the waker woken when there is one.
    fn poll(&self, waker: &Waker) -> Poll<Result<R, JoinError>>;
}

/// A job that a [`Timer`](super::Timer) was given: to wait for its result (blocking by
/// [`join`](Self::join), or with `.await`), to cancel it, or to give it another deadline.
///
/// Dropping the handle leaves the job as it is.
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
    job: Arc<dyn Job<R>>,
    door: Arc<Door>,
}

impl<R> JobHandle<R> {
    pub(crate) fn new(job: Arc<dyn Job<R>>, door: Arc<Door>) -> Self {
        Self { job, door }
    }

    /// Cancels the job: true exactly when this call is why it does not run. Then its closure has been
    /// dropped and its timer is out of the wheel.
    ///
    /// A job that has begun is not interrupted, and the answer is false; a periodic job that is
    /// running will not run again, and the answer is true. O(1).
    pub fn cancel(&self) -> bool {
        self.job.cancel(&self.door.core)
    }

    /// Makes the job due in `delay` from now instead. True when it was pending; false when it is due,
    /// runs or is over. Of a periodic job this moves the next run, and the later ones with it. O(1).
    pub fn reset(&self, delay: Duration) -> bool {
        self.job.reset(&self.door.core, self.door.core.time.nanos_after(delay))
    }

    /// Makes the job due at `deadline` instead; see [`reset`](Self::reset).
    pub fn reset_at(&self, deadline: Instant) -> bool {
        self.job.reset(&self.door.core, self.door.core.time.nanos_at(deadline))
    }

    /// When it is due, rounded up to a microsecond; `None` while it runs and when it is over. Of
    /// a cron job, the next time at which it looks at the wall clock.
    pub fn deadline(&self) -> Option<Instant> {
        self.job.tick().map(|tick| self.door.core.time.instant_of(tick))
    }

    /// Whether it is over: it has run to its end, panicked or was cancelled.
    pub fn is_finished(&self) -> bool {
        self.job.is_over()
    }

    /// Waits, blocking the thread, and gives the result. A periodic job's is the number of its
    /// runs, when it has come to an end by itself.
    ///
    /// # Errors
    ///
    /// Why there is none: see [`JoinError`]. In a job on the timer's only worker this waits for ever
    /// when the other job has not run.
    pub fn join(self) -> Result<R, JoinError> {
        block_on(self)
    }

    /// Waits for at most `at_most`; `None` when it is not over by then.
    pub fn join_timeout(&mut self, at_most: Duration) -> Option<Result<R, JoinError>> {
        block_until(self, Instant::now().checked_add(at_most))
    }
}

impl<R> Future for JobHandle<R> {
    type Output = Result<R, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.job.poll(cx.waker())
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

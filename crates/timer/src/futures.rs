//! Futures that wait for time to pass, on any runtime.
//!
//! A [`Sleep`] is armed in a [`Timer`] when it is first polled, and wakes its task when its time has
//! come. Dropping it takes it out of the wheel, in O(1). It keeps its deadline from when it was made,
//! so dropping one that is not ready and polling another for the same instant loses nothing.
//!
//! Nothing here depends on a runtime: the timer's own thread wakes the tasks.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_core::Stream;
use pin_project_lite::pin_project;

use crate::lanes::Handle;
use crate::time::tick;
use crate::timer::{Door, Missed, Timer};

/// Is ready when its deadline has come, never before. Made by [`sleep`], [`sleep_until`] and the
/// methods of the same names of [`Timer`].
///
/// When its timer is shut down, a sleep goes on by the process's timer if both go by the monotonic
/// clock; otherwise it never ends. It never ends either when its timer was
/// [full](crate::Refused::Full) and so is the process's.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Sleep {
    door: Arc<Door>,
    nanos: u64,
    /// Its place in the lanes, until it has left them.
    armed: Option<Handle>,
    done: bool,
}

impl Sleep {
    fn new(timer: &Timer, nanos: u64) -> Self {
        Self { door: timer.door(), nanos, armed: None, done: false }
    }

    /// When it is ready.
    pub fn deadline(&self) -> Instant {
        self.door.core.time.instant(self.nanos)
    }

    /// Whether it has been polled to its end, or its deadline has passed.
    pub fn is_elapsed(&self) -> bool {
        self.done || self.is_due()
    }

    fn is_due(&self) -> bool {
        self.door.core.time.now() >= tick(self.nanos)
    }

    /// Waits until `deadline` instead, also when it was ready before.
    pub fn reset(&mut self, deadline: Instant) {
        self.nanos = self.door.core.time.nanos_at(deadline);
        self.done = false;
        self.armed = self
            .armed
            .take()
            .filter(|handle| self.door.core.sleeps.reset(*handle, tick(self.nanos)));
    }

    fn arm(&mut self, waker: &Waker) -> Poll<()> {
        if self.is_due() {
            self.done = true;
            return Poll::Ready(());
        }
        self.armed = self.door.core.insert_sleep(tick(self.nanos), waker.clone()).ok();
        // If it was refused, the timer was shut down or is full. The process's timer never is shut down.
        let global = self.armed.is_none().then(Timer::global);
        if let Some(global) = global
            && !Arc::ptr_eq(global.core(), &self.door.core)
            && self.door.core.time.is_monotonic()
        {
            let deadline = self.deadline();
            self.door = global.door();
            self.nanos = self.door.core.time.nanos_at(deadline);
            self.armed = self.door.core.insert_sleep(tick(self.nanos), waker.clone()).ok();
        }
        Poll::Pending
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.done {
            return Poll::Ready(());
        }
        let Some(handle) = self.armed else { return self.arm(cx.waker()) };
        let mut fresh = Some(cx.waker().clone());
        let waits = self.door.core.sleeps.change(handle, |waker| {
            if !waker.will_wake(cx.waker()) {
                // What it replaces is dropped outside of the lane's lock.
                fresh = fresh.take().map(|fresh| std::mem::replace(waker, fresh));
            }
        });
        if waits.is_some() {
            return Poll::Pending;
        }
        // It has left the lanes: its time has come, or its timer has ended.
        self.armed = None;
        self.arm(cx.waker())
    }
}

impl Drop for Sleep {
    #[inline]
    fn drop(&mut self) {
        if let Some(handle) = self.armed.take() {
            drop(self.door.core.sleeps.cancel(handle));
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}

/// Waits until `duration` from now, by the process's timer. Never early; any duration is legal.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let begun = Instant::now();
/// tourbillon::sleep(Duration::from_millis(2)).await;
/// assert!(begun.elapsed() >= Duration::from_millis(2));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn sleep(duration: Duration) -> Sleep {
    Timer::global().sleep(duration)
}

/// Waits until an instant, by the process's timer.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Timer::global().sleep_until(deadline)
}

/// Waits for a future for at most `limit`, by the process's timer.
///
/// ```
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let never = std::future::pending::<()>();
/// assert!(tourbillon::timeout(Duration::from_millis(2), never).await.is_err());
/// assert_eq!(tourbillon::timeout(Duration::from_secs(9), async { 7 }).await, Ok(7));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn timeout<F: Future>(limit: Duration, future: F) -> Timeout<F> {
    Timer::global().timeout(limit, future)
}

/// Ticks at a fixed rate, the first time at once, by the process's timer. Ticks that nobody was
/// waiting for are left out, unless [`Interval::missed`] says otherwise.
///
/// ```
/// use std::time::Duration;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let mut interval = tourbillon::interval(Duration::from_millis(1));
/// let first = interval.tick().await;
/// let second = interval.tick().await;
/// assert!(second - first >= Duration::from_millis(1));
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// When the period is shorter than a microsecond.
pub fn interval(period: Duration) -> Interval {
    Timer::global().interval(period)
}

impl Timer {
    /// Waits until `duration` from now, by this timer's clock.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep::new(self, self.core().time.nanos_after(duration))
    }

    /// Waits until an instant of this timer's [time](Self::now).
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep::new(self, self.core().time.nanos_at(deadline))
    }

    /// Waits for a future for at most `limit`.
    pub fn timeout<F: Future>(&self, limit: Duration, future: F) -> Timeout<F> {
        Timeout { future, sleep: self.sleep(limit) }
    }

    /// Ticks at a fixed rate, the first time at once; see [`interval`].
    ///
    /// # Panics
    ///
    /// When the period is shorter than a microsecond.
    pub fn interval(&self, period: Duration) -> Interval {
        assert!(
            period >= Duration::from_micros(1),
            "an interval's period is at least a microsecond"
        );
        let sleep = Sleep::new(self, self.core().time.nanos_after(Duration::ZERO));
        Interval { sleep, period, missed: Missed::Skip }
    }
}

pin_project! {
    /// A future with a limit: made by [`timeout`] and [`Timer::timeout`]. When both are ready, the
    /// future counts.
    #[must_use = "futures do nothing unless they are awaited"]
    #[derive(Debug)]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        sleep: Sleep,
    }
}

impl<F> Timeout<F> {
    /// The future that is waited for.
    pub fn get_ref(&self) -> &F {
        &self.future
    }

    /// Gives the future back and ends the waiting.
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(this.sleep).poll(cx).map(|()| Err(Elapsed(())))
    }
}

/// The limit of a [`Timeout`] has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time limit has passed")
    }
}

impl Error for Elapsed {}

/// A ticking at a fixed rate: made by [`interval`] and [`Timer::interval`]. Also a [`Stream`] without
/// an end.
#[derive(Debug)]
pub struct Interval {
    sleep: Sleep,
    period: Duration,
    missed: Missed,
}

impl Interval {
    /// What becomes of ticks that passed before they were waited for.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// The next tick is a period from now.
    pub fn reset(&mut self) {
        let core = &self.sleep.door.core;
        let next = core.time.instant(core.time.nanos_after(self.period));
        self.sleep.reset(next);
    }

    /// The time between two ticks.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Waits for the next tick and says when it was planned. Cancel-safe: a future that is dropped
    /// before it is ready has taken no tick.
    pub async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Whether the next tick has come; the task is woken when it does.
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        std::task::ready!(Pin::new(&mut self.sleep).poll(cx));
        let planned = self.sleep.deadline();
        let next = self.missed.after(self.sleep.nanos, self.period, &self.sleep.door.core.time);
        self.sleep.nanos = next;
        self.sleep.done = false;
        Poll::Ready(planned)
    }
}

impl Stream for Interval {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.poll_tick(cx).map(Some)
    }
}

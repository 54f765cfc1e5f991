//! The timer: closures that run later, once or again and again.
//!
//! ```text
//!   any thread                the driver's thread              workers
//!   after, every, cron        sleeps until the next
//!   cancel, reset             deadline, hands out
//!        |                          |                              |
//!        v                          v                              v
//!   +----------+  due     +--------------------+  pop    run the closures,
//!   |  lanes   | -------> |    ready queue     | ----->  put periodic jobs
//!   +----------+          +--------------------+         back into the lanes
//!        ^                                                         |
//!        +---------------------------------------------------------+
//! ```
//!
//! # What always holds
//!
//! - **Never early.** Deadlines are rounded up to the next microsecond and the present down.
//! - **One decision.** A job runs or is cancelled, and [`JobHandle::cancel`] says which.
//! - **No idle ticks.** The driver sleeps until the next deadline, and for ever when there is none.
//! - **Jobs do not touch each other.** A panic ends its job's run and nothing else. A job that blocks
//!   takes one worker. Runs of one periodic job never overlap.
//! - **Bounded.** Pending jobs, jobs that wait for a worker, and workers have bounds.
//!
//! Jobs of one deadline are handed out in the order in which one thread armed them. With several workers
//! they may end in any order.
//!
//! Deliberately absent: priorities, persistence (the server has both), and killing a job that runs.

mod builder;
mod core;
mod driver;
mod due;
mod entry;
mod error;
mod handle;
mod periodic;
mod plan;
mod ready;
mod settings;
mod watches;

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tourbillon_wheel::Snapshot;

pub use builder::Builder;
pub use due::Due;
pub use error::{JobPanic, JoinError, Refused};
pub use handle::JobHandle;
pub use periodic::PeriodicHandle;
pub use plan::{Missed, OnFailure, Outcome, Plan, Run, Verdict};
pub use settings::Precision;

pub(crate) use self::core::{Core, Door};

use crate::lanes::hint;
use crate::time::{ClockKind, Time, micros_of, nanos, tick};

/// Runs closures later: after a delay, at an instant, at a fixed rate, with a fixed delay between
/// runs, or at civil times.
///
/// Any thread may use it, through `&Timer` or a clone; clones are ways to the same timer. It takes
/// one thread of its own, and workers as they are needed ([`Builder::workers`], or no workers with
/// [`Builder::inline`] or [`Builder::executor`]). When the last clone is dropped, what is pending is
/// cancelled and the threads end; for an orderly end call [`shutdown`](Self::shutdown).
///
/// ```
/// use std::time::Duration;
/// use tourbillon::Timer;
///
/// let timer = Timer::new();
/// let reminder = timer.after(Duration::from_millis(5), || "close the order")?;
/// let ping = timer.every(Duration::from_millis(1), || println!("ping"))?;
///
/// assert_eq!(reminder.join()?, "close the order");
/// ping.cancel();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Timer {
    owner: Arc<Owner>,
}

/// Ends the timer when the last way to it is gone.
struct Owner {
    core: Arc<Core>,
    /// One for each lane: a power of two.
    doors: Box<[Arc<Door>]>,
}

impl Timer {
    /// A timer with the default settings.
    ///
    /// # Panics
    ///
    /// When the system has no thread to give; [`Builder::build`] tells of that instead.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build().expect("the system should give the timer a thread")
    }

    /// A timer to be configured and built.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The timer of the process, by which [`sleep`](crate::sleep) and its like go: made when first
    /// asked for, with the default settings. Shutting it down is a mistake: sleeps would never end.
    ///
    /// # Panics
    ///
    /// When the system has no thread to give, the first time.
    pub fn global() -> &'static Self {
        static GLOBAL: OnceLock<Timer> = OnceLock::new();
        GLOBAL.get_or_init(|| {
            let timer = Self::builder().name("tourbillon-global").build();
            timer.expect("the system should give the process's timer a thread")
        })
    }

    fn start(settings: settings::Settings, clock: &ClockKind) -> io::Result<Self> {
        let core = Arc::new(Core::new(Time::new(clock), settings));
        if let Some(clock) = core.time.manual() {
            // Listeners stay with the clock, and it may outlive the timer.
            let weak = Arc::downgrade(&core);
            clock.on_change(move || {
                if let Some(core) = weak.upgrade() {
                    core.wake_driver();
                }
            });
        }
        let its_core = Arc::clone(&core);
        thread::Builder::new()
            .name(core.settings.name.clone())
            .spawn(move || driver::drive(&its_core))?;
        let doors = (0..core.lanes.count()).map(|_| Arc::new(Door { core: Arc::clone(&core) }));
        let doors = doors.collect();
        Ok(Self { owner: Arc::new(Owner { core, doors }) })
    }

    #[inline]
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.owner.core
    }

    /// The door of the present thread's lane.
    #[inline]
    pub(crate) fn door(&self) -> Arc<Door> {
        let doors = &self.owner.doors;
        Arc::clone(&doors[hint::get() & (doors.len() - 1)])
    }

    #[inline]
    fn once<F, R>(&self, tick: u64, f: F) -> Result<JobHandle<R>, Refused>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let handle = self.core().insert(tick, entry::once(f))?;
        Ok(JobHandle::new(self.door(), handle))
    }

    /// Runs `f` once, when `delay` has passed. Any delay is legal; one of more than 584 years never
    /// ends. O(1).
    ///
    /// # Errors
    ///
    /// [`Refused`] when the timer is full or was shut down.
    #[inline]
    pub fn after<F, R>(&self, delay: Duration, f: F) -> Result<JobHandle<R>, Refused>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.once(self.core().time.tick_after(delay), f)
    }

    /// Runs `f` once, at an instant of the timer's [time](Self::now); at once when that has passed.
    ///
    /// # Errors
    ///
    /// [`Refused`] when the timer is full or was shut down.
    pub fn at<F, R>(&self, deadline: Instant, f: F) -> Result<JobHandle<R>, Refused>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.once(self.core().time.tick_at(deadline), f)
    }

    /// Runs `f` once, at a moment of the wall clock as that stands now. When the clock is set
    /// afterwards, the job follows it only on a timer that goes by [`ClockKind::Wall`].
    ///
    /// # Errors
    ///
    /// [`Refused`] when the timer is full or was shut down.
    pub fn at_wall<F, R>(&self, moment: SystemTime, f: F) -> Result<JobHandle<R>, Refused>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        // Rounded up, as all deadlines are.
        let micros = micros_of(moment);
        let up = moment
            .duration_since(SystemTime::UNIX_EPOCH)
            .is_ok_and(|d| d.subsec_nanos() % 1_000 > 0);
        let wall = micros.saturating_add(i64::from(up));
        self.once(tick(self.core().time.nanos_at_wall(wall)), f)
    }

    /// Runs `f` once, not before `earliest` and as a rule not after `latest` from now: at the roundest
    /// tick between them. Jobs with such windows that overlap tend to share a tick, so that
    /// the timer wakes up once for all.
    ///
    /// # Errors
    ///
    /// [`Refused`] when the timer is full or was shut down.
    pub fn between<F, R>(
        &self,
        earliest: Duration,
        latest: Duration,
        f: F,
    ) -> Result<JobHandle<R>, Refused>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let first = self.core().time.nanos_after(earliest);
        let last = first.saturating_add(nanos(latest.saturating_sub(earliest)));
        self.once(roundest(tick(first), last / 1_000), f)
    }

    /// Runs `f` at a fixed rate, the first time a period from now. Runs that were missed are left out
    /// ([`Missed::Skip`]), unless the [builder](Builder::missed) says otherwise. For more choice see
    /// [`repeat`](Self::repeat).
    ///
    /// # Errors
    ///
    /// [`Refused`] when the period is zero, or the timer is full or was shut down.
    pub fn every<F, O>(&self, period: Duration, mut f: F) -> Result<PeriodicHandle, Refused>
    where
        F: FnMut() -> O + Send + 'static,
        O: Outcome + 'static,
    {
        self.repeat(Plan::every(period), move |_| f())
    }

    /// Runs `f` with a fixed delay between the end of a run and the start of the next.
    ///
    /// # Errors
    ///
    /// [`Refused`] when the delay is zero, or the timer is full or was shut down.
    pub fn with_delay<F, O>(&self, delay: Duration, mut f: F) -> Result<PeriodicHandle, Refused>
    where
        F: FnMut() -> O + Send + 'static,
        O: Outcome + 'static,
    {
        self.repeat(Plan::with_delay(delay), move |_| f())
    }

    /// Runs `f` at the civil times of a schedule; see [`Plan::cron`].
    ///
    /// ```
    /// use tourbillon::Timer;
    /// use tourbillon::schedule::{CronExpr, Dialect, Rule, Timing, Zone};
    ///
    /// let nine = CronExpr::parse(Dialect::Vixie, "0 9 * * mon-fri", "report")?;
    /// let timing = Timing::new(Rule::cron(nine), Zone::get("Asia/Shanghai")?);
    /// let timer = Timer::new();
    /// let report = timer.cron(timing, || println!("good morning"))?;
    /// # report.cancel();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Refused`] when the schedule has no time ahead, or the timer is full or was shut down.
    #[cfg(feature = "cron")]
    pub fn cron<F, O>(
        &self,
        timing: tourbillon_schedule::Timing,
        mut f: F,
    ) -> Result<PeriodicHandle, Refused>
    where
        F: FnMut() -> O + Send + 'static,
        O: Outcome + 'static,
    {
        self.repeat(Plan::cron(timing), move |_| f())
    }

    /// Runs `f` by a plan, telling it which run it is.
    ///
    /// # Errors
    ///
    /// [`Refused`] when the plan's period is zero or its schedule has no time ahead, or the timer is
    /// full or was shut down.
    pub fn repeat<F, O>(&self, plan: Plan, f: F) -> Result<PeriodicHandle, Refused>
    where
        F: FnMut(&Run) -> O + Send + 'static,
        O: Outcome + 'static,
    {
        PeriodicHandle::arm(self.door(), plan, f)
    }

    /// The present by the timer's clock. With [`ClockKind::Monotonic`] that is `Instant::now()`; with
    /// others, what the clock has counted since the timer was made, on the same line of time.
    pub fn now(&self) -> Instant {
        self.core().time.instant_now()
    }

    /// How many jobs and sleeps are pending: armed and not due, periodic ones between runs included.
    /// Exact while nothing changes. Takes no lock.
    pub fn len(&self) -> usize {
        let core = self.core();
        core.lanes.len() + core.sleeps.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many jobs are due and have not ended: they wait for a worker, or run.
    pub fn in_progress(&self) -> usize {
        self.core().ready.outstanding()
    }

    /// How many workers there are now.
    pub fn workers(&self) -> usize {
        self.core().ready.workers()
    }

    /// When the next job is due, or an instant before that; `None` when nothing is pending.
    pub fn next_deadline(&self) -> Option<Instant> {
        let core = self.core();
        core.next_deadline().map(|tick| core.time.instant_of(tick))
    }

    /// What is where in the wheels, lane by lane: first those of jobs, then those of sleeps.
    pub fn snapshot(&self) -> Vec<Snapshot> {
        let core = self.core();
        core.lanes.snapshot().into_iter().chain(core.sleeps.snapshot()).collect()
    }

    /// Gives back what memory can be given back at once.
    pub fn compact(&self) {
        self.core().lanes.compact();
        self.core().sleeps.compact();
    }

    /// Waits until everything that is due by the timer's clock has run to its end, with what that made
    /// due; false when that takes longer than `at_most` of real time. For tests that move a
    /// [manual clock](crate::ManualClock). Called by a job it waits in vain, for itself.
    pub fn wait_idle(&self, at_most: Duration) -> bool {
        self.core().wait_idle(Instant::now().checked_add(at_most))
    }

    /// Begins an orderly end: nothing new is taken, what is due is run, and pending jobs are run when
    /// they are due or cancelled, as the builder was told
    /// ([delayed](Builder::run_delayed_after_shutdown) and
    /// [periodic](Builder::continue_periodic_after_shutdown) ones). Returns at once; then
    /// [`wait_terminated`](Self::wait_terminated). Does nothing the second time.
    ///
    /// May be called by a job.
    pub fn shutdown(&self) {
        self.core().shut_down();
    }

    /// Ends the timer: nothing more is begun, and what never ran is given back in the order of
    /// deadlines (equal ones in any), to be run by hand or dropped. What runs goes on to its end, which
    /// [`wait_terminated`](Self::wait_terminated) waits for.
    ///
    /// May be called by a job, also after [`shutdown`](Self::shutdown). Takes time in proportion to
    /// what is pending.
    pub fn shutdown_now(&self) -> Vec<Due> {
        self.core().stop()
    }

    /// Whether it was shut down and takes nothing new.
    pub fn is_shutdown(&self) -> bool {
        self.core().state() != core::RUNNING
    }

    /// Whether it was shut down and everything has ended.
    pub fn is_terminated(&self) -> bool {
        self.core().state() == core::TERMINATED
    }

    /// Waits until it [is terminated](Self::is_terminated); false when that takes longer than
    /// `at_most`. Called by a job it waits in vain, for itself.
    pub fn wait_terminated(&self, at_most: Duration) -> bool {
        self.core().wait_terminated(Instant::now().checked_add(at_most))
    }
}

impl Default for Timer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("pending", &self.len())
            .field("in_progress", &self.in_progress())
            .field("next_deadline", &self.next_deadline())
            .finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.core.stop());
    }
}

/// The tick from `first` to `last` that is divisible by the greatest power of two.
fn roundest(first: u64, last: u64) -> u64 {
    match (first ^ last).checked_ilog2() {
        Some(bit) if first < last => {
            let round = last >> bit << bit;
            // The bits below are free in `first` too when it is round itself.
            if first.trailing_zeros() >= round.trailing_zeros() { first } else { round }
        }
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(30);

    /// Two threads cancelled one pending job, and both were told that they had: the second found it
    /// neither in the lanes nor begun, and left a mark for a begin that never came.
    #[test]
    fn one_of_those_who_cancel_is_told_so() {
        let timer = Timer::builder().workers(2).build().expect("a thread");
        let barrier = std::sync::Barrier::new(3);
        for round in 0..2_000_u64 {
            // Some are due at about the time.
            let delay = Duration::from_micros(if round % 2 == 0 { 60_000_000 } else { round % 40 });
            let job = timer.after(delay, || ()).expect("not full");
            let cancelled: usize = thread::scope(|scope| {
                let cancel = || {
                    barrier.wait();
                    usize::from(job.cancel())
                };
                let others = [scope.spawn(cancel), scope.spawn(cancel)];
                let own = cancel();
                others.into_iter().map(|other| other.join().expect("no panic")).sum::<usize>() + own
            });
            assert!(cancelled <= 1, "round {round}: {cancelled} were told so");
            assert!(cancelled == 1 || round % 2 == 1, "round {round}: nobody was");
            assert_eq!(job.join().is_err(), cancelled == 1, "round {round}");
        }
        assert!(timer.wait_idle(SOON));
        assert_eq!((timer.core().watches.len(), timer.len()), (0, 0));
    }

    /// Whatever becomes of jobs and handles, in whatever order: when all is over, nothing is kept.
    #[test]
    fn nothing_is_kept_of_what_is_over() {
        use std::sync::atomic::{AtomicUsize, Ordering};

        let timer = Timer::builder().workers(2).build().expect("a thread");
        let ran = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for seed in 0..4_u64 {
                let (timer, ran) = (&timer, &ran);
                scope.spawn(move || {
                    for n in 0..3_000 {
                        let counted = Arc::clone(ran);
                        let delay = Duration::from_micros((n * 7 + seed) % 40);
                        let job =
                            timer.after(delay, move || counted.fetch_add(1, Ordering::SeqCst));
                        let mut job = job.expect("not full");
                        let polled = n % 2 == 0 && job.join_timeout(Duration::ZERO).is_some();
                        match n % 5 {
                            _ if polled => {}
                            0 => drop(job),
                            1 if !job.cancel() => drop(job),
                            2 if !job.cancel() => drop(job.join().expect("it has begun")),
                            3 => {
                                job.cancel();
                                assert!(job.is_finished() || job.join_timeout(SOON).is_some());
                            }
                            4 => drop(job.join().expect("nobody cancels it")),
                            _ => {}
                        }
                    }
                });
            }
        });
        assert!(timer.wait_idle(SOON));
        // What was due and is still with a worker ends in a moment; the rows go with it.
        assert_eq!((timer.core().watches.len(), timer.len(), timer.in_progress()), (0, 0, 0));
        assert!(ran.load(Ordering::SeqCst) > 0);
    }

    #[test]
    fn the_roundest_tick_of_a_window() {
        assert_eq!(roundest(5, 5), 5);
        assert_eq!(roundest(5, 4), 5, "a window the wrong way round is a moment");
        assert_eq!(roundest(5, 7), 6);
        assert_eq!(roundest(5, 9), 8);
        assert_eq!(roundest(8, 9), 8);
        assert_eq!(roundest(0, 9), 0);
        assert_eq!(roundest(1_000_001, 1_000_400), 1_000_192);
        assert_eq!(roundest(u64::MAX - 1, u64::MAX), u64::MAX - 1);
        for first in 0..200_u64 {
            for last in first..200 {
                let best = (first..=last).max_by_key(|t| (t.trailing_zeros(), u64::MAX - t));
                let found = roundest(first, last);
                assert!((first..=last).contains(&found));
                assert_eq!(Some(found.trailing_zeros()), best.map(u64::trailing_zeros));
            }
        }
    }
}

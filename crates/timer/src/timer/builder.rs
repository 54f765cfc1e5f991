//! The settings of a timer.
//!
//! Every setting has a default that is right for most. What is out of range is brought to the
//! nearest value that is in it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::Timer;
use super::due::Due;
use super::error::JobPanic;
use super::plan::{Missed, OnFailure};
use super::settings::{Executor, Precision, Settings};
use crate::time::ClockKind;

/// Settings of a [`Timer`], which [`build`](Self::build) makes.
///
/// ```
/// use std::time::Duration;
/// use tourbillon::{Precision, Timer};
///
/// let timer = Timer::builder()
///     .name("orders")
///     .workers(4)
///     .max_pending(1_000_000)
///     .precision(Precision::ECONOMY)
///     .on_panic(|panic| eprintln!("a job panicked: {}", panic.message()))
///     .build()?;
/// timer.after(Duration::from_millis(1), || ())?.join()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "settings do nothing until the timer is built"]
pub struct Builder {
    settings: Settings,
    clock: ClockKind,
}

impl Builder {
    pub(super) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, Into::into);
        let workers = (4 * cores).max(16);
        Self {
            settings: Settings {
                name: "tourbillon".to_owned(),
                lanes: None,
                max_pending: usize::MAX,
                precision: Precision::default(),
                executor: Executor::Pool { workers, keep_alive: Duration::from_secs(10) },
                on_panic: None,
                missed: Missed::default(),
                on_failure: OnFailure::default(),
                run_delayed: true,
                continue_periodic: false,
            },
            clock: ClockKind::default(),
        }
    }

    /// The name of its threads. Default: `tourbillon`. A zero byte ends it.
    pub fn name(mut self, name: &str) -> Self {
        name.split('\0').next().unwrap_or_default().clone_into(&mut self.settings.name);
        self
    }

    /// Closures run on worker threads, at most so many (at least one). A worker is started when
    /// something is due and none is idle, so a job that blocks delays no other while there are
    /// fewer busy than this. Default: this, with four for each thread the machine runs at once, and at
    /// least 16.
    pub fn workers(mut self, workers: usize) -> Self {
        let keep_alive = match self.settings.executor {
            Executor::Pool { keep_alive, .. } => keep_alive,
            _ => Duration::from_secs(10),
        };
        self.settings.executor = Executor::Pool { workers: workers.max(1), keep_alive };
        self
    }

    /// How long an idle worker stays. Default: 10 s. Without effect on other executors.
    pub fn keep_alive(mut self, idle: Duration) -> Self {
        if let Executor::Pool { keep_alive, .. } = &mut self.settings.executor {
            *keep_alive = idle;
        }
        self
    }

    /// Closures run on the timer's own thread, one after the other: the least cost, for short ones. One
    /// that blocks holds up all others.
    pub fn inline(mut self) -> Self {
        self.settings.executor = Executor::Inline;
        self
    }

    /// Due jobs are handed to `execute`, on the timer's own thread, which is to pass them on to where
    /// they run: [`Due::run`]. One that it drops is cancelled.
    ///
    /// ```
    /// use std::{sync::mpsc, thread, time::Duration};
    /// use tourbillon::{Due, Timer};
    ///
    /// let (sender, due) = mpsc::channel::<Due>();
    /// let timer = Timer::builder().executor(move |job| drop(sender.send(job))).build()?;
    /// thread::spawn(move || due.into_iter().for_each(Due::run));
    /// assert_eq!(timer.after(Duration::from_millis(1), || 7)?.join()?, 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn executor(mut self, execute: impl Fn(Due) + Send + Sync + 'static) -> Self {
        self.settings.executor = Executor::Custom(Box::new(execute));
        self
    }

    /// How many jobs may be pending, how many sleeps, and how many jobs due and waiting for a worker,
    /// before more are [refused](super::Refused::Full). Periodic jobs go on whatever the bound. Default: no
    /// bound but that of the wheels, 2^32 - 256 a lane.
    pub fn max_pending(mut self, timers: usize) -> Self {
        self.settings.max_pending = timers;
        self
    }

    /// How closely it keeps to deadlines, and at what cost. Default: [`Precision::Fine`].
    pub fn precision(mut self, precision: Precision) -> Self {
        self.settings.precision = precision;
        self
    }

    /// Which clock it goes by. Default: [`ClockKind::Monotonic`].
    pub fn clock(mut self, clock: ClockKind) -> Self {
        self.clock = clock;
        self
    }

    /// How many [lanes](crate::lanes) it has. Default: as many as the machine runs threads at once.
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.settings.lanes = Some(lanes);
        self
    }

    /// Called with each panic of a job's closure, on the thread it happened on. The panic itself ends
    /// there: the worker and all other jobs go on. (The process's own panic hook has been called before.)
    pub fn on_panic(mut self, hook: impl Fn(&JobPanic<'_>) + Send + Sync + 'static) -> Self {
        self.settings.on_panic = Some(Arc::new(hook));
        self
    }

    /// What becomes of missed runs of periodic jobs whose plan does not say. Default: [`Missed::Skip`].
    pub fn missed(mut self, missed: Missed) -> Self {
        self.settings.missed = missed;
        self
    }

    /// What becomes of failing periodic jobs whose plan does not say. Default: [`OnFailure::Continue`].
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.settings.on_failure = on_failure;
        self
    }

    /// Whether jobs that wait for their one run are run when they are due after a
    /// [`shutdown`](Timer::shutdown), or cancelled by it. Default: true.
    pub fn run_delayed_after_shutdown(mut self, run: bool) -> Self {
        self.settings.run_delayed = run;
        self
    }

    /// Whether periodic jobs go on after a [`shutdown`](Timer::shutdown), until they end or are
    /// cancelled, or are cancelled by it. Default: false.
    pub fn continue_periodic_after_shutdown(mut self, go_on: bool) -> Self {
        self.settings.continue_periodic = go_on;
        self
    }

    /// Makes the timer and starts its thread.
    ///
    /// # Errors
    ///
    /// When the system has no thread to give.
    pub fn build(self) -> io::Result<Timer> {
        Timer::start(self.settings, &self.clock)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.settings.name)
            .field("max_pending", &self.settings.max_pending)
            .field("precision", &self.settings.precision)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

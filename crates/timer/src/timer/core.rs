//! What a timer's handles, workers and driver have in common.
//!
//! # What always holds
//!
//! - Due entries go from the lanes to the ready queue under the driver's lock, so a shutdown that
//!   holds it sees every entry in one place or the other.
//! - Nobody's code runs under that lock, neither closures nor wakers nor an executor.
//! - An entry counts as outstanding from when it leaves the lanes until its run has ended, and a
//!   periodic one goes back into the lanes before it stops counting.
//!
//! Locks are taken in this order: the driver's, a job's, a lane's, the ready queue's.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::task::Waker;
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::due::Due;
use super::entry::{Entry, Kind, Task};
use super::error::{JobPanic, JoinError, Refused};
use super::ready::Ready;
use super::settings::{Executor, Settings};
use super::watches::{Go, Watches};
use crate::lanes::{Driver, Handle, Lanes};
use crate::sync::relock;
use crate::time::Time;

/// Entries that are handled in one go while the driver is held.
const TURN_MAX: usize = 1_024;

pub(crate) const RUNNING: u8 = 0;
/// Takes nothing new, and ends when what is left has run.
pub(crate) const SHUT: u8 = 1;
/// Starts nothing any more.
pub(crate) const STOPPED: u8 = 2;
/// Everything is over, and the driver's thread ends.
pub(crate) const TERMINATED: u8 = 3;

/// A way to the core with a count of references of its own, in cache lines of its own: handles made
/// by different threads count on different ones.
#[repr(align(128))]
pub(crate) struct Door {
    pub(crate) core: Arc<Core>,
}

pub(crate) struct Core {
    pub(crate) time: Time,
    /// Jobs.
    pub(crate) lanes: Lanes<Entry>,
    /// Tasks of runtimes that sleep.
    pub(crate) sleeps: Lanes<Waker>,
    pub(crate) settings: Settings,
    pub(crate) ready: Ready,
    pub(crate) watches: Watches,
    state: AtomicU8,
    driver: Mutex<Drivers>,
    /// The driver's thread, once it runs.
    thread: Arc<OnceLock<Thread>>,
    /// Who waits on `quiet`.
    watchers: AtomicUsize,
    quiet_lock: Mutex<()>,
    /// Signalled when nothing is outstanding and when the state changes.
    quiet: Condvar,
}

/// The drivers of both kinds of lanes.
struct Drivers {
    jobs: Driver<Entry>,
    sleeps: Driver<Waker>,
}

impl Core {
    pub(crate) fn new(time: Time, settings: Settings) -> Self {
        let thread = Arc::new(OnceLock::<Thread>::new());
        let (lanes, jobs) = self::lanes(&settings, &thread);
        let (sleeps, sleepers) = self::lanes(&settings, &thread);
        let driver = Drivers { jobs, sleeps: sleepers };
        Self {
            time,
            watches: Watches::new(lanes.count()),
            lanes,
            sleeps,
            settings,
            ready: Ready::new(),
            state: AtomicU8::new(RUNNING),
            driver: Mutex::new(driver),
            thread,
            watchers: AtomicUsize::new(0),
            quiet_lock: Mutex::new(()),
            quiet: Condvar::new(),
        }
    }

    pub(crate) fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    /// Takes a job that is new.
    #[inline]
    pub(crate) fn insert(&self, tick: u64, entry: Entry) -> Result<Handle, Refused> {
        if self.ready.len() >= self.settings.max_pending {
            return Err(Refused::Full { max_pending: self.lanes.max_pending() });
        }
        self.insert_into(&self.lanes, tick, entry)
    }

    /// Takes a sleep.
    pub(crate) fn insert_sleep(&self, tick: u64, waker: Waker) -> Result<Handle, Refused> {
        self.insert_into(&self.sleeps, tick, waker)
    }

    #[inline]
    fn insert_into<T>(&self, lanes: &Lanes<T>, tick: u64, value: T) -> Result<Handle, Refused> {
        if self.state() != RUNNING {
            return Err(Refused::ShutDown);
        }
        let full = Refused::Full { max_pending: lanes.max_pending() };
        let handle = lanes.insert_at(tick, value).map_err(|_| full)?;
        // A shutdown that began meanwhile has gone through this lane either after the entry came, or
        // before: then its state is visible now, since both held the lane's lock.
        if self.state() != RUNNING && lanes.cancel(handle).is_some() {
            return Err(Refused::ShutDown);
        }
        Ok(handle)
    }

    /// Whether periodic jobs are armed again after a run.
    pub(crate) fn repeats(&self) -> bool {
        match self.state() {
            RUNNING => true,
            SHUT => self.settings.continue_periodic,
            _ => false,
        }
    }

    /// Sets the thread that drives; called on it.
    pub(crate) fn driven_by(&self, thread: Thread) {
        let _ = self.thread.set(thread);
    }

    pub(crate) fn wake_driver(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Whether this is the driver's thread.
    fn is_driver(&self) -> bool {
        self.thread.get().is_some_and(|thread| thread.id() == std::thread::current().id())
    }

    /// Takes out what is due, and wakes or hands out all of it. False when there may be more.
    pub(crate) fn turn(self: &Arc<Self>) -> bool {
        let mut wakes = Vec::new();
        let mut due = Vec::new();
        let mut driver = relock(&self.driver);
        let now = self.time.now();
        let slept = driver.sleeps.advance(now, TURN_MAX, |_, _, waker| wakes.push(waker));
        let done = driver.jobs.advance(now, TURN_MAX, |handle, tick, entry| {
            due.push(Task { handle, tick, entry });
        });
        if !due.is_empty() {
            self.ready.push(due);
        }
        drop(driver);
        wake_all(wakes);
        self.hand_out();
        slept.finished && done.finished
    }

    /// Until when the driver may sleep; see [`Driver::prepare_sleep`].
    pub(crate) fn prepare_sleep(&self) -> Option<u64> {
        let mut driver = relock(&self.driver);
        let (jobs, sleeps) = (driver.jobs.prepare_sleep(), driver.sleeps.prepare_sleep());
        earlier(jobs, sleeps)
    }

    /// Sees to it that what is ready is run.
    fn hand_out(self: &Arc<Self>) {
        match &self.settings.executor {
            Executor::Inline if self.is_driver() => {
                while let Some(task) = self.ready.pop() {
                    self.run(task);
                }
            }
            Executor::Inline => {
                if self.ready.len() > 0 {
                    self.wake_driver();
                }
            }
            Executor::Pool { workers, keep_alive } => {
                self.ready.staff(self, *workers, *keep_alive);
            }
            Executor::Custom(execute) => {
                while let Some(task) = self.ready.pop() {
                    let due = Due::outstanding(Arc::clone(self), task);
                    // A job that the executor dropped in its panic is cancelled by that.
                    let _ = catch_unwind(AssertUnwindSafe(|| execute(due)));
                }
            }
        }
    }

    /// Runs what was popped from the ready queue.
    pub(crate) fn run(&self, task: Task) {
        self.perform(task);
        self.ended();
    }

    /// Runs a job here and now, unless it was cancelled.
    pub(crate) fn perform(&self, task: Task) {
        let Task { handle, entry, .. } = task;
        let go = match entry.kind() {
            Kind::Watched => self.watches.begin(handle),
            Kind::Unwatched | Kind::Periodic => Go::Unwatched,
        };
        if go == Go::No {
            // A destructor is somebody's code.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(entry)));
            return;
        }
        let output = catch_unwind(AssertUnwindSafe(|| entry.run(self))).map_err(|payload| {
            self.report(&*payload, false);
            JoinError::Panicked(payload)
        });
        let _ = catch_unwind(AssertUnwindSafe(|| match go {
            Go::Watched => self.watches.end(handle, output),
            _ => drop(output),
        }));
    }

    /// A job will not run.
    pub(crate) fn abandon(&self, task: Task) {
        let Task { handle, entry, .. } = task;
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let watched = entry.kind() == Kind::Watched;
            entry.abandon();
            drop(entry);
            if watched {
                self.watches.end(handle, Err(JoinError::Cancelled));
            }
        }));
    }

    /// An outstanding entry's run has ended, or it will not run.
    pub(crate) fn ended(&self) {
        if self.ready.ended() {
            if self.state() != RUNNING {
                self.wake_driver();
            }
            self.tell_watchers();
        }
    }

    fn tell_watchers(&self) {
        if self.watchers.load(Ordering::SeqCst) > 0 {
            drop(relock(&self.quiet_lock));
            self.quiet.notify_all();
        }
    }

    /// Waits until `is_so`, which is looked at whenever something has ended; false when it was not so
    /// by then.
    fn watch(&self, deadline: Option<Instant>, is_so: impl Fn() -> bool) -> bool {
        self.watchers.fetch_add(1, Ordering::SeqCst);
        let mut held = relock(&self.quiet_lock);
        let mut so = is_so();
        while !so {
            held = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.quiet.wait(held).unwrap_or_else(|e| e.into_inner()),
                Some(Duration::ZERO) => break,
                Some(left) => {
                    self.quiet.wait_timeout(held, left).unwrap_or_else(|e| e.into_inner()).0
                }
            };
            so = is_so();
        }
        drop(held);
        self.watchers.fetch_sub(1, Ordering::SeqCst);
        so
    }

    /// Runs everything that is due by now to its end, also what that makes due.
    pub(crate) fn wait_idle(self: &Arc<Self>, deadline: Option<Instant>) -> bool {
        loop {
            let finished = self.turn();
            if finished && self.is_idle() {
                return true;
            }
            if !self.watch(deadline, || self.ready.outstanding() == 0) {
                return false;
            }
        }
    }

    /// The tick at which the next job or sleep is due, or one before it.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        earlier(self.lanes.next_deadline(), self.sleeps.next_deadline())
    }

    /// Whether nothing is due or runs. The driver is held, so nothing is on its way between.
    fn is_idle(&self) -> bool {
        let _driver = relock(&self.driver);
        self.ready.outstanding() == 0 && !self.is_due()
    }

    fn is_due(&self) -> bool {
        // It may be earlier than what fires; the next turn makes it later.
        let next = self.next_deadline();
        next.is_some_and(|tick| tick <= self.time.now())
    }

    pub(crate) fn wait_terminated(&self, deadline: Option<Instant>) -> bool {
        self.watch(deadline, || self.state() == TERMINATED)
    }

    /// Ends the intake. What is pending is kept or dropped as the settings have it.
    pub(crate) fn shut_down(&self) {
        let driver = relock(&self.driver);
        let shut = self.state.compare_exchange(RUNNING, SHUT, Ordering::AcqRel, Ordering::Acquire);
        if shut.is_err() {
            return;
        }
        let Settings { run_delayed, continue_periodic, .. } = self.settings;
        let leave = self.lanes.take_where(|entry| match entry.kind() {
            Kind::Watched | Kind::Unwatched => !run_delayed,
            Kind::Periodic => !continue_periodic,
        });
        drop(driver);
        for (handle, tick, entry) in leave {
            self.abandon(Task { handle, tick, entry });
        }
        self.end_sleeps();
        self.wake_driver();
    }

    /// Ends everything but what runs, and gives back what never ran.
    pub(crate) fn stop(self: &Arc<Self>) -> Vec<Due> {
        let driver = relock(&self.driver);
        let stopped = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, |s| {
            (s < STOPPED).then_some(STOPPED)
        });
        let mut waiting = Vec::new();
        if stopped.is_ok() {
            for task in self.ready.drain() {
                waiting.push(task);
                self.ready.ended();
            }
            self.lanes.drain(|handle, tick, entry| waiting.push(Task { handle, tick, entry }));
        }
        drop(driver);
        self.end_sleeps();
        let aside = |task| Due::aside(Arc::clone(self), task);
        let mut unrun: Vec<Due> = waiting.into_iter().map(aside).collect();
        unrun.sort_by_key(Due::tick);
        self.wake_driver();
        self.tell_watchers();
        unrun
    }

    /// Wakes all that sleep; they see that the timer has ended, and go on elsewhere.
    fn end_sleeps(&self) {
        let mut wakers = Vec::new();
        self.sleeps.drain(|_, _, waker| wakers.push(waker));
        wake_all(wakers);
    }

    /// Marks the timer as terminated if it is shut down and nothing is left.
    pub(crate) fn terminate_if_done(&self) -> bool {
        if self.state() == RUNNING {
            return false;
        }
        // Nothing is on its way from the lanes while the driver is held. A periodic job goes back into
        // the lanes before it stops being outstanding, so that is looked at first.
        let driver = relock(&self.driver);
        if self.ready.outstanding() > 0 || !self.lanes.is_empty() {
            return false;
        }
        self.state.store(TERMINATED, Ordering::Release);
        drop(driver);
        self.ready.dismiss();
        self.tell_watchers();
        true
    }

    /// Whether the driver said that it is going to sleep and was not woken since.
    pub(crate) fn driver_sleeps(&self) -> bool {
        self.lanes.driver_sleeps() && self.sleeps.driver_sleeps()
    }

    /// Tells of a panic.
    pub(crate) fn report(&self, payload: &(dyn Any + Send), periodic: bool) {
        if let Some(hook) = &self.settings.on_panic {
            let panic = JobPanic { payload, periodic };
            let _ = catch_unwind(AssertUnwindSafe(|| hook(&panic)));
        }
    }
}

/// Lanes whose waker wakes the driver's thread. A driver that has no thread yet looks at the lanes
/// before it sleeps.
fn lanes<T>(settings: &Settings, thread: &Arc<OnceLock<Thread>>) -> (Lanes<T>, Driver<T>) {
    let mut builder = Lanes::builder().max_pending(settings.max_pending);
    if let Some(lanes) = settings.lanes {
        builder = builder.lanes(lanes);
    }
    let sleeper = Arc::clone(thread);
    builder.build(move || {
        if let Some(thread) = sleeper.get() {
            thread.unpark();
        }
    })
}

/// The earlier of two ticks.
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Wakes tasks of runtimes. A waker is somebody's code.
fn wake_all(wakers: Vec<Waker>) {
    for waker in wakers {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}

//! A job that runs again and again.
//!
//! Between runs it waits in the lanes like any other, and it goes back there when a run has ended:
//! its runs never overlap, and a long one takes nothing from other jobs but its worker.
//!
//! # What always holds
//!
//! - The stage decides, under the job's lock: from `Pending` it goes to `Running` or is over.
//! - Nobody's code runs under the lock: closures, results and wakers are taken out first.
//! - Locks are taken in one order, a job's and then a lane's.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::core::{Core, Door, SHUT};
use super::entry::{Repeat, turn};
use super::error::{JoinError, Refused};
use super::plan::{Missed, Next, OnFailure, Outcome, Plan, Rule, Run, Verdict};
use crate::block::{block_on, block_until};
use crate::lanes::Handle;
use crate::sync::relock;
use crate::time::tick;

/// The longest time in nanoseconds for which a schedule in civil time does not look at the wall clock.
const LOOK: u64 = 60_000_000_000;

pub(crate) struct Periodic<F> {
    rule: Rule,
    missed: Missed,
    on_failure: OnFailure,
    times: u64,
    inner: Mutex<Inner<F>>,
}

struct Inner<F> {
    stage: Stage<F>,
    armed: Option<Handle>,
    /// The tick it waits for.
    tick: u64,
    next: Next,
    runs: u64,
    /// Cancelled during a run.
    cancelled: bool,
    waker: Option<Waker>,
}

enum Stage<F> {
    Pending(F),
    Running,
    Over(Result<u64, JoinError>),
    Taken,
}

impl<F, O> Periodic<F>
where
    F: FnMut(&Run) -> O + Send + 'static,
    O: Outcome + 'static,
{
    pub(crate) fn arm(core: &Core, plan: Plan, f: F) -> Result<Arc<Self>, Refused> {
        let next = plan.rule.first(plan.first, &core.time)?;
        let at = when(core, &plan.rule, next);
        let inner = Inner {
            stage: Stage::Pending(f),
            armed: None,
            tick: at,
            next,
            runs: 0,
            cancelled: false,
            waker: None,
        };
        let job = Arc::new(Self {
            rule: plan.rule,
            missed: plan.missed.unwrap_or(core.settings.missed),
            on_failure: plan.on_failure.unwrap_or(core.settings.on_failure),
            times: plan.times,
            inner: Mutex::new(inner),
        });
        let mut held = relock(&job.inner);
        held.armed = Some(core.insert(at, turn(job.clone()))?);
        drop(held);
        Ok(job)
    }

    /// It is over, if it was pending.
    fn give_up(&self, core: Option<&Core>, why: JoinError) -> bool {
        let mut held = relock(&self.inner);
        match held.stage {
            Stage::Pending(_) => {}
            Stage::Running if core.is_some() => {
                return !std::mem::replace(&mut held.cancelled, true);
            }
            _ => return false,
        }
        let entry = match (core, held.armed.take()) {
            (Some(core), Some(handle)) => core.lanes.cancel(handle),
            _ => None,
        };
        let stage = std::mem::replace(&mut held.stage, Stage::Over(Err(why)));
        let waker = held.waker.take();
        drop(held);
        drop((entry, stage));
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// It was taken out of the lanes and is to wait on, unless it was cancelled.
    fn arm_again(self: &Arc<Self>, core: &Core, at: u64) {
        let mut held = relock(&self.inner);
        if !matches!(held.stage, Stage::Pending(_)) {
            return;
        }
        match core.lanes.insert_anyway(at, turn(self.clone())) {
            Ok(handle) => {
                held.armed = Some(handle);
                held.tick = at;
            }
            Err(_) => {
                drop(held);
                self.abandon(JoinError::Cancelled);
            }
        }
    }

    /// What a run's end means: the job's end, or the next run.
    fn after(&self, core: &Core, held: &Inner<F>, verdict: &Ended) -> Result<Next, JobEnd> {
        match verdict {
            _ if held.cancelled => return Err(JobEnd::Cancelled),
            Ended::Break => return Err(JobEnd::Done),
            Ended::Panicked if self.on_failure == OnFailure::Stop => return Err(JobEnd::Panicked),
            Ended::Failed if self.on_failure == OnFailure::Stop => return Err(JobEnd::Failed),
            _ if held.runs >= self.times => return Err(JobEnd::Done),
            _ if !core.repeats() => return Err(JobEnd::Cancelled),
            _ => {}
        }
        self.rule.next(held.next, self.missed, &core.time).ok_or(JobEnd::Done)
    }
}

/// How a run ended.
enum Ended {
    Well,
    Break,
    Failed,
    Panicked,
}

/// Why there is no next run.
enum JobEnd {
    Done,
    Cancelled,
    Failed,
    Panicked,
}

/// The tick at which to run, or to look at the wall clock.
fn when(core: &Core, rule: &Rule, next: Next) -> u64 {
    if rule.is_by_wall() {
        let look = core.time.nanos_after(Duration::from_nanos(LOOK));
        return tick(next.planned.min(look));
    }
    tick(next.planned)
}

impl<F, O> Repeat for Periodic<F>
where
    F: FnMut(&Run) -> O + Send + 'static,
    O: Outcome + 'static,
{
    fn run(self: Arc<Self>, core: &Core) {
        if core.state() == SHUT && !core.repeats() {
            self.give_up(None, JoinError::Cancelled);
            return;
        }
        let mut held = relock(&self.inner);
        let early = self.rule.is_by_wall() && core.time.wall() < held.next.wall;
        if early && matches!(held.stage, Stage::Pending(_)) {
            // The wall clock is not there yet: it was set back, or this was only a look.
            let wall = held.next.wall;
            held.next.planned = core.time.nanos_at_wall(wall);
            let at = when(core, &self.rule, held.next);
            drop(held);
            return self.arm_again(core, at);
        }
        let mut f = match std::mem::replace(&mut held.stage, Stage::Running) {
            Stage::Pending(f) => f,
            over => {
                held.stage = over;
                return;
            }
        };
        held.armed = None;
        held.runs += 1;
        let run = Run {
            number: held.runs,
            planned: core.time.instant(held.next.planned),
            skipped: held.next.skipped,
        };
        drop(held);

        let result = catch_unwind(AssertUnwindSafe(|| f(&run).verdict()));
        let (ended, payload) = match result {
            Ok(Verdict::Continue) => (Ended::Well, None),
            Ok(Verdict::Break) => (Ended::Break, None),
            Ok(Verdict::Failed) => (Ended::Failed, None),
            Err(payload) => {
                core.report(&*payload, true);
                (Ended::Panicked, Some(payload))
            }
        };

        let mut held = relock(&self.inner);
        let end = match self.after(core, &held, &ended) {
            Ok(next) => {
                let at = when(core, &self.rule, next);
                match core.lanes.insert_anyway(at, turn(self.clone())) {
                    Ok(handle) => {
                        held.next = next;
                        held.tick = at;
                        held.armed = Some(handle);
                        held.stage = Stage::Pending(f);
                        return drop(held);
                    }
                    Err(_) => JobEnd::Cancelled,
                }
            }
            Err(end) => end,
        };
        held.stage = Stage::Over(match (end, payload) {
            (JobEnd::Done, _) => Ok(held.runs),
            (JobEnd::Panicked, Some(payload)) => Err(JoinError::Panicked(payload)),
            (JobEnd::Failed, _) => Err(JoinError::Failed),
            _ => Err(JoinError::Cancelled),
        });
        let waker = held.waker.take();
        drop(held);
        drop(f);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn abandon(&self, why: JoinError) {
        self.give_up(None, why);
    }
}

impl<F, O> Controls for Periodic<F>
where
    F: FnMut(&Run) -> O + Send + 'static,
    O: Outcome + 'static,
{
    fn cancel(&self, core: &Core) -> bool {
        self.give_up(Some(core), JoinError::Cancelled)
    }

    fn reset(&self, core: &Core, nanos: u64) -> bool {
        let mut held = relock(&self.inner);
        let at = tick(nanos);
        let done = !self.rule.is_by_wall()
            && matches!(held.stage, Stage::Pending(_))
            && held.armed.is_some_and(|handle| core.lanes.reset(handle, at));
        if done {
            held.tick = at;
            held.next = Next { planned: nanos, wall: 0, skipped: 0 };
        }
        done
    }

    fn tick(&self) -> Option<u64> {
        let held = relock(&self.inner);
        matches!(held.stage, Stage::Pending(_)).then_some(held.tick)
    }

    fn is_over(&self) -> bool {
        matches!(relock(&self.inner).stage, Stage::Over(_) | Stage::Taken)
    }

    fn poll(&self, waker: &Waker) -> Poll<Result<u64, JoinError>> {
        let fresh = waker.clone();
        let mut held = relock(&self.inner);
        match std::mem::replace(&mut held.stage, Stage::Taken) {
            Stage::Over(result) => Poll::Ready(result),
            Stage::Taken => Poll::Ready(Err(JoinError::Taken)),
            waiting => {
                held.stage = waiting;
                let old = held.waker.replace(fresh);
                drop(held);
                drop(old);
                Poll::Pending
            }
        }
    }
}

/// What a handle may ask of its job.
trait Controls: Send + Sync {
    fn cancel(&self, core: &Core) -> bool;
    /// Another deadline, in nanoseconds of the core's time.
    fn reset(&self, core: &Core, nanos: u64) -> bool;
    /// The tick it waits for; none while it runs and when it is over.
    fn tick(&self) -> Option<u64>;
    fn is_over(&self) -> bool;
    /// Takes the result, or has the waker woken when there is one.
    fn poll(&self, waker: &Waker) -> Poll<Result<u64, JoinError>>;
}

/// A periodic job: to wait for its end, to cancel it, or to move its next run.
///
/// Dropping the handle leaves the job as it is.
#[must_use = "to let the job run by itself, drop the handle with `let _ =` or `drop`"]
pub struct PeriodicHandle {
    job: Arc<dyn Controls>,
    door: Arc<Door>,
}

impl PeriodicHandle {
    pub(crate) fn arm<F, O>(door: Arc<Door>, plan: Plan, f: F) -> Result<Self, Refused>
    where
        F: FnMut(&Run) -> O + Send + 'static,
        O: Outcome + 'static,
    {
        Ok(Self { job: Periodic::arm(&door.core, plan, f)?, door })
    }

    /// Ends the job: true exactly when it was not over and this call is why it does not run again. One
    /// that waits has left the wheel then, and its closure is dropped; one that runs goes to the end of
    /// this run. O(1).
    pub fn cancel(&self) -> bool {
        self.job.cancel(&self.door.core)
    }

    /// Makes the next run due in `delay` from now instead, and the later ones with it. True when it was
    /// waiting for it; false when it runs or is over, and for a job at civil times. O(1).
    pub fn reset(&self, delay: Duration) -> bool {
        self.job.reset(&self.door.core, self.door.core.time.nanos_after(delay))
    }

    /// When the next run is due, rounded up to a microsecond; `None` while it runs and when it is over.
    /// Of a job at civil times, when it looks at the wall clock next.
    pub fn deadline(&self) -> Option<Instant> {
        self.job.tick().map(|tick| self.door.core.time.instant_of(tick))
    }

    /// Whether it is over.
    pub fn is_finished(&self) -> bool {
        self.job.is_over()
    }

    /// Waits, blocking the thread, until the job is over, and gives the number of its runs when it ended
    /// by itself: by its plan's number, its schedule's end, or a run that said so.
    ///
    /// # Errors
    ///
    /// [`JoinError`] when it was cancelled or was stopped by a failure.
    pub fn join(self) -> Result<u64, JoinError> {
        block_on(self)
    }

    /// Waits for at most `at_most`; `None` when it is not over by then.
    pub fn join_timeout(&mut self, at_most: Duration) -> Option<Result<u64, JoinError>> {
        block_until(self, Instant::now().checked_add(at_most))
    }
}

impl Future for PeriodicHandle {
    type Output = Result<u64, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.job.poll(cx.waker())
    }
}

impl fmt::Debug for PeriodicHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeriodicHandle")
            .field("deadline", &self.deadline())
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

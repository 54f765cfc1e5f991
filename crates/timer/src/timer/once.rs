//! A job that runs once.
//!
//! # What always holds
//!
//! - The stage decides, under its lock: from `Pending` a job goes to `Running` or is over, once. So
//!   [`cancel`](super::JobHandle::cancel) is true exactly when the closure never runs.
//! - Nobody's code runs under the lock: closures, results and wakers are taken out first.
//! - Locks are taken in one order, a job's and then a lane's.
//! - A job and its handle are one allocation; cancelling drops the closure at once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use super::core::Core;
use super::error::{JoinError, Refused};
use super::fire::{Fire, Kind};
use super::handle::Job;
use crate::lanes::Handle;
use crate::sync::relock;

pub(crate) struct Once<F, R> {
    inner: Mutex<Inner<F, R>>,
}

struct Inner<F, R> {
    stage: Stage<F, R>,
    /// Where it is, until it is due.
    armed: Option<Handle>,
    tick: u64,
    waker: Option<Waker>,
}

enum Stage<F, R> {
    Pending(F),
    Running,
    Over(Result<R, JoinError>),
    Taken,
}

impl<F, R> Once<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    pub(crate) fn arm(core: &Core, tick: u64, f: F) -> Result<Arc<Self>, Refused> {
        let inner = Inner { stage: Stage::Pending(f), armed: None, tick, waker: None };
        let job = Arc::new(Self { inner: Mutex::new(inner) });
        let mut held = relock(&job.inner);
        held.armed = Some(core.insert(tick, job.clone())?);
        drop(held);
        Ok(job)
    }

    /// Ends a pending job; its closure is dropped when the lock has been let go of.
    fn give_up(&self, core: Option<&Core>, why: JoinError) -> bool {
        let mut held = relock(&self.inner);
        if !matches!(held.stage, Stage::Pending(_)) {
            return false;
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
}

impl<F, R> Fire for Once<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    fn kind(&self) -> Kind {
        Kind::Once
    }

    fn run(self: Arc<Self>, core: &Core) {
        let mut held = relock(&self.inner);
        let f = match std::mem::replace(&mut held.stage, Stage::Running) {
            Stage::Pending(f) => f,
            over => {
                held.stage = over;
                return;
            }
        };
        held.armed = None;
        drop(held);
        let result = catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
            core.report(&*payload, false);
            JoinError::Panicked(payload)
        });
        let mut held = relock(&self.inner);
        held.stage = Stage::Over(result);
        let waker = held.waker.take();
        drop(held);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn abandon(&self, why: JoinError) {
        self.give_up(None, why);
    }

    fn arm_again(self: Arc<Self>, core: &Core, tick: u64) {
        let mut held = relock(&self.inner);
        if !matches!(held.stage, Stage::Pending(_)) {
            return;
        }
        match core.lanes.insert_anyway(tick, self.clone()) {
            Ok(handle) => held.armed = Some(handle),
            Err(_) => {
                drop(held);
                self.abandon(JoinError::Cancelled);
            }
        }
    }
}

impl<F, R> Job<R> for Once<F, R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    fn cancel(&self, core: &Core) -> bool {
        self.give_up(Some(core), JoinError::Cancelled)
    }

    fn reset(&self, core: &Core, nanos: u64) -> bool {
        let tick = crate::time::tick(nanos);
        let mut held = relock(&self.inner);
        let done = matches!(held.stage, Stage::Pending(_))
            && held.armed.is_some_and(|handle| core.lanes.reset(handle, tick));
        if done {
            held.tick = tick;
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

    fn poll(&self, waker: &Waker) -> Poll<Result<R, JoinError>> {
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

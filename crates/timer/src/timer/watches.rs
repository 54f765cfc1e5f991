//! What becomes of jobs whose handles are kept, from when a job begins until its handle has been told.
//!
//! A row stands for one job that has begun and whose handle is alive, or for one whose result somebody
//! waits for. All others, pending or due or watched by nobody, have none and cost nothing here. Who
//! cancels a job that has left the lanes and has not begun, or drops its handle, leaves a row as a mark
//! for whoever is to begin it.
//!
//! # What always holds
//!
//! - The row's stage decides, under the lock of its part: a job that is due begins or is cancelled, once.
//! - A row goes when the handle has its answer, or when the job finds that the handle has gone.
//! - Nobody's code runs under a lock: wakers and results are taken out first.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::sync::Mutex;
use std::task::{Poll, Waker};

use super::error::JoinError;
use crate::lanes::Handle;
use crate::sync::relock;

pub(crate) type Output = Result<Box<dyn Any + Send>, JoinError>;

/// A part for each lane.
pub(crate) struct Watches {
    parts: Box<[Mutex<HashMap<Handle, Row>>]>,
}

struct Row {
    stage: Stage,
    waker: Option<Waker>,
}

enum Stage {
    /// It has not begun.
    Waiting,
    Running,
    /// A mark: it was cancelled when it had left the lanes. Its handle knows.
    Cancelled,
    /// A mark: its handle has gone.
    Detached,
    Over(Output),
}

/// How to go on with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    /// And write down its end.
    Watched,
    /// Nobody wants to know.
    Unwatched,
    /// It was cancelled.
    No,
}

const WAITING: Row = Row { stage: Stage::Waiting, waker: None };

/// Removes a row; of a burst of them no more than a few pages stay.
fn remove(part: &mut HashMap<Handle, Row>, handle: Handle) -> Option<Row> {
    let row = part.remove(&handle);
    if part.is_empty() && part.capacity() > 4_096 {
        part.shrink_to(1_024);
    }
    row
}

impl Watches {
    pub(crate) fn new(lanes: usize) -> Self {
        Self { parts: (0..lanes).map(|_| Mutex::default()).collect() }
    }

    fn part(&self, handle: Handle) -> std::sync::MutexGuard<'_, HashMap<Handle, Row>> {
        relock(&self.parts[handle.lane()])
    }

    /// A watched job is to begin.
    pub(crate) fn begin(&self, handle: Handle) -> Go {
        let mut part = self.part(handle);
        match part.entry(handle) {
            Place::Vacant(place) => {
                place.insert(Row { stage: Stage::Running, waker: None });
                Go::Watched
            }
            Place::Occupied(mut place) => match place.get().stage {
                Stage::Cancelled => {
                    remove(&mut part, handle);
                    Go::No
                }
                Stage::Detached => {
                    remove(&mut part, handle);
                    Go::Unwatched
                }
                _ => {
                    place.get_mut().stage = Stage::Running;
                    Go::Watched
                }
            },
        }
    }

    /// A watched job is over, or will not run.
    pub(crate) fn end(&self, handle: Handle, output: Output) {
        let mut part = self.part(handle);
        let row = part.entry(handle).or_insert(WAITING);
        if matches!(row.stage, Stage::Cancelled | Stage::Detached) {
            remove(&mut part, handle);
            drop(part);
            drop(output);
            return;
        }
        row.stage = Stage::Over(output);
        let waker = row.waker.take();
        drop(part);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Cancels a job that is not in the lanes any more; true when it had not begun. Then its handle is
    /// to write that down, and to [`wake`](Self::wake) whoever waits.
    pub(crate) fn cancel(&self, handle: Handle) -> bool {
        let mut part = self.part(handle);
        let row = part.entry(handle).or_insert(WAITING);
        let waits = matches!(row.stage, Stage::Waiting);
        if waits {
            row.stage = Stage::Cancelled;
        }
        waits
    }

    /// Wakes whoever waits for a job of which the handle says by now that it is cancelled.
    pub(crate) fn wake(&self, handle: Handle) {
        let mut part = self.part(handle);
        let waker = match part.get_mut(&handle) {
            Some(row) if matches!(row.stage, Stage::Waiting) => {
                remove(&mut part, handle).and_then(|row| row.waker)
            }
            Some(row) => row.waker.take(),
            None => None,
        };
        drop(part);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The handle of a job that is not in the lanes any more has gone.
    pub(crate) fn detach(&self, handle: Handle) {
        let mut part = self.part(handle);
        let row = part.entry(handle).or_insert(WAITING);
        let gone = match row.stage {
            Stage::Over(_) => remove(&mut part, handle),
            Stage::Cancelled => None,
            _ => Some(std::mem::replace(row, Row { stage: Stage::Detached, waker: None })),
        };
        drop(part);
        drop(gone);
    }

    /// The handle of a job that is in the lanes has gone.
    pub(crate) fn forget(&self, handle: Handle) {
        let row = remove(&mut self.part(handle), handle);
        drop(row);
    }

    /// Whether a job's end is written here.
    pub(crate) fn is_over(&self, handle: Handle) -> bool {
        self.part(handle).get(&handle).is_some_and(|row| matches!(row.stage, Stage::Over(_)))
    }

    /// Takes a job's end, or has the waker woken when it is there.
    pub(crate) fn poll(&self, handle: Handle, waker: &Waker) -> Poll<Output> {
        let fresh = waker.clone();
        let mut part = self.part(handle);
        let row = part.entry(handle).or_insert(WAITING);
        match row.stage {
            Stage::Over(_) => match remove(&mut part, handle).map(|row| row.stage) {
                Some(Stage::Over(output)) => Poll::Ready(output),
                _ => Poll::Pending,
            },
            Stage::Cancelled => Poll::Ready(Err(JoinError::Cancelled)),
            _ => {
                let old = row.waker.replace(fresh);
                drop(part);
                drop(old);
                Poll::Pending
            }
        }
    }

    /// How many rows there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| relock(part).len()).sum()
    }
}

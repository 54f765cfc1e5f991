//! A job in somebody's hands: with an executor of the caller's, or back from a shutdown.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use super::core::Core;
use super::entry::Task;

/// A job whose run is up to whoever holds this: what an [`executor`](super::Builder::executor) is
/// handed, and what [`shutdown_now`](super::Timer::shutdown_now) gives back.
///
/// [`run`](Self::run) runs it on the present thread, and its handle gets the result. Dropping it
/// cancels the job.
pub struct Due {
    tick: u64,
    task: Option<Task>,
    core: Arc<Core>,
    /// Whether the core counts it as outstanding.
    counts: bool,
}

impl Due {
    pub(crate) fn outstanding(core: Arc<Core>, task: Task) -> Self {
        Self { tick: task.tick, task: Some(task), core, counts: true }
    }

    pub(crate) fn aside(core: Arc<Core>, task: Task) -> Self {
        Self { tick: task.tick, task: Some(task), core, counts: false }
    }

    pub(crate) fn tick(&self) -> u64 {
        self.tick
    }

    /// When it is or was due.
    pub fn deadline(&self) -> Instant {
        self.core.time.instant_of(self.tick)
    }

    /// Runs it here and now. Nothing happens when it was cancelled meanwhile. A panic of its closure is
    /// caught and reported like any other.
    pub fn run(mut self) {
        if let Some(task) = self.task.take() {
            self.core.perform(task);
        }
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            self.core.abandon(task);
        }
        if self.counts {
            self.core.ended();
        }
    }
}

impl fmt::Debug for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Due").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}

//! What is due and waits for a worker, and the workers.
//!
//! Workers are threads that are started when something is ready and nobody is idle, up to a bound,
//! and that end when they were idle for long. Due entries are run in the order in which they were
//! pushed; with several workers they end in any.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::core::{Core, TERMINATED};
use super::entry::Task;
use crate::sync::relock;

pub(crate) struct Ready {
    queue: Mutex<Queue>,
    /// Idle workers wait here.
    work: Condvar,
    /// Entries in the queue.
    len: AtomicUsize,
    /// Entries that have left the lanes and whose run has not ended.
    outstanding: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    due: VecDeque<Task>,
    idle: usize,
    workers: usize,
}

impl Ready {
    pub(crate) fn new() -> Self {
        Self {
            queue: Mutex::default(),
            work: Condvar::new(),
            len: AtomicUsize::new(0),
            outstanding: AtomicUsize::new(0),
        }
    }

    pub(crate) fn push(&self, due: Vec<Task>) {
        self.outstanding.fetch_add(due.len(), Ordering::SeqCst);
        let mut queue = relock(&self.queue);
        queue.due.extend(due);
        self.len.store(queue.due.len(), Ordering::Relaxed);
    }

    pub(crate) fn pop(&self) -> Option<Task> {
        if self.len() == 0 {
            return None;
        }
        self.pop_from(&mut relock(&self.queue))
    }

    fn pop_from(&self, queue: &mut Queue) -> Option<Task> {
        let first = queue.due.pop_front()?;
        self.len.store(queue.due.len(), Ordering::Relaxed);
        // A burst leaves no more behind than a few pages.
        if queue.due.is_empty() && queue.due.capacity() > 4_096 {
            queue.due.shrink_to(1_024);
        }
        Some(first)
    }

    /// Takes everything out. Each is to be told as [`ended`](Self::ended).
    pub(crate) fn drain(&self) -> VecDeque<Task> {
        let mut queue = relock(&self.queue);
        self.len.store(0, Ordering::Relaxed);
        std::mem::take(&mut queue.due)
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::SeqCst)
    }

    /// One that was outstanding is not any more; true when it was the last.
    pub(crate) fn ended(&self) -> bool {
        self.outstanding.fetch_sub(1, Ordering::SeqCst) == 1
    }

    /// Wakes idle workers for what is ready, or starts more.
    pub(crate) fn staff(&self, core: &Arc<Core>, workers_max: usize, keep_alive: Duration) {
        if self.len() == 0 {
            return;
        }
        let mut queue = relock(&self.queue);
        let ready = queue.due.len();
        let more =
            ready.saturating_sub(queue.idle).min(workers_max - queue.workers.min(workers_max));
        let wake = ready.min(queue.idle);
        queue.workers += more;
        drop(queue);
        for _ in 0..wake {
            self.work.notify_one();
        }
        for started in 0..more {
            let its_core = Arc::clone(core);
            let name = core.settings.name.clone();
            let spawned = thread::Builder::new()
                .name(name)
                .spawn(move || its_core.ready.work(&its_core, keep_alive));
            if spawned.is_err() {
                // No more threads are to be had. Those there are go on; without any, the work is done
                // here.
                let mut queue = relock(&self.queue);
                queue.workers -= more - started;
                let alone = queue.workers == 0;
                drop(queue);
                while alone && let Some(task) = self.pop() {
                    core.run(task);
                }
                return;
            }
        }
    }

    /// What a worker's thread does.
    fn work(&self, core: &Core, keep_alive: Duration) {
        let mut queue = relock(&self.queue);
        loop {
            if let Some(task) = self.pop_from(&mut queue) {
                drop(queue);
                core.run(task);
                queue = relock(&self.queue);
            } else if core.state() == TERMINATED {
                break;
            } else {
                queue.idle += 1;
                let (held, waited) = self
                    .work
                    .wait_timeout(queue, keep_alive)
                    .unwrap_or_else(PoisonError::into_inner);
                queue = held;
                queue.idle -= 1;
                if waited.timed_out() && queue.due.is_empty() {
                    break;
                }
            }
        }
        queue.workers -= 1;
    }

    /// The state has changed: idle workers look at it.
    pub(crate) fn dismiss(&self) {
        drop(relock(&self.queue));
        self.work.notify_all();
    }

    /// Workers there are, for tests and statistics.
    pub(crate) fn workers(&self) -> usize {
        relock(&self.queue).workers
    }
}

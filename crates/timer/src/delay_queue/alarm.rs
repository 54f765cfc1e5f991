//! Who looks at the time when only tasks wait.
//!
//! A thread that waits sleeps until the first deadline. A task cannot sleep by itself, so the process
//! has one thread that does it for all queues whose leader is a task. It is started by the first task
//! that waits, and it sleeps in the lanes of this crate: with one alarm a queue, as few wake-ups as
//! there are first deadlines, and none when nothing is set.
//!
//! What always holds: an alarm is set under the lock of its queue, and rings without any lock. A queue
//! that is dropped takes its alarm with it. A queue under a manual clock has none.

use crate::lanes::Handle;
use std::sync::Weak;

/// A queue that wants to be told of a time.
pub(super) trait Ring: Send + Sync {
    /// The alarm with this handle has come.
    #[cfg_attr(loom, allow(dead_code))] // there are no alarms under loom
    fn ring(&self, handle: Handle);
}

/// The one alarm of a queue.
#[derive(Default)]
pub(super) struct Alarm {
    set: Option<(Handle, u64)>,
    /// Whom to ring; known as soon as a task waits.
    pub(super) queue: Option<Weak<dyn Ring>>,
}

impl Alarm {
    /// Has the queue rung at this tick, and not at the one that was set before.
    pub(super) fn set(&mut self, tick: u64) {
        let Some(queue) = &self.queue else { return };
        match self.set {
            Some((_, set)) if set == tick => {}
            Some((handle, _)) if thread::reset(handle, tick) => self.set = Some((handle, tick)),
            _ => self.set = Some((thread::insert(tick, queue.clone()), tick)),
        }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        if let Some((handle, _)) = self.set.take() {
            thread::cancel(handle);
        }
    }

    /// An alarm has rung. True when it is the one that is set, and then none is set any more; one that
    /// was replaced or cleared meanwhile may still ring.
    #[cfg_attr(loom, allow(dead_code))] // there are no alarms under loom
    pub(super) fn rang(&mut self, handle: Handle) -> bool {
        let expected = self.set.is_some_and(|(set, _)| set == handle);
        if expected {
            self.set = None;
        }
        expected
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Starts the thread if need be. To be called, without a lock, before a task waits.
///
/// # Panics
///
/// When the operating system refuses a thread.
pub(super) fn start() {
    thread::start();
}

#[cfg(not(loom))]
mod thread {
    //! The thread, and the lanes in which it sleeps.

    use super::Ring;
    use crate::delay_queue::time::{Time, until};
    use crate::lanes::{Driver, Handle, Lanes};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::{Arc, OnceLock, Weak};
    use std::thread::{self, Thread};

    type Alarms = Lanes<Weak<dyn Ring>>;

    fn alarms() -> &'static Alarms {
        static ALARMS: OnceLock<Alarms> = OnceLock::new();
        ALARMS.get_or_init(|| {
            let sleeper: Arc<OnceLock<Thread>> = Arc::default();
            let known = sleeper.clone();
            let lanes = Lanes::builder().starting_at(Time::system().now());
            let (alarms, driver) = lanes.build(move || {
                if let Some(thread) = sleeper.get() {
                    thread.unpark();
                }
            });
            let started = thread::Builder::new().name("tourbillon-alarm".into()).spawn(move || {
                known.get_or_init(thread::current);
                run(driver);
            });
            if let Err(error) = started {
                panic!("tasks that wait for a delay queue need a thread of their own: {error}");
            }
            alarms
        })
    }

    /// Never ends: the process may wait for a queue at any time.
    fn run(mut driver: Driver<Weak<dyn Ring>>) {
        let time = Time::system();
        loop {
            driver.advance(time.now(), usize::MAX, |handle, _, queue| {
                // When it is the last to hold the queue, what is in the queue is dropped here, which
                // is code of others.
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    if let Some(queue) = queue.upgrade() {
                        queue.ring(handle);
                    }
                }));
            });
            match driver.prepare_sleep() {
                None => thread::park(),
                Some(tick) => {
                    let now = time.now();
                    if tick > now {
                        thread::park_timeout(until(tick, now));
                    }
                }
            }
        }
    }

    pub(super) fn start() {
        alarms();
    }

    pub(super) fn insert(tick: u64, queue: Weak<dyn Ring>) -> Handle {
        alarms().insert_at(tick, queue).expect("a process has fewer than 2^32 queues")
    }

    pub(super) fn reset(handle: Handle, tick: u64) -> bool {
        alarms().reset(handle, tick)
    }

    pub(super) fn cancel(handle: Handle) {
        alarms().cancel(handle);
    }
}

#[cfg(loom)]
mod thread {
    //! Loom explores a manual clock, under which nothing sleeps.

    use super::Ring;
    use crate::lanes::Handle;
    use std::sync::Weak;

    pub(super) fn start() {}

    pub(super) fn insert(_: u64, _: Weak<dyn Ring>) -> Handle {
        panic!("there are no alarms under loom: give the queue a manual clock")
    }

    pub(super) fn reset(_: Handle, _: u64) -> bool {
        false
    }

    pub(super) fn cancel(_: Handle) {}
}

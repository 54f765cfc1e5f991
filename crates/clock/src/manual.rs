//! A clock that only moves when told, so tests own time.
//!
//! Clones share one time. The monotonic reading never decreases; the wall moves with it and can be
//! stepped by itself. A thread under test that must wait for a time calls
//! [`ManualClock::wait_until`]; the test learns with [`ManualClock::await_waiters`] that it has
//! gone to wait, and only then moves the clock. What is deliberately absent: any reading of real
//! time except to bound [`ManualClock::await_waiters`], so a broken test ends.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Mono, micros_up, signed};

/// A settable clock. Cheap to clone; clones share one time.
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Signalled whenever time moves and whenever the number of waiters grows.
    changed: Condvar,
}

type Listener = Arc<dyn Fn() + Send + Sync>;

struct State {
    mono: Mono,
    wall_us: i64,
    waiters: usize,
    listeners: Vec<Listener>,
}

impl ManualClock {
    /// A clock whose wall is `wall_us` microseconds since the Unix epoch and whose monotonic
    /// reading equals it, as with [`crate::SystemClock`] (zero when `wall_us` is negative).
    pub fn new(wall_us: i64) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    mono: Mono::from_micros(wall_us.try_into().unwrap_or(0)),
                    wall_us,
                    waiters: 0,
                    listeners: Vec::new(),
                }),
                changed: Condvar::new(),
            }),
        }
    }

    /// Moves both readings forward by `by`, rounded up to a microsecond.
    pub fn advance(&self, by: Duration) {
        self.change(|s| {
            s.mono = s.mono.saturating_add(by);
            s.wall_us = s.wall_us.saturating_add(signed(micros_up(by)));
        });
    }

    /// Moves both readings forward until the monotonic one is `to`; nothing if it is not ahead.
    pub fn advance_to(&self, to: Mono) {
        self.change(|s| {
            let by = to.saturating_since(s.mono);
            s.mono = s.mono.max(to);
            s.wall_us = s.wall_us.saturating_add(signed(micros_up(by)));
        });
    }

    /// Moves the monotonic reading alone: the wall stands still or was stepped back by `by`.
    pub fn advance_mono(&self, by: Duration) {
        self.change(|s| s.mono = s.mono.saturating_add(by));
    }

    /// Steps the wall alone by `by_us` microseconds, either way. A forward step is also what a
    /// suspended machine looks like to a clock that does not count suspend.
    pub fn step_wall(&self, by_us: i64) {
        self.change(|s| s.wall_us = s.wall_us.saturating_add(by_us));
    }

    /// Sets the wall alone to `wall_us` microseconds since the Unix epoch.
    pub fn set_wall(&self, wall_us: i64) {
        self.change(|s| s.wall_us = wall_us);
    }

    /// Blocks the calling thread until the monotonic reading is at least `deadline`; returns the
    /// reading.
    pub fn wait_until(&self, deadline: Mono) -> Mono {
        let mut state = self.lock();
        if state.mono < deadline {
            state.waiters += 1;
            self.shared.changed.notify_all();
            while state.mono < deadline {
                state = self.wait(state);
            }
            state.waiters -= 1;
        }
        state.mono
    }

    /// Blocks until at least `n` threads are in [`Self::wait_until`]; `false` if that takes longer
    /// than `at_most` of real time.
    pub fn await_waiters(&self, n: usize, at_most: Duration) -> bool {
        let state = self.lock();
        let (state, _) = self
            .shared
            .changed
            .wait_timeout_while(state, at_most, |s| s.waiters < n)
            .unwrap_or_else(PoisonError::into_inner);
        state.waiters >= n
    }

    /// Calls `listener` after every change of either reading, on the thread that made it: the way
    /// to wake something that waits by other means than [`Self::wait_until`]. It may read the
    /// clock. Listeners stay for the life of the clock.
    pub fn on_change(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.lock().listeners.push(Arc::new(listener));
    }

    fn change(&self, f: impl FnOnce(&mut State)) {
        let listeners = {
            let mut state = self.lock();
            f(&mut state);
            state.listeners.clone()
        };
        self.shared.changed.notify_all();
        for listener in listeners {
            listener();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is plain numbers, whole after every statement, so a poisoned lock is usable.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn mono(&self) -> Mono {
        self.lock().mono
    }

    fn wall(&self) -> i64 {
        self.lock().wall_us
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("ManualClock")
            .field("mono", &state.mono)
            .field("wall_us", &state.wall_us)
            .field("waiters", &state.waiters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::thread;

    #[test]
    fn wall_and_mono_move_apart_only_when_told() {
        let clock = ManualClock::new(1_000);
        clock.advance(Duration::from_micros(5));
        assert_eq!((clock.mono().as_micros(), clock.wall()), (1_005, 1_005));
        clock.step_wall(-2_000);
        assert_eq!((clock.mono().as_micros(), clock.wall()), (1_005, -995));
        clock.advance_mono(Duration::from_micros(10));
        assert_eq!((clock.mono().as_micros(), clock.wall()), (1_015, -995));
        clock.advance_to(Mono::from_micros(1_000));
        assert_eq!(clock.mono().as_micros(), 1_015);
        clock.advance_to(Mono::from_micros(1_020));
        assert_eq!((clock.mono().as_micros(), clock.wall()), (1_020, -990));
        clock.set_wall(i64::MAX);
        clock.advance(Duration::MAX);
        assert_eq!((clock.mono().as_micros(), clock.wall()), (u64::MAX, i64::MAX));
    }

    #[test]
    fn a_waiter_wakes_at_its_deadline_and_not_before() {
        let clock = ManualClock::new(0);
        let deadline = Mono::from_micros(100);
        let waiter = {
            let clock = clock.clone();
            thread::spawn(move || clock.wait_until(deadline))
        };
        assert!(clock.await_waiters(1, Duration::from_secs(30)));
        clock.advance(Duration::from_micros(99));
        clock.step_wall(1_000_000);
        assert!(clock.await_waiters(1, Duration::from_secs(30)));
        clock.advance(Duration::from_micros(1));
        assert_eq!(waiter.join().unwrap(), deadline);
        assert!(!clock.await_waiters(1, Duration::from_millis(1)));
        assert_eq!(clock.wait_until(Mono::from_micros(7)), deadline);
    }

    #[test]
    fn listeners_see_the_new_time() {
        let clock = ManualClock::new(0);
        let seen = Arc::new(AtomicI64::new(-1));
        clock.on_change({
            let (clock, seen) = (clock.clone(), Arc::clone(&seen));
            move || seen.store(clock.wall(), Ordering::SeqCst)
        });
        clock.advance(Duration::from_micros(3));
        assert_eq!(seen.load(Ordering::SeqCst), 3);
        clock.step_wall(-4);
        assert_eq!(seen.load(Ordering::SeqCst), -1);
    }
}

//! What all handles of a queue share: the lock, the time and the bound; and how threads wait.
//!
//! What always holds: whoever changes the state settles it before letting go of the lock, and wakes
//! others only after. It lacks the ways in which tasks wait, which are in `next`.

use super::after::After;
use super::alarm::Ring;
use super::state::{Look, State};
use super::time::{NEVER, Time, until};
use super::waiters::{Condvar, How};
use crate::lanes::Handle;
use crate::sync::{Arc, Mutex, MutexGuard, lock, try_lock};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tourbillon_wheel::Key;

pub(super) struct Shared<T> {
    state: Mutex<State<T>>,
    pub(super) time: Time,
    pub(super) max_len: usize,
}

/// An item that was taken: key, deadline and value.
pub(super) type Taken<T> = (Key, u64, T);

impl<T> Shared<T> {
    pub(super) fn new(time: Time, max_len: usize) -> Self {
        Self { state: Mutex::new(State::new()), time, max_len }
    }

    #[inline]
    pub(super) fn lock(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }

    /// Changes the state and wakes whoever has to look at it.
    #[inline]
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut State<T>) -> R) -> R {
        let mut state = self.lock();
        let answer = change(&mut state);
        self.unlock(state, After::default());
        answer
    }

    /// Lets go of a state that was changed.
    #[inline]
    pub(super) fn unlock(&self, mut state: MutexGuard<'_, State<T>>, mut after: After) {
        state.settle(&self.time, &mut after);
        drop(state);
        after.run();
    }

    /// Shows the state to code that may be the user's. If that panics, the state is as it was: the
    /// lock must not take it for damaged.
    pub(super) fn read<R>(&self, read: impl FnOnce(&State<T>) -> R) -> R {
        let state = self.lock();
        let answer = catch_unwind(AssertUnwindSafe(|| read(&state)));
        drop(state);
        answer.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The same, if nobody has the lock.
    pub(super) fn try_read<R>(&self, read: impl FnOnce(&State<T>) -> R) -> Option<R> {
        Some(read(&*try_lock(&self.state)?))
    }

    /// Takes the first item if it is due, without waiting.
    #[inline]
    pub(super) fn take(&self) -> Option<Taken<T>> {
        loop {
            match self.change(|state| state.look(&self.time)) {
                Look::Item(key, deadline, value) => return Some((key, deadline, value)),
                Look::Later(_) | Look::Ended => return None,
                Look::Busy => {}
            }
        }
    }

    /// Takes the first item when it is due. `None` when the tick `limit` has come before that, or
    /// the end of the queue.
    pub(super) fn wait(&self, limit: u64) -> Option<Taken<T>> {
        let mut place = None;
        let mut state = self.lock();
        let taken = loop {
            match state.look(&self.time) {
                Look::Item(key, deadline, value) => break Some((key, deadline, value)),
                Look::Ended => break None,
                Look::Busy => {
                    drop(state);
                    state = self.lock();
                }
                Look::Later(head) => {
                    if limit < NEVER && state.read(&self.time) >= limit {
                        break None;
                    }
                    let (ticket, bell) = place.get_or_insert_with(|| {
                        let bell = Arc::new(Condvar::new());
                        (state.waiters.enter(How::Thread(bell.clone())), bell)
                    });
                    let tick = state.waiters.sleep(*ticket, head, limit);
                    state = self.sleep(bell, state, tick);
                }
            }
        };
        let mut after = After::default();
        if let Some((ticket, _)) = place {
            state.waiters.leave(ticket, &mut after);
        }
        self.unlock(state, after);
        taken
    }

    /// Lets go of the lock until the thread is signalled or a tick has come, or for nothing.
    fn sleep<'a>(
        &self,
        bell: &Condvar,
        state: MutexGuard<'a, State<T>>,
        tick: u64,
    ) -> MutexGuard<'a, State<T>> {
        let awake = if tick == NEVER || self.time.is_manual() {
            bell.wait(state).ok()
        } else {
            let time = until(tick, state.now());
            bell.wait_timeout(state, time).ok().map(|(state, _)| state)
        };
        awake.expect("a wheel panicked while it was changed: the queue can no longer be trusted")
    }

    /// The manual clock was moved: nobody's sleep ends by itself.
    pub(super) fn clock_moved(&self) {
        let mut state = self.lock();
        let mut after = After::default();
        let now = state.read(&self.time);
        state.waiters.signal_until(now, &mut after);
        self.unlock(state, after);
    }
}

impl<T: Send> Ring for Shared<T> {
    fn ring(&self, handle: Handle) {
        self.change(|state| state.rang(handle));
    }
}

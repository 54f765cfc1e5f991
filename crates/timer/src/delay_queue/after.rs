//! What is left to do when the lock has been let go of: waking others, and dropping their wakers.
//!
//! Wakers are the user's code, and whoever is woken wants the lock next. What always holds: everything
//! that was put in is done, also when a waker panics. Such a panic goes no farther, because the one
//! who wakes has mostly just taken an item and must not lose it through a stranger's fault; the panic
//! hook has reported it.

use super::waiters::Condvar;
use crate::sync::Arc;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Reaches one waiter.
pub(super) enum Signal {
    Thread(Arc<Condvar>),
    Task(Waker),
}

/// To be [run](After::run) without the lock. Nearly always empty or of one signal.
#[derive(Default)]
pub(super) struct After {
    first: Option<Signal>,
    rest: Vec<Signal>,
    discarded: Option<Waker>,
}

impl After {
    pub(super) fn signal(&mut self, signal: Signal) {
        match self.first {
            None => self.first = Some(signal),
            Some(_) => self.rest.push(signal),
        }
    }

    /// Keeps a waker that nobody needs any more from being dropped under the lock. One at a time: each
    /// change concerns one waiter.
    pub(super) fn discard(&mut self, waker: Option<Waker>) {
        if waker.is_some() {
            assert!(self.discarded.is_none(), "a change makes one waker useless");
            self.discarded = waker;
        }
    }

    #[inline]
    pub(super) fn run(self) {
        if self.first.is_some() || self.discarded.is_some() {
            self.run_all();
        }
    }

    #[cold]
    fn run_all(self) {
        for signal in self.first.into_iter().chain(self.rest) {
            match signal {
                Signal::Thread(bell) => bell.notify_one(),
                Signal::Task(waker) => isolated(|| waker.wake()),
            }
        }
        isolated(|| drop(self.discarded));
    }
}

fn isolated(run: impl FnOnce()) {
    // What a waker leaves half done is its own; nothing of the queue is in its reach.
    let _ = catch_unwind(AssertUnwindSafe(run));
}

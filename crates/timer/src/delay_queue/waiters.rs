//! Who waits for an item, in the order in which they came, and which of them leads.
//!
//! # What always holds
//!
//! - When anyone waits, one of them is the leader. It stays that until it leaves; then the one that
//!   has waited longest is.
//! - A waiter that was signalled and has not looked yet is not signalled again.
//! - `until` is the tick at which a waiter looks again by itself, if nobody signals it. Only a leader has
//!   one because of an item; a follower has one because its patience ends.
//!
//! Deliberately absent: the items. [`State`](super::state::State) decides who is signalled.

use super::after::{After, Signal};
use super::time::NEVER;
use crate::sync::Arc;
use std::collections::BTreeMap;
use std::task::Waker;

#[cfg(loom)]
pub(super) use loom::sync::Condvar;
#[cfg(not(loom))]
pub(super) use std::sync::Condvar;

/// Names a waiter; later ones have higher numbers.
pub(super) type Ticket = u64;

#[derive(Default)]
pub(super) struct Waiters {
    list: BTreeMap<Ticket, Waiter>,
    entered: u64,
    leader: Option<Ticket>,
    /// How many signals were given. For tests.
    signals: u64,
}

pub(super) struct Waiter {
    how: How,
    until: u64,
    signalled: bool,
}

/// How a waiter is reached.
pub(super) enum How {
    Thread(Arc<Condvar>),
    /// The waker is taken when it is used: cloning one is user's code, and is not done under the lock.
    Task(Option<Waker>),
}

impl Waiters {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn signals(&self) -> u64 {
        self.signals
    }

    /// One more waits, behind all others. Until it sleeps it need not be signalled.
    pub(super) fn enter(&mut self, how: How) -> Ticket {
        self.entered += 1;
        self.list.insert(self.entered, Waiter { how, until: NEVER, signalled: false });
        self.leader.get_or_insert(self.entered);
        self.entered
    }

    /// A thread has looked and sleeps until it is signalled or the tick that is answered has come: that
    /// of the head, for the leader, or the end of its patience.
    pub(super) fn sleep(&mut self, ticket: Ticket, head: Option<u64>, limit: u64) -> u64 {
        let leads = self.leader == Some(ticket);
        let until = if leads { head.unwrap_or(NEVER).min(limit) } else { limit };
        if let Some(waiter) = self.list.get_mut(&ticket) {
            waiter.until = until;
            waiter.signalled = false;
        }
        until
    }

    /// A task has looked. Answers whether this waker will do to reach it from now on.
    pub(super) fn looked(&mut self, ticket: Ticket, waker: &Waker) -> bool {
        match self.list.get_mut(&ticket) {
            Some(Waiter { how: How::Task(Some(known)), signalled, .. }) => {
                *signalled = false;
                known.will_wake(waker)
            }
            _ => false,
        }
    }

    /// A task has looked and is to be reached by this waker.
    pub(super) fn reach_by(&mut self, ticket: Ticket, waker: Waker, after: &mut After) {
        if let Some(Waiter { how: How::Task(known), signalled, .. }) = self.list.get_mut(&ticket) {
            *signalled = false;
            after.discard(known.replace(waker));
        }
    }

    /// One waits no longer. If it led, the next one leads, without knowing it yet.
    pub(super) fn leave(&mut self, ticket: Ticket, after: &mut After) {
        if let Some(Waiter { how: How::Task(waker), .. }) = self.list.remove(&ticket) {
            after.discard(waker);
        }
        if self.leader == Some(ticket) {
            self.leader = self.list.first_key_value().map(|(first, _)| *first);
        }
    }

    /// The one who is to see to it that the head is taken in time.
    pub(super) fn leader(&mut self) -> Option<(Ticket, &mut Waiter)> {
        let ticket = self.leader?;
        Some((ticket, self.list.get_mut(&ticket)?))
    }

    /// Has a waiter look, unless it is about to.
    pub(super) fn signal(&mut self, ticket: Ticket, after: &mut After) {
        if let Some(waiter) = self.list.get_mut(&ticket) {
            self.signals += u64::from(waiter.signal(after));
        }
    }

    /// Has all look: the end has come.
    pub(super) fn signal_all(&mut self, after: &mut After) {
        for waiter in self.list.values_mut() {
            self.signals += u64::from(waiter.signal(after));
        }
    }

    /// Has those look whose time has come. For time that does not pass by itself.
    pub(super) fn signal_until(&mut self, now: u64, after: &mut After) {
        for waiter in self.list.values_mut().filter(|waiter| waiter.until <= now) {
            self.signals += u64::from(waiter.signal(after));
            waiter.until = NEVER;
        }
    }

    /// Panics when nobody leads those who wait.
    pub(super) fn check_invariants(&self) {
        match self.leader {
            None => assert!(self.list.is_empty(), "nobody leads"),
            Some(leader) => assert!(self.list.contains_key(&leader), "the leader has left"),
        }
    }
}

impl Waiter {
    pub(super) fn is_thread(&self) -> bool {
        matches!(self.how, How::Thread(_))
    }

    /// Whether it will have looked by this tick without being told.
    pub(super) fn looks_by(&self, tick: u64) -> bool {
        self.signalled || self.until <= tick
    }

    /// Says that a task is woken at this tick, or that it is not any more (`NEVER`).
    pub(super) fn woken_at(&mut self, tick: u64) {
        self.until = tick;
    }

    fn signal(&mut self, after: &mut After) -> bool {
        if self.signalled {
            return false;
        }
        self.signalled = true;
        match &mut self.how {
            How::Thread(bell) => after.signal(Signal::Thread(bell.clone())),
            How::Task(waker) => {
                if let Some(waker) = waker.take() {
                    after.signal(Signal::Task(waker));
                }
            }
        }
        true
    }
}

//! What is behind the lock: the items, those who wait for one, and the rule that connects them.
//!
//! # The rule
//!
//! After every change, before the lock is let go of, [`settle`](State::settle) makes this true again:
//! when there are items and waiters, the leader is about to look, or will look by the deadline of the
//! first item. Everything else follows. No wake-up is lost, because whatever makes the first
//! deadline earlier, or the leader another, is such a change. No herd wakes, because nobody but the
//! leader is ever woken for an item; the leader leaves with an item, the next one leads, and that is
//! a change too.
//!
//! It lacks the lock itself, and runs none of the user's code.

use super::after::After;
use super::alarm::Alarm;
use super::store::{Store, Take};
use super::time::{NEVER, Time};
use super::waiters::Waiters;
use crate::lanes::Handle;
use tourbillon_wheel::Key;

pub(super) struct State<T> {
    pub(super) store: Store<T>,
    pub(super) waiters: Waiters,
    pub(super) alarm: Alarm,
    pub(super) closed: Closed,
    /// The latest tick that the clock was seen at. As long as what is first is due by it, nobody reads
    /// the clock.
    now: u64,
}

/// How far a queue is closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Closed {
    Open,
    /// Nothing comes in. What is in it still goes out.
    In,
    /// Nothing goes out either.
    InAndOut,
}

/// What a consumer finds.
pub(super) enum Look<T> {
    Item(Key, u64, T),
    /// Nothing is due, before this tick if there is one.
    Later(Option<u64>),
    /// To be asked again, after others had a chance at the lock.
    Busy,
    /// There will be nothing more.
    Ended,
}

impl<T> State<T> {
    pub(super) fn new() -> Self {
        Self {
            store: Store::new(),
            waiters: Waiters::default(),
            alarm: Alarm::default(),
            closed: Closed::Open,
            now: 0,
        }
    }

    /// Takes the first item if it is due.
    #[inline]
    pub(super) fn look(&mut self, time: &Time) -> Look<T> {
        if self.closed == Closed::InAndOut {
            return Look::Ended;
        }
        let mut found = self.store.take(self.now);
        if let Take::Later(head) = found
            && head <= self.read(time)
        {
            found = self.store.take(self.now);
        }
        match found {
            Take::Item(key, deadline, value) => Look::Item(key, deadline, value),
            Take::Later(head) => Look::Later(Some(head)),
            Take::Busy => Look::Busy,
            Take::Empty if self.closed == Closed::Open => Look::Later(None),
            Take::Empty => Look::Ended,
        }
    }

    /// Reads the clock.
    pub(super) fn read(&mut self, time: &Time) -> u64 {
        self.now = self.now.max(time.now());
        self.now
    }

    /// The latest reading.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    fn has_ended(&self) -> bool {
        match self.closed {
            Closed::Open => false,
            Closed::In => self.store.len() == 0,
            Closed::InAndOut => true,
        }
    }

    /// Makes the rule true. See the head of this file.
    #[inline]
    pub(super) fn settle(&mut self, time: &Time, after: &mut After) {
        if self.waiters.is_empty() {
            self.alarm.clear();
        } else {
            self.settle_waiters(time, after);
        }
    }

    fn settle_waiters(&mut self, time: &Time, after: &mut After) {
        if self.has_ended() {
            self.alarm.clear();
            return self.waiters.signal_all(after);
        }
        let (head, now) = (self.store.head(), self.now);
        let Some((ticket, leader)) = self.waiters.leader() else { return };
        if leader.is_thread() {
            self.alarm.clear();
            if head.is_some_and(|head| !leader.looks_by(head)) {
                self.waiters.signal(ticket, after);
            }
            return;
        }
        let Some(head) = head.filter(|head| !leader.looks_by(*head)) else { return };
        if head <= now || head <= self.read(time) {
            return self.waiters.signal(ticket, after);
        }
        if let Some((_, leader)) = self.waiters.leader() {
            leader.woken_at(head);
        }
        // A manual clock tells the queue when it moves.
        if !time.is_manual() && head < NEVER {
            self.alarm.set(head);
        }
    }

    /// The alarm has rung; true when it was the one that is set.
    #[cfg_attr(loom, allow(dead_code))] // there are no alarms under loom
    pub(super) fn rang(&mut self, handle: Handle) -> bool {
        let expected = self.alarm.rang(handle);
        if expected
            && let Some((_, leader)) = self.waiters.leader()
            && !leader.is_thread()
        {
            leader.woken_at(NEVER);
        }
        expected
    }

    /// Panics when something that always holds does not.
    pub(super) fn check_invariants(&self) {
        self.store.check_invariants();
        self.waiters.check_invariants();
    }
}

//! The items of a queue in the order of their deadlines, for one thread.
//!
//! # What always holds
//!
//! - The item that [`take`](Store::take) gives is the one with the earliest deadline, and of several
//!   such the one that was inserted or reset first.
//! - A key leads to its item until the item is taken or removed, and to nothing ever after.
//! - Each call does a bounded amount of work: a take that would have to move more items within the
//!   wheel than that says so and is called again.
//!
//! It lacks clocks, locks and a bound on the number of items.

use super::late::Late;
use tourbillon_wheel::{Budget, HierarchicalWheel, Key, TimerQueue};

/// A wheel holds at most so many items.
pub(super) const ITEMS_MAX: usize = u32::MAX as usize - 255;

/// How many items may be moved within the wheel while others wait for the lock: about as many as take
/// 50 microseconds.
const MOVES_MAX: usize = 4096;

/// Where the wheel keeps the values of late items. It never gets there.
const PARKED: u64 = u64::MAX;

pub(super) struct Store<T> {
    /// It advances no farther than to the deadline of the item taken last, so that as few as possible
    /// are late.
    wheel: HierarchicalWheel<T>,
    late: Late,
}

/// What there was to take.
pub(super) enum Take<T> {
    /// The first item, which was due.
    Item(Key, u64, T),
    /// Nothing is due before this tick.
    Later(u64),
    /// Something may be due, and finding out would take too long for one call.
    Busy,
    /// There is no item.
    Empty,
}

impl<T> Store<T> {
    pub(super) fn new() -> Self {
        Self { wheel: HierarchicalWheel::new(), late: Late::default() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.wheel.len()
    }

    #[inline]
    pub(super) fn insert(&mut self, deadline: u64, value: T) -> Key {
        if deadline >= self.wheel.now() {
            return self.wheel.insert_at(deadline, value);
        }
        let key = self.wheel.insert_at(PARKED, value);
        self.late.insert(deadline, key);
        key
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        if !self.late.is_empty() {
            self.late.remove(key);
        }
        self.wheel.cancel(key)
    }

    pub(super) fn reset(&mut self, key: Key, deadline: u64) -> bool {
        if !self.late.is_empty() {
            self.late.remove(key);
        }
        if deadline >= self.wheel.now() {
            return self.wheel.reset(key, deadline);
        }
        let pending = self.wheel.reset(key, PARKED);
        if pending {
            self.late.insert(deadline, key);
        }
        pending
    }

    pub(super) fn deadline(&self, key: Key) -> Option<u64> {
        self.late.deadline(key).or_else(|| self.wheel.deadline(key))
    }

    /// The earliest deadline or a tick before it; too early only after something was removed or
    /// reset, or while a take is not done.
    pub(super) fn head(&self) -> Option<u64> {
        match self.late.first() {
            Some((deadline, _)) => Some(deadline),
            None => self.wheel.next_deadline(),
        }
    }

    /// The first item, due or not. May look through many.
    pub(super) fn peek(&self) -> Option<(Key, u64, &T)> {
        match self.late.first() {
            Some((deadline, key)) => Some((key, deadline, self.wheel.get(key)?)),
            None => self.wheel.peek(),
        }
    }

    /// Takes the first item if it is due.
    #[inline]
    pub(super) fn take(&mut self, now: u64) -> Take<T> {
        if !self.late.is_empty() {
            return self.take_late(now);
        }
        let Some(mut head) = self.wheel.next_deadline() else { return Take::Empty };
        while head <= now {
            let mut budget = Budget::new(MOVES_MAX);
            if let Some((key, deadline, value)) = self.wheel.pop(head, &mut budget) {
                return Take::Item(key, deadline, value);
            }
            if budget.ran_out() {
                return Take::Busy;
            }
            // The bound was too early and is better now.
            match self.wheel.next_deadline() {
                Some(next) => head = next,
                None => return Take::Empty,
            }
        }
        Take::Later(head)
    }

    #[cold]
    fn take_late(&mut self, now: u64) -> Take<T> {
        match self.late.first() {
            Some((deadline, _)) if deadline > now => return Take::Later(deadline),
            _ => {}
        }
        let Some((deadline, key)) = self.late.pop_first() else { return Take::Empty };
        let value = self.wheel.cancel(key);
        Take::Item(key, deadline, value.expect("a late item has its value in the wheel"))
    }

    /// Takes everything out, in the order of deadlines; those of one deadline in any order.
    pub(super) fn drain(&mut self) -> Vec<(u64, T)> {
        let mut items = Vec::with_capacity(self.len());
        let late = &self.late;
        self.wheel.drain(|key, deadline, value| {
            items.push((late.deadline(key).unwrap_or(deadline), value));
        });
        self.late.clear();
        self.wheel.compact();
        items
    }

    /// All items, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, u64, &T)> {
        self.wheel
            .iter()
            .map(|(key, deadline, value)| (key, self.late.deadline(key).unwrap_or(deadline), value))
    }

    pub(super) fn compact(&mut self) {
        self.wheel.compact();
    }

    /// Panics when something that always holds does not.
    pub(super) fn check_invariants(&self) {
        self.wheel.check_invariants();
        self.late.check_invariants();
        for (key, deadline, _) in self.wheel.iter() {
            match self.late.deadline(key) {
                Some(late) => {
                    assert_eq!(deadline, PARKED, "a late item is parked");
                    assert!(late < self.wheel.now(), "what is late is before the wheel's present");
                }
                None => assert!(deadline >= self.wheel.now(), "late, but not among the late"),
            }
        }
    }
}

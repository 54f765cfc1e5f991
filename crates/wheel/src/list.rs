//! The timers of one slot: a doubly linked list through the slab, in order of insertion.
//!
//! Any timer can be taken out in constant time. Always: `min` is at or before every deadline in
//! the list, and exact while nothing but the whole list was ever taken out. The list does not
//! know which slot it belongs to; callers keep that in the slab's label.

use crate::slab::{NIL, Slab};

/// A pending timer as the wheels store it.
pub(crate) struct Timer<T> {
    pub(crate) deadline: u64,
    pub(crate) prev: u32,
    pub(crate) next: u32,
    pub(crate) value: T,
}

impl<T> Timer<T> {
    pub(crate) const fn unlinked(deadline: u64, value: T) -> Self {
        Self { deadline, prev: NIL, next: NIL, value }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) len: u32,
    /// No deadline in the list is earlier. `u64::MAX` for an empty list.
    pub(crate) min: u64,
}

impl List {
    pub(crate) const EMPTY: Self = Self { head: NIL, tail: NIL, len: 0, min: u64::MAX };

    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// Adds a timer that is in the slab and in no list, behind all others.
    pub(crate) fn push_back<T>(&mut self, slab: &mut Slab<Timer<T>>, index: u32) {
        let (_, timer) = slab.at_mut(index);
        timer.prev = self.tail;
        timer.next = NIL;
        self.min = self.min.min(timer.deadline);
        match self.tail {
            NIL => self.head = index,
            tail => slab.at_mut(tail).1.next = index,
        }
        self.tail = index;
        self.len += 1;
    }

    /// Takes a timer of this list out of it, leaving it in the slab.
    pub(crate) fn unlink<T>(&mut self, slab: &mut Slab<Timer<T>>, index: u32) {
        let (_, _, timer) = slab.at(index);
        let (prev, next) = (timer.prev, timer.next);
        match prev {
            NIL => self.head = next,
            _ => slab.at_mut(prev).1.next = next,
        }
        match next {
            NIL => self.tail = prev,
            _ => slab.at_mut(next).1.prev = prev,
        }
        self.len -= 1;
        if self.len == 0 {
            self.min = u64::MAX;
        }
    }

    /// The indices of the timers, first inserted first.
    pub(crate) fn iter<T>(self, slab: &Slab<Timer<T>>) -> impl Iterator<Item = u32> {
        let mut index = self.head;
        core::iter::from_fn(move || {
            let this = index;
            if this == NIL {
                return None;
            }
            index = slab.at(this).2.next;
            Some(this)
        })
    }

    /// Panics when the links, the length or the bound are wrong.
    pub(crate) fn check_invariants<T>(&self, slab: &Slab<Timer<T>>) {
        let (mut len, mut prev) = (0, NIL);
        for index in self.iter(slab) {
            let (_, _, timer) = slab.at(index);
            assert_eq!(timer.prev, prev, "back link of timer {index}");
            assert!(self.min <= timer.deadline, "timer {index} is earlier than its slot's bound");
            len += 1;
            assert!(len <= self.len, "list is longer than it says, or a circle");
            prev = index;
        }
        assert_eq!(len, self.len, "length of a list");
        assert_eq!(self.tail, prev, "end of a list");
        if len == 0 {
            assert_eq!(self.min, u64::MAX, "bound of an empty list");
        }
    }
}

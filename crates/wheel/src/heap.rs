//! The binary heap: the queue that needs no slots, for few timers and as a baseline.
//!
//! An array-embedded heap ordered by (tick that counts, sequence of insertion), whose entries
//! know their timer and whose timers know their entry, so any timer can be taken out for
//! good. Always: an entry is not before its parent, and the two halves point at each other. It
//! deliberately lacks lazy deletion: what is cancelled leaves the heap at once.

use crate::slab::Slab;
use crate::snapshot::Totals;
use crate::{Budget, Key, Snapshot, TimerQueue};
use alloc::vec::Vec;
use core::fmt;

/// Below this many entries the array is not worth shrinking.
const SHRINK_ENTRIES_MIN: usize = 1024;

/// A binary heap with real removal: O(log n) for insertion, cancelling, resetting and firing,
/// O(1) for `peek` and `next_deadline`, both of which are always exact.
///
/// It moves no timer for the passing of time, so its budget pays for fired timers only. Holds
/// at most 2^32 - 256 timers.
///
/// ```
/// use tourbillon_wheel::{BinaryHeapQueue, TimerQueue};
///
/// let mut queue = BinaryHeapQueue::new();
/// queue.insert_at(20, 'b');
/// queue.insert_at(10, 'a');
/// let c = queue.insert_at(15, 'c');
/// assert_eq!(queue.cancel(c), Some('c'));
///
/// let mut fired = Vec::new();
/// queue.advance(30, usize::MAX, |_key, deadline, value| fired.push((deadline, value)));
/// assert_eq!(fired, [(10, 'a'), (20, 'b')]);
/// ```
pub struct BinaryHeapQueue<T> {
    now: u64,
    slab: Slab<Timer<T>>,
    heap: Vec<Entry>,
    /// Given to the next insertion or reset.
    sequence: u64,
    totals: Totals,
}

struct Timer<T> {
    deadline: u64,
    /// Where its entry is in the heap.
    position: u32,
    value: T,
}

#[derive(Clone, Copy)]
struct Entry {
    /// The deadline, or the time of insertion for a timer that was overdue then.
    tick: u64,
    sequence: u64,
    index: u32,
}

impl Entry {
    fn is_before(&self, other: &Self) -> bool {
        (self.tick, self.sequence) < (other.tick, other.sequence)
    }
}

impl<T> BinaryHeapQueue<T> {
    /// An empty queue at tick 0. Takes no memory until the first insertion.
    pub const fn new() -> Self {
        Self::starting_at(0)
    }

    /// An empty queue at tick `now`.
    pub const fn starting_at(now: u64) -> Self {
        Self { now, slab: Slab::new(), heap: Vec::new(), sequence: 0, totals: Totals::ZERO }
    }

    fn entry(&mut self, deadline: u64, index: u32) -> Entry {
        self.sequence += 1;
        Entry { tick: deadline.max(self.now), sequence: self.sequence, index }
    }

    /// Writes an entry to a place in the heap, and the place to its timer.
    fn put(&mut self, position: usize, entry: Entry) {
        self.heap[position] = entry;
        self.slab.at_mut(entry.index).1.position = position as u32;
    }

    /// Brings the entry at `position` to where it belongs.
    fn sift(&mut self, mut position: usize) {
        let entry = self.heap[position];
        while position > 0 {
            let parent = (position - 1) / 2;
            if !entry.is_before(&self.heap[parent]) {
                break;
            }
            self.put(position, self.heap[parent]);
            position = parent;
        }
        loop {
            let left = 2 * position + 1;
            let Some(mut child) = self.heap.get(left).map(|_| left) else {
                break;
            };
            if let Some(right) = self.heap.get(left + 1)
                && right.is_before(&self.heap[left])
            {
                child = left + 1;
            }
            if !self.heap[child].is_before(&entry) {
                break;
            }
            self.put(position, self.heap[child]);
            position = child;
        }
        self.put(position, entry);
    }

    /// Takes the timer at a place in the heap out of heap and slab.
    fn remove(&mut self, position: usize) -> (Key, u64, T) {
        let entry = self.heap.swap_remove(position);
        if position < self.heap.len() {
            self.sift(position);
        }
        if self.heap.capacity() > SHRINK_ENTRIES_MIN && self.heap.len() < self.heap.capacity() / 4 {
            self.heap.shrink_to(self.heap.capacity() / 2);
        }
        let (key, _, timer) = self.slab.remove_at(entry.index);
        (key, timer.deadline, timer.value)
    }
}

impl<T> TimerQueue for BinaryHeapQueue<T> {
    type Value = T;

    fn now(&self) -> u64 {
        self.now
    }

    fn len(&self) -> usize {
        self.slab.len()
    }

    fn insert_at(&mut self, deadline: u64, value: T) -> Key {
        let position = self.heap.len();
        let timer = Timer { deadline, position: position as u32, value };
        let key = self.slab.insert(0, timer);
        let entry = self.entry(deadline, key.index());
        self.heap.push(entry);
        self.sift(position);
        self.totals.inserted = self.totals.inserted.wrapping_add(1);
        key
    }

    fn cancel(&mut self, key: Key) -> Option<T> {
        let position = self.slab.get(key)?.position;
        let (_, _, value) = self.remove(position as usize);
        self.totals.cancelled = self.totals.cancelled.wrapping_add(1);
        Some(value)
    }

    fn reset(&mut self, key: Key, deadline: u64) -> bool {
        let Some(timer) = self.slab.get_mut(key) else {
            return false;
        };
        timer.deadline = deadline;
        let position = timer.position as usize;
        self.heap[position] = self.entry(deadline, key.index());
        self.sift(position);
        true
    }

    fn deadline(&self, key: Key) -> Option<u64> {
        Some(self.slab.get(key)?.deadline)
    }

    fn get(&self, key: Key) -> Option<&T> {
        Some(&self.slab.get(key)?.value)
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        Some(&mut self.slab.get_mut(key)?.value)
    }

    fn peek(&self) -> Option<(Key, u64, &T)> {
        let (key, _, timer) = self.slab.at(self.heap.first()?.index);
        Some((key, timer.deadline, &timer.value))
    }

    fn next_deadline(&self) -> Option<u64> {
        Some(self.heap.first()?.tick)
    }

    fn pop(&mut self, now: u64, budget: &mut Budget) -> Option<(Key, u64, T)> {
        if now < self.now {
            return None;
        }
        match self.heap.first() {
            Some(entry) if entry.tick <= now => {
                let tick = entry.tick;
                if !budget.pay_fired() {
                    return None;
                }
                self.now = tick;
                self.totals.fired = self.totals.fired.wrapping_add(1);
                Some(self.remove(0))
            }
            _ => {
                self.now = now;
                None
            }
        }
    }

    fn drain<F>(&mut self, mut take: F)
    where
        F: FnMut(Key, u64, T),
    {
        self.heap = Vec::new();
        for (key, timer) in self.slab.take_all() {
            take(key, timer.deadline, timer.value);
        }
    }

    fn clear(&mut self) {
        self.drain(|_, _, value| drop(value));
    }

    fn capacity(&self) -> usize {
        self.slab.capacity().max(self.heap.capacity())
    }

    fn compact(&mut self) {
        self.slab.compact();
        self.heap.shrink_to_fit();
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            now: self.now,
            len: self.len(),
            capacity: self.capacity(),
            next_deadline: self.next_deadline(),
            totals: self.totals,
            levels: Vec::new(),
        }
    }

    fn check_invariants(&self) {
        self.slab.check_invariants();
        assert_eq!(self.heap.len(), self.slab.len(), "entries and timers");
        for (position, entry) in self.heap.iter().enumerate() {
            let (_, _, timer) = self.slab.at(entry.index);
            assert_eq!(timer.position as usize, position, "place of an entry");
            assert!(entry.tick >= self.now, "now has passed a pending timer");
            assert!(
                timer.deadline == entry.tick
                    || timer.deadline < entry.tick && entry.tick <= self.now,
                "the tick of an entry disagrees with its timer"
            );
            if position > 0 {
                let parent = (position - 1) / 2;
                assert!(
                    self.heap[parent].is_before(entry),
                    "entry {position} is before its parent"
                );
            }
        }
    }
}

impl<T> Default for BinaryHeapQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for BinaryHeapQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BinaryHeapQueue")
            .field("now", &self.now)
            .field("len", &self.len())
            .field("next_deadline", &self.next_deadline())
            .finish_non_exhaustive()
    }
}

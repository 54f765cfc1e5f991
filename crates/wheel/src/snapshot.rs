//! A picture of a queue at one moment, for people and dashboards.
//!
//! It is a copy: reading it disturbs nothing, and it says nothing about values. All queues
//! fill in the same record; one without levels leaves the list of levels empty.

use alloc::vec::Vec;

/// What a queue held, and what it had done so far, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The queue's time, in ticks.
    pub now: u64,
    /// Pending timers.
    pub len: usize,
    /// Timers for which memory is held.
    pub capacity: usize,
    /// The earliest deadline or a tick before it, as `next_deadline` gives it.
    pub next_deadline: Option<u64>,
    /// Counted since the queue was made.
    pub totals: Totals,
    /// The levels that hold timers, finest first.
    pub levels: Vec<LevelSnapshot>,
}

/// What a queue has done since it was made. The counts wrap at `u64::MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Timers inserted.
    pub inserted: u64,
    /// Timers fired.
    pub fired: u64,
    /// Timers cancelled, by key. Those that `clear` or `drain` removed are not counted.
    pub cancelled: u64,
    /// Times that a timer was moved to a finer level, or looked at and left in place.
    pub moved: u64,
}

impl Totals {
    pub(crate) const ZERO: Self = Self { inserted: 0, fired: 0, cancelled: 0, moved: 0 };
}

/// One ring of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelSnapshot {
    /// Which level, the finest being 0.
    pub level: usize,
    /// How many slots the ring has.
    pub slots: usize,
    /// How many ticks one slot spans.
    pub slot_ticks: u64,
    /// Timers in all slots of the level. Exact as long as not many were cancelled: a queue that
    /// keeps marks of cancelled timers looks at some ten thousand of them and estimates the rest.
    pub len: usize,
    /// The slots that hold timers, in the order of the ring.
    pub occupied: Vec<SlotSnapshot>,
}

/// One slot that holds timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotSnapshot {
    /// Its number in the ring.
    pub slot: usize,
    /// The first tick of its span, the next time that the queue comes by.
    pub start: u64,
    /// Timers in it, as exact as those of the level.
    pub len: usize,
}

//! Looking at a hierarchical wheel from outside: the snapshot, and the check of what always
//! holds. Reads only.

use super::HierarchicalWheel;
use super::chunks::Record;
use super::level::Slot;
use super::place::{LEVELS, Place, SLOTS, current, slot_ticks};
use crate::snapshot::{LevelSnapshot, SlotSnapshot, Totals};
use crate::{Snapshot, TimerQueue};
use alloc::vec::Vec;

/// Records that a snapshot looks at, to leave out those of cancelled timers.
const LOOKS: usize = 65_536;

/// What a snapshot has yet to count.
struct Census {
    /// How many more records it may look at. Slots with more than that are estimated.
    looks: usize,
    /// Records not looked at.
    records: usize,
    /// Timers for which they stand.
    live: usize,
}

impl Census {
    /// Nobody was cancelled, so nobody has to be looked at.
    fn all_live(&self) -> bool {
        self.records == self.live
    }
}

impl<T> HierarchicalWheel<T> {
    pub(super) fn take_snapshot(&self) -> Snapshot {
        let live = self.slab.len();
        let mut census = Census { looks: LOOKS, records: live + self.dead, live };
        let mut near = [0; SLOTS];
        for record in self.near.rest() {
            let live = usize::from(census.all_live() || self.lives(*record));
            near[usize::from(record.deadline as u8)] += live;
        }
        census.records -= self.near.len();
        census.live -= near.iter().sum::<usize>();
        let levels = (0..LEVELS).filter_map(|level| self.level_snapshot(level, &near, &mut census));
        Snapshot {
            now: self.now,
            len: self.len(),
            capacity: self.capacity(),
            next_deadline: self.next_deadline(),
            totals: self.totals(),
            levels: levels.collect(),
        }
    }

    fn totals(&self) -> Totals {
        let gone = [self.totals.fired, self.totals.cancelled, self.drained];
        let inserted = gone.iter().fold(self.len() as u64, |sum, n| sum.wrapping_add(*n));
        Totals { inserted, ..self.totals }
    }

    fn level_snapshot(
        &self,
        number: usize,
        near: &[usize; SLOTS],
        census: &mut Census,
    ) -> Option<LevelSnapshot> {
        let level = self.levels[number].as_ref();
        let mut occupied = Vec::new();
        for slot in 0..=u8::MAX {
            let place = Place::new(number, slot);
            let near = if number == 0 { near[usize::from(slot)] } else { 0 };
            let len = near + level.map_or(0, |level| self.timers_in(level.slot(slot), census));
            if len > 0 {
                occupied.push(SlotSnapshot {
                    slot: slot.into(),
                    start: place.start(self.now),
                    len,
                });
            }
        }
        let len = occupied.iter().map(|slot| slot.len).sum();
        let (slots, slot_ticks) = (SLOTS, slot_ticks(number));
        (len > 0).then_some(LevelSnapshot { level: number, slots, slot_ticks, len, occupied })
    }

    /// How many records of a slot stand for a timer.
    fn timers_in(&self, slot: &Slot, census: &mut Census) -> usize {
        let records = slot.count();
        if census.all_live() {
            records
        } else if records > census.looks {
            (records as u128 * census.live as u128 / census.records as u128) as usize
        } else {
            let live = slot.records(&self.chunks).filter(|record| self.lives(*record)).count();
            census.looks -= records;
            census.records -= records;
            census.live -= live;
            live
        }
    }

    /// Panics, saying what is wrong, when something that always holds does not.
    pub(super) fn check_all(&self) {
        self.slab.check_invariants();
        let (mut used, mut records, mut living) = (0, 0, 0);
        for (number, level) in self.levels.iter().enumerate() {
            let holds = level.as_ref().is_some_and(|level| !level.occupied.is_empty());
            assert_eq!(self.occupied >> number & 1 == 1, holds, "bit of level {number}");
            let Some(level) = level else { continue };
            let (of_chunks, of_records) = level.check_invariants(&self.chunks);
            (used, records) = (used + of_chunks, records + of_records);
            for slot in level.occupied.iter() {
                let place = Place::new(number, slot);
                for record in level.slot(slot).records(&self.chunks).filter(|r| self.lives(*r)) {
                    living += 1;
                    let timer = self.slab.at(record.index()).2;
                    assert_eq!(timer.deadline, record.deadline, "deadline of {record:?}");
                    self.check_place(record, place);
                }
            }
        }
        self.near.check_invariants(self.now);
        assert!(self.near.len() == 0 || self.cascade.is_none(), "a cascade before its time");
        living += self.near.rest().iter().filter(|record| self.lives(**record)).count();
        records += self.near.len();
        assert_eq!(living, self.slab.len(), "timers and the records that stand for them");
        assert_eq!(records, living + self.dead, "records and those of them that are dead");
        self.chunks.check_invariants(used);
        if let Some(cascade) = self.cascade {
            assert!(self.front(cascade.place).is_some(), "the cascading slot is empty");
        }
        let start = self.first_occupied().map_or(u64::MAX, |place| place.start(self.now));
        let due = self.cascade.is_some() || self.front(current(self.now)).is_some();
        assert!(self.next <= if due { self.now } else { start }, "next is {}", self.next);
        assert!(self.next >= self.now, "next is {} at {}", self.next, self.now);
    }

    fn check_place(&self, record: Record, place: Place) {
        match self.cascade {
            Some(cascade) if cascade.place == place => {
                assert!(record.deadline <= cascade.end, "{record:?} is not of the cascading slot");
            }
            _ => assert_eq!(Place::of(record.deadline, self.now), place, "place of {record:?}"),
        }
    }
}

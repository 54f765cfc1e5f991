//! Looking at a hierarchical wheel from outside: the snapshot, and the check of what always
//! holds. Reads only.

use super::HierarchicalWheel;
use super::place::{Place, SLOTS, slot_ticks};
use crate::snapshot::{LevelSnapshot, SlotSnapshot};
use crate::{Snapshot, TimerQueue};
use alloc::vec::Vec;

impl<T> HierarchicalWheel<T> {
    pub(super) fn take_snapshot(&self) -> Snapshot {
        let levels = self.levels.iter().enumerate().filter_map(|(number, level)| {
            let level = level.as_ref().filter(|level| !level.occupied.is_empty())?;
            let occupied: Vec<SlotSnapshot> = level
                .occupied
                .iter()
                .map(|slot| SlotSnapshot {
                    slot: slot.into(),
                    start: Place::new(number, slot).start(self.now),
                    len: level.slot(slot).len as usize,
                })
                .collect();
            Some(LevelSnapshot {
                level: number,
                slots: SLOTS,
                slot_ticks: slot_ticks(number),
                len: level.len(),
                occupied,
            })
        });
        Snapshot {
            now: self.now,
            len: self.len(),
            capacity: self.capacity(),
            next_deadline: self.next_deadline(),
            totals: self.totals,
            levels: levels.collect(),
        }
    }

    /// Panics, saying what is wrong, when something that always holds does not.
    pub(super) fn check_all(&self) {
        self.slab.check_invariants();
        let mut listed = 0;
        for (number, level) in self.levels.iter().enumerate() {
            let holds = level.as_ref().is_some_and(|level| !level.occupied.is_empty());
            assert_eq!(self.occupied >> number & 1 == 1, holds, "bit of level {number}");
            let Some(level) = level else { continue };
            level.check_invariants(&self.slab);
            listed += level.len();
            for slot in level.occupied.iter() {
                let place = Place::new(number, slot);
                for index in level.slot(slot).iter(&self.slab) {
                    let (_, label, timer) = self.slab.at(index);
                    assert_eq!(Place::from_label(label), place, "label of timer {index}");
                    match self.cascade {
                        Some(cascade) if cascade.place == place => assert!(
                            timer.deadline <= cascade.end,
                            "timer {index} does not belong to the slot being cascaded"
                        ),
                        _ => assert_eq!(
                            Place::of(timer.deadline, self.now),
                            place,
                            "place of timer {index}"
                        ),
                    }
                }
            }
        }
        assert_eq!(listed, self.slab.len(), "timers in lists");
        if let Some(cascade) = self.cascade {
            assert!(self.front(cascade.place).is_some(), "the slot being cascaded is empty");
            assert!(cascade.place.level() > 0, "level 0 is being cascaded");
            assert_eq!(
                cascade.place.start(self.now),
                self.now,
                "now is not at the cascade's start"
            );
        }
    }
}

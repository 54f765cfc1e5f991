//! Where a timer belongs: the arithmetic of levels and slots.
//!
//! A tick is eight digits of eight bits. A deadline's level is the position of the highest
//! digit in which it differs from now, its slot is that digit. Pure functions, nothing else.

pub(super) const LEVELS: usize = 8;
pub(super) const SLOTS: usize = 256;
const DIGIT_BITS: u32 = 8;

/// One slot of one level, in two bytes: the level in the high one, the slot in the low one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u16);

impl Place {
    #[inline]
    pub(super) const fn new(level: usize, slot: u8) -> Self {
        Self((level as u16) << 8 | slot as u16)
    }

    /// The place that belongs to `deadline` at the time `now`. A deadline at or before `now`
    /// belongs to the slot of `now` itself.
    #[inline]
    pub(super) const fn of(deadline: u64, now: u64) -> Self {
        let tick = if deadline > now { deadline } else { now };
        // The lowest bit is set so that equal ticks count as differing in the last digit.
        let level = ((tick ^ now) | 1).ilog2() / DIGIT_BITS;
        Self::new(level as usize, (tick >> (level * DIGIT_BITS)) as u8)
    }

    #[inline]
    pub(super) const fn level(self) -> usize {
        (self.0 >> 8) as usize
    }

    #[inline]
    pub(super) const fn slot(self) -> u8 {
        self.0 as u8
    }

    /// The first tick of the place's span, in the turn in which `now` lies.
    #[inline]
    pub(super) const fn start(self, now: u64) -> u64 {
        let shift = self.level() as u32 * DIGIT_BITS;
        let finer_or_equal = u64::MAX >> (u64::BITS - DIGIT_BITS - shift);
        now & !finer_or_equal | (self.slot() as u64) << shift
    }

    /// The last tick of the place's span, in the turn in which `now` lies.
    #[inline]
    pub(super) const fn end(self, now: u64) -> u64 {
        self.start(now) | (slot_ticks(self.level()) - 1)
    }
}

/// The slot of level 0 whose tick is `now`.
#[inline]
pub(super) const fn current(now: u64) -> Place {
    Place::new(0, now as u8)
}

/// How many ticks a slot of the level spans.
#[inline]
pub(super) const fn slot_ticks(level: usize) -> u64 {
    1 << (level as u32 * DIGIT_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_highest_differing_digit_decides() {
        for (deadline, now, level, slot) in [
            (0, 0, 0, 0),
            (1, 0, 0, 1),
            (255, 0, 0, 255),
            (256, 0, 1, 1),
            (0x0201, 0x01ff, 1, 2),
            (0x0200, 0x0200, 0, 0),
            (5, 0x0207, 0, 7),
            (u64::MAX, 0, 7, 255),
            (u64::MAX, u64::MAX - 1, 0, 255),
            (1 << 36, 0, 4, 16),
        ] {
            assert_eq!(
                Place::of(deadline, now),
                Place::new(level, slot),
                "{deadline:#x} at {now:#x}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_place_spans_its_deadline_and_lies_ahead(now: u64, deadline: u64, shift in 0u32..64) {
            let deadline = now.saturating_add(deadline >> shift);
            let place = Place::of(deadline, now);
            prop_assert!(place.start(now) <= deadline && deadline <= place.end(now));
            if deadline > now {
                prop_assert!(place.start(now) > now);
            }
        }

        // The reason why a timer may stay where it is while time passes before its slot.
        #[test]
        fn a_place_stays_the_same_until_its_span_begins(
            now: u64,
            delay: u64,
            part: u64,
            shift in 0u32..64,
        ) {
            let deadline = now.saturating_add(delay >> shift);
            let place = Place::of(deadline, now);
            prop_assume!(deadline > now);
            let later = now + part % (place.start(now) - now);
            prop_assert_eq!(Place::of(deadline, later), place);
        }
    }
}

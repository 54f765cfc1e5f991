//! From instants and durations to ticks, and back.
//!
//! A tick is a microsecond. What always holds: the tick of an instant is rounded up and the present
//! is rounded down, so an instant's tick is the present one only when the instant has passed. This is
//! why nothing in the queue can be early. No time at all from now is the present tick, and not the
//! next one. All arithmetic ends at the ends of the range; no instant or duration is illegal.
//!
//! It lacks waiting: `waiters` has that.

use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tourbillon_clock::{Clock, ManualClock};

/// Nobody waits this long, some 580,000 years.
pub(super) const NEVER: u64 = u64::MAX;

/// The tick of the epoch. Far from both ends, so that instants before the epoch have ticks too. Of its
/// digits by which the wheel places a timer, those above the fifth are the same for everything
/// within an hour before the epoch and within days after it, so it takes few moves to come down.
const EPOCH: u64 = (1 << 62) + (1 << 32);

/// Where a queue's time comes from.
pub(super) struct Time {
    epoch: Instant,
    manual: Option<Manual>,
}

struct Manual {
    clock: ManualClock,
    /// What the clock said at the epoch.
    start_us: u64,
}

impl Time {
    /// The machine's monotonic time. All such times of a process have the same ticks.
    pub(super) fn system() -> Self {
        static FIRST: OnceLock<Instant> = OnceLock::new();
        Self { epoch: *FIRST.get_or_init(Instant::now), manual: None }
    }

    /// A time that stands still unless its clock is moved. It begins now.
    pub(super) fn manual(clock: ManualClock) -> Self {
        let start_us = clock.mono().as_micros();
        Self { epoch: Instant::now(), manual: Some(Manual { clock, start_us }) }
    }

    /// Whether real time passing changes nothing.
    pub(super) fn is_manual(&self) -> bool {
        self.manual.is_some()
    }

    /// How much time has passed since the epoch.
    fn elapsed(&self) -> Duration {
        match &self.manual {
            None => self.epoch.elapsed(),
            Some(manual) => {
                let now_us = manual.clock.mono().as_micros();
                Duration::from_micros(now_us.saturating_sub(manual.start_us))
            }
        }
    }

    /// The tick that has begun.
    pub(super) fn now(&self) -> u64 {
        after_epoch(self.elapsed().as_micros())
    }

    /// The present, as an instant of this time.
    pub(super) fn now_instant(&self) -> Instant {
        later(self.epoch, self.elapsed())
    }

    /// The first tick at whose beginning an instant has passed.
    pub(super) fn tick_at(&self, instant: Instant) -> u64 {
        match instant.checked_duration_since(self.epoch) {
            Some(after) => after_epoch(micros_up(after)),
            None => {
                let before = self.epoch.saturating_duration_since(instant).as_micros();
                EPOCH.saturating_sub(u64::try_from(before).unwrap_or(u64::MAX))
            }
        }
    }

    /// The first tick at whose beginning so much time has passed from now.
    pub(super) fn tick_after(&self, delay: Duration) -> u64 {
        if delay.is_zero() {
            return self.now();
        }
        after_epoch(micros_up(self.elapsed().saturating_add(delay)))
    }

    /// When a tick begins; the latest instant there is when that is beyond it.
    pub(super) fn instant_of(&self, tick: u64) -> Instant {
        match tick.checked_sub(EPOCH) {
            Some(after) => later(self.epoch, Duration::from_micros(after)),
            None => {
                let before = Duration::from_micros(EPOCH - tick);
                self.epoch.checked_sub(before).unwrap_or(self.epoch)
            }
        }
    }
}

/// How long until a tick, seen from a reading.
pub(super) fn until(tick: u64, now: u64) -> Duration {
    Duration::from_micros(tick.saturating_sub(now))
}

fn after_epoch(us: u128) -> u64 {
    EPOCH.saturating_add(u64::try_from(us).unwrap_or(u64::MAX))
}

fn micros_up(d: Duration) -> u128 {
    d.as_nanos().div_ceil(1_000)
}

/// An instant after another, or nearly the latest one that the platform can name.
fn later(from: Instant, by: Duration) -> Instant {
    let mut by = by;
    loop {
        match from.checked_add(by) {
            Some(instant) => return instant,
            None => by /= 2,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn deadlines_round_up_and_the_present_down() {
        let clock = ManualClock::new(1_000);
        let time = Time::manual(clock.clone());
        let now = time.now();
        assert_eq!(time.tick_after(Duration::ZERO), now);
        assert_eq!(time.tick_after(Duration::from_nanos(1)), now + 1);
        assert_eq!(time.tick_after(Duration::from_nanos(1_000)), now + 1);
        assert_eq!(time.tick_after(Duration::from_nanos(1_001)), now + 2);
        clock.advance(Duration::from_micros(7));
        assert_eq!(time.now(), now + 7);
    }

    #[test]
    fn the_ends_of_the_range_are_legal() {
        let time = Time::system();
        assert_eq!(time.tick_after(Duration::MAX), NEVER);
        assert!(time.instant_of(NEVER) > Instant::now());
        assert!(time.instant_of(0) <= Instant::now());
        assert_eq!(time.tick_at(time.epoch), EPOCH);
    }

    proptest! {
        #[test]
        fn an_instant_has_passed_when_its_tick_has_begun(
            ns in 0_u64..10_000_000_000_000, before in any::<bool>(),
        ) {
            let time = Time::manual(ManualClock::new(0));
            let by = Duration::from_nanos(ns);
            let instant = match before {
                false => Some(time.epoch + by),
                true => time.epoch.checked_sub(by),
            };
            if let Some(instant) = instant {
                let tick = time.tick_at(instant);
                prop_assert!(time.instant_of(tick) >= instant);
                prop_assert!(time.instant_of(tick - 1) < instant);
            }
        }
    }
}

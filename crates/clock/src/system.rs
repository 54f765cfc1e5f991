//! The clocks of the operating system.
//!
//! Both choose their origin so that at creation the monotonic reading equals the wall clock's
//! microseconds. As long as the wall is not stepped, whole milliseconds of both coincide, so a
//! due time at a whole millisecond is also a whole monotonic millisecond and loses nothing when it
//! is rounded up to a tick.
//!
//! They differ in one thing only: while the machine is suspended [`SystemClock`] stands still (a
//! [`crate::StoreClock`] then reports a step) and [`BootClock`] goes on.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::clock::{Clock, Mono, signed};

/// Monotonic time by `CLOCK_MONOTONIC` (std's `Instant`), wall time by `CLOCK_REALTIME`.
#[derive(Clone, Debug)]
pub struct SystemClock {
    start: Instant,
    origin_us: u64,
}

impl SystemClock {
    /// A clock whose monotonic reading now equals the wall clock's microseconds (zero when the
    /// wall is before 1970).
    pub fn new() -> Self {
        let start = Instant::now();
        Self { start, origin_us: wall_us().try_into().unwrap_or(0) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn mono(&self) -> Mono {
        Mono::from_micros(self.origin_us).saturating_add_floor(self.start.elapsed())
    }

    fn wall(&self) -> i64 {
        wall_us()
    }
}

/// Monotonic time that counts suspend: `CLOCK_BOOTTIME` where the platform has it (Linux and
/// Android), std's `Instant` elsewhere.
#[derive(Clone, Debug)]
pub struct BootClock {
    boot: Boot,
    origin_us: u64,
}

impl BootClock {
    /// A clock whose monotonic reading now equals the wall clock's microseconds (zero when the
    /// wall is before 1970).
    pub fn new() -> Self {
        let boot = Boot::start();
        Self { boot, origin_us: wall_us().try_into().unwrap_or(0) }
    }
}

impl Default for BootClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for BootClock {
    fn mono(&self) -> Mono {
        Mono::from_micros(self.origin_us).saturating_add_floor(self.boot.elapsed())
    }

    fn wall(&self) -> i64 {
        wall_us()
    }
}

impl Mono {
    /// A reading is what has fully elapsed, so here the fraction is dropped.
    fn saturating_add_floor(self, elapsed: std::time::Duration) -> Self {
        let us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        Self::from_micros(self.as_micros().saturating_add(us))
    }
}

fn wall_us() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => signed(u64::try_from(after.as_micros()).unwrap_or(u64::MAX)),
        // Before the epoch the floor is away from zero.
        Err(before) => -signed(crate::clock::micros_up(before.duration())),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
use boottime::Boot;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use instant::Boot;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod boottime {
    use rustix::time::{ClockId, clock_gettime};
    use std::time::Duration;

    #[derive(Clone, Debug)]
    pub(super) struct Boot(Duration);

    impl Boot {
        pub(super) fn start() -> Self {
            Self(since_boot())
        }

        pub(super) fn elapsed(&self) -> Duration {
            since_boot().saturating_sub(self.0)
        }
    }

    fn since_boot() -> Duration {
        let t = clock_gettime(ClockId::Boottime);
        // The kernel answers non-negative seconds and nanoseconds below a billion.
        Duration::new(u64::try_from(t.tv_sec).unwrap_or(0), u32::try_from(t.tv_nsec).unwrap_or(0))
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod instant {
    use std::time::{Duration, Instant};

    #[derive(Clone, Debug)]
    pub(super) struct Boot(Instant);

    impl Boot {
        pub(super) fn start() -> Self {
            Self(Instant::now())
        }

        pub(super) fn elapsed(&self) -> Duration {
            self.0.elapsed()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts_at_the_wall_and_never_decreases(clock: &dyn Clock) {
        let (mono, wall) = (signed(clock.mono().as_micros()), clock.wall());
        // The two readings are taken one after the other; a loaded machine may pause between.
        assert!(
            (wall - mono).abs() < 2_000_000,
            "mono {mono} and wall {wall} differ by more than a pause"
        );
        let mut last = clock.mono();
        for _ in 0..10_000 {
            let next = clock.mono();
            assert!(next >= last);
            last = next;
        }
        // It moves at all.
        let deadline = Instant::now() + std::time::Duration::from_secs(10);
        while clock.mono() == last {
            assert!(Instant::now() < deadline, "the clock stands still");
        }
    }

    #[test]
    fn system_clock() {
        starts_at_the_wall_and_never_decreases(&SystemClock::new());
    }

    #[test]
    fn boot_clock() {
        starts_at_the_wall_and_never_decreases(&BootClock::new());
    }
}

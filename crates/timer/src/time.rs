//! From instants to ticks and back: which clock a timer goes by.
//!
//! A tick is a microsecond, counted from the moment the timer was made. A deadline is rounded up to
//! the next tick and the present down to the last, so what waits for a tick is never early, by
//! construction and without a margin. Every `Duration` is legal: what lies beyond the last tick
//! never comes.
//!
//! Instants of a timer lie on its own line of time: the moment it was made, and what its clock has
//! counted since. By the monotonic clock that is the line of std's `Instant`, exactly.
//!
//! Deliberately absent: sleeping, which is the driver's.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tourbillon_clock::{BootClock, Clock, ManualClock, Mono};

/// The tick that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

/// Which clock a timer goes by.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum ClockKind {
    /// The monotonic clock (`std::time::Instant`): nobody can set it, and it stands still while the
    /// machine is suspended. The default.
    #[default]
    Monotonic,
    /// Monotonic, and goes on while the machine is suspended (on Linux and Android; elsewhere like
    /// `Monotonic`). No sleep ends because a machine wakes up, so the driver looks once a second.
    Boot,
    /// The wall clock: when it is set, deadlines move with it. While it goes back nothing fires, and
    /// nothing fires twice. The driver looks once a second.
    Wall,
    /// A clock that moves when it is told to, for tests.
    Manual(ManualClock),
    /// Any other. The driver looks once a second.
    Custom(Arc<dyn Clock>),
}

impl fmt::Debug for ClockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Monotonic => "Monotonic",
            Self::Boot => "Boot",
            Self::Wall => "Wall",
            Self::Manual(_) => "Manual",
            Self::Custom(_) => "Custom",
        })
    }
}

/// A line of time in ticks.
#[derive(Clone)]
pub(crate) struct Time {
    base: Instant,
    by: By,
}

#[derive(Clone)]
enum By {
    Monotonic,
    Clock { clock: Arc<dyn Clock>, origin: Mono },
    Wall { origin: SystemTime },
    Manual { clock: ManualClock, origin: Mono },
}

impl Time {
    pub(crate) fn new(kind: &ClockKind) -> Self {
        let by_clock = |clock: Arc<dyn Clock>| By::Clock { origin: clock.mono(), clock };
        let by = match kind {
            ClockKind::Monotonic => By::Monotonic,
            ClockKind::Boot => by_clock(Arc::new(BootClock::new())),
            ClockKind::Custom(clock) => by_clock(Arc::clone(clock)),
            ClockKind::Wall => By::Wall { origin: SystemTime::now() },
            ClockKind::Manual(clock) => By::Manual { origin: clock.mono(), clock: clock.clone() },
        };
        Self { base: Instant::now(), by }
    }

    /// Nanoseconds from the base to the present, and how many more there may be than were read.
    fn read(&self) -> (u64, u64) {
        match &self.by {
            By::Monotonic => (nanos(self.base.elapsed()), 0),
            // These count whole microseconds, rounded down.
            By::Clock { clock, origin } => (nanos(clock.mono().saturating_since(*origin)), 999),
            By::Wall { origin } => {
                (nanos(SystemTime::now().duration_since(*origin).unwrap_or_default()), 0)
            }
            By::Manual { clock, origin, .. } => (nanos(clock.mono().saturating_since(*origin)), 0),
        }
    }

    /// The last tick that has come.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.read().0 / 1_000
    }

    /// Nanoseconds from the base until `delay` from now; `u64::MAX`, which never comes, when that is
    /// more than 584 years.
    #[inline]
    pub(crate) fn nanos_after(&self, delay: Duration) -> u64 {
        let (now, slop) = self.read();
        now.saturating_add(slop).saturating_add(nanos(delay))
    }

    /// The tick at which `delay` has passed.
    #[inline]
    pub(crate) fn tick_after(&self, delay: Duration) -> u64 {
        tick(self.nanos_after(delay))
    }

    /// Nanoseconds from the base to an instant; 0 when that was before.
    pub(crate) fn nanos_at(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.base))
    }

    /// The tick at which an instant has come.
    pub(crate) fn tick_at(&self, at: Instant) -> u64 {
        tick(self.nanos_at(at))
    }

    /// The instant of so many nanoseconds from the base; a century ahead for what never comes.
    pub(crate) fn instant(&self, nanos: u64) -> Instant {
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);
        let of = |d: Duration| self.base.checked_add(d);
        of(Duration::from_nanos(nanos).min(10 * CENTURY))
            .or_else(|| of(CENTURY))
            .unwrap_or(self.base)
    }

    /// The instant of a tick.
    pub(crate) fn instant_of(&self, tick: u64) -> Instant {
        self.instant(tick.saturating_mul(1_000))
    }

    /// The present on this line of time.
    pub(crate) fn instant_now(&self) -> Instant {
        match self.by {
            By::Monotonic => Instant::now(),
            _ => self.instant(self.read().0),
        }
    }

    /// The wall clock: microseconds since the Unix epoch.
    pub(crate) fn wall(&self) -> i64 {
        match &self.by {
            By::Clock { clock, .. } => clock.wall(),
            By::Manual { clock, .. } => clock.wall(),
            By::Monotonic | By::Wall { .. } => micros_of(SystemTime::now()),
        }
    }

    /// Nanoseconds from the base to a moment of the wall clock, as the wall stands now.
    pub(crate) fn nanos_at_wall(&self, wall: i64) -> u64 {
        let ahead = i128::from(wall) - i128::from(self.wall());
        let now = match &self.by {
            By::Wall { origin } => {
                let from_base = i128::from(wall) - i128::from(micros_of(*origin));
                // The origin is read in nanoseconds and may be up to one microsecond later.
                return u64::try_from(from_base.saturating_mul(1_000)).unwrap_or(0);
            }
            _ => i128::from(self.read().0) + i128::from(self.read().1),
        };
        u64::try_from((now + ahead.saturating_mul(1_000)).max(0)).unwrap_or(u64::MAX)
    }

    /// How long it is until a tick; `None` when it has come.
    pub(crate) fn until(&self, tick: u64) -> Option<Duration> {
        let left = tick.saturating_mul(1_000).checked_sub(self.read().0)?;
        (left > 0).then(|| Duration::from_nanos(left))
    }

    /// Whether it is the line of std's `Instant`.
    pub(crate) fn is_monotonic(&self) -> bool {
        matches!(self.by, By::Monotonic)
    }

    /// Whether sleeping for as long as this line has to go may take longer than that: then one has
    /// to look now and then.
    pub(crate) fn may_jump(&self) -> bool {
        matches!(self.by, By::Clock { .. } | By::Wall { .. })
    }

    /// The clock, when it is one that only moves by hand.
    pub(crate) fn manual(&self) -> Option<&ManualClock> {
        match &self.by {
            By::Manual { clock, .. } => Some(clock),
            _ => None,
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Time").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// The tick at which so many nanoseconds have passed.
#[inline]
pub(crate) fn tick(nanos: u64) -> u64 {
    if nanos == u64::MAX { NEVER } else { nanos.div_ceil(1_000) }
}

/// A duration in nanoseconds; `u64::MAX` when there are more than 584 years of them.
#[inline]
pub(crate) fn nanos(d: Duration) -> u64 {
    d.as_secs()
        .checked_mul(1_000_000_000)
        .and_then(|n| n.checked_add(u64::from(d.subsec_nanos())))
        .unwrap_or(u64::MAX)
}

/// A moment of the wall in microseconds since the Unix epoch, rounded down; saturating.
pub(crate) fn micros_of(at: SystemTime) -> i64 {
    match at.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_nanos().div_ceil(1_000)).map_or(i64::MIN, |us| -us)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_round_up_and_never_overflow() {
        let clock = ManualClock::new(0);
        let time = Time::new(&ClockKind::Manual(clock.clone()));
        assert_eq!(time.tick_after(Duration::ZERO), 0);
        assert_eq!(time.tick_after(Duration::from_nanos(1)), 1);
        assert_eq!(time.tick_after(Duration::from_nanos(1_000)), 1);
        assert_eq!(time.tick_after(Duration::from_nanos(1_001)), 2);
        assert_eq!(time.tick_after(Duration::MAX), NEVER);
        clock.advance(Duration::from_micros(7));
        assert_eq!(time.now(), 7);
        assert_eq!(time.tick_after(Duration::MAX), NEVER);
        assert_eq!(time.tick_at(time.instant_of(9)), 9);
    }

    #[test]
    fn a_wall_deadline_follows_the_wall() {
        let clock = ManualClock::new(5_000_000);
        let time = Time::new(&ClockKind::Manual(clock.clone()));
        assert_eq!(tick(time.nanos_at_wall(5_000_250)), 250);
        assert_eq!(tick(time.nanos_at_wall(4_000_000)), 0);
        clock.step_wall(-100);
        assert_eq!(tick(time.nanos_at_wall(5_000_250)), 350);
        assert_eq!(time.nanos_at_wall(i64::MAX), u64::MAX);
    }
}

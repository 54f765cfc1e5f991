//! Store time: the one clock that due times, leases and records are judged by.
//!
//! A [`Time`] is microseconds since the Unix epoch as the store sees them: the wall clock on
//! one node, the database clock in a cluster. Due times are whole milliseconds, rounded up when
//! accepted, so that nothing is early. Nothing here reads a clock.

use serde::{Deserialize, Serialize};

/// Microseconds per millisecond.
pub const MILLI: i64 = 1_000;
/// Microseconds per second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds per minute: the span of one bucket of the due index.
pub const MINUTE: i64 = 60 * SECOND;
/// Microseconds per hour.
pub const HOUR: i64 = 60 * MINUTE;
/// Microseconds per day.
pub const DAY: i64 = 24 * HOUR;

/// An instant in store time: microseconds since the Unix epoch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// The earliest instant.
    pub const MIN: Time = Time(i64::MIN);
    /// The latest instant.
    pub const MAX: Time = Time(i64::MAX);

    /// Rounds up to a whole millisecond, as due times are when accepted.
    pub fn ceil_milli(self) -> Time {
        match self.0.rem_euclid(MILLI) {
            0 => self,
            rest => Time(self.0.saturating_add(MILLI - rest)),
        }
    }

    /// The minute that holds this instant, since 1970.
    pub fn minute(self) -> i64 {
        self.0.div_euclid(MINUTE)
    }

    /// This instant and `micros` more, held at the ends of the range.
    #[must_use]
    pub fn plus(self, micros: i64) -> Time {
        Time(self.0.saturating_add(micros))
    }

    /// Microseconds from `earlier` to this instant (negative when it is later), saturating.
    pub fn since(self, earlier: Time) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_up_and_never_wraps() {
        assert_eq!(Time(1).ceil_milli(), Time(1000));
        assert_eq!(Time(1000).ceil_milli(), Time(1000));
        assert_eq!(Time(-1).ceil_milli(), Time(0));
        assert!(Time(i64::MAX).ceil_milli() >= Time(i64::MAX - 1000));
    }

    #[test]
    fn buckets_are_floors() {
        assert_eq!(Time(MINUTE - 1).minute(), 0);
        assert_eq!(Time(-1).minute(), -1);
    }
}

//! The `Clock` trait and the two kinds of time it answers.
//!
//! A [`Mono`] is opaque apart from arithmetic: its origin is arbitrary, so it must never be stored
//! or compared with one of another clock. Wall times are plain `i64` microseconds since the Unix
//! epoch, negative before it. Arithmetic saturates; nothing here panics or wraps.

use std::sync::Arc;
use std::time::Duration;

/// A monotonic reading: whole microseconds since an origin that only its clock knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(u64);

impl Mono {
    /// The reading `us` microseconds after the origin.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// This reading plus `delay`, rounded up to a microsecond; the largest reading if that is
    /// beyond the range.
    pub fn saturating_add(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(micros_up(delay)))
    }

    /// How long after `earlier` this reading is; zero if it is not after it.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// One moment, seen by two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The monotonic reading.
    pub mono: Mono,
    /// Store time: microseconds since the Unix epoch by the clock that judges due times.
    pub store: i64,
}

/// A source of time.
pub trait Clock: Send + Sync {
    /// The monotonic reading. Never less than an earlier answer of the same clock.
    fn mono(&self) -> Mono;

    /// The wall clock: microseconds since the Unix epoch, negative before it. May step either way
    /// at any moment.
    fn wall(&self) -> i64;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn mono(&self) -> Mono {
        (**self).mono()
    }

    fn wall(&self) -> i64 {
        (**self).wall()
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn mono(&self) -> Mono {
        (**self).mono()
    }

    fn wall(&self) -> i64 {
        (**self).wall()
    }
}

/// `d` in microseconds, rounded up, saturating.
pub(crate) fn micros_up(d: Duration) -> u64 {
    u64::try_from(d.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// `us` as a signed number, saturating.
pub(crate) fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_and_rounds_up() {
        let end = Mono::from_micros(u64::MAX);
        assert_eq!(end.saturating_add(Duration::MAX), end);
        assert_eq!(Mono::default().saturating_since(end), Duration::ZERO);
        let one = Mono::default().saturating_add(Duration::from_nanos(1));
        assert_eq!(one.as_micros(), 1);
        assert_eq!(end.saturating_since(Mono::default()), Duration::from_micros(u64::MAX));
    }
}

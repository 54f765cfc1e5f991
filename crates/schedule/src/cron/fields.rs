//! The one normal form of every cron dialect: a set of civil times, as bits.
//!
//! Finding the next member jumps field by field: year, month, day, then time of day. It never
//! steps through minutes. What always holds: second, minute, hour and month sets are not empty.

use crate::civil::{DAY_S, date_of, day_of};
use crate::cron::days::Days;
use crate::walk::CivilSet;

/// The last civil year that is searched.
const YEAR_MAX: i64 = 9999;

/// The first year of a set of years.
pub(crate) const YEAR_BASE: i64 = 1970;

/// Years 1970 to 2161, of which dialects use those to 2099.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Years(pub(crate) [u64; 3]);

/// A cron rule in normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fields {
    /// Bits 0 to 59.
    pub(crate) seconds: u64,
    /// Bits 0 to 59.
    pub(crate) minutes: u64,
    /// Bits 0 to 23.
    pub(crate) hours: u64,
    pub(crate) days: Days,
    /// Bits 1 to 12.
    pub(crate) months: u64,
    /// `None` is every year.
    pub(crate) years: Option<Years>,
    /// Whether a second, minute or hour field begins with `*`: the rule runs by elapsed time.
    pub(crate) elapsed: bool,
}

impl Years {
    /// Whether it has a year.
    pub(crate) fn has(&self, year: i64) -> bool {
        self.at_or_after(year) == Some(year)
    }

    /// The first year of the set that is `year` or later.
    fn at_or_after(&self, year: i64) -> Option<i64> {
        let start = (year - YEAR_BASE).max(0);
        let mut word = usize::try_from(start / 64).ok()?;
        let mut bits = self.0.get(word)? & (u64::MAX << (start % 64));
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        Some(YEAR_BASE + word as i64 * 64 + i64::from(bits.trailing_zeros()))
    }
}

impl Fields {
    /// The first second of the day, from `from` on, that the rule names.
    fn time_at_or_after(&self, from: i64) -> Option<i64> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1
                && let Some(second) = bit_from(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = bit_from(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + bit_from(self.seconds, 0)?);
            }
        }
        let hour = bit_from(self.hours, hour + 1)?;
        Some(hour * 3600 + bit_from(self.minutes, 0)? * 60 + bit_from(self.seconds, 0)?)
    }
}

impl CivilSet for Fields {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        let today = local.div_euclid(DAY_S);
        let (mut year, mut month, mut day) = date_of(today);
        // The calendar repeats after 400 years, so a rule without years either has a member by
        // then or has none.
        let year_last = YEAR_MAX.min(year + 401);
        // The first time of any day, and that of the day in hand.
        let first = self.time_at_or_after(0)?;
        let mut time = first;
        match self.time_at_or_after(local.rem_euclid(DAY_S)) {
            Some(today) => time = today,
            None => day += 1,
        }
        loop {
            if let Some(years) = &self.years {
                let next = years.at_or_after(year)?;
                if next != year {
                    (year, month, day, time) = (next, 1, 1, first);
                }
            } else if year > year_last {
                return None;
            }
            while let Some(next) = bit_from(self.months, i64::from(month)) {
                if next as u32 != month {
                    (month, day, time) = (next as u32, 1, first);
                }
                // `day` is at most 32, one past the longest month.
                let days = u64::from(self.days.of_month(year, month));
                if let Some(found) = bit_from(days, i64::from(day)) {
                    if found != i64::from(day) {
                        time = first;
                    }
                    return Some(day_of(year, month, found as u32) * DAY_S + time);
                }
                (month, day, time) = (month + 1, 1, first);
            }
            (year, month, day, time) = (year + 1, 1, 1, first);
        }
    }
}

/// The first bit of a set at `from` or above.
fn bit_from(set: u64, from: i64) -> Option<i64> {
    if !(0..64).contains(&from) {
        return None;
    }
    let rest = set >> from << from;
    (rest != 0).then(|| i64::from(rest.trailing_zeros()))
}

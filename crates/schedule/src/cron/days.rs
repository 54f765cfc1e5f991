//! Which days of a month a cron rule names: day of month, day of week, and how they join.
//!
//! Everything is sets of bits, so a month costs a few dozen operations whatever the rule. Days
//! are bits 1 to 31, weekdays bits 0 (Sunday) to 6.

use crate::civil::{day_of, days_in, weekday_of};

/// How the two day fields join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    /// Both must hold.
    And,
    /// Either suffices.
    Or,
}

/// The day-of-month field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MonthDays {
    /// Plain days, bits 1 to 31.
    pub(crate) days: u32,
    /// `nW`: the weekday nearest to day n within the month, bits 1 to 31.
    pub(crate) nearest: u32,
    /// `L-n`: n days before the last, bits 0 to 30.
    pub(crate) before_last: u32,
    /// `LW`, `L-nW`: the weekday nearest to that day, bits 0 to 30.
    pub(crate) nearest_before_last: u32,
}

/// The day-of-week field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WeekDays {
    /// Plain weekdays, bits 0 to 6.
    pub(crate) days: u8,
    /// `nL`: the last such weekday of the month, bits 0 to 6.
    pub(crate) last: u8,
    /// `n#k`: for each k from 1 to 5 (index k − 1), weekdays as bits 0 to 6.
    pub(crate) nth: [u8; 5],
}

/// Both day fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Days {
    pub(crate) month: MonthDays,
    pub(crate) week: WeekDays,
    pub(crate) join: Join,
}

/// All days of the longest month.
pub(crate) const ALL_MONTH_DAYS: u32 = 0xffff_fffe;
/// All weekdays.
pub(crate) const ALL_WEEK_DAYS: u8 = 0x7f;

impl Days {
    /// The days of a month that the rule names, as bits 1 to 31.
    pub(crate) fn of_month(&self, year: i64, month: u32) -> u32 {
        let length = days_in(year, month);
        let real = ALL_MONTH_DAYS & (u32::MAX >> (31 - length));
        let all_week = self.week.days & ALL_WEEK_DAYS == ALL_WEEK_DAYS;
        // Most rules do not ask on which weekday a month begins.
        if self.join == Join::And && all_week && self.month.is_plain() {
            return real & self.month.days;
        }
        let first = weekday_of(day_of(year, month, 1));
        let by_month = self.month.of_month(first, length);
        let by_week = self.week.of_month(first, length);
        real & match self.join {
            Join::And => by_month & by_week,
            Join::Or => by_month | by_week,
        }
    }
}

impl MonthDays {
    /// Whether it is a set of day numbers and nothing else.
    fn is_plain(&self) -> bool {
        self.nearest | self.before_last | self.nearest_before_last == 0
    }

    fn of_month(&self, first: u32, length: u32) -> u32 {
        let mut days = self.days;
        for day in bits(self.nearest) {
            // A month without the day has no weekday nearest to it either.
            if day <= length {
                days |= 1 << nearest_weekday(day, first, length);
            }
        }
        for back in bits(self.before_last) {
            if back < length {
                days |= 1 << (length - back);
            }
        }
        for back in bits(self.nearest_before_last) {
            if back < length {
                days |= 1 << nearest_weekday(length - back, first, length);
            }
        }
        days
    }
}

impl WeekDays {
    fn of_month(&self, first: u32, length: u32) -> u32 {
        let mut days = spread(self.days, first);
        if self.last != 0 {
            days |= spread(self.last, first) & (0x7f << (length - 6));
        }
        for (index, weekdays) in self.nth.iter().enumerate() {
            if *weekdays != 0 {
                let week = (0x7f_u64 << (7 * index + 1)) as u32;
                days |= spread(*weekdays, first) & week;
            }
        }
        days
    }
}

/// The weekdays of a month that begins on weekday `first`, as bits 1 to 31.
fn spread(weekdays: u8, first: u32) -> u32 {
    let all = u64::from(weekdays & ALL_WEEK_DAYS);
    // Bit k of `week`: whether day 1 + k is named.
    let week = (all >> first | all << (7 - first)) & 0x7f;
    let weeks = week * (1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28);
    (weeks << 1) as u32
}

/// The Monday to Friday nearest to a day, without leaving the month.
fn nearest_weekday(day: u32, first: u32, length: u32) -> u32 {
    match (first + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == length => day - 2,
        0 => day + 1,
        _ => day,
    }
}

fn bits(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (set != 0).then(|| {
            let bit = set.trailing_zeros();
            set &= set - 1;
            bit
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weekdays_spread_over_every_month_shape() {
        for first in 0..7 {
            for weekdays in 0..=0x7f_u8 {
                let days = spread(weekdays, first);
                for day in 1..=31 {
                    let weekday = (first + day - 1) % 7;
                    assert_eq!(days >> day & 1, u32::from(weekdays >> weekday & 1));
                }
            }
        }
    }

    #[test]
    fn nearest_weekday_stays_in_the_month() {
        for length in 28..=31 {
            for first in 0..7 {
                for day in 1..=length {
                    let near = nearest_weekday(day, first, length);
                    assert!((1..=length).contains(&near));
                    assert!((1..6).contains(&((first + near - 1) % 7)));
                    assert!(near.abs_diff(day) <= 2);
                }
            }
        }
    }
}

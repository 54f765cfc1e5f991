//! Why a calendar leaves a day out, for people.

use std::fmt;

use crate::civil::date_of;

/// Why a day is left out.
///
/// `Display` gives `2026-10-01`, `2026-10-01 to 2026-10-07` or `every sun`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason(Form);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Form {
    /// The first and the last day of the range that it lies in.
    Dates(i64, i64),
    /// The day of the week, Sunday being 0.
    Weekday(u32),
}

impl Reason {
    pub(super) fn dates(first: i64, last: i64) -> Self {
        Self(Form::Dates(first, last))
    }

    pub(super) fn weekday(weekday: u32) -> Self {
        Self(Form::Weekday(weekday))
    }

    /// The last day from `day` on that is left out for the same reason without a day between.
    pub(crate) fn last_day(self, day: i64) -> i64 {
        match self.0 {
            Form::Dates(_, last) => last,
            Form::Weekday(_) => day,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Form::Dates(first, last) if first == last => f.write_str(&written(first)),
            Form::Dates(first, last) => write!(f, "{} to {}", written(first), written(last)),
            Form::Weekday(weekday) => {
                let name = crate::cron::WEEKDAYS.get(weekday as usize).copied();
                write!(f, "every {}", name.unwrap_or_default())
            }
        }
    }
}

/// A day as `2026-10-01`.
pub(super) fn written(day: i64) -> String {
    let (year, month, day) = date_of(day);
    format!("{year:04}-{month:02}-{day:02}")
}

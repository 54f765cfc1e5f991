//! The calendar rule: every n days, weeks, months, quarters or years, on a day, at a civil time.
//!
//! Periods are counted from the one that holds the schedule's start, else from the one that
//! holds 1970-01-01. Quarters are those of the calendar, the first begins with January; periods of
//! three months begin where the start says. What always holds: it is a set of civil times, so gap and
//! fold policies concern it. It deliberately lacks knowledge of holidays: a business day is Monday to
//! Friday, and exclusions take occurrences out without moving them.

use std::fmt;
use std::str::FromStr;

use crate::civil::{DAY_S, date_of, day_of, days_in, weekday_of};
use crate::error::{Error, Kind};
use crate::policy::MonthEnd;
use crate::walk::CivilSet;

/// The last civil year that is searched.
const YEAR_MAX: i64 = 9999;
/// The most units in a period.
const EVERY_MAX: u32 = 10_000;

/// What periods are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Days.
    Day,
    /// Weeks, from Monday to Sunday.
    Week,
    /// Months.
    Month,
    /// Quarters of the year; the month within them is the start's, else the first.
    Quarter,
    /// Years; the month is the start's, else January.
    Year,
}

impl Unit {
    /// Whether a day within it is a day of a month.
    fn has_months(self) -> bool {
        matches!(self, Unit::Month | Unit::Quarter | Unit::Year)
    }
}

/// The day within a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum On {
    /// A day of the month (1 to 31), or of the week (1, Monday, to 7, Sunday).
    Day(u8),
    /// The last Monday to Friday of the month, quarter or year, whatever the start.
    LastBusinessDay,
}

/// Every n days, weeks, months, quarters or years at a civil time.
///
/// ```
/// use tourbillon_schedule::{Calendar, On, Rule, Timing, Zone, format_instant, parse_instant};
/// let calendar = Calendar::parse("1 month")?.with_on(On::Day(31))?.with_at("02:00")?;
/// let timing = Timing::new(Rule::calendar(calendar), Zone::utc());
/// let next = timing.next_after(parse_instant("2026-02-01T00:00:00Z", None)?).unwrap();
/// assert_eq!(format_instant(next.logical), "2026-02-28T02:00:00Z");
/// assert_eq!(next.why.to_string(), "clamped to the month's end");
/// # Ok::<(), tourbillon_schedule::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    every: u32,
    unit: Unit,
    on: Option<On>,
    /// Second of the day.
    at: u32,
    month_end: MonthEnd,
}

impl Calendar {
    /// Every so many units, at midnight, on the start's day within the unit (without a start: its first day).
    ///
    /// # Errors
    ///
    /// Zero units, or more than 10,000.
    pub fn every(every: u32, unit: Unit) -> Result<Self, Error> {
        if !(1..=EVERY_MAX).contains(&every) {
            let expected = "from 1 to 10,000 days, weeks, months, quarters or years";
            return Err(refuse("every", &every.to_string(), expected));
        }
        Ok(Self { every, unit, on: None, at: 0, month_end: MonthEnd::default() })
    }

    /// Reads the period of a calendar rule: `1 month`, `2 weeks`, `quarter`, `day`.
    ///
    /// # Errors
    ///
    /// Text of another form, and what [`Calendar::every`] refuses.
    pub fn parse(every: &str) -> Result<Self, Error> {
        let expected = "a period such as 1 day, 2 weeks, 1 month, 1 quarter or 1 year";
        let text = every.trim();
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let count = match &text[..digits] {
            "" => 1,
            count => count.parse().map_err(|_| refuse("every", every, expected))?,
        };
        let unit = match text[digits..].trim_start() {
            "day" | "days" => Unit::Day,
            "week" | "weeks" => Unit::Week,
            "month" | "months" => Unit::Month,
            "quarter" | "quarters" => Unit::Quarter,
            "year" | "years" => Unit::Year,
            _ => return Err(refuse("every", every, expected)),
        };
        Self::every(count, unit)
    }

    /// With the day within the period.
    ///
    /// # Errors
    ///
    /// Any day for a period of days, a day outside 1 to 7 or the last business day for weeks, a
    /// day outside 1 to 31 for months, quarters and years.
    pub fn with_on(mut self, on: On) -> Result<Self, Error> {
        let fits = match on {
            On::Day(1..=7) => self.unit != Unit::Day,
            On::Day(8..=31) | On::LastBusinessDay => self.unit.has_months(),
            On::Day(_) => false,
        };
        if fits {
            self.on = Some(on);
            return Ok(self);
        }
        let expected = match self.unit {
            Unit::Day => "nothing, since a period of days has no day within it",
            Unit::Week => "a day of the week from 1 (Monday) to 7 (Sunday)",
            Unit::Month | Unit::Quarter | Unit::Year => {
                "a day of the month from 1 to 31, or last_business_day"
            }
        };
        Err(refuse("on", &on.to_string(), expected))
    }

    /// With a civil time of day, `HH:MM` or `HH:MM:SS`.
    ///
    /// # Errors
    ///
    /// Text of another form, or beyond 23:59:59.
    pub fn with_at(mut self, at: &str) -> Result<Self, Error> {
        let error = || refuse("at", at, "a time of day such as 02:00 or 23:59:30");
        let mut seconds = 0;
        let mut parts = 0;
        for (part, bound) in at.trim().split(':').zip([24, 60, 60, 0]) {
            let two_digits = part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
            let number: u32 = part.parse().map_err(|_| error())?;
            if !two_digits || number >= bound {
                return Err(error());
            }
            seconds = seconds * 60 + number;
            parts += 1;
        }
        self.at = match parts {
            2 => seconds * 60,
            3 => seconds,
            _ => return Err(error()),
        };
        Ok(self)
    }

    /// With what becomes of a day that a month lacks.
    #[must_use]
    pub fn with_month_end(mut self, month_end: MonthEnd) -> Self {
        self.month_end = month_end;
        self
    }

    /// Units in a period, and the unit.
    #[must_use]
    pub fn period(&self) -> (u32, Unit) {
        (self.every, self.unit)
    }

    /// The day within the period, when it was given.
    #[must_use]
    pub fn on(&self) -> Option<On> {
        self.on
    }

    /// The civil time of day, in seconds from midnight.
    #[must_use]
    pub fn at_s(&self) -> u32 {
        self.at
    }

    /// What becomes of a day that a month lacks.
    #[must_use]
    pub fn month_end(&self) -> MonthEnd {
        self.month_end
    }

    /// Its civil times, periods counted from the one that holds the civil time `start`, in
    /// seconds.
    pub(crate) fn grid(&self, start: Option<i64>) -> Grid<'_> {
        let anchor = start.map_or(0, |start| start.div_euclid(DAY_S));
        // 1970-01-01 was a Thursday, which nobody means who gives no start.
        let weekday = start.map_or(0, |_| (anchor + 3).rem_euclid(7));
        Grid { calendar: self, anchor, weekday }
    }
}

impl FromStr for On {
    type Err = Error;

    /// Reads a day number or `last_business_day`.
    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "last_business_day" => Ok(On::LastBusinessDay),
            _ => text
                .parse()
                .map(On::Day)
                .map_err(|_| refuse("on", text, "a day number, or last_business_day")),
        }
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            On::Day(day) => write!(f, "{day}"),
            On::LastBusinessDay => f.write_str("last_business_day"),
        }
    }
}

/// A calendar rule with its anchor: a set of civil times.
pub(crate) struct Grid<'a> {
    calendar: &'a Calendar,
    /// A day of the first period.
    anchor: i64,
    /// The weekday where none is given, Monday being 0.
    weekday: i64,
}

impl Grid<'_> {
    /// Number of the unit that holds a day: of days, weeks, months, quarters or years.
    fn unit_of(&self, day: i64) -> i64 {
        let (year, month, _) = date_of(day);
        match self.calendar.unit {
            Unit::Day => day,
            Unit::Week => (day + 3).div_euclid(7),
            Unit::Month => year * 12 + i64::from(month) - 1,
            Unit::Quarter => year * 4 + (i64::from(month) - 1) / 3,
            Unit::Year => year,
        }
    }

    /// The rule's day in a unit; `None` when the month lacks it and is left out.
    fn day_in(&self, unit: i64) -> Option<i64> {
        let (_, anchor_month, anchor_day) = date_of(self.anchor);
        let is_last = self.calendar.on == Some(On::LastBusinessDay);
        let (year, month) = match self.calendar.unit {
            Unit::Day => return Some(unit),
            Unit::Week => {
                let from_monday = match self.calendar.on {
                    Some(On::Day(day)) => i64::from(day) - 1,
                    _ => self.weekday,
                };
                return Some(unit * 7 - 3 + from_monday);
            }
            Unit::Month => (unit.div_euclid(12), unit.rem_euclid(12) as u32 + 1),
            Unit::Quarter => {
                let first = unit.rem_euclid(4) as u32 * 3 + 1;
                (unit.div_euclid(4), first + if is_last { 2 } else { (anchor_month - 1) % 3 })
            }
            Unit::Year => (unit, if is_last { 12 } else { anchor_month }),
        };
        let length = days_in(year, month);
        let day = match self.calendar.on {
            Some(On::LastBusinessDay) => {
                let back = match weekday_of(day_of(year, month, length)) {
                    6 => 1,
                    0 => 2,
                    _ => 0,
                };
                length - back
            }
            Some(On::Day(day)) => u32::from(day),
            None => anchor_day,
        };
        match self.calendar.month_end {
            MonthEnd::Skip if day > length => None,
            _ => Some(day_of(year, month, day.min(length))),
        }
    }
}

impl CivilSet for Grid<'_> {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        let every = i64::from(self.calendar.every);
        let first = self.unit_of(self.anchor);
        let periods = (self.unit_of(local.div_euclid(DAY_S)) - first).div_euclid(every);
        let last = self.unit_of(day_of(YEAR_MAX, 12, 31));
        let mut unit = first + periods * every;
        while unit <= last {
            if let Some(day) = self.day_in(unit) {
                let member = day * DAY_S + i64::from(self.calendar.at);
                if member >= local {
                    return Some(member);
                }
            }
            unit += every;
        }
        None
    }

    fn is_clamped(&self, local: i64) -> bool {
        let wanted = match self.calendar.on {
            _ if !self.calendar.unit.has_months() => return false,
            Some(On::Day(day)) => u32::from(day),
            Some(On::LastBusinessDay) => return false,
            None => date_of(self.anchor).2,
        };
        date_of(local.div_euclid(DAY_S)).2 < wanted
    }
}

fn refuse(field: &'static str, given: &str, expected: &'static str) -> Error {
    Error::new(Kind::Timing, field, None, given, expected)
}

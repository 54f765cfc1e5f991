//! Exclusion calendars: days on which schedules that name them have no occurrences.
//!
//! Days are civil dates in the schedule's zone. What always holds: ranges are kept in order and
//! apart, so asking costs O(log n). It deliberately lacks moving an occurrence to another day:
//! an excluded one is left out. It also lacks the names of holidays: why a day is left out is told
//! in dates and weekdays.

mod ics;
mod reason;

use std::borrow::Cow;

use crate::civil::{date_of, day_of, days_in, weekday_of};
use crate::error::{Error, Kind};
use crate::{MAX_INSTANT, MIN_INSTANT, Micros};

pub use reason::Reason;

/// Most separate ranges of dates in one calendar.
const RANGES_MAX: usize = 10_000;

const DATE_EXPECTED: &str = "a date such as 2026-10-01";

/// A set of days to leave out: dates, ranges of dates, weekdays, the days of iCalendar events.
///
/// ```
/// use tourbillon_schedule::Exclusion;
/// let holidays = Exclusion::new()
///     .with_dates("2026-10-01", "2026-10-07")?
///     .with_weekday("sun")?;
/// assert!(holidays.excludes("2026-10-03")?);
/// assert!(!holidays.excludes("2026-10-08")?);
/// # Ok::<(), tourbillon_schedule::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exclusion {
    /// First and last day of each range, in order, none touching the next.
    ranges: Vec<(i64, i64)>,
    /// Bits 0 (Sunday) to 6.
    weekdays: u8,
}

impl Exclusion {
    /// A calendar that leaves nothing out.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that a document may give: single dates, ranges of dates, weekdays, an iCalendar text.
    ///
    /// ```
    /// use tourbillon_schedule::Exclusion;
    /// let wrong = Exclusion::of(["2026-10-01", "2026-02-30"], [], ["sat"], None).unwrap_err();
    /// assert_eq!(wrong.field(), "dates[1]");
    /// ```
    ///
    /// # Errors
    ///
    /// What [`Exclusion::with_dates`], [`Exclusion::with_weekday`] and [`Exclusion::with_ics`] refuse; the
    /// field is `dates[1]`, `ranges[0].to`, `weekdays[2]`, `ics line 4` and so on.
    pub fn of<'a>(
        dates: impl IntoIterator<Item = &'a str>,
        ranges: impl IntoIterator<Item = (&'a str, &'a str)>,
        weekdays: impl IntoIterator<Item = &'a str>,
        ics: Option<&str>,
    ) -> Result<Self, Error> {
        let mut all = Self::new();
        for (index, text) in dates.into_iter().enumerate() {
            all = all.with_dates(text, text).map_err(|e| e.at(format!("dates[{index}]")))?;
        }
        for (index, (from, to)) in ranges.into_iter().enumerate() {
            all = all.with_dates(from, to).map_err(|e| {
                // A bound on all of them names no end of the range.
                let end = if ["from", "to"].contains(&e.field()) { e.field() } else { "from" };
                let path = format!("ranges[{index}].{end}");
                e.at(path)
            })?;
        }
        for (index, weekday) in weekdays.into_iter().enumerate() {
            all = all.with_weekday(weekday).map_err(|e| e.at(format!("weekdays[{index}]")))?;
        }
        match ics {
            Some(text) => all.with_ics(text),
            None => Ok(all),
        }
    }

    /// With the dates from one to another, both included: `2026-10-01`.
    ///
    /// # Errors
    ///
    /// A date that does not exist, an end before its beginning, more than 10,000 separate ranges.
    pub fn with_dates(mut self, from: &str, to: &str) -> Result<Self, Error> {
        let first = date("from", from)?;
        let last = date("to", to)?;
        if last < first {
            return Err(refuse("to", to, format!("a date from {from} on")));
        }
        self.add(first, last)?;
        Ok(self)
    }

    /// With a day of every week: `mon` to `sun`.
    ///
    /// # Errors
    ///
    /// Another word.
    pub fn with_weekday(mut self, weekday: &str) -> Result<Self, Error> {
        let names = crate::cron::WEEKDAYS;
        match names.iter().position(|name| weekday.eq_ignore_ascii_case(name)) {
            Some(index) => self.weekdays |= 1 << index,
            None => return Err(refuse("weekdays", weekday, "mon to sun")),
        }
        Ok(self)
    }

    /// With the days of the events of an iCalendar text (RFC 5545): `DTSTART` to `DTEND` or
    /// `DURATION`, repeated by a plain `RRULE:FREQ=YEARLY` (with `INTERVAL`, `COUNT`, `UNTIL`) up to the
    /// year 2200. A time of day counts as its day.
    ///
    /// # Errors
    ///
    /// Text without events, events without a proper `DTSTART`, other rules of repetition; the field
    /// names the line. A text over 256 KiB.
    pub fn with_ics(mut self, text: &str) -> Result<Self, Error> {
        ics::events(text, &mut |first, last| self.add(first, last))?;
        Ok(self)
    }

    /// Whether a date is left out.
    ///
    /// # Errors
    ///
    /// A date that does not exist.
    pub fn excludes(&self, text: &str) -> Result<bool, Error> {
        date("date", text).map(|day| self.has(day))
    }

    /// The days that are left out from an instant's day (in UTC) on, in order, each as `2026-10-01` with
    /// the reason. Up to the year 9999.
    pub fn days_from(&self, instant: Micros) -> impl Iterator<Item = (String, Reason)> + '_ {
        let instant = instant.clamp(MIN_INSTANT, MAX_INSTANT);
        let mut next = Some(instant.div_euclid(1_000_000).div_euclid(crate::civil::DAY_S));
        std::iter::from_fn(move || {
            let day = self.first_from(next?)?;
            next = day.checked_add(1);
            Some((reason::written(day), self.reason(day)?))
        })
    }

    /// The first day that is left out from one on.
    fn first_from(&self, day: i64) -> Option<i64> {
        let weekly = (day..day + 7).find(|day| self.is_weekday(*day));
        let after = self.ranges.partition_point(|(_, last)| *last < day);
        let dated = self.ranges.get(after).map(|(first, _)| day.max(*first));
        let first = match (weekly, dated) {
            (Some(weekly), Some(dated)) => weekly.min(dated),
            (weekly, dated) => weekly.or(dated)?,
        };
        (first <= day_of(9999, 12, 31)).then_some(first)
    }

    /// Why a day is left out; `None` when it is not. Dates come before weekdays.
    pub(crate) fn reason(&self, day: i64) -> Option<Reason> {
        match self.range(day) {
            Some((first, last)) => Some(Reason::dates(first, last)),
            None => self.is_weekday(day).then(|| Reason::weekday(weekday_of(day))),
        }
    }

    pub(crate) fn has(&self, day: i64) -> bool {
        self.is_weekday(day) || self.range(day).is_some()
    }

    fn is_weekday(&self, day: i64) -> bool {
        self.weekdays >> weekday_of(day) & 1 == 1
    }

    /// The range that holds a day.
    fn range(&self, day: i64) -> Option<(i64, i64)> {
        let before = self.ranges.partition_point(|(first, _)| *first <= day);
        let range = self.ranges.get(before.checked_sub(1)?)?;
        (range.1 >= day).then_some(*range)
    }

    fn add(&mut self, first: i64, last: i64) -> Result<(), Error> {
        // Ranges that overlap or touch become one.
        let from = self.ranges.partition_point(|(_, end)| *end < first - 1);
        let until = self.ranges.partition_point(|(start, _)| *start <= last + 1);
        let joined = self.ranges.get(from..until).unwrap_or_default();
        let first = joined.first().map_or(first, |range| range.0.min(first));
        let last = joined.last().map_or(last, |range| range.1.max(last));
        self.ranges.splice(from..until.max(from), [(first, last)]);
        if self.ranges.len() > RANGES_MAX {
            let given = format!("{} ranges", self.ranges.len());
            return Err(refuse("dates", &given, "at most 10,000 separate ranges of dates"));
        }
        Ok(())
    }
}

/// The first day from `day` on that none of the calendars leaves out; `None` when there is none
/// up to year 9999.
pub(crate) fn first_allowed<'a>(
    calendars: impl Iterator<Item = &'a Exclusion> + Clone,
    day: i64,
) -> Option<i64> {
    let weekdays = calendars.clone().fold(0, |bits, calendar| bits | calendar.weekdays);
    if weekdays == 0x7f {
        return None;
    }
    let end = day_of(9999, 12, 31);
    let mut day = day;
    while day <= end {
        if weekdays >> weekday_of(day) & 1 == 1 {
            day += 1;
            continue;
        }
        match calendars.clone().filter_map(|calendar| calendar.range(day)).map(|r| r.1).max() {
            Some(last) => day = last + 1,
            None => return Some(day),
        }
    }
    None
}

/// Reads `YYYY-MM-DD` as a day.
fn date(field: &'static str, text: &str) -> Result<i64, Error> {
    let error = || refuse(field, text, DATE_EXPECTED);
    let plain = text.len() == 10 && text.is_ascii();
    if !plain || &text[4..5] != "-" || &text[7..8] != "-" {
        return Err(error());
    }
    day_from(&text[..4], &text[5..7], &text[8..]).ok_or_else(error)
}

fn day_from(year: &str, month: &str, day: &str) -> Option<i64> {
    let number = |text: &str| crate::cron::digits(text);
    let year = number(year).filter(|year| (1..=9999).contains(year))?;
    let month = number(month).filter(|month| (1..=12).contains(month))? as u32;
    let length = days_in(year, month);
    let day = number(day).filter(|day| (1..=i64::from(length)).contains(day))?;
    Some(day_of(year, month, day as u32))
}

/// The same date in another year; `None` for 29 February in a common year.
fn in_year(day: i64, year: i64) -> Option<i64> {
    let (_, month, of_month) = date_of(day);
    (of_month <= days_in(year, month)).then(|| day_of(year, month, of_month))
}

fn refuse(
    field: impl Into<Cow<'static, str>>,
    given: &str,
    expected: impl Into<Cow<'static, str>>,
) -> Error {
    Error::new(Kind::Exclusion, field, None, given, expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_stay_in_order_and_mean_their_union(
            ranges in prop::collection::vec((0_i64..200, 0_i64..12), 0..40),
            weekdays in 0_u8..0x7f,
            probe in 0_i64..230,
        ) {
            let mut calendar = Exclusion { weekdays, ..Exclusion::new() };
            let mut days = BTreeSet::new();
            for (first, length) in ranges {
                calendar.add(first, first + length).unwrap();
                days.extend(first..=first + length);
            }
            for pair in calendar.ranges.windows(2) {
                prop_assert!(pair[0].0 <= pair[0].1 && pair[0].1 + 1 < pair[1].0);
            }
            let left_out = |day: i64| days.contains(&day) || weekdays >> weekday_of(day) & 1 == 1;
            for day in -5..230 {
                prop_assert_eq!(calendar.has(day), left_out(day));
            }
            let expected = (probe..).find(|day| !left_out(*day));
            prop_assert_eq!(first_allowed([&calendar].into_iter(), probe), expected);
            let listed: Vec<String> =
                calendar.days_from(probe * 86_400_000_000 + 5).take(20).map(|(day, _)| day).collect();
            let expected: Vec<String> =
                (probe..probe + 400).filter(|day| left_out(*day)).take(20).map(reason::written).collect();
            prop_assert_eq!(listed, expected);
            for day in -5..230 {
                let reason = calendar.reason(day).map(|reason| reason.to_string());
                let dated = days.contains(&day);
                match reason {
                    None => prop_assert!(!left_out(day)),
                    Some(text) if dated => {
                        let (first, last) = calendar.range(day).unwrap();
                        prop_assert!(text.starts_with(&reason::written(first)), "{}", text);
                        prop_assert!(text.ends_with(&reason::written(last)), "{}", text);
                    }
                    Some(text) => prop_assert!(text.starts_with("every "), "{}", text),
                }
            }
        }
    }

    #[test]
    fn refusals_name_the_field() {
        let new = Exclusion::new;
        assert_eq!(new().with_dates("2026-02-30", "2026-03-01").unwrap_err().field(), "from");
        assert_eq!(new().with_dates("2026-02-01", "2026-1-1").unwrap_err().field(), "to");
        assert_eq!(new().with_dates("2026-02-02", "2026-02-01").unwrap_err().field(), "to");
        assert_eq!(new().with_dates("２026-02", "2026-02-01").unwrap_err().field(), "from");
        assert_eq!(new().with_weekday("someday").unwrap_err().field(), "weekdays");
        assert!(new().excludes("+026-01-01").unwrap_err().is_exclusion());
    }

    #[test]
    fn a_document_is_the_union_of_its_parts_and_names_what_is_wrong() {
        let ics = "BEGIN:VEVENT\nDTSTART:20261225\nEND:VEVENT";
        let all = Exclusion::of(
            ["2026-10-01"],
            [("2026-05-01", "2026-05-03")],
            ["sat", "SUN"],
            Some(ics),
        )
        .unwrap();
        let days: Vec<String> = all
            .days_from(crate::parse_instant("2026-09-28T00:00:00Z", None).unwrap())
            .take(4)
            .map(|(day, why)| format!("{day}: {why}"))
            .collect();
        assert_eq!(
            days,
            [
                "2026-10-01: 2026-10-01",
                "2026-10-03: every sat",
                "2026-10-04: every sun",
                "2026-10-10: every sat",
            ]
        );
        assert!(all.excludes("2026-05-02").unwrap() && all.excludes("2026-12-25").unwrap());
        let of = |ranges: &[(&'static str, &'static str)], weekdays: &[&'static str], ics| {
            let error = Exclusion::of(
                ["2026-01-01"],
                ranges.iter().copied(),
                weekdays.iter().copied(),
                ics,
            );
            error.unwrap_err().field().to_owned()
        };
        assert_eq!(of(&[("2026-01-01", "2026-01-02"), ("x", "y")], &[], None), "ranges[1].from");
        assert_eq!(of(&[("2026-01-02", "2026-01-01")], &[], None), "ranges[0].to");
        assert_eq!(of(&[], &["mon", "noday"], None), "weekdays[1]");
        assert_eq!(of(&[], &[], Some("BEGIN:VEVENT\nDTSTART:x\n")), "ics line 2");
        assert_eq!(Exclusion::new().days_from(0).next(), None);
        assert_eq!(all.days_from(crate::MAX_INSTANT).count(), 0);
    }

    #[test]
    fn all_weekdays_leave_no_day() {
        let mut calendar = Exclusion::new();
        for weekday in crate::cron::WEEKDAYS {
            calendar = calendar.with_weekday(weekday).unwrap();
        }
        assert_eq!(first_allowed([&calendar].into_iter(), 0), None);
        let always = Exclusion::new().with_dates("0001-01-01", "9999-12-31").unwrap();
        assert_eq!(first_allowed([&always].into_iter(), 0), None);
    }
}

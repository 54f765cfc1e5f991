//! Calendar events of systemd (`OnCalendar=`): `Mon..Fri *-*-* 09:00 Europe/Berlin`.
//!
//! The grammar is that of systemd.time(7): weekdays, a date, a time, a zone, each of the first three
//! perhaps left out; lists, ranges `a..b`, repetitions `a/n`, days before the month's end after `~`.
//! What always holds: an event that is read names at least one value in every field. Fractions of a
//! second are deliberately absent, and so are years outside 1970 to 2099.

use std::fmt;

use crate::cron::{ALL_MONTH_DAYS, ALL_WEEK_DAYS, Days, Fields, Join, MonthDays, WeekDays, Years};
use crate::cron::{YEAR_BASE, digits, fields as words};
use crate::error::{Error, Kind};
use crate::{CronExpr, Dialect, Micros, Zone, parse_instant};

use super::print::{field, runs};

/// Longest event that is read, in bytes.
const TEXT_MAX: usize = 1_000;
/// The last year.
const YEAR_MAX: i64 = 2099;

const WEEKDAYS: [(&str, &str, u32); 7] = [
    ("mon", "monday", 1),
    ("tue", "tuesday", 2),
    ("wed", "wednesday", 3),
    ("thu", "thursday", 4),
    ("fri", "friday", 5),
    ("sat", "saturday", 6),
    ("sun", "sunday", 0),
];

/// A calendar event of systemd.
#[derive(Debug, Clone)]
pub struct OnCalendar {
    text: Box<str>,
    weekdays: u8,
    /// The years, as bits from 1970 on; `None` is every year.
    years: Option<[u64; 3]>,
    months: u64,
    days: MonthDays,
    hours: u64,
    minutes: u64,
    seconds: u64,
    zone: Option<Zone>,
}

/// An event as a rule of ours.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OnCalendarRule {
    /// The cron expression.
    pub expr: CronExpr,
    /// No occurrence before this instant, when the event has a first year that the expression has not.
    pub start: Option<Micros>,
    /// No occurrence after this instant, for the last year.
    pub end: Option<Micros>,
}

/// A piece of the event and where it begins.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Part<'a> {
    fn split(self, at: usize, len: usize) -> (Part<'a>, Part<'a>) {
        let right = Part { text: &self.text[at + len..], at: self.at + at + len };
        (Part { text: &self.text[..at], at: self.at }, right)
    }

    fn split_once(self, separator: &str) -> Option<(Part<'a>, Part<'a>)> {
        self.text.find(separator).map(|at| self.split(at, separator.len()))
    }

    fn items(self) -> impl Iterator<Item = Part<'a>> {
        let mut at = self.at;
        self.text.split(',').map(move |text| {
            let part = Part { text, at };
            at += text.len() + 1;
            part
        })
    }

    fn refuse(self, field: &'static str, expected: impl Into<String>) -> Error {
        Error::new(Kind::Systemd, field, Some(self.at + 1), self.text, expected.into())
    }
}

/// A field of numbers.
struct Component {
    name: &'static str,
    low: i64,
    high: i64,
    expected: &'static str,
}

const YEAR: Component =
    Component { name: "year", low: YEAR_BASE, high: YEAR_MAX, expected: "1970-2099" };
const MONTH: Component = Component { name: "month", low: 1, high: 12, expected: "1-12" };
const DAY: Component = Component { name: "day", low: 1, high: 31, expected: "1-31" };
const HOUR: Component = Component { name: "hour", low: 0, high: 23, expected: "0-23" };
const MINUTE: Component = Component { name: "minute", low: 0, high: 59, expected: "0-59" };
const SECOND: Component =
    Component { name: "second", low: 0, high: 59, expected: "a whole second, 0-59" };

impl OnCalendar {
    /// Reads a calendar event.
    ///
    /// # Errors
    ///
    /// The first fault from the left, with field and column (bytes from 1). Text over 1,000 bytes.
    ///
    /// ```
    /// use tourbillon_schedule::OnCalendar;
    /// let event = OnCalendar::parse("Mon..Fri 22:30 Europe/Berlin")?;
    /// let rule = event.rule(&tourbillon_schedule::Zone::utc())?;
    /// assert_eq!(rule.expr.as_str(), "0 30 22 * * MON-FRI");
    /// # Ok::<(), tourbillon_schedule::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, Error> {
        let whole = Part { text, at: 0 };
        if text.len() > TEXT_MAX {
            return Err(whole.refuse("calendar event", format!("at most {TEXT_MAX} bytes")));
        }
        let mut event = Self {
            text: text.trim().into(),
            weekdays: ALL_WEEK_DAYS,
            years: None,
            months: 0x1ffe,
            days: MonthDays { days: ALL_MONTH_DAYS, ..MonthDays::default() },
            hours: 1,
            minutes: 1,
            seconds: 1,
            zone: None,
        };
        let mut parts: Vec<Part<'_>> =
            words(text).into_iter().map(|p| Part { text: p.text, at: p.at }).collect();
        if let [_, .., last] = parts[..]
            && last.text.starts_with(|c: char| c.is_ascii_alphabetic())
            && weekday(last.text).is_none()
        {
            let zone = Zone::get(last.text)
                .map_err(|error| error.within(Kind::Systemd).placed(last.at + 1))?;
            event.zone = Some(zone);
            parts.pop();
        }
        let Some(first) = parts.first().copied() else {
            return Err(whole.refuse("calendar event", "an event such as Mon *-*-* 09:00"));
        };
        if parts.len() == 1 && event.shorthand(first)? {
            return Ok(event);
        }
        let mut rest = &parts[..];
        let mut weekdays = 0;
        while let Some(part) = rest.first()
            && part.text.starts_with(|c: char| c.is_ascii_alphabetic())
        {
            weekdays |= weekday_list(*part)?;
            rest = &rest[1..];
        }
        if weekdays != 0 {
            event.weekdays = weekdays;
        }
        let mut joined = Vec::new();
        for part in rest {
            // `2026-03-05T05:40`
            match part.split_once("T") {
                Some((date, time)) => joined.extend([date, time]),
                None => joined.push(*part),
            }
        }
        match joined[..] {
            [] => {}
            [one] if one.text.contains(':') => event.time(one)?,
            [one] => event.date(one)?,
            [date, time] => {
                event.date(date)?;
                event.time(time)?;
            }
            [_, _, extra, ..] => {
                return Err(extra.refuse("calendar event", "nothing after weekdays, date and time"));
            }
        }
        Ok(event)
    }

    /// The event as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The zone that it names itself.
    #[must_use]
    pub fn zone(&self) -> Option<&Zone> {
        self.zone.as_ref()
    }

    /// The event as a rule of ours: a cron expression, of the spring dialect or, for years, of quartz. `zone` is for an
    /// event that names none, and decides where its years begin.
    ///
    /// # Errors
    ///
    /// Years with gaps together with both weekdays and days of the month, which neither dialect has.
    pub fn rule(&self, zone: &Zone) -> Result<OnCalendarRule, Error> {
        let zone = self.zone.as_ref().unwrap_or(zone);
        let week = self.week_field();
        let month = self.month_field();
        let times = format!(
            "{} {} {}",
            field(self.seconds, 0, 59),
            field(self.minutes, 0, 59),
            field(self.hours, 0, 23)
        );
        let months = field(self.months, 1, 12);
        let spring =
            || CronExpr::parse(Dialect::Spring, &format!("{times} {month} {months} {week}"), "");
        let inner = |error: Error| error.within(Kind::Systemd);
        let Some(years) = self.year_list() else {
            let expr = spring().map_err(inner)?;
            return Ok(OnCalendarRule { expr, start: None, end: None });
        };
        let (first, last) = (years[0], years[years.len() - 1]);
        if month == "*" || week == "*" {
            let year = runs(&years, |year| year.to_string());
            // Names mean the same weekday in both dialects.
            let (month, week) =
                if week == "*" { (month.as_str(), "?") } else { ("?", week.as_str()) };
            let text = format!("{times} {month} {months} {week} {year}");
            let expr = CronExpr::parse(Dialect::Quartz, &text, "").map_err(inner)?;
            return Ok(OnCalendarRule { expr, start: None, end: None });
        }
        if last - first + 1 != years.len() as i64 {
            let expected = "years in a row, when both weekdays and days are given";
            let given = runs(&years, |year| year.to_string());
            return Err(Error::new(Kind::Systemd, "year", None, &given, expected));
        }
        let begin = |year: i64| parse_instant(&format!("{year:04}-01-01 00:00:00"), Some(zone));
        let start = begin(first).map_err(inner)?;
        let end = begin(last + 1).map_err(inner)? - 1;
        let expr = spring().map_err(inner)?;
        Ok(OnCalendarRule { expr, start: Some(start), end: Some(end) })
    }

    pub(super) fn fields(&self) -> Fields {
        Fields {
            seconds: self.seconds,
            minutes: self.minutes,
            hours: self.hours,
            days: Days {
                month: self.days,
                week: WeekDays { days: self.weekdays, ..WeekDays::default() },
                join: Join::And,
            },
            months: self.months,
            years: self.years.map(Years),
            elapsed: false,
        }
    }

    fn year_list(&self) -> Option<Vec<i64>> {
        let years = self.years?;
        let has = |year: i64| {
            let index = (year - YEAR_BASE) as usize;
            years[index / 64] >> (index % 64) & 1 == 1
        };
        Some((YEAR_BASE..=YEAR_MAX).filter(|year| has(*year)).collect())
    }

    fn week_field(&self) -> String {
        if self.weekdays == ALL_WEEK_DAYS {
            return "*".to_owned();
        }
        let members: Vec<i64> = (1..=7).filter(|day| self.weekdays >> (day % 7) & 1 == 1).collect();
        runs(&members, |day| WEEKDAYS[day as usize - 1].0.to_ascii_uppercase())
    }

    fn month_field(&self) -> String {
        if self.days.before_last == 0 {
            return field(u64::from(self.days.days), 1, 31);
        }
        let members = (0..31).filter(|back| self.days.before_last >> back & 1 == 1);
        let items: Vec<String> = members
            .map(|back| if back == 0 { "L".to_owned() } else { format!("L-{back}") })
            .collect();
        items.join(",")
    }

    /// `daily` and its like. Answers whether it was one.
    fn shorthand(&mut self, part: Part<'_>) -> Result<bool, Error> {
        let name = part.text.to_ascii_lowercase();
        let first = MonthDays { days: 1 << 1, ..MonthDays::default() };
        match name.as_str() {
            "minutely" => (self.hours, self.minutes) = (0xff_ffff, (1 << 60) - 1),
            "hourly" => self.hours = 0xff_ffff,
            "daily" => {}
            "weekly" => self.weekdays = 1 << 1,
            "monthly" => self.days = first,
            "quarterly" => (self.days, self.months) = (first, 1 << 1 | 1 << 4 | 1 << 7 | 1 << 10),
            "semiannually" | "semi-annually" | "biannually" | "bi-annually" => {
                (self.days, self.months) = (first, 1 << 1 | 1 << 7);
            }
            "yearly" | "annually" => (self.days, self.months) = (first, 1 << 1),
            _ if name.starts_with('@') => {
                let expected = "a rule of time; @SECONDS is one instant, which tourbillon at runs";
                return Err(part.refuse("calendar event", expected));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn date(&mut self, part: Part<'_>) -> Result<(), Error> {
        let expected = "a date such as *-*-01, 12-24 or *-*~01, or a time such as 09:00";
        let (before, day, from_end) = match part.text.rfind(['-', '~']) {
            Some(at) => {
                let (before, day) = part.split(at, 1);
                (before, day, part.text.as_bytes()[at] == b'~')
            }
            None => return Err(part.refuse("date", expected)),
        };
        let (year, month) = match before.split_once("-") {
            Some((year, month)) => (Some(year), month),
            None => (None, before),
        };
        if let Some(year) = year {
            self.years = YEAR.years(year)?;
        }
        self.months = MONTH.set(month)?;
        let set = if from_end { DAY.set_from_end(day)? } else { DAY.set(day)? } as u32;
        self.days = match from_end {
            // `~01` is the last day, bit 0.
            true => MonthDays { before_last: set >> 1, ..MonthDays::default() },
            false => MonthDays { days: set, ..MonthDays::default() },
        };
        Ok(())
    }

    fn time(&mut self, part: Part<'_>) -> Result<(), Error> {
        let Some((hour, rest)) = part.split_once(":") else {
            return Err(part.refuse("time", "a time such as 09:00 or 09:00:30"));
        };
        let (minute, second) = match rest.split_once(":") {
            Some((minute, second)) => (minute, Some(second)),
            None => (rest, None),
        };
        self.hours = HOUR.set(hour)?;
        self.minutes = MINUTE.set(minute)?;
        self.seconds = match second {
            Some(second) => SECOND.set(second)?,
            None => 1,
        };
        Ok(())
    }
}

impl fmt::Display for OnCalendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Component {
    fn number(&self, part: Part<'_>) -> Result<i64, Error> {
        let mut value = digits(part.text);
        if self.low == YEAR_BASE && part.text.len() <= 2 {
            // As there: 70 to 99 are of the last century.
            value = value.map(|year| if year < 70 { 2000 + year } else { 1900 + year });
        }
        value
            .filter(|value| (self.low..=self.high).contains(value))
            .ok_or_else(|| part.refuse(self.name, self.expected))
    }

    /// The members of a list without a `*`.
    fn members(&self, part: Part<'_>, from_end: bool) -> Result<Vec<i64>, Error> {
        let mut members = Vec::new();
        for item in part.items() {
            let (range, step) = match item.split_once("/") {
                Some((range, step)) => {
                    let step_value = digits(step.text).filter(|step| *step > 0);
                    let expected = "a repetition of at least 1";
                    (range, Some(step_value.ok_or_else(|| step.refuse(self.name, expected))?))
                }
                None => (item, None),
            };
            if range.text == "*" {
                return Err(item.refuse(self.name, "* alone, or a number before the /"));
            }
            let (first, last) = match range.split_once("..") {
                Some((first, last)) => (self.number(first)?, self.number(last)?),
                None => {
                    let first = self.number(range)?;
                    // Days from the end count down to the last.
                    let end = if from_end { self.low } else { self.high };
                    (first, if step.is_some() { end } else { first })
                }
            };
            // Of days from the end either may be written first.
            let (low, high) =
                if from_end { (last.min(first), last.max(first)) } else { (first, last) };
            if low > high {
                return Err(range.refuse(self.name, "a range that begins before it ends"));
            }
            let step = step.unwrap_or(1);
            let mut offset = 0;
            while offset <= high - low {
                members.push(if from_end { high - offset } else { low + offset });
                offset = offset.saturating_add(step);
            }
        }
        Ok(members)
    }

    fn set(&self, part: Part<'_>) -> Result<u64, Error> {
        if part.text == "*" {
            return Ok((self.low..=self.high).fold(0, |set, n| set | 1 << n));
        }
        Ok(self.members(part, false)?.into_iter().fold(0, |set, n| set | 1 << n))
    }

    fn set_from_end(&self, part: Part<'_>) -> Result<u64, Error> {
        if part.text == "*" {
            return self.set(part);
        }
        Ok(self.members(part, true)?.into_iter().fold(0, |set, n| set | 1 << n))
    }

    fn years(&self, part: Part<'_>) -> Result<Option<[u64; 3]>, Error> {
        if part.text == "*" {
            return Ok(None);
        }
        let mut set = [0; 3];
        for year in self.members(part, false)? {
            let index = (year - YEAR_BASE) as usize;
            set[index / 64] |= 1_u64 << (index % 64);
        }
        Ok(Some(set))
    }
}

/// The weekday of a name, Sunday being 0.
fn weekday(text: &str) -> Option<u32> {
    let found = WEEKDAYS.iter().find(|(short, long, _)| {
        text.eq_ignore_ascii_case(short) || text.eq_ignore_ascii_case(long)
    });
    found.map(|(.., day)| *day)
}

/// A list of weekdays and ranges of them; a comma at the end is let pass.
fn weekday_list(part: Part<'_>) -> Result<u8, Error> {
    let expected = "a weekday such as Mon, a range such as Mon..Fri, or a list of them";
    let named = |part: Part<'_>| weekday(part.text).ok_or_else(|| part.refuse("weekday", expected));
    let mut days = 0;
    let count = part.items().count();
    for (index, item) in part.items().enumerate() {
        if item.text.is_empty() && index > 0 && index + 1 == count {
            break;
        }
        let range = item.split_once("..").or_else(|| item.split_once("-"));
        let Some((first, last)) = range else {
            days |= 1 << named(item)?;
            continue;
        };
        // Monday comes first there, so a range may end on Sunday and not go round.
        let (first, last) = ((named(first)? + 6) % 7, (named(last)? + 6) % 7);
        if first > last {
            return Err(item.refuse("weekday", "a range that begins before it ends, Monday first"));
        }
        for day in first..=last {
            days |= 1 << ((day + 1) % 7);
        }
    }
    Ok(days)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reading, Rule, Timing, format_instant};
    use proptest::prelude::*;

    fn rule(text: &str) -> OnCalendarRule {
        let event = OnCalendar::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        event.rule(&Zone::utc()).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    /// The examples of systemd.time(7), and further ones.
    #[test]
    fn events_as_cron_expressions() {
        for (event, expr) in [
            ("minutely", "0 * * * * *"),
            ("hourly", "0 0 * * * *"),
            ("daily", "0 0 0 * * *"),
            ("Weekly", "0 0 0 * * MON"),
            ("monthly", "0 0 0 1 * *"),
            ("quarterly", "0 0 0 1 1/3 *"),
            ("semiannually", "0 0 0 1 1,7 *"),
            ("yearly", "0 0 0 1 1 *"),
            ("daily Europe/Berlin", "0 0 0 * * *"),
            ("Sat,Thu,Mon..Wed,Sat..Sun", "0 0 0 * * MON-THU,SAT,SUN"),
            ("Mon,Sun *-*-* 2,1:23", "0 23 1,2 * * MON,SUN"),
            ("Wed *-1", "0 0 0 1 * WED"),
            ("Wed..Wed,Wed *-1", "0 0 0 1 * WED"),
            ("Wed, 17:48", "0 48 17 * * WED"),
            ("10-15", "0 0 0 15 10 *"),
            ("monday *-12-* 17:00", "0 0 17 * 12 MON"),
            ("Mon,Fri *-*-3,1,2 *:30:45", "45 30 * 1-3 * MON,FRI"),
            ("12,14,13,12:20,10,30", "0 10,20,30 12-14 * * *"),
            ("mon,fri *-1/2-1,3 *:30:45", "45 30 * 1,3 1/2 MON,FRI"),
            ("08:05:40", "40 5 8 * * *"),
            ("Sat,Sun 12-05 08:05:40", "40 5 8 5 12 SAT,SUN"),
            ("*:0/5", "0 0/5 * * * *"),
            ("*-*-* 08..18/2:00", "0 0 8,10,12,14,16,18 * * *"),
            ("*-*~01", "0 0 0 L * *"),
            ("*-02~03", "0 0 0 L-2 2 *"),
            ("Mon *-05~07/1", "0 0 0 L,L-1,L-2,L-3,L-4,L-5,L-6 5 MON"),
            ("2026-03-05 05:40", "0 40 5 5 3 ? 2026"),
            ("2026-03-05T05:40 UTC", "0 40 5 5 3 ? 2026"),
            ("26..27-*-1", "0 0 0 1 * ? 2026,2027"),
            ("Mon 2026-*-*", "0 0 0 ? * MON 2026"),
            ("*:*:*", "* * * * * *"),
        ] {
            assert_eq!(rule(event).expr.as_str(), expr, "{event}");
        }
    }

    #[test]
    fn years_in_a_row_become_bounds_beside_weekdays_and_days() {
        let rule = rule("Fri 2026..2028-*-13 09:00");
        assert_eq!(rule.expr.as_str(), "0 0 9 13 * FRI");
        assert_eq!(format_instant(rule.start.unwrap()), "2026-01-01T00:00:00Z");
        assert_eq!(format_instant(rule.end.unwrap()), "2028-12-31T23:59:59.999999Z");
        let gaps = OnCalendar::parse("Fri 2026,2028-*-13").unwrap();
        let error = gaps.rule(&Zone::utc()).unwrap_err();
        assert_eq!((error.field(), error.given()), ("year", "2026,2028"));
    }

    #[test]
    fn faults_say_where_and_what() {
        for (text, field, column) in [
            ("", "calendar event", 1),
            ("25:00", "hour", 1),
            ("*-13-01", "month", 3),
            ("*-*-32", "day", 5),
            ("*-*-* 10:61", "minute", 10),
            ("Funday 10:00", "weekday", 1),
            ("Fri..Mon", "weekday", 1),
            ("10:00 Mars/Olympus", "zone", 7),
            ("10:00:05.5", "second", 7),
            ("*/5:00", "hour", 1),
            ("5..1:00", "hour", 1),
            ("10/0:00", "hour", 4),
            ("2500-01-01", "year", 1),
            ("tomorrow", "weekday", 1),
            ("2026-01-01 10:00 11:00", "calendar event", 18),
            ("10", "date", 1),
            ("@1395716396", "calendar event", 1),
        ] {
            let error = OnCalendar::parse(text).unwrap_err();
            assert!(error.is_systemd(), "{text}: {error}");
            assert_eq!((error.field(), error.column()), (field, Some(column)), "{text}: {error}");
        }
    }

    fn component(low: i64, high: i64) -> impl Strategy<Value = String> {
        let number = move || (low..=high).prop_map(|n| n.to_string());
        let item = prop_oneof![
            number(),
            (low..=high, low..=high).prop_map(|(a, b)| format!("{}..{}", a.min(b), a.max(b))),
            (low..=high, 1..=9_i64).prop_map(|(a, n)| format!("{a}/{n}")),
        ];
        prop_oneof![
            Just("*".to_owned()),
            proptest::collection::vec(item, 1..3).prop_map(|items| items.join(",")),
        ]
    }

    fn event() -> impl Strategy<Value = String> {
        let week = prop_oneof![Just(""), Just("Mon..Fri "), Just("Sat,Sun "), Just("Wed ")];
        let mark = prop_oneof![Just("-"), Just("~")];
        (week, component(1, 12), mark, component(1, 28), component(0, 23), component(0, 59))
            .prop_map(|(week, month, mark, day, hour, minute)| {
                format!("{week}{month}{mark}{day} {hour}:{minute}")
            })
    }

    proptest! {
        /// The rule fires when systemd does, which is asked without the rule: in UTC, where clocks do not change.
        #[test]
        fn the_rule_fires_when_the_event_does(text in event(), after in 1_700_000_000_i64..1_900_000_000) {
            let event = OnCalendar::parse(&text).unwrap();
            let rule = event.rule(&Zone::utc()).unwrap();
            let timing = Timing::new(Rule::cron(rule.expr), Zone::utc());
            let after = after * 1_000_000;
            let ours: Vec<i64> = timing.occurrences_after(after).map(|o| o.logical).take(5).collect();
            prop_assert_eq!(Reading::Systemd.times_of(&event, &Zone::utc(), after, 5), ours);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,30}|[A-Za-z0-9.,:/*~@ -]{0,40}") {
            if let Ok(event) = OnCalendar::parse(&text) {
                let _ = event.rule(&Zone::utc());
                let _ = Reading::Systemd.times_of(&event, &Zone::utc(), 0, 1);
            }
        }
    }
}

//! The days of iCalendar events (RFC 5545), as far as calendars of holidays need it.
//!
//! It deliberately lacks time zones, exceptions and any repetition but a plain yearly one; what it
//! does not understand about an event is an error, so that no holiday is lost in silence.

use crate::civil::date_of;
use crate::cron::digits;
use crate::error::Error;
use crate::exclusion::{day_from, in_year, refuse};

/// Longest text that is read, in bytes.
const TEXT_MAX: usize = 256 << 10;
/// The last year that a repetition without an end goes to.
const YEAR_LAST: i64 = 2200;

/// One event as it is read.
#[derive(Default)]
struct Event {
    line: usize,
    first: Option<i64>,
    /// The last day, from `DTEND`.
    last: Option<i64>,
    /// The length in days, from `DURATION`.
    days: Option<i64>,
    yearly: Option<Yearly>,
    /// It was called off: it has no days.
    cancelled: bool,
}

struct Yearly {
    interval: i64,
    count: i64,
    until: i64,
}

/// Calls `add` with the first and last day of each event.
pub(super) fn events(
    text: &str,
    add: &mut impl FnMut(i64, i64) -> Result<(), Error>,
) -> Result<(), Error> {
    if text.len() > TEXT_MAX {
        return Err(refuse("ics", "", "at most 256 KiB of text"));
    }
    let mut event: Option<Event> = None;
    // What stands inside an event but is not of it, such as an alarm.
    let mut inner = 0;
    let mut found = 0;
    for (line, content) in unfolded(text) {
        let Some((name, value)) = content.split_once(':') else {
            continue;
        };
        let name = name.split(';').next().unwrap_or_default().to_ascii_uppercase();
        let value = value.trim();
        let at = |expected: &'static str| refuse(format!("ics line {line}"), &content, expected);
        match (name.as_str(), &mut event) {
            ("BEGIN", None) if value.eq_ignore_ascii_case("VEVENT") => {
                event = Some(Event { line, ..Event::default() });
            }
            ("BEGIN", Some(_)) => inner += 1,
            ("END", Some(_)) if inner > 0 => inner -= 1,
            ("END", Some(done)) if value.eq_ignore_ascii_case("VEVENT") => {
                done.days_of(add)?;
                found += 1;
                event = None;
            }
            ("END", Some(_)) => return Err(at("END:VEVENT")),
            (_, Some(event)) if inner == 0 => match name.as_str() {
                "DTSTART" => event.first = Some(day(value).ok_or_else(|| at("a date"))?.0),
                "DTEND" => {
                    let (day, midnight) = day(value).ok_or_else(|| at("a date"))?;
                    // An end at midnight is not part of the event.
                    event.last = Some(day - i64::from(midnight));
                }
                "DURATION" => {
                    let days = duration(value).ok_or_else(|| at("a duration such as P1D"))?;
                    event.days = Some(days);
                }
                "STATUS" => event.cancelled = value.eq_ignore_ascii_case("CANCELLED"),
                "RRULE" => {
                    let rule = yearly(value);
                    event.yearly = Some(rule.ok_or_else(|| {
                        at("a plain yearly rule, FREQ=YEARLY with INTERVAL, COUNT or UNTIL")
                    })?);
                }
                "RDATE" | "EXDATE" | "EXRULE" | "RECURRENCE-ID" => {
                    return Err(at("events without exceptions or extra dates"));
                }
                _ => {}
            },
            _ => {}
        }
    }
    if event.is_some() || found == 0 {
        return Err(refuse("ics", text, "an iCalendar text with BEGIN:VEVENT … END:VEVENT"));
    }
    Ok(())
}

impl Event {
    fn days_of(&self, add: &mut impl FnMut(i64, i64) -> Result<(), Error>) -> Result<(), Error> {
        let at = |expected: &'static str| {
            refuse(format!("ics line {}", self.line), "an event", expected)
        };
        let first = self.first.ok_or_else(|| at("a DTSTART in every event"))?;
        let last = match (self.last, self.days) {
            // A zero-length event, as some write for a single day.
            (Some(last), _) => last.max(first),
            (None, Some(days)) => first + days.max(1) - 1,
            (None, None) => first,
        };
        if self.cancelled {
            return Ok(());
        }
        let Some(rule) = &self.yearly else {
            return add(first, last);
        };
        let (mut year, ..) = date_of(first);
        let mut count = 0;
        while year <= YEAR_LAST && count < rule.count {
            // A 29 February that a year lacks is no event of that year.
            if let Some(day) = in_year(first, year) {
                if day > rule.until {
                    break;
                }
                add(day, day + (last - first))?;
                count += 1;
            }
            year += rule.interval;
        }
        Ok(())
    }
}

/// The lines with their numbers, continuation lines joined to theirs.
fn unfolded(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(rest), Some((_, last))) => last.push_str(rest),
            _ => lines.push((index + 1, line.to_owned())),
        }
    }
    lines
}

/// Reads `20261001` or `20261001T120000Z`: the day, and whether it is its very beginning.
fn day(value: &str) -> Option<(i64, bool)> {
    let (date, time) = match value.split_once(['T', 't']) {
        Some((date, time)) => (date, Some(time)),
        None => (value, None),
    };
    if date.len() != 8 || !date.is_ascii() {
        return None;
    }
    let midnight = match time.map(|time| time.trim_end_matches(['Z', 'z'])) {
        None => true,
        Some(time) if time.len() == 6 && digits(time).is_some() => time == "000000",
        Some(_) => return None,
    };
    Some((day_from(&date[..4], &date[4..6], &date[6..])?, midnight))
}

/// Reads a duration as the number of days it touches from midnight.
fn duration(value: &str) -> Option<i64> {
    const DAY_US: i64 = 86_400_000_000;
    let value = value.strip_prefix('+').unwrap_or(value);
    let length = crate::parse_duration(value).ok().filter(|_| value.starts_with('P'))?;
    // Beyond a century it is a mistake.
    let days = length / DAY_US + i64::from(length % DAY_US != 0);
    (days <= 36_600).then_some(days)
}

fn yearly(value: &str) -> Option<Yearly> {
    let mut rule = Yearly { interval: 1, count: i64::MAX, until: i64::MAX };
    let mut is_yearly = false;
    for part in value.split(';') {
        let (name, value) = part.split_once('=')?;
        match name.to_ascii_uppercase().as_str() {
            "FREQ" => is_yearly = value.eq_ignore_ascii_case("YEARLY"),
            "INTERVAL" => rule.interval = digits(value).filter(|n| (1..=1_000).contains(n))?,
            "COUNT" => rule.count = digits(value)?,
            "UNTIL" => rule.until = day(value)?.0,
            "WKST" => {}
            _ => return None,
        }
    }
    is_yearly.then_some(rule)
}

#[cfg(test)]
mod tests {
    use crate::Exclusion;
    use proptest::prelude::*;

    fn calendar(events: &str) -> Result<Exclusion, crate::Error> {
        let text = format!("BEGIN:VCALENDAR\r\n{events}\r\nEND:VCALENDAR\r\n");
        Exclusion::new().with_ics(&text.replace('|', "\r\n"))
    }

    #[track_caller]
    fn check(events: &str, left_out: &[&str], kept: &[&str]) {
        let calendar = calendar(events).unwrap();
        for date in left_out {
            assert!(calendar.excludes(date).unwrap(), "{date} is to be left out");
        }
        for date in kept {
            assert!(!calendar.excludes(date).unwrap(), "{date} is to be kept");
        }
    }

    #[test]
    fn events_cover_their_days() {
        check(
            "BEGIN:VEVENT|SUMMARY:National Day|DTSTART;VALUE=DATE:20261001|DTEND;VALUE=DATE:20261\n \
             008|END:VEVENT",
            &["2026-10-01", "2026-10-07"],
            &["2026-09-30", "2026-10-08"],
        );
        check("BEGIN:VEVENT|DTSTART:20261001|END:VEVENT", &["2026-10-01"], &["2026-10-02"]);
        check("BEGIN:VEVENT|DTSTART:20261001|STATUS:CANCELLED|END:VEVENT", &[], &["2026-10-01"]);
        check(
            "BEGIN:VEVENT|DTSTART:20261001T200000Z|DTEND:20261002T030000Z|END:VEVENT",
            &["2026-10-01", "2026-10-02"],
            &["2026-10-03"],
        );
        check(
            "BEGIN:VEVENT|DTSTART:20261001|DURATION:P2D|BEGIN:VALARM|DURATION:P9D|END:VALARM|END:VEVENT",
            &["2026-10-01", "2026-10-02"],
            &["2026-10-03"],
        );
    }

    #[test]
    fn yearly_events_repeat() {
        check(
            "BEGIN:VEVENT|DTSTART:20201225|RRULE:FREQ=YEARLY|END:VEVENT",
            &["2020-12-25", "2026-12-25", "2200-12-25"],
            &["2019-12-25", "2026-12-24"],
        );
        check(
            "BEGIN:VEVENT|DTSTART:20200229|RRULE:FREQ=YEARLY;COUNT=2|END:VEVENT",
            &["2020-02-29", "2024-02-29"],
            &["2021-02-28", "2021-03-01", "2028-02-29"],
        );
        check(
            "BEGIN:VEVENT|DTSTART:20200101|RRULE:FREQ=YEARLY;INTERVAL=2;UNTIL=20240101|END:VEVENT",
            &["2020-01-01", "2022-01-01", "2024-01-01"],
            &["2021-01-01", "2026-01-01"],
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        for (events, line) in [
            ("", None),
            ("BEGIN:VEVENT|DTSTART:20261001", Some(4)),
            ("BEGIN:VEVENT|SUMMARY:x|END:VEVENT", Some(2)),
            ("BEGIN:VEVENT|DTSTART:20261301|END:VEVENT", Some(3)),
            ("BEGIN:VEVENT|DTSTART:20261001|RRULE:FREQ=WEEKLY|END:VEVENT", Some(4)),
            ("BEGIN:VEVENT|DTSTART:20261001|RRULE:FREQ=YEARLY;BYDAY=1MO|END:VEVENT", Some(4)),
            ("BEGIN:VEVENT|DTSTART:20261001|EXDATE:20261002|END:VEVENT", Some(4)),
            ("BEGIN:VEVENT|DTSTART:20261001|DURATION:1d|END:VEVENT", Some(4)),
        ] {
            let error = calendar(events).unwrap_err();
            assert!(error.is_exclusion());
            let field = line.map_or("ics".to_owned(), |line: usize| format!("ics line {line}"));
            assert_eq!(error.field(), field, "{events}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(
            text in "((BEGIN:VEVENT|END:VEVENT|DTSTART(;VALUE=DATE)?:2026(0[1-9]|1[0-9])[0-4][0-9](T[0-9]{0,6}Z?)?|DURATION:P[0-9]{1,9}[DWTH]{0,2}|RRULE:FREQ=YEARLY(;COUNT=[0-9]{0,3})?|[ :;é]{0,3})\n){0,12}",
        ) {
            let _ = Exclusion::new().with_ics(&text);
        }
    }
}

//! An instant in a document: exact microseconds since the Unix epoch, written as RFC 3339.
//!
//! Any offset is read; `Z` is printed, with a fraction only as long as needed. What is printed
//! parses back to the same value, for every `i64`. Instants outside the years 0000 to 9999, which
//! RFC 3339 cannot write, are printed with a signed six-digit year (as ECMAScript does), so that
//! nothing panics and nothing is lost. Digits finer than a microsecond round up: a due time read
//! here is never earlier than what was written.
//!
//! Deliberately absent: the current time, time zones by name, civil time.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use utoipa::ToSchema;

/// An instant in whole microseconds since 1970-01-01T00:00:00Z.
///
/// ```
/// use tourbillon_wire::Timestamp;
/// let t: Timestamp = "2026-12-01T17:00:00.250+08:00".parse()?;
/// assert_eq!(t.to_string(), "2026-12-01T09:00:00.25Z");
/// # Ok::<(), tourbillon_wire::TimestampError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
#[schema(value_type = String, format = DateTime, example = "2026-12-01T09:00:00Z")]
pub struct Timestamp(i64);

/// Why a text is not an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimestampError {
    given: Box<str>,
    why: &'static str,
}

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an instant: {}; {}", self.given, self.why, Timestamp::EXPECTED)
    }
}

impl std::error::Error for TimestampError {}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400;

impl Timestamp {
    /// What a reader of an error message is told to write.
    pub const EXPECTED: &'static str =
        "expected RFC 3339 such as `2026-12-01T09:00:00Z` or `2026-12-01T17:00:00+08:00`";

    /// The instant that many microseconds after the Unix epoch (before it when negative).
    pub const fn from_micros(micros: i64) -> Timestamp {
        Timestamp(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }
}

/// Days since the Unix epoch of a proleptic Gregorian date, in constant time.
/// Source: H. Hinnant, "chrono-compatible low-level date algorithms", `days_from_civil`.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date of a day since the Unix epoch: the inverse of [`days_from_civil`], same source.
const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + (month <= 2) as i64;
    (year, month, day)
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(SECOND);
        let micros = self.0.rem_euclid(SECOND);
        let (year, month, day) = civil_from_days(seconds.div_euclid(DAY));
        let of_day = seconds.rem_euclid(DAY);
        if (0..=9999).contains(&year) {
            write!(f, "{year:04}")?;
        } else {
            write!(f, "{year:+07}")?;
        }
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        write!(f, "-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if micros != 0 {
            let (mut digits, mut width) = (micros, 6);
            while digits % 10 == 0 {
                digits /= 10;
                width -= 1;
            }
            write!(f, ".{digits:0width$}")?;
        }
        f.write_str("Z")
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Timestamp, TimestampError> {
        parse(text.as_bytes()).map(Timestamp).map_err(|why| TimestampError {
            given: text.chars().take(64).collect::<String>().into(),
            why,
        })
    }
}

type Parsed<T> = Result<T, &'static str>;

/// Reads an RFC 3339 text from left to right.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// A field of exactly `width` digits, within `range`.
    fn field(
        &mut self,
        width: usize,
        range: std::ops::RangeInclusive<i64>,
        why: &'static str,
    ) -> Parsed<i64> {
        let (digits, rest) = self.0.split_at_checked(width).ok_or(why)?;
        let mut value = 0;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return Err(why);
            }
            value = value * 10 + i64::from(digit - b'0');
        }
        self.0 = rest;
        range.contains(&value).then_some(value).ok_or(why)
    }

    fn one_of(&mut self, any: &[u8], why: &'static str) -> Parsed<u8> {
        let byte = self.peek().filter(|b| any.contains(b)).ok_or(why)?;
        self.0 = &self.0[1..];
        Ok(byte)
    }
}

fn parse(text: &[u8]) -> Parsed<i64> {
    let mut r = Reader(text);
    let year = match r.peek() {
        Some(sign @ (b'+' | b'-')) => {
            r.0 = &r.0[1..];
            let year = r.field(6, 0..=999_999, "a signed year has six digits")?;
            if sign == b'-' { -year } else { year }
        }
        _ => r.field(4, 0..=9999, "a year has four digits")?,
    };
    r.one_of(b"-", "`-` is missing after the year")?;
    let month = r.field(2, 1..=12, "a month is 01 to 12")?;
    r.one_of(b"-", "`-` is missing after the month")?;
    let day = r.field(2, 1..=days_in_month(year, month), "the month has no such day")?;
    r.one_of(b"Tt ", "`T` is missing after the date")?;
    let hour = r.field(2, 0..=23, "an hour is 00 to 23")?;
    r.one_of(b":", "`:` is missing after the hour")?;
    let minute = r.field(2, 0..=59, "a minute is 00 to 59")?;
    r.one_of(b":", "`:` is missing after the minute")?;
    // A leap second is read as the first moment of the next minute: never earlier than written.
    let second = r.field(2, 0..=60, "a second is 00 to 59")?;
    let mut micros = 0;
    if r.peek() == Some(b'.') {
        r.0 = &r.0[1..];
        micros = fraction(&mut r)?;
    }
    let zone = r.one_of(b"Zz+-", "an offset (`Z` or such as `+08:00`) is missing")?;
    let mut offset = 0;
    if zone == b'+' || zone == b'-' {
        let hours = r.field(2, 0..=23, "an offset's hours are 00 to 23")?;
        r.one_of(b":", "`:` is missing in the offset")?;
        let minutes = r.field(2, 0..=59, "an offset's minutes are 00 to 59")?;
        offset = (hours * 60 + minutes) * 60 * if zone == b'-' { -1 } else { 1 };
    }
    if !r.0.is_empty() {
        return Err("something follows the offset");
    }
    let seconds =
        days_from_civil(year, month, day) * DAY + hour * 3_600 + minute * 60 + second - offset;
    let total = i128::from(seconds) * i128::from(SECOND) + i128::from(micros);
    i64::try_from(total).map_err(|_| "it is beyond the years that can be stored")
}

/// The digits after the point as microseconds, rounded up (up to 1,000,000).
fn fraction(r: &mut Reader<'_>) -> Parsed<i64> {
    let end = r.0.iter().position(|b| !b.is_ascii_digit()).unwrap_or(r.0.len());
    let (digits, rest) = r.0.split_at(end);
    if digits.is_empty() {
        return Err("digits are missing after the point");
    }
    r.0 = rest;
    let mut micros = 0;
    for at in 0..6 {
        micros = micros * 10 + digits.get(at).map_or(0, |d| i64::from(d - b'0'));
    }
    let finer = digits.iter().skip(6).any(|d| *d != b'0');
    Ok(micros + i64::from(finer))
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an instant such as \"2026-12-01T09:00:00Z\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const YEAR_9999_END: i64 = 253_402_300_799_999_999;

    proptest! {
        #[test]
        fn what_is_printed_parses_back(micros in 0..=YEAR_9999_END) {
            let t = Timestamp::from_micros(micros);
            prop_assert_eq!(t.to_string().parse::<Timestamp>(), Ok(t));
        }

        #[test]
        fn whole_seconds_too(seconds in 0..=YEAR_9999_END / SECOND) {
            let t = Timestamp::from_micros(seconds * SECOND);
            prop_assert_eq!(t.to_string().len(), 20);
            prop_assert_eq!(t.to_string().parse::<Timestamp>(), Ok(t));
        }

        #[test]
        fn every_value_does(micros in any::<i64>()) {
            let t = Timestamp::from_micros(micros);
            prop_assert_eq!(t.to_string().parse::<Timestamp>(), Ok(t));
        }

        #[test]
        fn printed_order_is_time_order(a in 0..=YEAR_9999_END / SECOND, b in 0..=YEAR_9999_END / SECOND) {
            let (ta, tb) = (Timestamp(a * SECOND).to_string(), Timestamp(b * SECOND).to_string());
            prop_assert_eq!(a.cmp(&b), ta.cmp(&tb));
        }

        #[test]
        fn offsets_are_subtracted(seconds in 0i64..4_000_000_000, minutes in -1439i64..=1439) {
            let local = Timestamp::from_micros((seconds + minutes * 60) * SECOND).to_string();
            let sign = if minutes < 0 { '-' } else { '+' };
            let text = format!("{}{sign}{:02}:{:02}", &local[..local.len() - 1], minutes.abs() / 60, minutes.abs() % 60);
            prop_assert_eq!(text.parse::<Timestamp>(), Ok(Timestamp::from_micros(seconds * SECOND)));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,32}") {
            let _ = text.parse::<Timestamp>();
        }

        #[test]
        fn nor_do_likely_ones(text in "[+-]?[0-9]{4,6}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,12})?(Z|[+-][0-2][0-9]:[0-6][0-9])") {
            let _ = text.parse::<Timestamp>();
        }
    }

    #[test]
    fn days_run_on_without_a_gap() {
        let mut expected = days_from_civil(1970, 1, 1);
        for year in 1970..=9999 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    assert_eq!(days_from_civil(year, month, day), expected);
                    assert_eq!(civil_from_days(expected), (year, month, day));
                    expected += 1;
                }
            }
        }
    }

    #[test]
    fn written_forms() {
        for (text, printed) in [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
            ("2026-12-01T17:00:00+08:00", "2026-12-01T09:00:00Z"),
            ("2026-12-01 09:00:00z", "2026-12-01T09:00:00Z"),
            ("2026-12-31t23:30:00-01:00", "2027-01-01T00:30:00Z"),
            ("2026-12-01T09:00:00.250000Z", "2026-12-01T09:00:00.25Z"),
            ("2026-12-01T09:00:00.0000001Z", "2026-12-01T09:00:00.000001Z"),
            ("2026-12-31T23:59:59.9999999Z", "2027-01-01T00:00:00Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"),
            ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
            ("0000-02-29T00:00:00Z", "0000-02-29T00:00:00Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
            ("9999-12-31T23:59:59-00:01", "+010000-01-01T00:00:59Z"),
            ("-000001-03-01T00:00:00Z", "-000001-03-01T00:00:00Z"),
        ] {
            let t: Timestamp = text.parse().unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(t.to_string(), printed, "{text}");
        }
        assert_eq!(
            "2001-09-09T01:46:40Z".parse(),
            Ok(Timestamp::from_micros(1_000_000_000 * SECOND))
        );
    }

    #[test]
    fn refused_with_a_reason() {
        for (text, why) in [
            ("", "four digits"),
            ("tomorrow", "four digits"),
            ("2026-13-01T00:00:00Z", "month is 01 to 12"),
            ("2026-02-29T00:00:00Z", "no such day"),
            ("1900-02-29T00:00:00Z", "no such day"),
            ("2026-12-01", "`T` is missing"),
            ("2026-12-01T24:00:00Z", "hour is"),
            ("2026-12-01T09:60:00Z", "minute is"),
            ("2026-12-01T09:00:61Z", "second is"),
            ("2026-12-01T09:00:00", "offset"),
            ("2026-12-01T09:00:00.Z", "digits are missing"),
            ("2026-12-01T09:00:00+0800", "`:` is missing in the offset"),
            ("2026-12-01T09:00:00Z[Asia/Shanghai]", "follows the offset"),
            ("+999999-01-01T00:00:00Z", "beyond the years"),
        ] {
            let error = text.parse::<Timestamp>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("expected RFC 3339"), "{text}: {error}");
        }
    }
}

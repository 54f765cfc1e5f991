//! Durations in words: `250ms`, `1h30m`, `2d`, or ISO 8601 `PT30S`; and back.
//!
//! A duration is microseconds, never negative, and a day is always 24 hours. Years and months
//! are refused, having no fixed length; the calendar rule is for those.

use crate::Micros;
use crate::error::{Error, Kind};

const EXPECTED: &str = "a duration such as 250ms, 30s, 1h30m, 2d or PT30S";

/// Unit names of the short form with their microseconds, longest first.
const UNITS: [(&str, i64); 7] = [
    ("w", 604_800_000_000),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Reads a duration, in microseconds.
///
/// The short form is numbers with units `w d h m s ms us` (also `µs`), each unit at most once,
/// longer before shorter; a number may have decimals (`1.5h`). The ISO form is
/// `P[nW][nD][T[nH][nM][nS]]`. Decimals finer than a microsecond round up.
///
/// # Errors
///
/// Empty text, a number without a unit, an unknown or repeated unit, a sign, ISO years or
/// months, and what does not fit in an `i64` of microseconds.
///
/// ```
/// use tourbillon_schedule::parse_duration;
/// assert_eq!(parse_duration("1h30m")?, 5_400_000_000);
/// assert_eq!(parse_duration("P1DT2H")?, 93_600_000_000);
/// assert!(parse_duration("30").is_err());
/// # Ok::<(), tourbillon_schedule::Error>(())
/// ```
pub fn parse_duration(text: &str) -> Result<Micros, Error> {
    let trimmed = text.trim();
    let lead = text.len() - text.trim_start().len();
    let mut reader = Reader { text: trimmed, at: 0, lead };
    if trimmed.is_empty() {
        return Err(reader.refuse(0, EXPECTED));
    }
    match trimmed.as_bytes()[0] {
        b'P' | b'p' => reader.iso(),
        _ => reader.short(),
    }
}

/// Writes a duration in the short form, which [`parse_duration`] reads back exactly: `1h30m`, `2d`,
/// `250ms`, `0s`. Days are the longest unit. A negative number gets a leading `-`.
#[must_use]
pub fn format_duration(duration: Micros) -> String {
    if duration == 0 {
        return "0s".to_owned();
    }
    let mut rest = duration.unsigned_abs();
    let mut out = String::new();
    if duration < 0 {
        out.push('-');
    }
    for (unit, size) in &UNITS[1..] {
        let size = size.unsigned_abs();
        if rest >= size {
            out.push_str(&(rest / size).to_string());
            out.push_str(unit);
            rest %= size;
        }
    }
    out
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Bytes cut from the front of the caller's text.
    lead: usize,
}

/// A decimal number, as digits before and after the point.
struct Number<'a> {
    whole: &'a str,
    decimals: &'a str,
}

impl<'a> Reader<'a> {
    fn refuse(&self, at: usize, expected: &'static str) -> Error {
        let rest = self.text.get(at..).unwrap_or_default();
        Error::new(Kind::Duration, "duration", Some(self.lead + at + 1), rest, expected)
    }

    fn digits(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        self.at += len;
        &rest[..len]
    }

    fn number(&mut self) -> Result<Number<'a>, Error> {
        let start = self.at;
        let whole = self.digits();
        let mut decimals = "";
        if !whole.is_empty() && matches!(self.text.as_bytes().get(self.at), Some(b'.' | b',')) {
            self.at += 1;
            decimals = self.digits();
            if decimals.is_empty() {
                return Err(self.refuse(self.at, "digits after the decimal point"));
            }
        }
        if whole.is_empty() {
            return Err(self.refuse(start, EXPECTED));
        }
        Ok(Number { whole, decimals })
    }

    fn add(&self, start: usize, total: i64, number: &Number<'_>, unit: i64) -> Result<i64, Error> {
        number
            .micros(unit)
            .and_then(|micros| total.checked_add(micros))
            .ok_or_else(|| self.refuse(start, "at most 292,000 years"))
    }

    fn short(&mut self) -> Result<Micros, Error> {
        if self.text == "0" {
            return Ok(0);
        }
        let mut total = 0_i64;
        let mut last_unit = i64::MAX;
        while self.at < self.text.len() {
            let start = self.at;
            let number = self.number()?;
            let rest = &self.text[self.at..];
            let len =
                rest.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(rest.len());
            let name = &rest[..len];
            let name = if name == "µs" || name == "μs" { "us" } else { name };
            let Some((_, size)) = UNITS.iter().find(|(unit, _)| *unit == name) else {
                let expected = if len == 0 {
                    "a unit after the number: w, d, h, m, s, ms or us"
                } else {
                    "one of the units w, d, h, m, s, ms, us"
                };
                return Err(self.refuse(if len == 0 { start } else { self.at }, expected));
            };
            if *size >= last_unit {
                return Err(self.refuse(self.at, "each unit once, longer units first"));
            }
            last_unit = *size;
            self.at += len;
            total = self.add(start, total, &number, *size)?;
            // `1h 30m` is read as `1h30m`.
            let rest = &self.text[self.at..];
            self.at += rest.len() - rest.trim_start().len();
        }
        Ok(total)
    }

    fn iso(&mut self) -> Result<Micros, Error> {
        const EXPECTED_ISO: &str = "an ISO 8601 duration such as PT30S, P1DT2H or P2W";
        let mut total = 0_i64;
        let mut in_time = false;
        let mut parts = 0;
        let mut last_unit = i64::MAX;
        self.at = 1;
        while self.at < self.text.len() {
            let byte = self.text.as_bytes()[self.at].to_ascii_uppercase();
            if byte == b'T' && !in_time {
                in_time = true;
                self.at += 1;
                if self.at == self.text.len() {
                    return Err(self.refuse(self.at, EXPECTED_ISO));
                }
                continue;
            }
            let start = self.at;
            let number = self.number()?;
            let unit = self.text.as_bytes().get(self.at).map(u8::to_ascii_uppercase);
            let size = match (in_time, unit) {
                (false, Some(b'W')) => UNITS[0].1,
                (false, Some(b'D')) => UNITS[1].1,
                (true, Some(b'H')) => UNITS[2].1,
                (true, Some(b'M')) => UNITS[3].1,
                (true, Some(b'S')) => UNITS[4].1,
                (false, Some(b'Y' | b'M')) => {
                    return Err(self.refuse(
                        start,
                        "a fixed length: years and months have none, use a calendar rule",
                    ));
                }
                _ => return Err(self.refuse(self.at, EXPECTED_ISO)),
            };
            if size >= last_unit {
                return Err(self.refuse(start, "each unit once, longer units first"));
            }
            last_unit = size;
            self.at += 1;
            parts += 1;
            total = self.add(start, total, &number, size)?;
        }
        if parts == 0 {
            return Err(self.refuse(0, EXPECTED_ISO));
        }
        Ok(total)
    }
}

impl Number<'_> {
    /// The number times a unit, decimals rounded up; `None` when it does not fit.
    fn micros(&self, unit: i64) -> Option<i64> {
        let whole = self.whole.parse::<i64>().ok()?.checked_mul(unit)?;
        // Twelve decimals of a week are still finer than a microsecond; what lies beyond them
        // only says whether to round up.
        let kept = &self.decimals[..self.decimals.len().min(12)];
        let beyond = self.decimals[kept.len()..].bytes().any(|b| b != b'0');
        if kept.is_empty() {
            return Some(whole);
        }
        let scale = 10_i128.pow(kept.len() as u32);
        let scaled = kept.parse::<i128>().ok()? * i128::from(unit);
        let up = i128::from(scaled % scale != 0 || beyond);
        whole.checked_add(i64::try_from(scaled / scale + up).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(duration in 0..=i64::MAX) {
            prop_assert_eq!(parse_duration(&format_duration(duration)).unwrap(), duration);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,20}|P?T?[0-9.,wdhmsuPTDHMS µ-]{0,24}") {
            if let Ok(duration) = parse_duration(&text) {
                prop_assert!(duration >= 0);
            }
        }
    }

    #[test]
    fn examples() {
        for (text, micros) in [
            ("250ms", 250_000),
            ("30s", 30_000_000),
            ("1h30m", 5_400_000_000),
            ("1h 30m", 5_400_000_000),
            ("2d", 172_800_000_000),
            ("1w", 604_800_000_000),
            ("1.5s", 1_500_000),
            ("0.0000001s", 1),
            ("7us", 7),
            ("7µs", 7),
            ("0", 0),
            ("0s", 0),
            ("PT30S", 30_000_000),
            ("PT0.5S", 500_000),
            ("P1DT2H", 93_600_000_000),
            ("P2W", 1_209_600_000_000),
            ("pt1m", 60_000_000),
            (" 5m ", 300_000_000),
        ] {
            assert_eq!(parse_duration(text).unwrap(), micros, "{text}");
        }
        assert_eq!(format_duration(93_784_005_006), "1d2h3m4s5ms6us");
        assert_eq!(format_duration(0), "0s");
    }

    #[test]
    fn refusals_say_where_and_what() {
        for (text, column, word) in [
            ("", 1, "250ms"),
            ("30", 1, "unit"),
            ("5 m", 1, "unit"),
            ("1h30", 3, "unit"),
            ("30m1h", 5, "longer units first"),
            ("1h1h", 4, "once"),
            ("5x", 2, "units"),
            ("-5s", 1, "30s"),
            ("1.s", 3, "decimal"),
            ("P1M", 2, "calendar"),
            ("P1Y", 2, "calendar"),
            ("PT", 3, "ISO"),
            ("P", 1, "ISO"),
            ("PT1D", 4, "ISO"),
            ("300000000d", 1, "years"),
            ("99999999999999999999s", 1, "years"),
        ] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.is_duration());
            assert_eq!(error.column(), Some(column), "{text}: {error}");
            assert!(error.expected().contains(word), "{text}: {error}");
        }
    }
}

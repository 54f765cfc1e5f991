//! Time spans as systemd writes them: `5min 20s`, `1h30min`, `2w`, `90`.
//!
//! What always holds: a bare number is seconds, a month is 30.44 days and a year 365.25 days, as
//! systemd has it. `infinity` is deliberately refused: it is no span.

use crate::Micros;
use crate::error::{Error, Kind};

const EXPECTED: &str = "a time span such as 90, 5min 20s, 1h30min or 2w";

/// Names of units, without regard to `M`, which is a month and not a minute.
const UNITS: [(&[&str], i64); 9] = [
    (&["us", "usec", "µs", "μs"], 1),
    (&["ms", "msec"], 1_000),
    (&["", "s", "sec", "second", "seconds"], 1_000_000),
    (&["m", "min", "minute", "minutes"], 60_000_000),
    (&["h", "hr", "hour", "hours"], 3_600_000_000),
    (&["d", "day", "days"], 86_400_000_000),
    (&["w", "week", "weeks"], 604_800_000_000),
    (&["M", "month", "months"], 2_629_800_000_000),
    (&["y", "year", "years"], 31_557_600_000_000),
];

/// Reads a time span of systemd, in microseconds.
///
/// # Errors
///
/// Empty text, an unknown unit, a sign, `infinity`, and what does not fit; with the column.
///
/// ```
/// use tourbillon_schedule::parse_timespan;
/// assert_eq!(parse_timespan("5min 20s")?, 320_000_000);
/// assert_eq!(parse_timespan("90")?, 90_000_000);
/// # Ok::<(), tourbillon_schedule::Error>(())
/// ```
pub fn parse_timespan(text: &str) -> Result<Micros, Error> {
    let refuse = |at: usize, expected: &'static str| {
        let rest = text.get(at..).unwrap_or_default();
        Error::new(Kind::Systemd, "time span", Some(at + 1), rest, expected)
    };
    let skip = |at: usize| text.len() - text[at..].trim_start().len();
    let mut at = skip(0);
    if at == text.len() {
        return Err(refuse(0, EXPECTED));
    }
    let mut total = 0_i64;
    while at < text.len() {
        let start = at;
        let len = text[at..].bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (whole, decimals) =
            text[at..at + len].split_once('.').unwrap_or((&text[at..at + len], ""));
        let plain = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || !plain(decimals) || text[at..at + len].ends_with('.') {
            return Err(refuse(start, EXPECTED));
        }
        at = skip(at + len);
        let rest = &text[at..];
        let len =
            rest.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(rest.len());
        let unit = &rest[..len];
        let Some((_, size)) = UNITS.iter().find(|(names, _)| names.contains(&unit)) else {
            return Err(refuse(at, "one of the units us, ms, s, min, h, d, w, month, y"));
        };
        total = micros(whole, decimals, *size)
            .and_then(|micros| total.checked_add(micros))
            .ok_or_else(|| refuse(start, "at most 292,000 years"))?;
        at = skip(at + len);
    }
    Ok(total)
}

/// A decimal number of units; what is finer than a microsecond is dropped, as there.
fn micros(whole: &str, decimals: &str, unit: i64) -> Option<i64> {
    let kept = &decimals[..decimals.len().min(12)];
    let part = match kept {
        "" => 0,
        kept => i128::from(unit) * kept.parse::<i128>().ok()? / 10_i128.pow(kept.len() as u32),
    };
    let whole = i128::from(whole.parse::<i64>().ok()?) * i128::from(unit);
    i64::try_from(whole + part).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn examples() {
        for (text, micros) in [
            ("90", 90_000_000),
            ("2 h", 7_200_000_000),
            ("2hours", 7_200_000_000),
            ("48hr", 172_800_000_000),
            ("1y 12month", 31_557_600_000_000 + 12 * 2_629_800_000_000),
            ("55s500ms", 55_500_000),
            ("300ms20s 5day", 20_300_000 + 432_000_000_000),
            ("1.5h", 5_400_000_000),
            ("1M", 2_629_800_000_000),
            ("1m", 60_000_000),
            ("0", 0),
            ("7us", 7),
        ] {
            assert_eq!(parse_timespan(text).unwrap(), micros, "{text}");
        }
        for (text, column) in [
            ("", 1),
            ("  ", 1),
            ("infinity", 1),
            ("-5s", 1),
            ("5 parsecs", 3),
            ("1h 3x", 5),
            ("1.s", 1),
            ("1.2.3s", 1),
            ("99999999999y", 1),
        ] {
            let error = parse_timespan(text).unwrap_err();
            assert!(error.is_systemd(), "{text}");
            assert_eq!(error.column(), Some(column), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,20}|[0-9.smhdwMy µ-]{0,24}") {
            if let Ok(span) = parse_timespan(&text) {
                prop_assert!(span >= 0);
            }
        }
    }
}

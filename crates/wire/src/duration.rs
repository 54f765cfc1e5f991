//! A span of time in a document: exact microseconds, written `1h30m`, `250ms` or `PT30S`.
//!
//! What is printed parses back to the same value. Units appear at most once, largest first, so
//! that a slip such as `5m1h` or `1m30m` is an error and not a guess. No months or years: their
//! length depends on the calendar. No negative spans.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use utoipa::ToSchema;

/// A span of time in whole microseconds.
///
/// ```
/// use tourbillon_wire::Duration;
/// let d: Duration = "1h30m".parse()?;
/// assert_eq!(d.as_micros(), 5_400_000_000);
/// assert_eq!("PT1H30M".parse::<Duration>()?, d);
/// assert_eq!(d.to_string(), "1h30m");
/// # Ok::<(), tourbillon_wire::DurationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, ToSchema)]
#[schema(value_type = String, example = "1h30m")]
pub struct Duration(u64);

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DurationError {
    given: Box<str>,
    why: &'static str,
}

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a duration: {}; {}", self.given, self.why, Duration::EXPECTED)
    }
}

impl std::error::Error for DurationError {}

const SECOND: u64 = 1_000_000;

/// Units with the microseconds each stands for, largest first; the order is the order of writing.
const UNITS: [(&str, u64); 7] = [
    ("w", 7 * 86_400 * SECOND),
    ("d", 86_400 * SECOND),
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1_000),
    ("us", 1),
];

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// What a reader of an error message is told to write.
    pub const EXPECTED: &'static str = "expected such as `250ms`, `30s`, `1h30m`, `2d` or `PT30S`";

    /// A duration of that many microseconds.
    pub const fn from_micros(micros: u64) -> Duration {
        Duration(micros)
    }

    /// A duration of that many milliseconds; `None` when that is more than 584,000 years.
    pub const fn from_millis(millis: u64) -> Option<Duration> {
        match millis.checked_mul(1_000) {
            Some(micros) => Some(Duration(micros)),
            None => None,
        }
    }

    /// A duration of that many seconds; `None` when that is more than 584,000 years.
    pub const fn from_secs(secs: u64) -> Option<Duration> {
        match secs.checked_mul(SECOND) {
            Some(micros) => Some(Duration(micros)),
            None => None,
        }
    }

    /// Its length in microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }
}

impl From<Duration> for std::time::Duration {
    fn from(d: Duration) -> std::time::Duration {
        std::time::Duration::from_micros(d.0)
    }
}

impl TryFrom<std::time::Duration> for Duration {
    type Error = DurationError;

    /// Whole microseconds; a remainder is dropped. Fails beyond 584,000 years.
    fn try_from(d: std::time::Duration) -> Result<Duration, DurationError> {
        u64::try_from(d.as_micros())
            .map(Duration)
            .map_err(|_| DurationError { given: format!("{d:?}").into(), why: "it is too long" })
    }
}

impl fmt::Display for Duration {
    /// Days, hours, minutes, seconds, milliseconds, microseconds; only those that are not zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, micros) in &UNITS[1..] {
            let n = rest / micros;
            rest %= micros;
            if n > 0 {
                write!(f, "{n}{unit}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Duration, DurationError> {
        let parsed = match text.strip_prefix(['P', 'p']) {
            Some(rest) => parse_iso(rest),
            None => parse_units(text),
        };
        parsed.map(Duration).map_err(|why| DurationError {
            given: text.chars().take(64).collect::<String>().into(),
            why,
        })
    }
}

type Parsed<T> = Result<T, &'static str>;

fn parse_units(text: &str) -> Parsed<u64> {
    if text.is_empty() {
        return Err("it is empty");
    }
    let mut total = 0u64;
    let mut rest = text;
    let mut allowed = &UNITS[..];
    while !rest.is_empty() {
        let (number, after) = take_number(rest)?;
        let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, tail) = after.split_at(end);
        if unit.is_empty() {
            return Err("a number has no unit");
        }
        let unit = if unit == "µs" || unit == "μs" { "us" } else { unit };
        let Some(at) = allowed.iter().position(|(name, _)| *name == unit) else {
            return Err(if UNITS.iter().any(|(name, _)| *name == unit) {
                "units go from large to small, each once"
            } else {
                "the units are w, d, h, m, s, ms and us"
            });
        };
        total = total.checked_add(number.times(allowed[at].1)?).ok_or("it is too long")?;
        allowed = &allowed[at + 1..];
        rest = tail;
    }
    Ok(total)
}

/// What follows the `P` of an ISO 8601 duration of weeks, days, hours, minutes and seconds.
fn parse_iso(text: &str) -> Parsed<u64> {
    const ISO: [(char, bool, u64); 5] = [
        ('W', false, UNITS[0].1),
        ('D', false, UNITS[1].1),
        ('H', true, UNITS[2].1),
        ('M', true, UNITS[3].1),
        ('S', true, UNITS[4].1),
    ];
    let mut total = 0u64;
    let mut rest = text;
    let mut in_time = false;
    let mut allowed = &ISO[..];
    let mut fields_since_mark = 0;
    while !rest.is_empty() {
        if !in_time && let Some(tail) = rest.strip_prefix(['T', 't']) {
            in_time = true;
            fields_since_mark = 0;
            rest = tail;
            continue;
        }
        let (number, after) = take_number(rest)?;
        let unit = after.chars().next().ok_or("a number has no unit")?;
        let Some(at) = allowed
            .iter()
            .position(|(name, time, _)| name.eq_ignore_ascii_case(&unit) && *time == in_time)
        else {
            return Err("ISO 8601 durations here are P, then W and D, then T, then H, M and S");
        };
        total = total.checked_add(number.times(allowed[at].2)?).ok_or("it is too long")?;
        allowed = &allowed[at + 1..];
        fields_since_mark += 1;
        rest = &after[unit.len_utf8()..];
    }
    if fields_since_mark == 0 {
        return Err("nothing follows the `P` or `T`");
    }
    Ok(total)
}

/// A decimal number kept as digits, so that `0.1s` is exactly 100,000 µs.
struct Number<'a> {
    whole: &'a str,
    fraction: &'a str,
}

impl Number<'_> {
    /// The number times `unit` microseconds; an error unless that is a whole number that fits.
    fn times(&self, unit: u64) -> Parsed<u64> {
        let whole: u64 = self.whole.parse().map_err(|_| "it is too long")?;
        let mut micros = whole.checked_mul(unit).ok_or("it is too long")?;
        let fraction = self.fraction.trim_end_matches('0');
        if !fraction.is_empty() {
            // Twelve digits of the largest unit stay well inside u128, and finer is refused below.
            let digits = u32::try_from(fraction.len()).ok().filter(|n| *n <= 12);
            let scale = 10u128.pow(digits.ok_or("it is finer than a microsecond")?);
            let part = fraction.parse::<u128>().map_err(|_| "it is not a number")?;
            let part = part * u128::from(unit);
            if !part.is_multiple_of(scale) {
                return Err("it is finer than a microsecond");
            }
            let part = u64::try_from(part / scale).map_err(|_| "it is too long")?;
            micros = micros.checked_add(part).ok_or("it is too long")?;
        }
        Ok(micros)
    }
}

fn take_number(text: &str) -> Parsed<(Number<'_>, &str)> {
    let digits = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
    if text.starts_with(['-', '+']) {
        return Err("it has a sign");
    }
    let (whole, rest) = text.split_at(digits(text));
    if whole.is_empty() {
        return Err("a number is missing");
    }
    let Some(tail) = rest.strip_prefix('.') else {
        return Ok((Number { whole, fraction: "" }, rest));
    };
    let (fraction, rest) = tail.split_at(digits(tail));
    if fraction.is_empty() {
        return Err("digits are missing after the point");
    }
    Ok((Number { whole, fraction }, rest))
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Duration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as \"30s\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
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

    proptest! {
        #[test]
        fn what_is_printed_parses_back(micros in any::<u64>()) {
            let d = Duration::from_micros(micros);
            prop_assert_eq!(d.to_string().parse::<Duration>(), Ok(d));
            prop_assert_eq!(serde_json::from_str::<Duration>(&serde_json::to_string(&d).unwrap()).unwrap(), d);
        }

        #[test]
        fn small_ones_too(micros in 0u64..10_000_000_000) {
            let d = Duration::from_micros(micros);
            prop_assert_eq!(d.to_string().parse::<Duration>(), Ok(d));
        }

        #[test]
        fn iso_agrees_with_units(d in 0u64..1000, h in 0u64..100, m in 0u64..100, s in 0u64..100) {
            let iso: Duration = format!("P{d}DT{h}H{m}M{s}S").parse().unwrap();
            let units: Duration = format!("{d}d{h}h{m}m{s}s").parse().unwrap();
            prop_assert_eq!(iso, units);
            prop_assert_eq!(iso.as_micros(), (((d * 24 + h) * 60 + m) * 60 + s) * 1_000_000);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,24}") {
            let _ = text.parse::<Duration>();
        }

        #[test]
        fn nor_do_likely_ones(text in "[P]?[0-9.]{0,25}[wdhmsuTµ.]{0,3}[0-9]{0,4}[HMS]?") {
            let _ = text.parse::<Duration>();
        }
    }

    #[test]
    fn written_forms() {
        for (text, micros) in [
            ("250ms", 250_000),
            ("30s", 30_000_000),
            ("1h30m", 5_400_000_000),
            ("2d", 172_800_000_000),
            ("1w", 604_800_000_000),
            ("7us", 7),
            ("7µs", 7),
            ("0s", 0),
            ("1.5s", 1_500_000),
            ("0.000001s", 1),
            ("1.50h", 5_400_000_000),
            ("PT30S", 30_000_000),
            ("P1DT2H", 93_600_000_000),
            ("P2W", 1_209_600_000_000),
            ("PT0.25S", 250_000),
            ("pt1m", 60_000_000),
            ("18446744073709551615us", u64::MAX),
        ] {
            assert_eq!(text.parse::<Duration>().map(Duration::as_micros), Ok(micros), "{text}");
        }
    }

    #[test]
    fn refused_with_a_reason() {
        for (text, why) in [
            ("", "empty"),
            ("30", "no unit"),
            ("s", "number is missing"),
            ("5x", "units are"),
            ("5m1h", "large to small"),
            ("1m30m", "large to small"),
            ("-5s", "sign"),
            ("1.s", "digits are missing"),
            ("0.5us", "finer"),
            ("0.1234567890123s", "finer"),
            ("18446744073709551616us", "too long"),
            ("99999999999999w", "too long"),
            ("1h 30m", "number is missing"),
            ("P", "nothing follows"),
            ("PT", "nothing follows"),
            ("P1DT", "nothing follows"),
            ("P1M", "ISO 8601"),
            ("P1H", "ISO 8601"),
            ("PT1D", "ISO 8601"),
            ("PT1", "no unit"),
        ] {
            let error = text.parse::<Duration>().unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("expected such as"), "{text}: {error}");
        }
    }
}

//! Instants as text: RFC 3339, or civil time with a zone; and back.
//!
//! A civil time in a gap moves forward by the gap's length, one in a fold means the first of
//! the two (what jiff and RFC 5545 call "compatible"). That is for single instants; a schedule has
//! its own gap and fold policies.

use jiff::civil::DateTime;

use crate::civil::{DAY_S, date_of, day_of, days_in};
use crate::error::{Error, Kind};
use crate::{MAX_INSTANT, MIN_INSTANT, Micros, Zone};

const EXPECTED: &str = "an instant such as 2026-12-01T09:00:00Z, or 2026-12-01 09:00 with a zone";

/// Reads an instant.
///
/// Accepted: a date, then `T` or a space and `HH:MM[:SS[.fraction]]`, then `Z` or an offset
/// (`+08:00`, `+0800`, `+08`), then perhaps a zone in brackets as RFC 9557 has it. Without an
/// offset the time is civil, in the bracketed zone or else in `zone`; then the time of day may also be left out
/// and means midnight. A civil time in a gap moves forward by the gap's length, one in a fold
/// is the first. A second of 60 is read as 59. A fraction finer than a microsecond rounds up,
/// so nothing gets earlier.
///
/// # Errors
///
/// Text of another form, a date or time that does not exist, civil time without a zone,
/// and instants before year 1 or after [`MAX_INSTANT`].
///
/// ```
/// use tourbillon_schedule::{Zone, format_instant, parse_instant};
/// let shanghai = Zone::get("Asia/Shanghai")?;
/// let at = parse_instant("2026-12-01 09:00", Some(&shanghai))?;
/// assert_eq!(format_instant(at), "2026-12-01T01:00:00Z");
/// assert!(parse_instant("2026-12-01 09:00", None).is_err());
/// # Ok::<(), tourbillon_schedule::Error>(())
/// ```
pub fn parse_instant(text: &str, zone: Option<&Zone>) -> Result<Micros, Error> {
    let lead = text.len() - text.trim_start().len();
    let mut body = text.trim();
    let mut bracketed = None;
    if let Some((before, inside)) = body.strip_suffix(']').and_then(|s| s.split_once('[')) {
        bracketed = Some(Zone::get(inside).map_err(|error| error.within(Kind::Instant))?);
        body = before;
    }
    let mut reader = Reader { text: body, at: 0, lead };
    let year = reader.number(4)?;
    reader.expect(b"-")?;
    let month_at = reader.at;
    let month = reader.number(2)? as u32;
    reader.expect(b"-")?;
    let day_at = reader.at;
    let day = reader.number(2)? as u32;
    if !(1..=12).contains(&month) {
        return Err(reader.refuse(month_at, "a month from 01 to 12"));
    }
    if !(1..=days_in(year, month)).contains(&day) {
        return Err(reader.refuse(day_at, "a day that this month has"));
    }
    let mut second_of_day = 0;
    let mut micros = 0;
    let mut has_time = false;
    if reader.eat(b"Tt ") {
        has_time = true;
        (second_of_day, micros) = reader.time()?;
    }
    let local = day_of(year, month, day) * DAY_S + second_of_day;
    let second = match reader.offset(has_time)? {
        Some(offset) => local - offset,
        None => {
            let Some(zone) = bracketed.as_ref().or(zone) else {
                return Err(reader.refuse(
                    reader.at,
                    "an offset such as Z or +08:00 at the end, or a zone beside it",
                ));
            };
            from_civil(local, zone).ok_or_else(|| out_of_range(text))?
        }
    };
    let instant = second * 1_000_000 + micros;
    if !(MIN_INSTANT..=MAX_INSTANT).contains(&instant) {
        return Err(out_of_range(text));
    }
    Ok(instant)
}

/// Writes an instant as RFC 3339 in UTC, the fraction without trailing zeros and left out when
/// nought: `2026-12-01T01:00:00Z`, `2026-12-01T01:00:00.25Z`. Years outside 0 to 9999 get a sign and
/// six digits.
#[must_use]
pub fn format_instant(instant: Micros) -> String {
    let mut out = civil_text(instant, 0);
    out.push('Z');
    out
}

/// Writes an instant as civil time with offset and zone (RFC 9557):
/// `2026-12-01T09:00:00+08:00[Asia/Shanghai]`.
pub(crate) fn format_local(instant: Micros, zone: &Zone) -> String {
    let offset = zone.offset_at(instant.div_euclid(1_000_000));
    let mut out = civil_text(instant, offset);
    let magnitude = offset.unsigned_abs();
    out.push(if offset < 0 { '-' } else { '+' });
    out.push_str(&format!("{:02}:{:02}", magnitude / 3600, magnitude / 60 % 60));
    if !magnitude.is_multiple_of(60) {
        out.push_str(&format!(":{:02}", magnitude % 60));
    }
    out.push_str(&format!("[{}]", zone.name()));
    out
}

/// The instant of a civil time, both in seconds; gap and fold as the file's head says.
/// `None` outside jiff's range.
fn from_civil(local: i64, zone: &Zone) -> Option<i64> {
    let (year, month, day) = date_of(local.div_euclid(DAY_S));
    let time = local.rem_euclid(DAY_S);
    let civil = DateTime::new(
        i16::try_from(year).ok()?,
        month as i8,
        day as i8,
        (time / 3600) as i8,
        (time / 60 % 60) as i8,
        (time % 60) as i8,
        0,
    )
    .ok()?;
    let instant = zone.tz().to_ambiguous_timestamp(civil).compatible().ok()?;
    Some(instant.as_second())
}

fn civil_text(instant: Micros, offset: i64) -> String {
    let local = instant.div_euclid(1_000_000) + offset;
    let micros = instant.rem_euclid(1_000_000);
    let (year, month, day) = date_of(local.div_euclid(DAY_S));
    let time = local.rem_euclid(DAY_S);
    let year =
        if (0..=9999).contains(&year) { format!("{year:04}") } else { format!("{year:+07}") };
    let mut out = format!(
        "{year}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
        time / 3600,
        time / 60 % 60,
        time % 60
    );
    if micros != 0 {
        let fraction = format!(".{micros:06}");
        out.push_str(fraction.trim_end_matches('0'));
    }
    out
}

fn out_of_range(text: &str) -> Error {
    Error::new(
        Kind::Instant,
        "instant",
        None,
        text,
        "an instant from year 1 to the end of year 9999",
    )
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// Bytes cut from the front of the caller's text.
    lead: usize,
}

impl Reader<'_> {
    fn refuse(&self, at: usize, expected: &'static str) -> Error {
        let rest = self.text.get(at..).unwrap_or_default();
        Error::new(Kind::Instant, "instant", Some(self.lead + at + 1), rest, expected)
    }

    fn eat(&mut self, any: &[u8]) -> bool {
        let found = self.text.as_bytes().get(self.at).is_some_and(|b| any.contains(b));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, any: &[u8]) -> Result<(), Error> {
        if self.eat(any) { Ok(()) } else { Err(self.refuse(self.at, EXPECTED)) }
    }

    /// Exactly so many digits.
    fn number(&mut self, digits: usize) -> Result<i64, Error> {
        let end = self.at + digits;
        let number = self
            .text
            .get(self.at..end)
            .filter(|part| part.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|part| part.parse().ok())
            .ok_or_else(|| self.refuse(self.at, EXPECTED))?;
        self.at = end;
        Ok(number)
    }

    /// `HH:MM[:SS[.fraction]]`, as the second of the day and microseconds, which may be a
    /// whole second when they were rounded up.
    fn time(&mut self) -> Result<(i64, i64), Error> {
        let start = self.at;
        let hour = self.number(2)?;
        self.expect(b":")?;
        let minute = self.number(2)?;
        let mut second = 0;
        let mut micros = 0;
        if self.eat(b":") {
            second = self.number(2)?;
            if self.eat(b".,") {
                micros = self.fraction()?;
            }
        }
        if hour > 23 || minute > 59 || second > 60 {
            return Err(self.refuse(start, "a time from 00:00:00 to 23:59:59"));
        }
        Ok((hour * 3600 + minute * 60 + second.min(59), micros))
    }

    fn fraction(&mut self) -> Result<i64, Error> {
        let rest = &self.text[self.at..];
        let len = rest.bytes().take_while(u8::is_ascii_digit).count();
        if len == 0 {
            return Err(self.refuse(self.at, "digits after the decimal point"));
        }
        let (kept, beyond) = rest[..len].split_at(len.min(6));
        self.at += len;
        let micros: i64 = format!("{kept:0<6}").parse().unwrap_or_default();
        Ok(micros + i64::from(beyond.bytes().any(|b| b != b'0')))
    }

    /// The rest of the text: an offset in seconds, or nothing.
    fn offset(&mut self, has_time: bool) -> Result<Option<i64>, Error> {
        if self.at == self.text.len() {
            return Ok(None);
        }
        let start = self.at;
        if !has_time {
            return Err(self.refuse(start, EXPECTED));
        }
        let offset = if self.eat(b"Zz") {
            0
        } else {
            let sign = if self.eat(b"-") {
                -1
            } else {
                self.expect(b"+")?;
                1
            };
            let hours = self.number(2)?;
            let mut minutes = 0;
            if self.eat(b":") || self.at < self.text.len() {
                minutes = self.number(2)?;
            }
            if hours > 23 || minutes > 59 {
                return Err(self.refuse(start, "an offset such as Z or +08:00"));
            }
            sign * (hours * 3600 + minutes * 60)
        };
        if self.at < self.text.len() {
            return Err(self.refuse(self.at, "nothing after the offset"));
        }
        Ok(Some(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_reads_back(instant in MIN_INSTANT..=MAX_INSTANT) {
            prop_assert_eq!(parse_instant(&format_instant(instant), None).unwrap(), instant);
            let zone = Zone::get("America/New_York").unwrap();
            // Offsets of less than a minute are not read: before standard time began.
            if instant > -2_000_000_000_000_000 {
                prop_assert_eq!(parse_instant(&format_local(instant, &zone), None).unwrap(), instant);
            }
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,20}|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]?[0-9:.,Z+\\[\\]A-Za-z/-]{0,24}") {
            let zone = Zone::get("Europe/Berlin").unwrap();
            let _ = parse_instant(&text, Some(&zone));
        }

        #[test]
        fn no_instant_panics(instant in any::<i64>()) {
            let _ = (format_instant(instant), format_local(instant, &Zone::utc()));
        }
    }

    #[test]
    fn examples() {
        let new_york = Zone::get("America/New_York").unwrap();
        for (text, expected) in [
            ("2026-12-01T09:00:00Z", "2026-12-01T09:00:00Z"),
            ("2026-12-01t09:00:00z", "2026-12-01T09:00:00Z"),
            ("2026-12-01 09:00:00.25+08:00", "2026-12-01T01:00:00.25Z"),
            ("2026-12-01T09:00:00.0000001Z", "2026-12-01T09:00:00.000001Z"),
            ("2026-12-31T23:59:59.9999999Z", "2027-01-01T00:00:00Z"),
            ("2026-12-01T09:00+08", "2026-12-01T01:00:00Z"),
            ("2026-12-01T09:00-0530", "2026-12-01T14:30:00Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
            ("2026-12-01 09:00", "2026-12-01T14:00:00Z"),
            ("2026-12-01", "2026-12-01T05:00:00Z"),
            ("2026-12-01T09:00[Asia/Shanghai]", "2026-12-01T01:00:00Z"),
            // In the gap: forward by its length. In the fold: the first.
            ("2026-03-08 02:30", "2026-03-08T07:30:00Z"),
            ("2026-11-01 01:30", "2026-11-01T05:30:00Z"),
        ] {
            let instant = parse_instant(text, Some(&new_york)).unwrap();
            assert_eq!(format_instant(instant), expected, "{text}");
        }
        assert_eq!(format_instant(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(
            format_local(1_772_953_200_000_000, &new_york),
            "2026-03-08T03:00:00-04:00[America/New_York]"
        );
    }

    #[test]
    fn refusals_say_where_and_what() {
        for (text, column) in [
            ("", Some(1)),
            ("tomorrow", Some(1)),
            ("2026-13-01T00:00:00Z", Some(6)),
            ("2026-02-29T00:00:00Z", Some(9)),
            ("2026-02-28T24:00:00Z", Some(12)),
            ("2026-02-28T23:00:00Zx", Some(21)),
            ("2026-02-28T23:00:00+25:00", Some(20)),
            ("2026-02-28 23:00", Some(17)),
            ("2026-02-28", Some(11)),
            ("2026-02-28Z", Some(11)),
            ("9999-12-31T23:59:59Z", None),
            ("0000-01-01T00:00:00Z", None),
            ("2026-02-28T23:00[Mars/Base]", None),
        ] {
            let error = parse_instant(text, None).unwrap_err();
            assert!(error.is_instant(), "{text}");
            assert_eq!(error.column(), column, "{text}: {error}");
        }
    }
}

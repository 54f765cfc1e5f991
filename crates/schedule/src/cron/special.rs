//! The day forms that Quartz and Spring share: `L`, `L-n`, `nW`, `LW`, `nL`, `n#k`, in lists with
//! plain days.

use crate::cron::days::{MonthDays, WeekDays};
use crate::cron::text::{Grammar, Piece, digits};
use crate::error::Error;

/// A day-of-month field.
pub(crate) fn month_day(grammar: &Grammar, field: Piece<'_>) -> Result<MonthDays, Error> {
    let mut found = MonthDays::default();
    for item in field.items() {
        let (body, weekday) = match item.strip_suffix('W') {
            Some(body) => (body, true),
            None => (item, false),
        };
        if let Some(back) = before_last(grammar, body)? {
            let set = if weekday { &mut found.nearest_before_last } else { &mut found.before_last };
            *set |= 1 << back;
        } else if weekday {
            found.nearest |= 1 << grammar.value(body)?;
        } else {
            grammar.item(item, &mut |day| found.days |= 1 << day)?;
        }
    }
    Ok(found)
}

/// The n of `L-n`, 0 for `L`; `None` when the piece is something else.
fn before_last(grammar: &Grammar, piece: Piece<'_>) -> Result<Option<i64>, Error> {
    if piece.is("L") {
        return Ok(Some(0));
    }
    match piece.split_once('-') {
        Some((last, back)) if last.is("L") => match digits(back.text) {
            Some(back @ 0..=30) => Ok(Some(back)),
            _ => Err(grammar.refuse(back, "0-30 days before the last")),
        },
        _ => Ok(None),
    }
}

/// A day-of-week field. `bare_last` is the weekday a bare `L` means; `weekday` makes a weekday
/// with Sunday 0 of the dialect's number.
pub(crate) fn week_day(
    grammar: &Grammar,
    field: Piece<'_>,
    bare_last: Option<u8>,
    weekday: impl Fn(i64) -> u32,
) -> Result<WeekDays, Error> {
    let mut found = WeekDays::default();
    for item in field.items() {
        if item.is("L") {
            match bare_last {
                Some(day) => found.days |= 1 << day,
                None => return Err(grammar.refuse(item, "a weekday before L, such as 5L or FRIL")),
            }
        } else if let Some((day, which)) = item.split_once('#') {
            let day = grammar.value(day)?;
            let Some(which @ 1..=5) = digits(which.text) else {
                return Err(grammar.refuse(which, "1-5 after #: which such weekday of the month"));
            };
            found.nth[which as usize - 1] |= 1 << weekday(day);
        } else if let Some(day) = item.strip_suffix('L') {
            found.last |= 1 << weekday(grammar.value(day)?);
        } else {
            grammar.item(item, &mut |day| found.days |= 1 << weekday(day))?;
        }
    }
    Ok(found)
}

//! The dialect of Quartz: second, minute, hour, day of month, month, day of week, perhaps year.
//!
//! Sunday is 1. Exactly one day field is `?`. Ranges may go round (`22-2`, `FRI-MON`), but
//! not those of years. `L`, `L-n`, `nW`, `LW`, `L-nW` for days of the month, `nL` and `n#k` for
//! weekdays, whose bare `L` is Saturday. It deliberately lacks nicknames, as Quartz does.

use crate::cron::Form;
use crate::cron::days::{ALL_MONTH_DAYS, ALL_WEEK_DAYS, Days, Join, MonthDays, WeekDays};
use crate::cron::fields::{Fields, YEAR_BASE, Years};
use crate::cron::special::{month_day, week_day};
use crate::cron::text::{Grammar, Piece, WEEKDAYS, fields};
use crate::error::Error;

const SHAPE: &str =
    "6 or 7 fields: second, minute, hour, day of month, month, day of week, perhaps year";

const fn quartz(grammar: Grammar, step_max: i64) -> Grammar {
    Grammar { wraps: true, open_step: true, step_max, ..grammar }
}

const SECOND: Grammar = quartz(Grammar::SECOND, 59);
const MINUTE: Grammar = quartz(Grammar::MINUTE, 59);
const HOUR: Grammar = quartz(Grammar::HOUR, 23);
const MONTH: Grammar = quartz(Grammar::MONTH, 12);
const MONTH_DAY: Grammar =
    quartz(Grammar { expected: "1-31, L, L-n, nW, LW or ?", ..Grammar::DAY_OF_MONTH }, 31);
const WEEK_DAY: Grammar = quartz(
    Grammar {
        name: "day of week",
        low: 1,
        high: 7,
        names: WEEKDAYS,
        name_base: 1,
        expected: "1-7 (Sunday is 1), SUN-SAT, nL, n#k or ?",
        ..Grammar::MINUTE
    },
    7,
);
const YEAR: Grammar = Grammar {
    name: "year",
    low: YEAR_BASE,
    high: 2099,
    expected: "1970-2099",
    open_step: true,
    ..Grammar::MINUTE
};

pub(crate) fn parse(text: &str) -> Result<Form, Error> {
    let parts = fields(text);
    let (second, minute, hour, in_month, month, in_week, year) = match parts[..] {
        [s, m, h, dom, mon, dow] => (s, m, h, dom, mon, dow, None),
        [s, m, h, dom, mon, dow, year] => (s, m, h, dom, mon, dow, Some(year)),
        _ => {
            let other = if parts.len() == 5 { "; the vixie dialect has 5" } else { "" };
            return Err(super::count(text, &parts, format!("{SHAPE}{other}")));
        }
    };
    let seconds = SECOND.list(second)?;
    let minutes = MINUTE.list(minute)?;
    let hours = HOUR.list(hour)?;
    let months = MONTH.list(month)?;
    let (month_days, week_days) = match (in_month.is("?"), in_week.is("?")) {
        (true, false) => {
            (MonthDays { days: ALL_MONTH_DAYS, ..MonthDays::default() }, week(in_week)?)
        }
        (false, true) => (
            month_day(&MONTH_DAY, in_month)?,
            WeekDays { days: ALL_WEEK_DAYS, ..WeekDays::default() },
        ),
        (true, true) => {
            return Err(WEEK_DAY.refuse(in_week, "a day: only one of the two day fields may be ?"));
        }
        (false, false) => {
            // A fault inside a field comes before the missing `?`.
            month_day(&MONTH_DAY, in_month)?;
            week(in_week)?;
            return Err(WEEK_DAY.refuse(in_week, "? here or as the day of month: exactly one is ?"));
        }
    };
    let years = match year {
        None => None,
        Some(year) if year.text == "*" => None,
        Some(year) => Some(years(year)?),
    };
    Ok(Form::Fields(Fields {
        seconds,
        minutes,
        hours,
        days: Days { month: month_days, week: week_days, join: Join::And },
        months,
        years,
        elapsed: [second, minute, hour].iter().any(|f| f.starts_with_star()),
    }))
}

fn week(field: Piece<'_>) -> Result<WeekDays, Error> {
    // A bare `L` is the week's last day.
    const SATURDAY: Option<u8> = Some(6);
    week_day(&WEEK_DAY, field, SATURDAY, |value| (value - 1) as u32)
}

fn years(field: Piece<'_>) -> Result<Years, Error> {
    let mut years = [0; 3];
    for item in field.items() {
        YEAR.item(item, &mut |year| {
            let index = (year - YEAR_BASE) as usize;
            years[index / 64] |= 1_u64 << (index % 64);
        })?;
    }
    Ok(Years(years))
}

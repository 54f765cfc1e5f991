//! The dialect of Spring's `@Scheduled`: second, minute, hour, day of month, month, day of week.
//!
//! Sunday is 0 and 7, Monday 1; `?` means `*` in a day field; day fields join by AND. `L`, `L-n`,
//! `nW`, `LW`, `nL`, `n#k` with Spring's weekday numbers, and nicknames such as `@daily`. It
//! deliberately lacks a bare `L` as weekday, which Spring refuses too.

use crate::cron::Form;
use crate::cron::days::{ALL_MONTH_DAYS, ALL_WEEK_DAYS, Days, Join, MonthDays, WeekDays};
use crate::cron::fields::Fields;
use crate::cron::special::{month_day, week_day};
use crate::cron::text::{Grammar, Sunday, fields};
use crate::error::{Error, Kind};

const SHAPE: &str = "6 fields: second, minute, hour, day of month, month, day of week";

const fn spring(grammar: Grammar) -> Grammar {
    Grammar { open_step: true, ..grammar }
}

const SECOND: Grammar = spring(Grammar::SECOND);
const MINUTE: Grammar = spring(Grammar::MINUTE);
const HOUR: Grammar = spring(Grammar::HOUR);
const MONTH: Grammar = spring(Grammar::MONTH);
const MONTH_DAY: Grammar =
    spring(Grammar { expected: "1-31, L, L-n, nW, LW or ?", ..Grammar::DAY_OF_MONTH });
const WEEK_DAY: Grammar = spring(Grammar {
    // Spring reads SUN as 7, so that both SUN-TUE and FRI-SUN are ranges.
    names: &["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
    name_base: 1,
    sunday: Sunday::EarlyAtStart,
    expected: "0-7 (Sunday is 0 and 7), SUN-SAT, nL, n#k or ?",
    ..Grammar::DAY_OF_WEEK
});

pub(crate) fn parse(text: &str) -> Result<Form, Error> {
    let parts = fields(text);
    if let [name] = parts[..]
        && name.text.starts_with('@')
    {
        let fields = match name.text.to_ascii_lowercase().as_str() {
            "@yearly" | "@annually" => "0 0 0 1 1 *",
            "@monthly" => "0 0 0 1 * *",
            "@weekly" => "0 0 0 * * 0",
            "@daily" | "@midnight" => "0 0 0 * * *",
            "@hourly" => "0 0 * * * *",
            _ => {
                return Err(Error::new(
                    Kind::Cron,
                    "expression",
                    Some(name.at + 1),
                    name.text,
                    "@yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly",
                ));
            }
        };
        return parse(fields);
    }
    let [second, minute, hour, in_month, month, in_week] = parts[..] else {
        let other = match parts.len() {
            5 => "; the vixie dialect has 5",
            7 => "; the quartz dialect has years",
            _ => "",
        };
        return Err(super::count(text, &parts, format!("{SHAPE}{other}")));
    };
    let seconds = SECOND.list(second)?;
    let minutes = MINUTE.list(minute)?;
    let hours = HOUR.list(hour)?;
    let month_days = if in_month.is("?") {
        MonthDays { days: ALL_MONTH_DAYS, ..MonthDays::default() }
    } else {
        month_day(&MONTH_DAY, in_month)?
    };
    let months = MONTH.list(month)?;
    let week_days = if in_week.is("?") {
        WeekDays { days: ALL_WEEK_DAYS, ..WeekDays::default() }
    } else {
        week_day(&WEEK_DAY, in_week, None, |value| (value % 7) as u32)?
    };
    Ok(Form::Fields(Fields {
        seconds,
        minutes,
        hours,
        days: Days { month: month_days, week: week_days, join: Join::And },
        months,
        years: None,
        elapsed: [second, minute, hour].iter().any(|f| f.starts_with_star()),
    }))
}

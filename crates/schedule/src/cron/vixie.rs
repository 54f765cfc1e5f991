//! The dialect of Vixie cron: minute, hour, day of month, month, day of week.
//!
//! Names, lists, ranges, steps; Sunday is 0 and 7; `@daily` and its like; `@every`; and `~` for a
//! value chosen once from the schedule's name. Day fields join by OR unless one of them begins
//! with `*`. It deliberately lacks `@reboot`, which is no time, and `5/15`, which crons read
//! differently.

use crate::cron::Form;
use crate::cron::days::{Days, Join, MonthDays, WeekDays};
use crate::cron::fields::Fields;
use crate::cron::text::{Grammar, Piece, Sunday, fields, fold_sunday};
use crate::duration::parse_duration;
use crate::error::{Error, Kind};
use crate::hash::stable;
use crate::rule::check_interval;

const SHAPE: &str = "5 fields: minute, hour, day of month, month, day of week";

const WEEKDAY: Grammar = Grammar { sunday: Sunday::LateAtEnd, ..Grammar::DAY_OF_WEEK };

pub(crate) fn parse(text: &str, seed: &str) -> Result<Form, Error> {
    let parts = fields(text);
    if let Some(first) = parts.first()
        && first.text.starts_with('@')
    {
        return nickname(text, &parts, seed);
    }
    let [minute, hour, month_day, month, week_day] = parts[..] else {
        let other = match parts.len() {
            6 | 7 => "; the quartz and spring dialects have seconds",
            _ => "",
        };
        return Err(super::count(text, &parts, format!("{SHAPE}{other}")));
    };
    let join = if month_day.starts_with_star() || week_day.starts_with_star() {
        Join::And
    } else {
        Join::Or
    };
    let minutes = list(&Grammar::MINUTE, minute, seed)?;
    let hours = list(&Grammar::HOUR, hour, seed)?;
    let month_days = list(&Grammar::DAY_OF_MONTH, month_day, seed)? as u32;
    let months = list(&Grammar::MONTH, month, seed)?;
    let week_days = fold_sunday(list(&WEEKDAY, week_day, seed)?);
    Ok(Form::Fields(Fields {
        seconds: 1,
        minutes,
        hours,
        days: Days {
            month: MonthDays { days: month_days, ..MonthDays::default() },
            week: WeekDays { days: week_days, ..WeekDays::default() },
            join,
        },
        months,
        years: None,
        elapsed: minute.starts_with_star() || hour.starts_with_star(),
    }))
}

fn list(grammar: &Grammar, field: Piece<'_>, seed: &str) -> Result<u64, Error> {
    let mut bits = 0;
    for item in field.items() {
        match item.split_once('~') {
            Some((low, high)) => bits |= 1 << chosen(grammar, item, low, high, seed)?,
            None => grammar.item(item, &mut |value| bits |= 1_u64 << value)?,
        }
    }
    Ok(bits)
}

/// The value of `a~b`, where a missing end is the field's own.
fn chosen(
    grammar: &Grammar,
    item: Piece<'_>,
    low: Piece<'_>,
    high: Piece<'_>,
    seed: &str,
) -> Result<i64, Error> {
    let from = match low.text {
        "" => grammar.low,
        _ => grammar.value(low)?,
    };
    let to = match high.text {
        // Sunday is not to be twice as likely.
        "" => grammar.high - i64::from(grammar.high == 7),
        _ => grammar.value(high)?,
    };
    if from > to {
        return Err(grammar.refuse(item, "a range that begins before it ends"));
    }
    // Each field draws its own, so that `~ ~ * * *` is not the same value twice.
    let field = stable(grammar.name, 0);
    let width = (to - from + 1) as u64;
    Ok(from + (stable(seed, field) % width) as i64)
}

fn nickname(text: &str, parts: &[Piece<'_>], seed: &str) -> Result<Form, Error> {
    let name = parts[0];
    let refuse = |piece: Piece<'_>, expected: &'static str| {
        Error::new(Kind::Cron, "expression", Some(piece.at + 1), piece.text, expected)
    };
    if name.is("@every") {
        let Some(length) = parts.get(1) else {
            return Err(refuse(name, "a duration after @every, such as @every 5m"));
        };
        let interval = parse_duration(text[length.at..].trim_end())
            .map_err(|error| error.within(Kind::Cron).moved(length.at))?;
        let interval = check_interval(interval)
            .map_err(|error| error.within(Kind::Cron).placed(length.at + 1))?;
        return Ok(Form::Every(interval));
    }
    if let Some(extra) = parts.get(1) {
        return Err(refuse(*extra, "nothing after the nickname"));
    }
    let fields = match name.text.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        "@reboot" => return Err(refuse(name, "a rule of time; @reboot is none")),
        _ => {
            return Err(refuse(
                name,
                "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly or @every",
            ));
        }
    };
    parse(fields, seed)
}

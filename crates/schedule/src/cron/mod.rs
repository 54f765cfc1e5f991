//! Cron expressions: three dialects, one parser each, one normal form.
//!
//! What always holds: a parsed expression is complete, so nothing about it can fail later. It may
//! still never fire (`0 0 30 2 *`); that is for the search to find.

mod days;
mod fields;
mod quartz;
mod special;
mod spring;
mod text;
mod vixie;

use std::fmt;
use std::str::FromStr;

use crate::Micros;
use crate::error::{CronError, Error, Kind};

pub(crate) use days::{ALL_MONTH_DAYS, ALL_WEEK_DAYS, Days, Join, MonthDays, WeekDays};
pub(crate) use fields::{Fields, YEAR_BASE, Years};
pub(crate) use text::{Grammar, Piece, WEEKDAYS, digits, fields};

/// Longest expression that is read, in bytes.
const TEXT_MAX: usize = 1_000;

/// A way of writing cron expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Dialect {
    /// Vixie cron: 5 fields, nicknames, `~`.
    #[default]
    Vixie,
    /// Quartz: 6 or 7 fields, Sunday is 1.
    Quartz,
    /// Spring: 6 fields, Sunday is 0 and 7.
    Spring,
}

impl Dialect {
    /// The dialect's name as documents have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Dialect::Vixie => "vixie",
            Dialect::Quartz => "quartz",
            Dialect::Spring => "spring",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        [Dialect::Vixie, Dialect::Quartz, Dialect::Spring]
            .into_iter()
            .find(|dialect| dialect.as_str() == text)
            .ok_or_else(|| Error::new(Kind::Cron, "dialect", None, text, "vixie, quartz or spring"))
    }
}

/// A cron expression that has been understood.
///
/// Two are equal when they mean the same, however they are written.
#[derive(Debug, Clone)]
pub struct CronExpr {
    dialect: Dialect,
    text: Box<str>,
    form: Form,
}

/// What an expression means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// A set of civil times.
    Fields(Fields),
    /// `@every`: an interval.
    Every(Micros),
}

impl CronExpr {
    /// Reads an expression of a dialect. `seed` is the schedule's name, from which `~` takes its value;
    /// the same name and expression always give the same value.
    ///
    /// # Errors
    ///
    /// The first fault from the left, with field, column (bytes from 1), what was given and what
    /// would be right. Expressions over 1,000 bytes are refused.
    ///
    /// ```
    /// use tourbillon_schedule::{CronExpr, Dialect};
    /// let error = CronExpr::parse(Dialect::Vixie, "0 25 * * *", "").unwrap_err();
    /// assert_eq!((error.field(), error.column()), ("hour", Some(3)));
    /// assert_eq!(error.to_string(), r#"hour at column 3: given "25"; expected 0-23"#);
    /// ```
    pub fn parse(dialect: Dialect, text: &str, seed: &str) -> Result<Self, CronError> {
        if text.len() > TEXT_MAX {
            return Err(Error::new(
                Kind::Cron,
                "expression",
                Some(1),
                text,
                format!("at most {TEXT_MAX} bytes"),
            ));
        }
        let form = match dialect {
            Dialect::Vixie => vixie::parse(text, seed)?,
            Dialect::Quartz => quartz::parse(text)?,
            Dialect::Spring => spring::parse(text)?,
        };
        Ok(Self { dialect, text: text.trim().into(), form })
    }

    /// The expression as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its dialect.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether the rule runs by elapsed time, at each real instant whose civil time matches: its
    /// second, minute or hour field begins with `*`, or it is `@every`. Gap and fold policies do not concern it.
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        match &self.form {
            Form::Fields(fields) => fields.elapsed,
            Form::Every(_) => true,
        }
    }

    pub(crate) fn form(&self) -> &Form {
        &self.form
    }
}

impl PartialEq for CronExpr {
    fn eq(&self, other: &Self) -> bool {
        self.form == other.form
    }
}

impl Eq for CronExpr {}

impl fmt::Display for CronExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The error for a wrong number of fields: it points past the last field when there are too few.
fn count(text: &str, parts: &[text::Piece<'_>], expected: String) -> Error {
    let given = match parts.len() {
        0 => String::new(),
        1 => format!("1 field: {}", text.trim()),
        n => format!("{n} fields: {}", text.trim()),
    };
    let column = match parts.last() {
        Some(last) if parts.len() < 5 => last.at + last.text.len() + 1,
        _ => 1,
    };
    Error::new(Kind::Cron, "expression", Some(column), &given, expected)
}

//! The rule of a schedule: what makes a time an occurrence, before zone and bounds.
//!
//! What always holds: an interval and a delay are at least a millisecond, the grain of due
//! times, so no rule can fill a queue from one instant.

use crate::calendar::Calendar;
use crate::cron::CronExpr;
use crate::error::{Error, Kind};
use crate::{Micros, format_duration};

/// The shortest interval or delay: one millisecond.
const INTERVAL_MIN: Micros = 1_000;
/// The longest: 10,000 years, beyond every instant.
const INTERVAL_MAX: Micros = 10_000 * 366 * 86_400_000_000;

/// A rule that says when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule(pub(crate) Form);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    Cron(CronExpr),
    Every(Micros),
    After(Micros),
    Calendar(Calendar),
}

/// Which sort of rule it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleKind {
    /// Civil times of a cron expression.
    Cron,
    /// Fixed rate.
    Every,
    /// Fixed delay.
    After,
    /// Every n days, weeks, months, quarters or years at a civil time.
    Calendar,
}

impl Rule {
    /// The times of a cron expression.
    #[must_use]
    pub fn cron(expr: CronExpr) -> Self {
        Self(Form::Cron(expr))
    }

    /// Fixed rate: occurrence n is anchor + n × interval, the anchor being the schedule's start,
    /// else the Unix epoch.
    ///
    /// # Errors
    ///
    /// An interval under a millisecond or over 10,000 years.
    pub fn every(interval: Micros) -> Result<Self, Error> {
        check_interval(interval).map(|interval| Self(Form::Every(interval)))
    }

    /// Fixed delay: counted from the final time of the previous run.
    ///
    /// # Errors
    ///
    /// A delay under a millisecond or over 10,000 years.
    pub fn after(delay: Micros) -> Result<Self, Error> {
        check("delay", delay).map(|delay| Self(Form::After(delay)))
    }

    /// Every n days, weeks, months, quarters or years at a civil time.
    #[must_use]
    pub fn calendar(calendar: Calendar) -> Self {
        Self(Form::Calendar(calendar))
    }

    /// Which sort of rule it is. `@every` of the vixie dialect is [`RuleKind::Every`].
    #[must_use]
    pub fn kind(&self) -> RuleKind {
        match &self.0 {
            Form::Cron(expr) => match expr.form() {
                crate::cron::Form::Fields(_) => RuleKind::Cron,
                crate::cron::Form::Every(_) => RuleKind::Every,
            },
            Form::Every(_) => RuleKind::Every,
            Form::After(_) => RuleKind::After,
            Form::Calendar(_) => RuleKind::Calendar,
        }
    }

    /// The cron expression, when it has one.
    #[must_use]
    pub fn cron_expr(&self) -> Option<&CronExpr> {
        match &self.0 {
            Form::Cron(expr) => Some(expr),
            _ => None,
        }
    }

    /// The calendar rule, when it is one.
    #[must_use]
    pub fn as_calendar(&self) -> Option<&Calendar> {
        match &self.0 {
            Form::Calendar(calendar) => Some(calendar),
            _ => None,
        }
    }

    /// The interval of a fixed rate, in microseconds; also that of `@every`.
    #[must_use]
    pub fn interval(&self) -> Option<Micros> {
        match &self.0 {
            Form::Every(interval) => Some(*interval),
            Form::Cron(expr) => match expr.form() {
                crate::cron::Form::Every(interval) => Some(*interval),
                crate::cron::Form::Fields(_) => None,
            },
            Form::After(_) | Form::Calendar(_) => None,
        }
    }

    /// The delay of a fixed delay, in microseconds.
    #[must_use]
    pub fn delay(&self) -> Option<Micros> {
        match &self.0 {
            Form::After(delay) => Some(*delay),
            _ => None,
        }
    }
}

/// An interval that a rule may have.
pub(crate) fn check_interval(interval: Micros) -> Result<Micros, Error> {
    check("interval", interval)
}

fn check(field: &'static str, length: Micros) -> Result<Micros, Error> {
    if (INTERVAL_MIN..=INTERVAL_MAX).contains(&length) {
        return Ok(length);
    }
    Err(Error::new(Kind::Timing, field, None, &format_duration(length), "from 1ms to 10,000 years"))
}

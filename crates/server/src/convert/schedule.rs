//! Schedules.

use tourbillon_node::api::ScheduleDraft;
use tourbillon_store::ScheduleDoc;
use tourbillon_store::schedule::{CalendarRule, Misfire, Overlap, Rule};
use tourbillon_wire as wire;
use tourbillon_wire::MisfirePolicy;

use super::name::name;
use super::number::within;
use super::queue::same_name;
use super::{Judge, time};
use crate::failure::{Failure, Result};
use crate::plan;

impl Judge<'_> {
    /// The schedule called `path_name`; `paused` is how it is now. Its rule, zone and bounds have
    /// been tried out; whether the calendars it names exist has not.
    pub(crate) fn schedule(
        &self,
        path_name: &str,
        given: wire::NewSchedule,
        paused: bool,
    ) -> Result<ScheduleDraft> {
        let limits = self.limits;
        same_name(path_name, given.name.as_deref())?;
        name(path_name, "name", limits)?;
        let rule = rule(&given)?;
        let misfire = given.misfire.unwrap_or_default();
        let limit = misfire.limit.unwrap_or(100);
        let span = |d: Option<wire::Duration>, field: &str, least: i64| {
            d.map(|d| time::span(d, field, least, limits.horizon)).transpose()
        };
        let (queue, task) = self.template(given.task).map_err(|f| f.under("task"))?;
        let doc = ScheduleDoc {
            rule,
            tz: given.tz.unwrap_or_else(|| "UTC".to_owned()),
            gap: match given.gap.unwrap_or_default() {
                wire::Gap::Shift => "shift",
                wire::Gap::Skip => "skip",
            }
            .to_owned(),
            fold: match given.fold.unwrap_or_default() {
                wire::Fold::First => "first",
                wire::Fold::Last => "last",
                wire::Fold::Both => "both",
            }
            .to_owned(),
            start: given.start.map(|t| time::instant(t, "start")).transpose()?,
            end: given.end.map(|t| time::instant(t, "end")).transpose()?,
            max_runs: given
                .max_runs
                .map(|n| within(n, "max_runs", 1, i64::MAX as u64))
                .transpose()?,
            jitter: span(given.jitter, "jitter", 0)?.unwrap_or(0),
            exclude: self.exclude(given.exclude)?,
            misfire: match misfire.policy {
                MisfirePolicy::Skip => Misfire::Skip,
                MisfirePolicy::Once => Misfire::Once,
                MisfirePolicy::All => Misfire::All,
            },
            misfire_grace: span(misfire.grace, "misfire.grace", 0)?,
            misfire_limit: within(limit, "misfire.limit", 1, limits.misfire_limit)?,
            overlap: match given.overlap.unwrap_or_default() {
                wire::Overlap::Allow => Overlap::Allow,
                wire::Overlap::Skip => Overlap::Skip,
                wire::Overlap::Wait => Overlap::Wait,
                wire::Overlap::CancelRunning => Overlap::CancelRunning,
            },
            expect_within: span(given.expect_within, "expect_within", 1_000)?,
            task,
        };
        plan::timing(&doc, path_name)?;
        Ok(ScheduleDraft {
            namespace: self.namespace.to_owned(),
            name: path_name.to_owned(),
            queue,
            paused: given.paused.unwrap_or(paused),
            doc,
        })
    }
}

/// The one rule that is given.
fn rule(given: &wire::NewSchedule) -> Result<Rule> {
    let mut rules = Vec::new();
    if let Some(expr) = &given.cron {
        let dialect = match given.dialect.unwrap_or_default() {
            wire::Dialect::Vixie => "vixie",
            wire::Dialect::Quartz => "quartz",
            wire::Dialect::Spring => "spring",
        };
        rules.push(Rule::Cron { expr: expr.clone(), dialect: dialect.to_owned() });
    }
    if given.cron.is_none() && given.dialect.is_some() {
        return Err(Failure::invalid(
            "dialect",
            "there is no cron expression",
            "`dialect` together with `cron`",
        ));
    }
    if let Some(every) = given.every {
        rules.push(Rule::Every(time::span(every, "every", 1_000, i64::MAX)?));
    }
    if let Some(after) = given.after {
        rules.push(Rule::After(time::span(after, "after", 1_000, i64::MAX)?));
    }
    if let Some(calendar) = &given.calendar {
        rules.push(Rule::Calendar(CalendarRule {
            every: calendar.every.clone(),
            on: calendar.on.as_ref().map(|on| match on {
                wire::On::Day(day) => day.to_string(),
                wire::On::Name(name) => name.clone(),
            }),
            at: calendar.at.clone().unwrap_or_else(|| "00:00".to_owned()),
            month_end: match calendar.month_end.unwrap_or_default() {
                wire::MonthEnd::Clamp => "clamp",
                wire::MonthEnd::Skip => "skip",
            }
            .to_owned(),
        }));
    }
    match (rules.pop(), rules.is_empty()) {
        (Some(rule), true) => Ok(rule),
        (found, _) => Err(Failure::invalid(
            "cron",
            if found.is_some() { "more than one rule is given" } else { "no rule is given" },
            "exactly one of `cron`, `every`, `after`, `calendar`",
        )),
    }
}

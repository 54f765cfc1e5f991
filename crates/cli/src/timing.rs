//! A schedule document as a timing, to preview it without a server.

use tourbillon_schedule as schedule;
use tourbillon_schedule::{Calendar, CronExpr, Error, Micros, Rule, Timing, Zone};
use tourbillon_wire::{
    Dialect, Duration, Fold, Gap, LeftOut, MonthEnd, NewSchedule, Occurrence, On, Preview,
    Timestamp,
};

use crate::exit::usage;

/// The timing of a document with one rule. `seed` stands for the schedule's name.
pub(crate) fn timing(document: &NewSchedule, seed: &str) -> anyhow::Result<Timing> {
    build(document, seed).map_err(usage)
}

fn build(document: &NewSchedule, seed: &str) -> Result<Timing, Error> {
    let rule = if let Some(expr) = &document.cron {
        let dialect = match document.dialect.unwrap_or_default() {
            Dialect::Vixie => schedule::Dialect::Vixie,
            Dialect::Quartz => schedule::Dialect::Quartz,
            Dialect::Spring => schedule::Dialect::Spring,
        };
        Rule::cron(CronExpr::parse(dialect, expr, seed)?)
    } else if let Some(calendar) = &document.calendar {
        let mut rule = Calendar::parse(&calendar.every)?;
        if let Some(on) = &calendar.on {
            let text = match on {
                On::Day(day) => day.to_string(),
                On::Name(name) => name.clone(),
            };
            rule = rule.with_on(text.parse()?)?;
        }
        if let Some(at) = &calendar.at {
            rule = rule.with_at(at)?;
        }
        Rule::calendar(rule.with_month_end(match calendar.month_end.unwrap_or_default() {
            MonthEnd::Clamp => schedule::MonthEnd::Clamp,
            MonthEnd::Skip => schedule::MonthEnd::Skip,
        }))
    } else if let Some(delay) = document.after {
        Rule::after(micros(delay))?
    } else {
        Rule::every(micros(document.every.unwrap_or_default()))?
    };
    let zone = Zone::get(document.tz.as_deref().unwrap_or("UTC"))?;
    Timing::new(rule, zone)
        .with_gap(match document.gap.unwrap_or_default() {
            Gap::Shift => schedule::Gap::Shift,
            Gap::Skip => schedule::Gap::Skip,
        })
        .with_fold(match document.fold.unwrap_or_default() {
            Fold::First => schedule::Fold::First,
            Fold::Last => schedule::Fold::Last,
            Fold::Both => schedule::Fold::Both,
        })
        .with_bounds(
            document.start.map(Timestamp::as_micros),
            document.end.map(Timestamp::as_micros),
        )?
        .with_jitter(micros(document.jitter.unwrap_or_default()), seed)
}

/// A duration that is too long for the library stays too long: it refuses the greatest one as well.
fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX)
}

/// The next `n` occurrences strictly after an instant, with what calendars leave out; `calendars` are
/// their names, in the timing's order. A fixed delay has one: what follows depends on how long runs
/// take.
pub(crate) fn preview(
    timing: &Timing,
    calendars: &[String],
    after: Timestamp,
    n: usize,
) -> Preview {
    let found = timing.preview(after.as_micros(), n);
    let left_out = |runs: &[schedule::LeftOut]| -> Vec<LeftOut> {
        let shown = runs.iter().map(|run| LeftOut {
            from: Timestamp::from_micros(run.first),
            to: Timestamp::from_micros(run.last),
            local: timing.local(run.first),
            count: run.count,
            calendar: calendars.get(run.calendar).cloned().unwrap_or_default(),
            why: run.reason.to_string(),
        });
        shown.collect()
    };
    let items = found.items.iter().map(|item| Occurrence {
        at: Timestamp::from_micros(item.occurrence.due),
        logical_time: (item.occurrence.due != item.occurrence.logical)
            .then(|| Timestamp::from_micros(item.occurrence.logical)),
        local: timing.local(item.occurrence.due),
        why: item.occurrence.why.to_string(),
        left_out: left_out(&item.left_out),
    });
    Preview { items: items.collect(), left_out: left_out(&found.left_out) }
}

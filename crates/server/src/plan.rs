//! When a schedule runs: its document compiled as the engine compiles it, and previews.

use std::sync::Arc;

use tourbillon_schedule::{Exclusion, LeftOut, Timing};
use tourbillon_store::ScheduleDoc;
use tourbillon_wire as wire;
use tourbillon_wire::{Occurrence, Preview, Timestamp};

use crate::convert::name::short;
use crate::failure::{Failure, Result};
use crate::state::Shared;

/// The timing of a schedule called `name`, or what is wrong with its document. The calendars it
/// names are left aside: see [`Shared::days`].
///
/// The engine is the judge, so that what is accepted here is what will run.
pub(crate) fn timing(doc: &ScheduleDoc, name: &str) -> Result<Timing> {
    tourbillon_engine::timing::compile(doc, name).map_err(|text| {
        let (what, rest) = text.split_once(':').unwrap_or(("", &text));
        // The engine speaks of what is wrong, a document of fields.
        let field = match what.split_whitespace().next().unwrap_or("") {
            "interval" => "every",
            "delay" => "after",
            "zone" => "tz",
            field if field.starts_with("calendar.") => field,
            field @ ("cron" | "start" | "end" | "jitter" | "gap" | "fold" | "dialect") => field,
            _ => "",
        };
        let (detail, expected) = rest.trim_start().split_once("; expected ").unwrap_or((rest, ""));
        let detail = if field.is_empty() { text.clone() } else { detail.trim_start().to_owned() };
        Failure::invalid(field, detail, expected)
    })
}

impl Shared {
    /// The days of the calendars that a schedule names: of `besides` when they are there, else of the
    /// namespace.
    pub(crate) fn days(
        &self,
        namespace: &str,
        exclude: &[String],
        besides: &[(String, Arc<Exclusion>)],
    ) -> Result<Vec<Arc<Exclusion>>> {
        // Where nothing was ever created there is no calendar either.
        let namespace = self.node.namespace_id(namespace).unwrap_or_default();
        let calendars = self.node.calendars();
        let mut days = Vec::with_capacity(exclude.len());
        for (index, name) in exclude.iter().enumerate() {
            if let Some((_, given)) = besides.iter().find(|(given, _)| given == name) {
                days.push(Arc::clone(given));
                continue;
            }
            let stored = calendars.days(namespace, std::slice::from_ref(name));
            days.extend(stored.map_err(|missing| {
                let detail = format!("there is no calendar `{}`", short(&missing.name));
                Failure::invalid(format!("exclude[{index}]"), detail, missing.expected)
            })?);
        }
        Ok(days)
    }
}

/// The next `n` occurrences strictly after an instant, with what calendars leave out, called by the
/// names that the schedule has for them. One for a fixed delay, whose further times depend on when
/// runs end.
pub(crate) fn preview(timing: &Timing, exclude: &[String], after: i64, n: usize) -> Preview {
    let found = timing.preview(after, n);
    let left_out = |runs: &[LeftOut]| -> Vec<wire::LeftOut> {
        let shown = runs.iter().map(|run| wire::LeftOut {
            from: Timestamp::from_micros(run.first),
            to: Timestamp::from_micros(run.last),
            local: timing.local(run.first),
            count: run.count,
            calendar: exclude.get(run.calendar).cloned().unwrap_or_default(),
            why: run.reason.to_string(),
        });
        shown.collect()
    };
    let items = found.items.iter().map(|item| {
        let o = item.occurrence;
        Occurrence {
            at: Timestamp::from_micros(o.due),
            logical_time: (o.due != o.logical).then(|| Timestamp::from_micros(o.logical)),
            local: timing.local(o.due),
            why: o.why.to_string(),
            left_out: left_out(&item.left_out),
        }
    });
    Preview { items: items.collect(), left_out: left_out(&found.left_out) }
}

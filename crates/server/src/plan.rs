//! When a schedule runs: its document compiled as the engine compiles it, and previews.

use tourbillon_schedule::Timing;
use tourbillon_store::ScheduleDoc;
use tourbillon_wire::{Occurrence, Timestamp};

use crate::failure::{Failure, Result};

/// The timing of a schedule called `name`, or what is wrong with its document.
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
            field @ ("cron" | "calendar" | "start" | "end" | "jitter" | "gap" | "fold"
            | "dialect") => field,
            _ => "",
        };
        let (detail, expected) = rest.trim_start().split_once("; expected ").unwrap_or((rest, ""));
        let detail = if field.is_empty() { text.clone() } else { detail.trim_start().to_owned() };
        Failure::invalid(field, detail, expected)
    })
}

/// The next `n` occurrences strictly after an instant; one for a fixed delay, whose further times
/// depend on when runs end.
pub(crate) fn preview(timing: &Timing, after: i64, n: usize) -> Vec<Occurrence> {
    let n = if timing.rule().delay().is_some() { n.min(1) } else { n };
    timing
        .occurrences_after(after)
        .take(n)
        .map(|o| Occurrence {
            at: Timestamp::from_micros(o.due),
            logical_time: (o.due != o.logical).then(|| Timestamp::from_micros(o.logical)),
            local: timing.local(o.due),
            why: o.why.to_string(),
        })
        .collect()
}

//! Judges instants and durations.

use tourbillon_node::api::Due;
use tourbillon_schedule::{MAX_INSTANT, MIN_INSTANT};
use tourbillon_store::Time;
use tourbillon_wire::{Duration, Timestamp};

use crate::Limits;
use crate::failure::{Failure, Result};

/// An instant of the years 1 to 9999.
pub(crate) fn instant(at: Timestamp, field: &str) -> Result<Time> {
    if (MIN_INSTANT..=MAX_INSTANT).contains(&at.as_micros()) {
        return Ok(Time(at.as_micros()));
    }
    Err(Failure::invalid(
        field,
        format!("{at} is out of range"),
        "an instant from the year 1 to the end of 9999",
    ))
}

/// When a task is due; `now` is store time. The past means now.
pub(crate) fn due(
    delay: Option<Duration>,
    due_at: Option<Timestamp>,
    now: Time,
    limits: &Limits,
) -> Result<Option<Due>> {
    match (delay, due_at) {
        (Some(_), Some(_)) => Err(Failure::invalid(
            "due_at",
            "`delay` and `due_at` are both given",
            "one of them, or neither for now",
        )),
        (None, None) => Ok(None),
        (Some(delay), None) => span(delay, "delay", 0, limits.horizon).map(|d| Some(Due::In(d))),
        (None, Some(at)) => {
            let at = instant(at, "due_at")?;
            if at.since(now) > limits.horizon {
                return Err(Failure::invalid(
                    "due_at",
                    format!("{} is too far ahead", Timestamp::from_micros(at.0)),
                    format!("at most {} days ahead", limits.horizon / 86_400_000_000),
                ));
            }
            Ok(Some(if at <= now { Due::Now } else { Due::At(at) }))
        }
    }
}

/// A duration within bounds, as microseconds.
pub(crate) fn span(d: Duration, field: &str, least: i64, most: i64) -> Result<i64> {
    match i64::try_from(d.as_micros()) {
        Ok(micros) if (least..=most).contains(&micros) => Ok(micros),
        _ => Err(Failure::invalid(
            field,
            format!("{d} is out of range"),
            format!("from {} to {}", shown(least), shown(most)),
        )),
    }
}

/// Microseconds as a duration of a document; what is negative counts as none.
pub(crate) fn shown(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

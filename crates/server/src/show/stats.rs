//! Statistics as shown, summed up from the rows of minutes.

use tourbillon_store::State;
use tourbillon_store::stats::{Histogram, StatsRow};
use tourbillon_wire::{Percentiles, SeriesPoint, Timestamp};

/// Sums of rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    pub(crate) created: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    pub(crate) skipped: u64,
    pub(crate) lateness: Histogram,
    pub(crate) duration: Histogram,
}

impl Sum {
    /// Adds a row.
    pub(crate) fn add(&mut self, row: &StatsRow) {
        self.created += u64::from(row.created);
        self.failed += u64::from(row.attempts_failed);
        for &(state, n) in &row.finished {
            match state {
                State::Succeeded => self.succeeded += u64::from(n),
                State::Cancelled => self.cancelled += u64::from(n),
                State::Skipped => self.skipped += u64::from(n),
                _ => {}
            }
        }
        self.lateness.merge(&row.lateness);
        self.duration.merge(&row.duration);
    }

    /// Attempts started.
    pub(crate) fn started(&self) -> u64 {
        self.lateness.count()
    }

    /// As one point of a series.
    pub(crate) fn point(&self, at: Timestamp) -> SeriesPoint {
        SeriesPoint {
            at,
            created: self.created,
            started: self.started(),
            succeeded: self.succeeded,
            failed: self.failed,
            timed_out: 0,
            lost: 0,
            cancelled: self.cancelled,
            skipped: self.skipped,
            lateness_ms: percentiles(&self.lateness),
            duration_ms: percentiles(&self.duration),
        }
    }
}

/// Percentiles in milliseconds.
pub(crate) fn percentiles(h: &Histogram) -> Percentiles {
    let at = |q: f64| h.quantile(q).unwrap_or(0) as f64 / 1_000.0;
    Percentiles {
        count: h.count(),
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        max: at(1.0),
    }
}

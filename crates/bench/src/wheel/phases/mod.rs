//! The measurements: each a phase on a structure of its own, in a process of its own.
//!
//! A phase makes the structure, does the work and gives its metrics. One that was cut by the limit,
//! or whose structure could not be filled within the limit, is absent. What comes out of a structure
//! is added up and kept from the optimiser, and the sums are checked: a structure that loses a timer
//! is not measured but fails.

mod bytes;
mod churn;
mod fill;
mod fire;
mod idle;
mod insert;
mod timeouts;
mod worst;

use std::time::Duration;

use super::limit::Limit;
use super::subject::Subject;

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// Timers pending at once.
    pub(crate) n: usize,
    /// Pairs of cancelling and inserting when they are timed.
    pub(crate) pairs: usize,
    /// Passes of which the least time of each single operation counts.
    pub(crate) passes: usize,
    pub(crate) limit: Limit,
}

impl Work {
    /// On how many structures a phase is measured whose work is a single sweep over n timers, so
    /// that there is enough to time.
    fn structures(&self) -> usize {
        (SWEPT_MIN / self.n).max(1)
    }
}

/// Timers in all that such a sweep is measured on, at least.
const SWEPT_MIN: usize = 100_000;

/// The metrics of a phase, by name.
pub(crate) type Measured = Vec<(&'static str, f64)>;

/// One measurement, of one or two metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Phase {
    InsertCancel,
    Fire,
    Mix,
    MixWorst,
    Timeouts,
    WorstHour,
    WorstMinute,
    Idle,
    Bytes,
    Churn,
    MassExpiry,
}

impl Phase {
    pub(crate) const ALL: [Phase; 11] = [
        Phase::InsertCancel,
        Phase::Fire,
        Phase::Mix,
        Phase::MixWorst,
        Phase::Timeouts,
        Phase::WorstHour,
        Phase::WorstMinute,
        Phase::Idle,
        Phase::Bytes,
        Phase::Churn,
        Phase::MassExpiry,
    ];

    /// Its metrics with their units.
    pub(crate) fn metrics(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Phase::InsertCancel => &[("insert_ns", "ns"), ("cancel_ns", "ns")],
            Phase::Fire => &[("fire_ns", "ns")],
            Phase::Mix => &[("mix_ns", "ns")],
            Phase::MixWorst => &[("mix_worst_us", "us")],
            Phase::Timeouts => &[("timeouts_ns", "ns")],
            Phase::WorstHour => &[("worst_advance_us", "us")],
            Phase::WorstMinute => &[("worst_advance_60s_us", "us")],
            Phase::Idle => &[("idle_advance_ns", "ns")],
            Phase::Bytes => &[("bytes_per_entry", "bytes")],
            Phase::Churn => &[("bytes_after_churn_ratio", "ratio")],
            Phase::MassExpiry => &[("mass_expiry_ns", "ns")],
        }
    }

    /// Whether it takes much longer than the others.
    pub(crate) fn is_long(self) -> bool {
        matches!(self, Phase::WorstHour | Phase::Churn)
    }

    /// Whether every round gives the same: bytes are counted, not timed.
    pub(crate) fn is_exact(self) -> bool {
        matches!(self, Phase::Bytes | Phase::Churn)
    }
}

/// Runs a phase.
pub(crate) fn measure<S: Subject>(phase: Phase, work: &Work) -> Measured {
    let mut measured = Measured::new();
    let mut note = |name, value: Option<f64>| measured.extend(value.map(|value| (name, value)));
    match phase {
        Phase::InsertCancel => {
            let (insert, cancel) = insert::insert_and_cancel::<S>(work);
            note("insert_ns", insert);
            note("cancel_ns", cancel);
        }
        Phase::Fire => note("fire_ns", fire::through_the_hour::<S>(work)),
        Phase::Mix => note("mix_ns", churn::mix::<S>(work)),
        Phase::MixWorst => note("mix_worst_us", worst::pair::<S>(work)),
        Phase::Timeouts => note("timeouts_ns", timeouts::timeouts::<S>(work)),
        Phase::WorstHour => note("worst_advance_us", worst::hour::<S>(work)),
        Phase::WorstMinute => note("worst_advance_60s_us", worst::minute::<S>(work)),
        Phase::Idle => note("idle_advance_ns", idle::idle::<S>()),
        Phase::Bytes => note("bytes_per_entry", bytes::per_entry::<S>(work)),
        Phase::Churn => note("bytes_after_churn_ratio", bytes::after_churn::<S>(work)),
        Phase::MassExpiry => note("mass_expiry_ns", fire::at_once::<S>(work)),
    }
    measured
}

/// Nanoseconds for each of n.
fn ns_each(took: Duration, n: usize) -> f64 {
    took.as_nanos() as f64 / n as f64
}

#[cfg(test)]
mod tests {
    use super::super::subjects;
    use super::*;

    /// All phases but those that step through an hour, which are slow without optimisation and do
    /// what the minute does.
    #[test]
    fn every_phase_gives_its_metrics_for_every_subject() {
        let limit = Limit(Duration::from_secs(600));
        let work = Work { n: 1_000, pairs: 3_000, passes: 2, limit };
        for entry in subjects::ALL {
            for phase in Phase::ALL {
                let long = matches!(phase, Phase::Fire | Phase::WorstHour);
                if long || phase == Phase::Idle && !entry.idles {
                    continue;
                }
                let measured = (entry.measure)(phase, &work);
                let names: Vec<_> = measured.iter().map(|(name, _)| *name).collect();
                let expected: Vec<_> = phase.metrics().iter().map(|(name, _)| *name).collect();
                assert_eq!(names, expected, "{} {phase:?}", entry.name);
                assert!(measured.iter().all(|(_, value)| value.is_finite()), "{measured:?}");
            }
        }
    }
}

//! Documents of other schedulers as schedules, and schedules as YAML.
//!
//! [`quartz`], [`kubernetes`] and [`systemd`] each read a text and give the [`Import`]: a schedule for
//! each entry, with what it cannot carry over, and when the other scheduler would fire. [`yaml`] reads
//! and writes the documents that `schedule apply` and `export` exchange.
//!
//! What always holds: no text makes it panic, and its work and memory are bounded by the text's length; a faulty
//! entry is an error and the others are read all the same; what is not carried over is a note,
//! never dropped in silence; the same text gives the same schedules. Deliberately absent: files, the
//! network and the clock.

mod kubernetes;
mod name;
mod quartz;
mod systemd;
pub mod yaml;

use std::fmt;

use tourbillon_schedule::{CronExpr, Micros, OnCalendar, Reading, Zone};
use tourbillon_wire::NewSchedule;

pub use kubernetes::kubernetes;
pub use quartz::quartz;
pub use systemd::{Service, service_of, systemd};

/// What an import goes by besides the text.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// The zone of times that name none.
    pub zone: &'a Zone,
    /// The queue of the tasks; the default one without.
    pub queue: Option<&'a str>,
}

/// What a text holds.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Import {
    /// What became a schedule, in the order of the text.
    pub entries: Vec<Entry>,
    /// What concerns no single schedule and is not carried over.
    pub notes: Vec<Note>,
    /// What could not be read, or has no counterpart here.
    pub errors: Vec<Note>,
}

impl Import {
    fn note(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.notes.push(Note { place: place.into(), text: text.into() });
    }

    fn error(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.errors.push(Note { place: place.into(), text: text.into() });
    }

    fn refused(place: impl Into<String>, text: impl Into<String>) -> Import {
        let mut import = Import::default();
        import.error(place, text);
        import
    }
}

/// An entry as a schedule.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// Where in the text it is: `line 12`.
    pub place: String,
    /// The rule as it is written there.
    pub rule: String,
    /// The schedule, with its name.
    pub schedule: NewSchedule,
    /// What of it is not carried over, or differently.
    pub notes: Vec<String>,
    elsewhere: Elsewhere,
}

impl Entry {
    /// The schedule's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.schedule.name.as_deref().unwrap_or_default()
    }

    /// When the other scheduler would fire next, by its own rules: at most `n` times, strictly after an
    /// instant. `None` when that depends on what it did before.
    #[must_use]
    pub fn times_before(&self, after: Micros, n: usize) -> Option<Vec<Micros>> {
        match &self.elsewhere {
            Elsewhere::Cron { expr, zone, reading, from, until } => {
                let after = after.max(from.map_or(Micros::MIN, |from| from.saturating_sub(1)));
                let mut times = reading.times(expr, zone, after, n);
                times.retain(|at| until.is_none_or(|until| *at <= until));
                Some(times)
            }
            Elsewhere::Event { event, zone } => {
                Some(Reading::Systemd.times_of(event, zone, after, n))
            }
            Elsewhere::Grid { from, interval, last } => {
                Some(grid(*from, *interval, *last, after, n))
            }
            Elsewhere::Unknown => None,
        }
    }
}

/// How the other scheduler finds its times.
#[derive(Debug, Clone)]
enum Elsewhere {
    Cron {
        expr: CronExpr,
        zone: Zone,
        reading: Reading,
        from: Option<Micros>,
        until: Option<Micros>,
    },
    Event {
        event: Box<OnCalendar>,
        zone: Zone,
    },
    /// From an instant on at an interval, up to and including `last`.
    Grid {
        from: Micros,
        interval: Micros,
        last: Option<Micros>,
    },
    Unknown,
}

fn grid(
    from: Micros,
    interval: Micros,
    last: Option<Micros>,
    after: Micros,
    n: usize,
) -> Vec<Micros> {
    let mut times = Vec::new();
    let passed = i128::from(after) - i128::from(from);
    let mut k = if passed < 0 { 0 } else { passed / i128::from(interval.max(1)) + 1 };
    while times.len() < n {
        let at = i128::from(from) + k * i128::from(interval);
        let Ok(at) = Micros::try_from(at) else { break };
        if last.is_some_and(|last| at > last) {
            break;
        }
        times.push(at);
        k += 1;
    }
    times
}

/// Something to say of a place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// Where: `line 12`, or empty for the whole.
    pub place: String,
    /// What, in one sentence.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.text)
    }
}

/// A duration of ours.
fn duration(micros: Micros) -> tourbillon_wire::Duration {
    tourbillon_wire::Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_goes_from_its_start_to_its_last() {
        assert_eq!(grid(100, 10, None, 0, 2), [100, 110]);
        assert_eq!(grid(100, 10, None, 100, 2), [110, 120]);
        assert_eq!(grid(100, 10, Some(120), 105, 9), [110, 120]);
        assert_eq!(grid(i64::MAX - 5, 10, None, 0, 9), [i64::MAX - 5]);
        assert_eq!(grid(0, 10, Some(0), 0, 9), [0; 0]);
    }
}

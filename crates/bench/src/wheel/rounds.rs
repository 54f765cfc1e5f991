//! The rounds: who is measured when, and what becomes of the figures.
//!
//! For one size: round by round, in a round phase by phase, in a phase subject by subject, so that
//! the figures of one metric are taken within seconds of each other. A metric that was cut by the
//! limit, twice in a row, is absent for that subject and size, whatever other rounds said. Rows are
//! reported when a size is done.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::phases::Phase;
use super::subjects::Entry;
use crate::report::Report;

/// The size above which a quick run leaves out the two phases that take longest.
const QUICK_ALL_MAX: usize = 100_000;

pub(super) struct Rounds {
    pub(super) subjects: Vec<&'static Entry>,
    pub(super) rounds: usize,
    pub(super) quick: bool,
    pub(super) begun: Instant,
    /// When no further measurement is started.
    pub(super) end: Option<Instant>,
}

/// Figures so far, by subject and metric.
#[derive(Default)]
struct Figures {
    taken: BTreeMap<(&'static str, &'static str), Vec<f64>>,
    cut: BTreeSet<(&'static str, &'static str)>,
}

impl Rounds {
    /// What is measured without timers, reported as n = 0.
    pub(super) fn empty(&self, report: &mut Report) -> Result<()> {
        self.measure(0, &[Phase::Idle], report)
    }

    /// What is measured with n timers.
    pub(super) fn pending(&self, n: usize, report: &mut Report) -> Result<()> {
        let phases: Vec<Phase> = Phase::ALL
            .into_iter()
            .filter(|phase| *phase != Phase::Idle)
            .filter(|phase| !(self.quick && n > QUICK_ALL_MAX && phase.is_long()))
            .collect();
        self.measure(n, &phases, report)
    }

    fn measure(&self, n: usize, phases: &[Phase], report: &mut Report) -> Result<()> {
        let mut figures = Figures::default();
        'rounds: for round in 0..self.rounds {
            for phase in phases {
                if round > 0 && phase.is_exact() {
                    continue;
                }
                let seconds = self.begun.elapsed().as_secs();
                eprintln!(
                    "{seconds:>6} s  n = {n}  round {}/{}  {phase:?}",
                    round + 1,
                    self.rounds
                );
                for entry in &self.subjects {
                    if self.end.is_some_and(|end| Instant::now() > end) {
                        eprintln!("the time is up: what was not measured is absent");
                        break 'rounds;
                    }
                    if *phase == Phase::Idle && !entry.idles || figures.is_cut(entry, *phase) {
                        continue;
                    }
                    let mut measured = self.one(entry, *phase, n)?;
                    // A second try, so that a machine that stood still does not pass for a slow peer.
                    if figures.are_cut_by(entry, *phase, &measured) && !self.quick {
                        measured = self.one(entry, *phase, n)?;
                    }
                    figures.take(entry, *phase, &measured);
                }
            }
        }
        for phase in phases {
            for (metric, unit) in phase.metrics() {
                for entry in &self.subjects {
                    let figures = figures.of(entry.name, metric);
                    report.add_of(entry.name, n as u64, metric, unit, figures);
                }
            }
        }
        Ok(())
    }

    /// One measurement in a process of its own.
    fn one(&self, entry: &Entry, phase: Phase, n: usize) -> Result<BTreeMap<String, f64>> {
        let mut command = Command::new(program()?);
        let phase_name = clap::ValueEnum::to_possible_value(&phase).context("no such phase")?;
        command.args(["__measure", "--subject", entry.name, "--phase", phase_name.get_name()]);
        command.args(["--n", &n.to_string()]);
        command.args(self.quick.then_some("--quick"));
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        let what = || format!("{phase:?} of {} with {n} timers", entry.name);
        ensure!(output.status.success(), "{} failed ({})", what(), output.status);
        serde_json::from_slice(&output.stdout).with_context(what)
    }
}

/// This very program. A long run outlives a build that replaces the file, and goes on with what it
/// began with where the system can name that.
fn program() -> std::io::Result<PathBuf> {
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() { Ok(running) } else { std::env::current_exe() }
}

impl Figures {
    /// Whether nothing of a phase is worth measuring again.
    fn is_cut(&self, entry: &Entry, phase: Phase) -> bool {
        phase.metrics().iter().all(|(metric, _)| self.cut.contains(&(entry.name, *metric)))
    }

    /// Whether something is missing for the first time.
    fn are_cut_by(&self, entry: &Entry, phase: Phase, measured: &BTreeMap<String, f64>) -> bool {
        phase.metrics().iter().any(|(metric, _)| {
            !measured.contains_key(*metric) && !self.cut.contains(&(entry.name, *metric))
        })
    }

    fn take(&mut self, entry: &Entry, phase: Phase, measured: &BTreeMap<String, f64>) {
        for (metric, _) in phase.metrics() {
            match measured.get(*metric) {
                Some(value) => self.taken.entry((entry.name, metric)).or_default().push(*value),
                None if self.cut.insert((entry.name, metric)) => {
                    eprintln!("          {} takes too long: no {metric}", entry.name);
                }
                None => {}
            }
        }
    }

    /// The figures of a metric, if none of its rounds was cut.
    fn of(&self, subject: &'static str, metric: &'static str) -> &[f64] {
        match self.taken.get(&(subject, metric)) {
            Some(figures) if !self.cut.contains(&(subject, metric)) => figures,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::subjects::ALL;
    use super::*;

    #[test]
    fn one_cut_makes_a_metric_absent_for_good() {
        let entry = &ALL[0];
        let both = BTreeMap::from([("insert_ns".to_owned(), 5.0), ("cancel_ns".to_owned(), 6.0)]);
        let insert = BTreeMap::from([("insert_ns".to_owned(), 7.0)]);
        let mut figures = Figures::default();
        for (measured, news) in [(&both, false), (&insert, true), (&insert, false), (&both, false)]
        {
            assert_eq!(figures.are_cut_by(entry, Phase::InsertCancel, measured), news);
            figures.take(entry, Phase::InsertCancel, measured);
        }
        assert_eq!(figures.of(entry.name, "insert_ns"), [5.0, 7.0, 7.0, 5.0]);
        assert_eq!(figures.of(entry.name, "cancel_ns"), [0.0; 0]);
        assert!(!figures.is_cut(entry, Phase::InsertCancel));
        figures.take(entry, Phase::InsertCancel, &BTreeMap::new());
        assert!(figures.is_cut(entry, Phase::InsertCancel));
    }
}

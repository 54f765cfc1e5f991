//! `timer`: the in-process timer and the ways in which people keep timers today, side by side.
//!
//! Each measurement is a process of its own, rounds are the outer loop. What each metric means is said
//! where it is measured: `pairs.rs`, `lateness.rs`, `memory.rs`, `queue.rs`.

mod heap;
mod lateness;
mod memory;
mod pairs;
mod queue;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use crate::report::Report;

/// What to measure.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    /// End within a minute: one round, fewer pairs, timers over 2 s instead of 10.
    #[arg(long)]
    quick: bool,
    /// Measure only these subjects, by the names in the table.
    #[arg(long, value_name = "SUBJECT", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only these phases.
    #[arg(long, value_enum, value_delimiter = ',')]
    phase: Vec<Phase>,
    /// Rounds, of which the median counts.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Arming and cancelling by one thread and by two, a million pending.
    Pairs,
    /// How late 100,000 timers over ten seconds fire, and for how much CPU.
    Lateness,
    /// Consumers of a delay queue.
    Queue,
    /// What is left of a million cancelled timers, and wake-ups while idle.
    Memory,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Pairs, Self::Lateness, Self::Queue, Self::Memory];

    fn name(self) -> &'static str {
        match self {
            Self::Pairs => "pairs",
            Self::Lateness => "lateness",
            Self::Queue => "queue",
            Self::Memory => "memory",
        }
    }

    fn subjects(self) -> &'static [&'static str] {
        match self {
            Self::Pairs => pairs::SUBJECTS,
            Self::Lateness => lateness::SUBJECTS,
            Self::Queue => queue::SUBJECTS,
            Self::Memory => memory::SUBJECTS,
        }
    }
}

/// One figure: metric, unit, value.
type Figure = (&'static str, &'static str, f64);

pub(crate) fn run(options: &Options) -> Result<()> {
    let rounds = options.rounds.unwrap_or(if options.quick { 1 } else { 5 });
    ensure!(rounds > 0, "--rounds is 0; it takes at least 1");
    let phases = if options.phase.is_empty() { &Phase::ALL[..] } else { &options.phase };
    let known = |name: &String| phases.iter().any(|p| p.subjects().contains(&name.as_str()));
    if let Some(unknown) = options.only.iter().find(|name| !known(name)) {
        let mut all: Vec<&str> = phases.iter().flat_map(|p| p.subjects()).copied().collect();
        all.dedup();
        bail!("--only {unknown}: no such subject; expected one of {}", all.join(", "));
    }
    let mut report = Report::new("timer", options.json);
    for phase in phases {
        let mut taken: BTreeMap<(usize, usize), (Vec<f64>, String, String)> = BTreeMap::new();
        for round in 0..rounds {
            for (at, subject) in phase.subjects().iter().enumerate() {
                if !options.only.is_empty() && !options.only.iter().any(|only| only == subject) {
                    continue;
                }
                eprintln!("  round {}/{rounds}  {}  {subject}", round + 1, phase.name());
                let figures = in_a_process(*phase, subject, options.quick)?;
                for (nth, (metric, unit, value)) in figures.into_iter().enumerate() {
                    let row = taken.entry((nth, at)).or_insert((Vec::new(), metric, unit));
                    row.0.push(value);
                }
            }
        }
        for ((_, at), (values, metric, unit)) in &taken {
            let n =
                if *phase == Phase::Lateness { lateness::timers(options.quick) } else { 1_000_000 };
            let (metric, unit) = (known_name(metric), known_name(unit));
            report.add_of(phase.subjects()[*at], n as u64, metric, unit, values);
        }
    }
    report.finish_against("tourbillon");
    Ok(())
}

/// Names come back as text from the measuring process; there are a few dozen of them.
fn known_name(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}

fn in_a_process(phase: Phase, subject: &str, quick: bool) -> Result<Vec<(String, String, f64)>> {
    let mut command = Command::new(std::env::current_exe().context("where this program is")?);
    command.args(["__timer", "--phase", phase.name(), "--subject", subject]);
    if quick {
        command.arg("--quick");
    }
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "measuring {} of {subject} failed", phase.name());
    serde_json::from_slice(&output.stdout).context("what a measurement printed")
}

/// One measurement, as `run` asks for it.
#[derive(Args, Debug)]
pub(crate) struct MeasureArgs {
    #[arg(long, value_enum)]
    phase: Phase,
    #[arg(long)]
    subject: String,
    #[arg(long)]
    quick: bool,
}

/// Measures and prints the figures as JSON.
pub(crate) fn measure(args: &MeasureArgs) -> Result<()> {
    let figures = match args.phase {
        Phase::Pairs => pairs::measure(&args.subject, args.quick),
        Phase::Lateness => lateness::measure(&args.subject, args.quick),
        Phase::Queue => queue::measure(&args.subject, args.quick),
        Phase::Memory => memory::measure(&args.subject),
    }?;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

/// A stream of numbers that is the same in every run.
pub(crate) struct Numbers(u64);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// CPU time of this process's threads so far, and how often they went to sleep. From `/proc`; nothing
/// where there is none. Threads that have ended do not count.
fn usage() -> (Duration, u64) {
    let (mut nanos, mut switches) = (0, 0);
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return (Duration::ZERO, 0) };
    for task in tasks.flatten() {
        let read = |file| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        // Nanoseconds on a CPU come first.
        let on_cpu = read("schedstat");
        nanos += on_cpu.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        switches += read("status")
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .and_then(|n| n.trim().parse::<u64>().ok())
            .unwrap_or(0);
    }
    (Duration::from_nanos(nanos), switches)
}

/// Waits for what is measured, bounded by a minute so that a broken subject ends the run.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        ensure!(Instant::now() < end, "{what}: not within a minute");
        // sleeps: between looks at a subject that has no way to tell
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

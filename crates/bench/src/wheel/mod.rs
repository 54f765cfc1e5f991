//! `wheel`: the timer queues of this project and others' of the same trade, side by side.
//!
//! All get the same seeded work in one run. Each measurement is a process of its own, so none
//! inherits another's memory, and rounds are the outer loop, so that slow drift of the machine
//! spreads over all subjects. Before anything is measured every subject is verified.
//!
//! What each metric means is said where it is measured, in `phases/`. It deliberately lacks threads:
//! these structures are used by one at a time.

mod limit;
mod phases;
mod rounds;
mod subject;
mod subjects;
mod verify;
mod workload;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::report::Report;
use limit::Limit;
use phases::{Phase, Work};
use rounds::Rounds;

/// What to measure.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    /// End within a minute: 100,000 and 1,000,000 timers, one round, less of some work. What
    /// there was no time for is absent.
    #[arg(long)]
    quick: bool,
    /// Measure only these subjects, by the names in the table.
    #[arg(long, value_name = "SUBJECT", value_delimiter = ',')]
    only: Vec<String>,
    /// Numbers of pending timers.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    sizes: Vec<usize>,
    /// Rounds, of which the median counts.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
}

/// Sizes when none are given.
const SIZES: &[usize] = &[100_000, 1_000_000, 10_000_000];
const SIZES_QUICK: &[usize] = &[100_000, 1_000_000];
const ROUNDS: usize = 5;
const ROUNDS_QUICK: usize = 1;
/// Pairs of churn that are timed.
const PAIRS: usize = 2_000_000;
const PAIRS_QUICK: usize = 200_000;
/// Passes of the worst cases.
const PASSES: usize = 2;
/// How long a timed part may take.
const LIMIT: Duration = Duration::from_secs(20);
const LIMIT_QUICK: Duration = Duration::from_secs(3);
/// When a quick run starts no further measurement.
const QUICK_END: Duration = Duration::from_secs(50);

/// Verifies, measures, reports.
pub(crate) fn run(options: &Options) -> Result<()> {
    let begun = Instant::now();
    let chosen = subjects::chosen(&options.only)?;
    let sizes = match &options.sizes[..] {
        [] if options.quick => SIZES_QUICK,
        [] => SIZES,
        sizes => sizes,
    };
    let rounds = options.rounds.unwrap_or(if options.quick { ROUNDS_QUICK } else { ROUNDS });
    ensure!(rounds > 0, "--rounds is 0; it takes at least 1");
    ensure!(!sizes.contains(&0), "--sizes has a 0; there are no timers to measure with");
    for entry in &chosen {
        let fired = (entry.verify)().context("a subject does not do what is measured")?;
        eprintln!("verified {}: {fired} timers fired, each once and in time", entry.name);
    }
    let rounds = Rounds {
        subjects: chosen,
        rounds,
        quick: options.quick,
        begun,
        end: options.quick.then(|| begun + QUICK_END),
    };
    let mut report = Report::new("wheel", options.json);
    rounds.empty(&mut report)?;
    for n in sizes {
        rounds.pending(*n, &mut report)?;
    }
    report.finish_against(subjects::BASE);
    Ok(())
}

/// One measurement, as `run` asks for it.
#[derive(Args, Debug)]
pub(crate) struct MeasureArgs {
    #[arg(long)]
    subject: String,
    #[arg(long)]
    phase: Phase,
    #[arg(long)]
    n: usize,
    #[arg(long)]
    quick: bool,
}

/// Measures and prints one JSON object, from metric to value.
pub(crate) fn measure(args: &MeasureArgs) -> Result<()> {
    let work = if args.quick {
        Work { n: args.n, pairs: PAIRS_QUICK, passes: 1, limit: Limit(LIMIT_QUICK) }
    } else {
        Work { n: args.n, pairs: PAIRS, passes: PASSES, limit: Limit(LIMIT) }
    };
    let [entry] = subjects::chosen(std::slice::from_ref(&args.subject))?[..] else {
        anyhow::bail!("one subject at a time");
    };
    let measured: serde_json::Map<String, serde_json::Value> = (entry.measure)(args.phase, &work)
        .into_iter()
        .map(|(metric, value)| (metric.to_owned(), value.into()))
        .collect();
    println!("{}", serde_json::Value::Object(measured));
    Ok(())
}

//! The gate: every check that must hold before a change lands, cheap ones first.
//!
//! It stops at the first step that fails. Whatever happens, it closes with a table of the steps and
//! their times, the test runners' own summaries, and the number of tests that passed and failed.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::counts::Counts;
use crate::report::Reported;
use crate::{advisories, cargo, deps, hygiene, licences, needs, sources, suite};

type Step = (&'static str, fn(&mut Option<Counts>) -> Result<()>);

/// Steps in order: text, then the dependency graph, then compiling less, then compiling more.
/// clippy comes before doc because doc uses what clippy checked of the dependencies.
const STEPS: &[Step] = &[
    ("fmt", |_| cargo::fmt(true)),
    ("hygiene", |_| hygiene::run()),
    ("deps", |_| deps::run()),
    ("sources", |_| sources::run()),
    ("licences", |_| licences::run()),
    ("advisories", |_| advisories::run()),
    ("needs", |_| needs::ensure().map(drop)),
    ("clippy", |_| cargo::clippy()),
    ("doc", |_| cargo::doc()),
    ("test", |counts| {
        let (found, result) = suite::all(&[]);
        *counts = Some(found);
        result
    }),
];

/// Runs the gate.
pub(crate) fn run() -> Result<()> {
    let start = Instant::now();
    let mut counts = None;
    let mut rows: Vec<(&str, Option<Duration>, &str)> = Vec::new();
    let mut failed = false;
    for (name, step) in STEPS {
        if failed {
            rows.push((name, None, "not run"));
            continue;
        }
        println!("\n== {name}");
        let begin = Instant::now();
        let result = step(&mut counts);
        let took = begin.elapsed();
        println!(
            "== {name}: {} in {}",
            if result.is_ok() { "ok" } else { "FAILED" },
            seconds(took)
        );
        rows.push((name, Some(took), if result.is_ok() { "ok" } else { "FAILED" }));
        if let Err(error) = result {
            println!("error: {error:#}");
            failed = true;
        }
    }

    println!("\nstep              time  result");
    for (name, took, result) in rows {
        println!("{name:<12} {:>9}  {result}", took.map(seconds).unwrap_or_default());
    }
    println!(
        "{:<12} {:>9}  {}",
        "total",
        seconds(start.elapsed()),
        if !failed { "ok" } else { "FAILED" }
    );
    println!();
    match counts {
        Some(counts) => counts.print(),
        None => println!("tests were not run"),
    }
    if failed { Err(Reported.into()) } else { Ok(()) }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

//! The next time of an expression: ours, `croner`'s and `cron`'s.

use std::hint::black_box;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use chrono::{DateTime, TimeZone, Utc};
use chrono_tz::Tz;
use tourbillon_schedule::{CronExpr, Dialect, Rule, Timing, Zone};

use super::Options;
use crate::report::Report;

/// Where it is measured, by name.
const ZONE: &str = "America/New_York";
/// Instants from which each expression is asked: 2026-01-01 on, four years.
const FROM: i64 = 1_767_225_600;
const YEARS: u64 = 4 * 365 * 86_400;
const INSTANTS: usize = 2_000;
const ROUNDS: usize = 9;
const ROUNDS_QUICK: usize = 5;

/// Expressions as people write them. Weekdays by name: their numbers differ.
const ORDINARY: &[&str] = &[
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0 9 * * MON-FRI",
    "15,45 8-18 * * MON-FRI",
    "0 0 1 * *",
    "0 12 * * SUN",
    "0 0 1 1,4,7,10 *",
];
const LEAP_DAY: &[&str] = &["0 0 29 2 *"];

/// An evaluator with its expressions read.
trait Subject {
    fn name(&self) -> &'static str;
    /// The next time of an expression after an instant, both in seconds.
    fn next(&self, expr: usize, instant: usize) -> Option<i64>;
}

struct Ours {
    timings: Vec<Timing>,
    instants: Vec<i64>,
}

struct Croner {
    exprs: Vec<croner::Cron>,
    instants: Vec<DateTime<Tz>>,
}

struct CronCrate {
    exprs: Vec<cron::Schedule>,
    instants: Vec<DateTime<Tz>>,
}

impl Subject for Ours {
    fn name(&self) -> &'static str {
        "tourbillon"
    }

    fn next(&self, expr: usize, instant: usize) -> Option<i64> {
        self.timings[expr].next_after(self.instants[instant]).map(|o| o.logical / 1_000_000)
    }
}

impl Subject for Croner {
    fn name(&self) -> &'static str {
        "croner"
    }

    fn next(&self, expr: usize, instant: usize) -> Option<i64> {
        let next = self.exprs[expr].find_next_occurrence(&self.instants[instant], false);
        next.ok().map(|at| at.timestamp())
    }
}

impl Subject for CronCrate {
    fn name(&self) -> &'static str {
        "cron"
    }

    fn next(&self, expr: usize, instant: usize) -> Option<i64> {
        self.exprs[expr].after(&self.instants[instant]).next().map(|at| at.timestamp())
    }
}

/// All subjects, in a zone.
fn subjects(texts: &[&str], zone: &str, seconds: &[i64]) -> Result<Vec<Box<dyn Subject>>> {
    let ours = Zone::get(zone)?;
    let timing = |text: &&str| {
        CronExpr::parse(Dialect::Vixie, text, "")
            .map(|expr| Timing::new(Rule::cron(expr), ours.clone()))
    };
    let tz: Tz = zone.parse().map_err(|e| anyhow::anyhow!("{e}"))?;
    let instants = |second: &i64| {
        let utc = Utc.timestamp_opt(*second, 0).single().context("an instant")?;
        Ok(utc.with_timezone(&tz))
    };
    let instants: Vec<DateTime<Tz>> = seconds.iter().map(instants).collect::<Result<_>>()?;
    Ok(vec![
        Box::new(Ours {
            timings: texts.iter().map(timing).collect::<Result<_, _>>()?,
            instants: seconds.iter().map(|s| s * 1_000_000).collect(),
        }),
        Box::new(Croner {
            exprs: texts
                .iter()
                .map(|text| croner::Cron::from_str(text))
                .collect::<Result<_, _>>()
                .map_err(|e| anyhow::anyhow!("{e}"))?,
            instants: instants.clone(),
        }),
        Box::new(CronCrate {
            exprs: texts
                .iter()
                .map(|text| cron::Schedule::from_str(&format!("0 {text}")))
                .collect::<Result<_, _>>()?,
            instants,
        }),
    ])
}

pub(super) fn run(options: &Options) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(20_261_203);
    let seconds: Vec<i64> = (0..INSTANTS).map(|_| FROM + random.u64(..YEARS) as i64).collect();
    let mut report = Report::new("schedule", options.json);
    for (metric, texts) in [("next_ns", ORDINARY), ("next_leap_day_ns", LEAP_DAY)] {
        agree(texts, &seconds)?;
        let subjects = subjects(texts, ZONE, &seconds)?;
        let rounds = if options.quick { ROUNDS_QUICK } else { ROUNDS };
        let mut took = vec![Vec::new(); subjects.len()];
        for _ in 0..rounds {
            for (subject, took) in subjects.iter().zip(&mut took) {
                took.push(measure(subject.as_ref(), texts.len()));
            }
        }
        for (subject, took) in subjects.iter().zip(&took) {
            report.add_of(subject.name(), INSTANTS as u64, metric, "ns", took);
        }
    }
    report.finish_against("tourbillon");
    Ok(())
}

/// A subject that does something else is no peer.
fn agree(texts: &[&str], seconds: &[i64]) -> Result<()> {
    let subjects = subjects(texts, "UTC", seconds)?;
    for (expr, text) in texts.iter().enumerate() {
        for (instant, second) in seconds.iter().enumerate() {
            let wanted = subjects[0].next(expr, instant);
            for subject in &subjects[1..] {
                let given = subject.next(expr, instant);
                ensure!(
                    given == wanted,
                    "{} says {given:?} of {text} after {second}, and we {wanted:?}",
                    subject.name()
                );
            }
        }
    }
    Ok(())
}

/// Nanoseconds of one question, over at least a while.
fn measure(subject: &dyn Subject, exprs: usize) -> f64 {
    let begun = Instant::now();
    let mut asked = 0_u64;
    while begun.elapsed() < Duration::from_millis(200) {
        for expr in 0..exprs {
            for instant in 0..INSTANTS / 20 {
                // From all of the instants in the end, a part each time.
                let instant = (instant * 20 + (asked as usize / exprs) % 20) % INSTANTS;
                black_box(subject.next(expr, black_box(instant)));
                asked += 1;
            }
        }
    }
    begun.elapsed().as_secs_f64() * 1e9 / asked as f64
}

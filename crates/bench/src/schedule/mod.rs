//! `schedule`: how long the next time of a cron expression takes, beside others of the trade; with
//! `--service`, a real server with 100,000 schedules.
//!
//! `next_ns` is the mean over ordinary expressions in America/New_York from instants of four years, drawn
//! once for all subjects; `next_leap_day_ns` is the same of `0 0 29 2 *`. Before anything is measured
//! the subjects must agree in UTC, where they have no policies to differ in. Rounds are the outer loop, so
//! that slow drift of the machine spreads over all subjects.

mod calls;
mod cron;
mod many;

use anyhow::Result;
use clap::Args;

/// What to measure.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print JSON lines.
    #[arg(long)]
    json: bool,
    /// End within a minute: fewer rounds; with --service, 10,000 schedules.
    #[arg(long)]
    quick: bool,
    /// Measure a server with many schedules instead.
    #[arg(long)]
    service: bool,
    /// With --service: how many schedules [default: 100000].
    #[arg(long, value_name = "N", requires = "service")]
    schedules: Option<u64>,
    /// With --service: minutes that are watched of each.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "service")]
    minutes: u64,
}

/// Measures and reports.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.service { many::run(options) } else { cron::run(options) }
}

//! Measurements: `cargo run --release -p tourbillon-bench -- NAME [--quick] [--json]`.
//!
//! One JSON object a line with `--json`, else a table. What was not measured is absent.

mod allocator;
mod comparison;
mod report;
mod schedule;
mod service;
mod timer;
mod wheel;

use clap::{Parser, Subcommand};

/// The one of the product, which is measured here.
#[global_allocator]
static ALLOCATOR: allocator::Counting = allocator::Counting;

#[derive(Parser)]
#[command(name = "tourbillon-bench", about = "Measures Tourbillon on this machine")]
struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// The next time of cron expressions, with peers; a server with many schedules.
    Schedule(schedule::Options),
    /// A real server on a temporary folder and a load client.
    Service(service::Options),
    /// The in-process timer and its peers.
    Timer(timer::Options),
    /// The timer queues and their peers, side by side on the same work.
    Wheel(wheel::Options),
    /// The server that `service` starts; not for use by hand.
    #[command(name = "__serve", hide = true)]
    Serve(service::server::ServeArgs),
    /// One measurement of `timer`, in a process of its own; not for use by hand.
    #[command(name = "__timer", hide = true)]
    MeasureTimer(timer::MeasureArgs),
    /// One measurement of `wheel`, in a process of its own; not for use by hand.
    #[command(name = "__measure", hide = true)]
    Measure(wheel::MeasureArgs),
}

fn main() -> anyhow::Result<()> {
    match Args::parse().bench {
        Bench::Schedule(options) => schedule::run(&options),
        Bench::Service(options) => service::run(&options),
        Bench::Timer(options) => timer::run(&options),
        Bench::Wheel(options) => wheel::run(&options),
        Bench::Serve(args) => service::server::serve(&args),
        Bench::MeasureTimer(args) => timer::measure(&args),
        Bench::Measure(args) => wheel::measure(&args),
    }
}

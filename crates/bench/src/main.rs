//! Measurements: `cargo run --release -p tourbillon-bench -- NAME [--quick] [--json]`.
//!
//! One JSON object a line with `--json`, else a table. What was not measured is absent.

mod report;
mod service;

use clap::{Parser, Subcommand};

/// The one of the product, which is measured here.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(name = "tourbillon-bench", about = "Measures Tourbillon on this machine")]
struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// A real server on a temporary folder and a load client.
    Service(service::Options),
    /// The server that `service` starts; not for use by hand.
    #[command(name = "__serve", hide = true)]
    Serve(service::server::ServeArgs),
}

fn main() -> anyhow::Result<()> {
    match Args::parse().bench {
        Bench::Service(options) => service::run(&options),
        Bench::Serve(args) => service::server::serve(&args),
    }
}

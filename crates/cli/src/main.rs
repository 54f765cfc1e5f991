//! The `tourbillon` command: the server, and every client command over its HTTP API.
//!
//! One command a file under `commands/`. What always holds: exit status 0 is done, 1 failed or
//! nothing to show, 2 wrong use; results go to standard output and everything else to standard
//! error; a reader that goes away ends the command quietly. Deliberately absent: scheduling itself.

mod calendar;
mod cli;
mod commands;
mod connect;
mod crontab;
mod difference;
mod documents;
mod exit;
mod output;
mod progress;
mod rule;
mod serve;
mod task_args;
mod timing;
mod when;
mod words;

use std::process::ExitCode;

use clap::Parser;

/// A task is made by one thread and freed by another, millions of times.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    exit::code(commands::run(cli))
}

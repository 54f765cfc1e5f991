//! Build, test and release chores: `cargo xtask help`.
//!
//! Every chore works from the project's root whatever the current folder, uses the one target
//! folder, and fails with a message that says what is wrong and where. Nothing is skipped
//! silently: what could not be checked is said in a line.
//!
//! It deliberately lacks a dependency on any crate of the workspace, so that it still builds when
//! they do not.

mod advisories;
mod asan;
mod cargo;
mod ci;
mod counts;
mod deps;
mod fuzz;
mod hygiene;
mod licences;
mod loom;
mod metadata;
mod needs;
mod nightly;
mod plots;
mod report;
mod sources;
mod spdx;
mod suite;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask CHORE

  ci              the gate: fmt --check, hygiene, deps, sources, licences, advisories, needs,
                  clippy, doc, test; stops at the first that fails
  fmt [--check]   format the workspace, or check that it is formatted
  hygiene         text rules: file headers, nothing unfinished, no sleeping in tests, pure crates
                  read no clock, ARCHITECTURE.md names every crate
  deps            which crate may depend on which, and which external crates are out of bounds
  sources         every dependency comes from crates.io
  licences        every dependency's licence can be satisfied by the allow-list
  advisories      yanked crates, and known vulnerabilities where a local database is at hand
  needs           programs that tests use; missing ones are installed by root on Debian
  clippy          all targets of the workspace, warnings are errors
  doc             API documentation, warnings are errors
  test [ARGS]     release build of the `tourbillon` binary, then all tests and doc tests.
                  With ARGS (`-p tourbillon-cli`, a test's name) only those, through the same
                  runner: cargo-nextest when installed, else cargo test
  loom            tests of threads against each other, every interleaving tried
  asan            tests of `tourbillon-wheel` and `tourbillon` under AddressSanitizer; needs a
                  nightly compiler
  fuzz [--seconds N]
                  random bytes as operations on the timer queues, for 30 seconds when nothing is
                  said; needs a nightly compiler. `fuzz --replay FILE` runs one input again
  plots [FILE]    draws docs/plots/*.svg from the JSON lines of the wheel bench, by default
                  docs/plots/wheel.jsonl
  help            this text

Tests find the programs they run in the environment: TOURBILLON_BIN (the release binary) and, for
each program listed by `needs`, its variable.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (chore, rest) = match args.split_first() {
        Some((chore, rest)) => (chore.as_str(), rest),
        None => ("help", &[][..]),
    };
    let result = match (chore, rest) {
        ("help" | "--help" | "-h", _) => {
            println!("{HELP}");
            Ok(())
        }
        ("ci", []) => ci::run(),
        ("fmt", []) => cargo::fmt(false),
        ("fmt", [flag]) if flag == "--check" => cargo::fmt(true),
        ("hygiene", []) => hygiene::run(),
        ("deps", []) => deps::run(),
        ("sources", []) => sources::run(),
        ("licences", []) => licences::run(),
        ("advisories", []) => advisories::run(),
        ("needs", []) => needs::ensure().map(drop),
        ("clippy", []) => cargo::clippy(),
        ("doc", []) => cargo::doc(),
        ("test", args) => suite::run(args),
        ("plots", []) => plots::run(None),
        ("plots", [file]) => plots::run(Some(file)),
        ("loom", []) => loom::run(),
        ("asan", []) => asan::run(),
        ("fuzz", args) => fuzz::run(args),
        _ => {
            eprintln!("cargo xtask: unknown chore `{}`\n\n{HELP}", args.join(" "));
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is::<report::Reported>() {
                eprintln!("error: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

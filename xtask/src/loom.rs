//! The tests that try every interleaving of threads, on loom.
//!
//! They are compiled with `--cfg loom`, which changes what the crate `tourbillon` is made of, so they
//! have a target folder of their own. Optimised, because loom runs a model many thousand times.

use anyhow::Result;

use crate::{cargo, nightly};

/// Builds and runs them.
pub(crate) fn run() -> Result<()> {
    let args = ["test", "--locked", "--release", "-p", "tourbillon", "--test", "loom*"];
    let mut command = cargo::command(&args);
    command.arg("--target-dir").arg(nightly::target("loom")).env("RUSTFLAGS", "--cfg loom");
    nightly::passed_through(command)
}

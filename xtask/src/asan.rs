//! The tests of the crates for use inside one process, under AddressSanitizer.
//!
//! The standard library is the one that comes with the compiler, without instrumentation: what the
//! crates do is seen, and so is every allocation, for that goes through the sanitizer's allocator.
//! Leaks are reported too.

use anyhow::Result;

use crate::nightly::{self, Nightly};

/// The crates that are tested.
const CRATES: &[&str] = &["tourbillon-wheel", "tourbillon"];

/// Builds and runs all their tests, doc tests included.
pub(crate) fn run() -> Result<()> {
    let nightly = Nightly::find()?;
    let mut args = vec!["test", "--locked", "--no-fail-fast"];
    args.extend(CRATES.iter().flat_map(|name| ["-p", name]));
    nightly::passed_through(nightly.cargo("asan", &args, &["-Zsanitizer=address"]))
}

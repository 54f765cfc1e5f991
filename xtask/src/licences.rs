//! Licences: each dependency's must be satisfiable by the allow-list.
//!
//! All packages of the lock file are looked at, also those that only tests, benches or other
//! platforms use. A package that names no expression fails: reading licence files is a decision
//! for a person.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::metadata::Metadata;
use crate::report::Complaints;
use crate::spdx::Expression;

/// Licences that ask for no more than notices, or for publishing changes to the dependency itself.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Checks every package, the workspace's own among them.
pub(crate) fn run() -> Result<()> {
    let metadata = Metadata::load()?;
    let mut complaints = Complaints::default();
    let mut expressions: BTreeMap<&str, usize> = BTreeMap::new();
    for package in &metadata.packages {
        let who = format!("{} {}", package.name, package.version);
        let Some(text) = package.license.as_deref() else {
            complaints.add(format!("{who} names no licence expression"));
            continue;
        };
        *expressions.entry(text).or_default() += 1;
        match Expression::parse(text) {
            Err(error) => complaints.add(format!("{who}: {error}")),
            Ok(expression) if !expression.is_satisfied_by(ALLOWED) => {
                complaints.add(format!(
                    "{who}: `{text}` asks for more than the allow-list has ({})",
                    ALLOWED.join(", ")
                ));
            }
            Ok(_) => {}
        }
    }
    let fine = format!(
        "{} packages, {} different expressions, all satisfied",
        metadata.packages.len(),
        expressions.len()
    );
    complaints.finish("licences", &fine)
}

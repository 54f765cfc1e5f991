//! Advisories, as far as this machine knows: yanked crates and known vulnerabilities.
//!
//! Yanked: from cargo's cached copy of the registry's index. Vulnerabilities: through cargo-deny or
//! cargo-audit when one of them is installed **and** has its database on this machine; nothing is
//! downloaded. What could not be checked is said in one line and does not fail the check.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Deserialize;

use crate::cargo;
use crate::metadata::Metadata;
use crate::needs;
use crate::report::Complaints;

/// Checks every external package.
pub(crate) fn run() -> Result<()> {
    let metadata = Metadata::load()?;
    let caches = cargo::home().map(|home| index_caches(&home)).unwrap_or_default();
    let mut complaints = Complaints::default();
    let mut known = 0;
    let mut unknown = Vec::new();
    for package in metadata.external() {
        match is_yanked(&caches, &package.name, &package.version) {
            Some(true) => complaints.add(format!(
                "{} {} is yanked: `cargo update -p {}`",
                package.name, package.version, package.name
            )),
            Some(false) => known += 1,
            None => unknown.push(package.name.as_str()),
        }
    }
    let mut unchecked = Vec::new();
    if !unknown.is_empty() {
        unchecked.push(format!(
            "whether {} are yanked (not in cargo's index cache)",
            unknown.join(", ")
        ));
    }
    if !vulnerabilities()? {
        unchecked.push(
            "known vulnerabilities (neither cargo-deny nor cargo-audit is here with a local database)".to_owned(),
        );
    }
    if !unchecked.is_empty() {
        println!("advisories: not checked: {}", unchecked.join("; "));
    }
    complaints.finish("advisories", &format!("{known} crates are not yanked"))
}

/// Asks an installed tool; `false` when there is none with a database.
fn vulnerabilities() -> Result<bool> {
    let Some(home) = cargo::home() else {
        return Ok(false);
    };
    let has = |folder: &str| {
        fs::read_dir(home.join(folder)).is_ok_and(|mut entries| entries.next().is_some())
    };
    if needs::on_path("cargo-deny").is_some() && has("advisory-dbs") {
        cargo::passed_through(cargo::command(&["deny", "--offline", "check", "advisories"]))?;
        return Ok(true);
    }
    if needs::on_path("cargo-audit").is_some() && has("advisory-db") {
        cargo::passed_through(cargo::command(&["audit", "--no-fetch", "--stale"]))?;
        return Ok(true);
    }
    Ok(false)
}

/// The cache folders of crates.io's index.
fn index_caches(home: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(home.join("registry/index")) else {
        return Vec::new();
    };
    let mut caches: Vec<_> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with("index.crates.io-") || name.starts_with("github.com-")
        })
        .map(|entry| entry.path().join(".cache"))
        .collect();
    caches.sort();
    caches
}

/// Whether a version is yanked; nothing when no cache has it.
fn is_yanked(caches: &[PathBuf], name: &str, version: &str) -> Option<bool> {
    let answers = caches.iter().filter_map(|cache| {
        let bytes = fs::read(cache.join(index_path(name))).ok()?;
        versions(&bytes).get(version).copied()
    });
    answers.reduce(|a, b| a || b)
}

/// Where an index keeps a crate: by its length, then by its first letters.
fn index_path(name: &str) -> PathBuf {
    let name = name.to_lowercase();
    match name.chars().count() {
        1 => Path::new("1").join(name),
        2 => Path::new("2").join(name),
        3 => Path::new("3").join(&name[..1]).join(name),
        _ => Path::new(&name[..2]).join(&name[2..4]).join(name),
    }
}

#[derive(Deserialize)]
struct IndexLine {
    vers: String,
    #[serde(default)]
    yanked: bool,
}

/// The versions in a cache file, and whether each is yanked. The file is a short head and then
/// version and JSON by turns, each closed by a zero byte; only what is such JSON counts.
fn versions(bytes: &[u8]) -> BTreeMap<String, bool> {
    bytes
        .split(|byte| *byte == 0)
        .filter(|piece| piece.starts_with(b"{"))
        .filter_map(|piece| serde_json::from_slice::<IndexLine>(piece).ok())
        .map(|line| (line.vers, line.yanked))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_the_index() {
        for (name, path) in [
            ("a", "1/a"),
            ("cc", "2/cc"),
            ("log", "3/l/log"),
            ("Serde", "se/rd/serde"),
            ("r-efi", "r-/ef/r-efi"),
        ] {
            assert_eq!(index_path(name), Path::new(path));
        }
    }

    #[test]
    fn a_cache_file_is_read() {
        let bytes = b"\x03\x02\0\0\0\"etag\"\0\
            1.0.0\0{\"vers\":\"1.0.0\",\"yanked\":true}\0\
            1.0.1\0{\"vers\":\"1.0.1\",\"yanked\":false,\"deps\":[]}\0\
            1.0.2\0{\"vers\":\"1.0.2\"}\0broken\0{\"vers\":\0";
        let expected = [("1.0.0", true), ("1.0.1", false), ("1.0.2", false)];
        let expected =
            expected.into_iter().map(|(version, yanked)| (version.to_owned(), yanked)).collect();
        assert_eq!(versions(bytes), expected);
    }

    #[test]
    fn unknown_is_not_taken_for_sound() {
        assert_eq!(is_yanked(&[PathBuf::from("/nonexistent")], "serde", "1.0.0"), None);
    }
}

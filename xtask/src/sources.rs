//! Where dependencies come from: crates.io, and nowhere else.
//!
//! No git repository, no other registry, no folder outside the workspace: whoever clones the
//! project gets everything from one place whose files never change once published.

use anyhow::Result;

use crate::metadata::Metadata;
use crate::report::Complaints;

/// What cargo calls crates.io, whichever protocol it uses to reach it.
const CRATES_IO: &[&str] =
    &["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];

/// Checks every external package and every dependency given as a folder.
pub(crate) fn run() -> Result<()> {
    let metadata = Metadata::load()?;
    let mut complaints = Complaints::default();
    let mut count = 0;
    for package in metadata.external() {
        count += 1;
        if let Some(found) = elsewhere(package.source.as_deref(), &package.manifest_path) {
            complaints.add(format!(
                "{} {} comes from {found}, not from crates.io",
                package.name, package.version
            ));
        }
    }
    let folders: Vec<&str> = metadata
        .members()
        .filter_map(|member| member.manifest_path.strip_suffix("/Cargo.toml"))
        .collect();
    for member in metadata.members() {
        for dependency in &member.dependencies {
            if let Some(path) = dependency.path.as_deref().filter(|path| !folders.contains(path)) {
                complaints.add(format!(
                    "{} takes {} from {path}, outside the workspace",
                    member.name, dependency.name
                ));
            }
        }
    }
    complaints.finish("sources", &format!("{count} dependencies, all from crates.io"))
}

/// The place a package comes from, when it is not crates.io.
fn elsewhere<'a>(source: Option<&'a str>, manifest: &'a str) -> Option<&'a str> {
    match source {
        Some(source) if CRATES_IO.contains(&source) => None,
        Some(source) => Some(source),
        None => Some(manifest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_crates_io_is_accepted() {
        for source in CRATES_IO {
            assert_eq!(elsewhere(Some(source), "m"), None);
        }
        assert_eq!(
            elsewhere(Some("git+https://example.org/x"), "m"),
            Some("git+https://example.org/x")
        );
        assert_eq!(elsewhere(None, "/elsewhere/Cargo.toml"), Some("/elsewhere/Cargo.toml"));
    }
}

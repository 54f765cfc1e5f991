//! What `cargo metadata` says about the workspace and its dependencies, as far as the checks need.
//!
//! Always the locked versions. Packages of all platforms are included whenever they can be had;
//! without a network, and when the packages of other platforms are not on this machine, only this
//! platform's are looked at, and a line says so.

use std::collections::{BTreeSet, HashMap};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::cargo;

/// The answer of `cargo metadata --format-version 1`.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    /// All packages: the workspace's own and every dependency.
    pub(crate) packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

/// One package, of the workspace or a dependency.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    /// Its name, such as `serde`.
    pub(crate) name: String,
    /// Its version, such as `1.0.0`.
    pub(crate) version: String,
    /// Opaque and unique.
    pub(crate) id: String,
    /// SPDX expression from its manifest.
    pub(crate) license: Option<String>,
    /// Where it comes from; nothing for a folder on this machine.
    pub(crate) source: Option<String>,
    /// The manifest's dependencies, as written there.
    pub(crate) dependencies: Vec<Dependency>,
    /// The manifest's path.
    pub(crate) manifest_path: String,
}

/// One line of a manifest's dependency tables.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    /// The package's name, also when it is renamed.
    pub(crate) name: String,
    kind: Option<String>,
    /// Set when the dependency is a folder.
    pub(crate) path: Option<String>,
}

impl Dependency {
    /// Whether it becomes part of the product or of its build; not so for tests' dependencies.
    pub(crate) fn is_shipped(&self) -> bool {
        self.kind.as_deref() != Some("dev")
    }
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<NodeDep>,
}

#[derive(Debug, Deserialize)]
struct NodeDep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Debug, Deserialize)]
struct DepKind {
    kind: Option<String>,
}

impl Metadata {
    /// Asks cargo. Fails when the lock file does not fit the manifests.
    pub(crate) fn load() -> Result<Self> {
        let base = ["metadata", "--format-version", "1", "--locked"];
        let everything = output(cargo::command(&base));
        let text = match everything {
            Ok(text) => text,
            Err(error) => {
                let host = host()?;
                let narrow = [&base[..], &["--offline", "--filter-platform", &host]].concat();
                let text = output(cargo::command(&narrow)).map_err(|_| error)?;
                println!(
                    "not checked: packages that only platforms other than {host} use (no network)"
                );
                text
            }
        };
        serde_json::from_str(&text).context("cargo metadata gave an answer of unknown form")
    }

    /// Whether a package belongs to the workspace.
    pub(crate) fn is_member(&self, package: &Package) -> bool {
        self.workspace_members.contains(&package.id)
    }

    /// The workspace's own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.is_member(package))
    }

    /// The packages that are not the workspace's own.
    pub(crate) fn external(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| !self.is_member(package))
    }

    /// Names of all external packages that reach `package`'s build without passing through another
    /// package of the workspace.
    pub(crate) fn external_closure(&self, package: &Package) -> BTreeSet<&str> {
        let nodes: HashMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let names: HashMap<&str, &str> =
            self.packages.iter().map(|p| (p.id.as_str(), p.name.as_str())).collect();
        let mut seen = BTreeSet::new();
        let mut todo = vec![package.id.as_str()];
        while let Some(id) = todo.pop() {
            for dep in nodes.get(id).into_iter().flat_map(|node| &node.deps) {
                let shipped = dep.dep_kinds.iter().any(|kind| kind.kind.as_deref() != Some("dev"));
                let external = !self.workspace_members.contains(&dep.pkg);
                if shipped && external && seen.insert(dep.pkg.as_str()) {
                    todo.push(&dep.pkg);
                }
            }
        }
        seen.iter().filter_map(|id| names.get(id).copied()).collect()
    }
}

/// Runs a command and gives its standard output, or fails with its standard error.
fn output(mut command: Command) -> Result<String> {
    let shown = cargo::shown(&command);
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The platform this machine's compiler builds for.
fn host() -> Result<String> {
    let mut command = Command::new("rustc");
    command.arg("-vV");
    let text = output(command)?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("`rustc -vV` names no host")?.to_owned())
}

//! Running cargo: from the project's root, with its lock file as it stands.
//!
//! Children never see the variables that `cargo run` sets for xtask itself: build scripts watch
//! some of them, and what they would rebuild depends on who started the build.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The project's root folder.
pub(crate) fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    own.parent().map(Path::to_path_buf).unwrap_or(own)
}

/// cargo's own folder: `CARGO_HOME`, else `.cargo` in the home folder.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))
}

/// A cargo command at the project's root. Standard input is closed.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root()).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let own = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
        if text == "LD_LIBRARY_PATH" || own.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let args = command.get_args().map(|arg| arg.to_string_lossy());
    std::iter::once("$ cargo".into()).chain(args).collect::<Vec<_>>().join(" ")
}

/// Says what is run, runs it with its output passed through, and fails when it fails.
pub(crate) fn passed_through(mut command: Command) -> Result<()> {
    let shown = shown(&command);
    println!("{shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Formats the workspace, or with `check` only looks.
///
/// rustfmt colours its differences also when they go into a file, so it is told.
pub(crate) fn fmt(check: bool) -> Result<()> {
    let color = if std::io::stdout().is_terminal() { "auto" } else { "never" };
    let tail: &[&str] = if check { &["--check"] } else { &[] };
    passed_through(command(&[&["fmt", "--all", "--", "--color", color], tail].concat()))
}

/// Lints all targets of the workspace; a warning is an error.
pub(crate) fn clippy() -> Result<()> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    passed_through(command(&args))
}

/// Builds the API documentation; a warning is an error.
///
/// Programs first, libraries last: the `tourbillon` program and the `tourbillon` library have one
/// address in the documentation, and cargo refuses to build both at once. The library keeps it.
pub(crate) fn doc() -> Result<()> {
    for targets in ["--bins", "--lib"] {
        let mut command = command(&["doc", "--no-deps", "--workspace", "--locked", targets]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        passed_through(command)?;
    }
    Ok(())
}

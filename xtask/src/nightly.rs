//! Running the nightly cargo, for what stable Rust cannot do: sanitizers and coverage counters.
//!
//! The nightly compiler is found through rustup and never installed here: when it is missing, the
//! chore fails and says what to install. Builds go to target folders of their own, so that flags of
//! one chore never make another build anew.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo;

const MISSING: &str = "this chore needs a nightly Rust compiler, found through rustup. Install it with\n  \
    rustup toolchain install nightly --profile minimal\n\
    (rustup itself is at https://rustup.rs)";

/// A nightly compiler that is there.
pub(crate) struct Nightly {
    /// The target that it builds for: named on the command line, so that flags for the product do
    /// not reach build scripts.
    host: String,
}

impl Nightly {
    /// Looks for it.
    pub(crate) fn find() -> Result<Self> {
        let output = Command::new("rustup")
            .args(["run", "nightly", "rustc", "--version", "--verbose"])
            .stdin(Stdio::null())
            .output()
            .context(MISSING)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match field(&text, "host") {
            Some(host) if output.status.success() => Ok(Self { host: host.to_owned() }),
            _ => bail!("{MISSING}\n{}", String::from_utf8_lossy(&output.stderr).trim()),
        }
    }

    /// The target's name, such as `x86_64-unknown-linux-gnu`.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// A nightly cargo at the project's root; `args` begin with its subcommand, which gets the target
    /// and the target folder of `chore`. `flags` are for the compiler and for doc tests.
    pub(crate) fn cargo(&self, chore: &str, args: &[&str], flags: &[&str]) -> Command {
        let plain = cargo::command(args);
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo"]).args(plain.get_args());
        command.args(["--target", &self.host]).arg("--target-dir").arg(target(chore));
        command.current_dir(cargo::root()).stdin(Stdio::null());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("RUSTFLAGS", flags.join(" ")).env("RUSTDOCFLAGS", flags.join(" "));
        command
    }
}

/// The target folder of a chore, inside the one that ordinary builds use.
pub(crate) fn target(chore: &str) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| cargo::root().join("target"), PathBuf::from)
        .join(chore)
}

/// Says what is run, with the variables that make the difference, and runs it.
pub(crate) fn passed_through(mut command: Command) -> Result<()> {
    let shown = shown(&command);
    println!("{shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// The command as one would type it.
fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        let told = ["RUSTFLAGS", "ASAN_OPTIONS"].iter().any(|told| name == *told);
        let value = value.filter(|_| told)?.to_string_lossy().into_owned();
        Some(format!("{}='{value}' ", name.to_string_lossy()))
    });
    // cargo names itself by its full path.
    let program = Path::new(command.get_program());
    let program =
        program.file_name().filter(|name| *name == "cargo").unwrap_or(program.as_os_str());
    let words = std::iter::once(program).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("$ {}{}", variables.collect::<String>(), words.join(" "))
}

/// The value of a line `name: value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_what_the_compiler_says() {
        let text = "rustc 1.97.0-nightly\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\n";
        assert_eq!(field(text, "host"), Some("x86_64-unknown-linux-gnu"));
        assert_eq!(field("", "host"), None);
    }

    #[test]
    fn a_command_is_shown_with_its_flags() {
        let nightly = Nightly { host: "h".to_owned() };
        let shown = shown(&nightly.cargo("asan", &["test", "-p", "x"], &["-Za", "-Zb"]));
        let start =
            "$ RUSTFLAGS='-Za -Zb' rustup run nightly cargo test -p x --target h --target-dir ";
        assert!(shown.starts_with(start), "{shown}");
        assert!(shown.ends_with("/asan"), "{shown}");
    }
}

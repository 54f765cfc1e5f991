//! Fuzzing: libFuzzer with coverage counters, under AddressSanitizer.
//!
//! The targets are the timer queues (`crates/wheel/fuzz`) and everything that reads what people wrote
//! about times (`crates/import/fuzz`), workspaces of their own. What cargo-fuzz would do is done
//! here, since it is a few flags. What was found to be interesting is kept in the target folder and
//! is where the next run begins; nothing of it is committed, for a minute finds it again. An input
//! that crashes is kept too, and how to run it again is said.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::cargo;
use crate::nightly::{self, Nightly};

/// What can be fuzzed: the name of the program, its manifest, and the longest input.
type Target = (&'static str, &'static str, &'static str);

const TARGETS: &[Target] = &[
    ("queues", "crates/wheel/fuzz/Cargo.toml", "-max_len=1024"),
    ("parsers", "crates/import/fuzz/Cargo.toml", "-max_len=512"),
];

/// The flags that libFuzzer needs, as cargo-fuzz gives them.
const FLAGS: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Zsanitizer=address",
    "--cfg",
    "fuzzing",
];

/// How long to fuzz when nothing is said.
const SECONDS: u32 = 30;

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// New inputs, for so many seconds.
    Fuzz(u32),
    /// These inputs, once each.
    Replay(Vec<String>),
}

/// Builds the fuzz target and runs it.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (&(target, manifest, length), args) = target_of(args)?;
    let wanted = parse(args)?;
    let nightly = Nightly::find()?;
    let build = ["build", "--release", "--locked", "--manifest-path", manifest];
    nightly::passed_through(nightly.cargo("fuzz", &build, FLAGS))?;

    let folder = nightly::target("fuzz");
    let mut command = Command::new(folder.join(nightly.host()).join("release").join(target));
    command.current_dir(cargo::root());
    // The fuzz target and the runtime are linked from parts that name the same globals.
    command.env("ASAN_OPTIONS", "detect_odr_violation=0");
    let (corpus, crashes) = match target {
        "queues" => (folder.join("corpus"), folder.join("crashes")),
        other => (folder.join("corpus").with_extension(other), folder.join("crashes")),
    };
    match wanted {
        Wanted::Replay(files) => nightly::passed_through({
            command.args(files);
            command
        }),
        Wanted::Fuzz(seconds) => {
            for folder in [&corpus, &crashes] {
                fs::create_dir_all(folder)
                    .with_context(|| format!("cannot make {}", folder.display()))?;
            }
            // Long inputs from the start: a fault of a queue takes a history to show.
            command.args([length, "-len_control=0", "-timeout=20", "-print_final_stats=1"]);
            command.arg(format!("-max_total_time={seconds}"));
            command.arg(format!("-artifact_prefix={}/", crashes.display())).arg(&corpus);
            nightly::passed_through(command)
                .map_err(|error| anyhow!("{error}\n{}", advice(target, &crashes)))
        }
    }
}

/// The target that is named first, or the queues; and the other words.
fn target_of(args: &[String]) -> Result<(&'static Target, &[String])> {
    match args {
        [flag, name, rest @ ..] if flag == "--target" => {
            let found = TARGETS.iter().find(|(target, ..)| target == name);
            let names: Vec<&str> = TARGETS.iter().map(|(target, ..)| *target).collect();
            let found = found.with_context(|| {
                format!("--target {name}: no such target; expected one of {}", names.join(", "))
            })?;
            Ok((found, rest))
        }
        _ => Ok((&TARGETS[0], args)),
    }
}

fn parse(args: &[String]) -> Result<Wanted> {
    match args {
        [] => Ok(Wanted::Fuzz(SECONDS)),
        [flag, number] if flag == "--seconds" => match number.parse() {
            // Zero is no limit to libFuzzer.
            Ok(seconds) if seconds > 0 => Ok(Wanted::Fuzz(seconds)),
            _ => bail!("--seconds takes a whole number of at least 1, not `{number}`"),
        },
        [flag, files @ ..] if flag == "--replay" && !files.is_empty() => {
            Ok(Wanted::Replay(files.to_vec()))
        }
        _ => bail!(
            "usage: cargo xtask fuzz [--target queues|parsers] [--seconds N | --replay FILE...]"
        ),
    }
}

/// What to do with an input that crashes: the newest one, which is the one just found.
fn advice(target: &str, crashes: &Path) -> String {
    let files = fs::read_dir(crashes).into_iter().flatten().flatten();
    let newest = files
        .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
        .max_by_key(|(modified, _)| *modified);
    match newest {
        None => "the fuzz target failed and left no input behind".to_owned(),
        Some((_, file)) => format!(
            "an input makes the target fail. To run it again:\n  cargo xtask fuzz --target {target} --replay {}",
            file.display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Wanted> {
        parse(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_command_line() {
        assert_eq!(parsed(&[]).ok(), Some(Wanted::Fuzz(SECONDS)));
        assert_eq!(parsed(&["--seconds", "300"]).ok(), Some(Wanted::Fuzz(300)));
        let replay = Wanted::Replay(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(parsed(&["--replay", "a", "b"]).ok(), Some(replay));
        for wrong in [
            &["--seconds"][..],
            &["--seconds", "0"],
            &["--seconds", "soon"],
            &["--replay"],
            &["30"],
        ] {
            assert!(parsed(wrong).is_err(), "{wrong:?}");
        }
    }
}

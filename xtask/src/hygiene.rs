//! Rules about text, checked by reading every Rust file; no compiler takes part.
//!
//! Each rule is one function from a file to complaints. Lines that are comments are not code: a rule
//! about code does not look at them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cargo;
use crate::report::Complaints;

/// What may not stay in code, and why. Written in pieces, so that this file passes its own rule.
const UNFINISHED: &[(&str, &str)] = &[
    (concat!("todo", "!"), "unfinished code does not land"),
    (concat!("unimplemented", "!"), "unfinished code does not land"),
    (concat!("#[", "ignore"), "a test runs, or it goes"),
];

/// Notes that promise later work; unlike the rest, looked for in comments too.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

/// Crates that never read a clock: time is an argument.
const CLOCKLESS: &[&str] = &["wheel", "schedule", "engine", "wire"];

/// Ways to read a clock.
const CLOCKS: &[&str] = &["Instant::now", "SystemTime::now", "Timestamp::now", "Zoned::now"];

/// Opens a line near the top of a test file that says why its tests sleep, for instance because they
/// play a slow receiver.
const SLEEPS_MARKER: &str = "// sleeps:";

/// Checks all Rust files of crates/ and xtask/, and ARCHITECTURE.md.
pub(crate) fn run() -> Result<()> {
    let root = cargo::root();
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        rust_files(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut complaints = Complaints::default();
    for file in &files {
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.strip_prefix(&root).unwrap_or(file).to_string_lossy();
        check(&name, &text, &mut complaints);
    }
    let architecture = root.join("ARCHITECTURE.md");
    if architecture.exists() {
        let text = fs::read_to_string(&architecture).context("cannot read ARCHITECTURE.md")?;
        for folder in crate_folders(&root)? {
            if !mentions(&text, &folder) {
                complaints.add(format!("ARCHITECTURE.md does not mention crates/{folder}"));
            }
        }
    }
    complaints.finish("hygiene", &format!("{} Rust files keep the rules", files.len()))
}

/// Applies every rule to one file; `name` is its path from the root, with `/`.
fn check(name: &str, text: &str, complaints: &mut Complaints) {
    if !text.starts_with("//!") {
        complaints.add(format!(
            "{name}:1: a file opens with `//!`: what it is, what always holds, what it lacks"
        ));
    }
    let marker = text.lines().find_map(|line| line.trim().strip_prefix(SLEEPS_MARKER));
    let may_sleep = marker.is_some_and(|reason| !reason.trim().is_empty());
    if marker.is_some() && !may_sleep {
        complaints.add(format!("{name}: `{SLEEPS_MARKER}` needs a reason"));
    }
    let is_test = name.split('/').any(|part| part == "tests");
    let clockless = CLOCKLESS.iter().any(|folder| {
        name.strip_prefix("crates/").is_some_and(|n| n.starts_with(&format!("{folder}/src/")))
    });
    for (index, line) in text.lines().enumerate() {
        let at = format!("{name}:{}", index + 1);
        for note in NOTES.iter().filter(|note| has_word(line, note)) {
            complaints.add(format!("{at}: `{note}`: do it, or leave it out"));
        }
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (found, why) in UNFINISHED.iter().filter(|(found, _)| has_start(line, found)) {
            complaints.add(format!("{at}: `{found}`: {why}"));
        }
        if is_test && !may_sleep && sleeps(line) {
            complaints.add(format!(
                "{at}: a test waits for a condition with a deadline, it does not sleep (a file whose tests must \
                 sleep says why in a line `{SLEEPS_MARKER} REASON`)"
            ));
        }
        if clockless {
            for clock in CLOCKS.iter().filter(|clock| has_start(line, clock)) {
                complaints.add(format!("{at}: `{clock}`: this crate gets time as an argument"));
            }
        }
    }
}

/// Whether `word` stands in the line and does not merely end a longer name.
fn has_start(line: &str, word: &str) -> bool {
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Whether `word` stands in the line as a whole word.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
        !line[..at].ends_with(part_of_name) && !line[at + word.len()..].starts_with(part_of_name)
    })
}

/// Whether a line sleeps a thread or a task, or imports what would.
fn sleeps(line: &str) -> bool {
    ["thread", "time"].iter().any(|module| {
        has_start(line, &format!("{module}::sleep"))
            || line
                .split_once(&format!("{module}::{{"))
                .is_some_and(|(_, names)| has_start(names, "sleep"))
    })
}

/// Whether a document names the folder: `crates/x`, `x/` at the start of a word, or `x` as code.
fn mentions(text: &str, folder: &str) -> bool {
    has_word(text, &format!("crates/{folder}"))
        || has_start(text, &format!("{folder}/"))
        || text.contains(&format!("`{folder}`"))
}

fn crate_folders(root: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(root.join("crates")).context("cannot read crates/")?;
    let mut folders: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    Ok(folders)
}

/// Collects Rust files, leaving out what builds made.
fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" && entry.file_name() != "node_modules" {
                rust_files(&path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_of(name: &str, text: &str) -> Vec<String> {
        let mut complaints = Complaints::default();
        check(name, text, &mut complaints);
        complaints.texts().to_vec()
    }

    const SRC: &str = "crates/wheel/src/lib.rs";
    const TEST: &str = "crates/node/tests/http/slow.rs";

    #[test]
    fn a_file_opens_with_its_purpose() {
        assert_eq!(complaints_of(SRC, "//! Wheels.\n\nfn x() {}\n"), [""; 0]);
        for text in ["", "\n//! Late.\n", "// Not a doc comment.\n", "use std::fs;\n//! Late.\n"] {
            assert_eq!(complaints_of(SRC, text).len(), 1, "{text:?}");
        }
    }

    #[test]
    fn nothing_unfinished_lands() {
        for (word, _) in UNFINISHED {
            let found = complaints_of(SRC, &format!("//! X.\n    {word}\n"));
            assert_eq!(found.len(), 1, "{word}");
            assert!(found[0].starts_with("crates/wheel/src/lib.rs:2: "), "{found:?}");
            assert_eq!(complaints_of(SRC, &format!("//! X.\n// A word on {word}\n")), [""; 0]);
            let first = word.chars().next().expect("not empty");
            if first.is_alphabetic() {
                assert_eq!(complaints_of(SRC, &format!("//! X.\nmy_{word}\n")), [""; 0]);
            }
        }
        for note in NOTES {
            assert_eq!(
                complaints_of(SRC, &format!("//! X.\n// {note}: more\n")).len(),
                1,
                "{note}"
            );
            assert_eq!(
                complaints_of(SRC, &format!("//! X.\nconst {note}_LIST: u8 = 1;\n")),
                [""; 0]
            );
        }
    }

    #[test]
    fn tests_do_not_sleep_without_a_reason() {
        let lines = [
            "std::thread::sleep(d);",
            "tokio::time::sleep(d).await;",
            "tokio::time::sleep_until(t).await;",
            "use std::thread::{self, sleep};",
            "use tokio::time::{Duration, sleep};",
            "use std::thread::sleep;",
        ];
        for line in lines {
            assert_eq!(complaints_of(TEST, &format!("//! X.\n{line}\n")).len(), 1, "{line}");
            assert_eq!(
                complaints_of("crates/node/src/pump.rs", &format!("//! X.\n{line}\n")),
                [""; 0],
                "{line}"
            );
            let reasoned = format!("//! X.\n// sleeps: plays a slow receiver\n{line}\n");
            assert_eq!(complaints_of(TEST, &reasoned), [""; 0], "{line}");
            let bare = format!("//! X.\n// sleeps:\n{line}\n");
            assert_eq!(complaints_of(TEST, &bare).len(), 2, "{line}");
        }
        assert_eq!(complaints_of(TEST, "//! X.\nclock.sleep(d); my_thread::sleep(d);\n"), [""; 0]);
    }

    #[test]
    fn pure_crates_read_no_clock() {
        for clock in CLOCKS {
            let text = format!("//! X.\nlet now = std::time::{clock}();\n");
            assert_eq!(complaints_of("crates/engine/src/step.rs", &text).len(), 1, "{clock}");
            assert_eq!(complaints_of("crates/clock/src/system.rs", &text), [""; 0], "{clock}");
            assert_eq!(complaints_of("crates/engine/benches/step.rs", &text), [""; 0], "{clock}");
        }
    }

    #[test]
    fn a_crate_is_mentioned_by_its_folder() {
        for text in ["crates/wire holds", "    wire/   documents", "the crate `wire`"] {
            assert!(mentions(text, "wire"), "{text}");
        }
        for text in ["wired", "crates/wires", "rewire/ it", "the wire"] {
            assert!(!mentions(text, "wire"), "{text}");
        }
    }
}

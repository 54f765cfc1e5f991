//! Programs that tests use beyond Rust's own tools.
//!
//! One table says what they are. Root on Debian gets missing ones installed from Debian's packages;
//! anyone else is told exactly what to install, and the chore fails: a test is never left out
//! because a program is missing. Tests get each program's path in an environment variable.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// One row: a program, and who needs it.
struct Need {
    /// What it is, in a few words.
    what: &'static str,
    /// Any of these names will do, the first found wins. Looked for on `PATH`, then in Debian's
    /// folders for PostgreSQL's programs, newest version first.
    names: &'static [&'static str],
    /// The variable that carries its path to tests.
    variable: &'static str,
    /// Debian's package.
    package: &'static str,
    /// Which tests need it.
    tests: &'static str,
}

/// Everything tests need. A new program is one more row.
const NEEDS: &[Need] = &[
    Need {
        what: "strace",
        names: &["strace"],
        variable: "TOURBILLON_STRACE",
        package: "strace",
        tests: "tests that check which system calls the server makes (fsync before an answer)",
    },
    Need {
        what: "a Chromium browser",
        names: &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"],
        variable: "TOURBILLON_CHROMIUM",
        package: "chromium",
        tests: "tests of the web console",
    },
    Need {
        what: "PostgreSQL's server",
        names: &["initdb"],
        variable: "TOURBILLON_INITDB",
        package: "postgresql",
        tests: "tests of the PostgreSQL store (each starts a private server)",
    },
];

/// Sees to it that every program is here, and gives the variables that tests get.
pub(crate) fn ensure() -> Result<Vec<(&'static str, PathBuf)>> {
    let missing: Vec<&Need> = NEEDS.iter().filter(|need| find(need).is_none()).collect();
    if !missing.is_empty() {
        let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
        let advice = advice(&missing);
        if !is_root() || !is_debian() {
            bail!("{advice}");
        }
        println!("needs: installing {}", packages.join(", "));
        install(&packages).context(advice)?;
    }
    NEEDS
        .iter()
        .map(|need| {
            let path = find(need).with_context(|| {
                format!(
                    "the package {} was installed, but {} is not on PATH",
                    need.package,
                    need.names.join(" or ")
                )
            })?;
            println!("needs: {} at {}", need.what, path.display());
            Ok((need.variable, path))
        })
        .collect()
}

/// The first executable of this name on `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    in_folders(std::env::split_paths(&path), name)
}

fn find(need: &Need) -> Option<PathBuf> {
    let postgres = versioned_folders(Path::new("/usr/lib/postgresql"));
    need.names
        .iter()
        .find_map(|name| on_path(name).or_else(|| in_folders(postgres.iter().cloned(), name)))
}

fn in_folders(folders: impl IntoIterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    folders.into_iter().map(|folder| folder.join(name)).find(|file| {
        fs::metadata(file)
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    })
}

/// `base/*/bin`, the highest version first.
fn versioned_folders(base: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(base)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin")))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

/// What to do about missing programs, in words that can be followed.
fn advice(missing: &[&Need]) -> String {
    let mut text = String::from("programs that tests need are missing:\n");
    for need in missing {
        text += &format!("  {} ({}), for {}\n", need.what, need.names.join(" or "), need.tests);
    }
    let packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    text + &format!("on Debian, as root: apt-get update && apt-get install {}", packages.join(" "))
}

fn install(packages: &[&str]) -> Result<()> {
    apt_get(&["update", "-qq"])?;
    apt_get(&[&["install", "-qq", "-y", "--no-install-recommends"], packages].concat())
}

fn apt_get(args: &[&str]) -> Result<()> {
    let status = Command::new("apt-get")
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .status()
        .context("cannot start apt-get")?;
    if !status.success() {
        bail!("`apt-get {}` failed ({status})", args.join(" "));
    }
    Ok(())
}

/// Whether this process may install packages: its own folder in /proc belongs to the user that it
/// acts as.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0)
}

/// Debian itself: elsewhere packages of the same name can be something else (on Ubuntu, `chromium`
/// is a stub that fetches a snap).
fn is_debian() -> bool {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    release.lines().any(|line| line == "ID=debian")
        && in_folders(["/usr/bin".into()], "apt-get").is_some()
}

/// Passes the variables on to a command.
pub(crate) fn export(command: &mut Command, variables: &[(&'static str, PathBuf)]) {
    command.envs(variables.iter().map(|(name, path)| (OsStr::new(name), path.as_os_str())));
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("xtask-needs-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder for the test");
            Self(path)
        }

        fn file(&self, path: &str, mode: u32) {
            let file = self.0.join(path);
            fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            fs::write(&file, "").expect("a file");
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).ok();
        }
    }

    #[test]
    fn the_newest_version_wins_by_number_not_by_letter() {
        let folder = Folder::new("versions");
        for version in ["9", "15", "17", "notes"] {
            folder.file(&format!("{version}/bin/initdb"), 0o755);
        }
        let found = in_folders(versioned_folders(&folder.0), "initdb");
        assert_eq!(found, Some(folder.0.join("17/bin/initdb")));
    }

    #[test]
    fn only_an_executable_file_counts() {
        let folder = Folder::new("executable");
        folder.file("plain", 0o644);
        folder.file("program", 0o755);
        folder.file("folder/inside", 0o755);
        let find = |name| in_folders([PathBuf::from("/nonexistent"), folder.0.clone()], name);
        assert_eq!(find("plain"), None);
        assert_eq!(find("folder"), None);
        assert_eq!(find("absent"), None);
        assert_eq!(find("program"), Some(folder.0.join("program")));
    }

    #[test]
    fn advice_names_every_missing_program_its_package_and_its_tests() {
        let text = advice(&NEEDS.iter().collect::<Vec<_>>());
        for need in NEEDS {
            for part in [need.what, need.package, need.tests] {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
    }
}

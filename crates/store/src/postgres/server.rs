//! A private PostgreSQL server, for tests.
//!
//! Started from the installed programs in a temporary folder, reachable through a unix socket in it
//! only. It ends with the process that started it, however that ends: a small shell waits for its
//! standard input to be closed, then stops the server and deletes the folder. When a program is missing
//! the error says what to install; nothing is skipped.
//!
//! Absent: the defaults of production. Unless asked otherwise it does not wait for the disk.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A server that runs until this is dropped, or the process ends.
#[derive(Debug)]
pub struct TestServer {
    folder: PathBuf,
    guard: Child,
}

/// The server that the tests of one process share, started at the first call.
///
/// # Panics
///
/// When it cannot be started; the text says what to do.
pub fn shared() -> &'static TestServer {
    static SERVER: OnceLock<TestServer> = OnceLock::new();
    SERVER.get_or_init(|| match TestServer::start(&["fsync=off", "synchronous_commit=off"]) {
        Ok(server) => server,
        Err(error) => panic!("{error}"),
    })
}

/// A name for a schema that this process did not use before.
pub fn fresh_schema() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl TestServer {
    /// Starts one with these settings (`name=value`) beside its own.
    ///
    /// # Errors
    ///
    /// What is missing or did not work.
    pub fn start(settings: &[&str]) -> Result<TestServer, String> {
        let programs = programs()?;
        let folder = make_folder()?;
        let server = TestServer::start_in(&programs, folder.clone(), settings);
        if server.is_err() {
            let _ = std::fs::remove_dir_all(&folder);
        }
        server
    }

    fn start_in(programs: &Path, folder: PathBuf, settings: &[&str]) -> Result<TestServer, String> {
        let data = folder.join("data");
        let owner = owner(&folder)?;
        let mut initdb = Command::new(programs.join("initdb"));
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
        initdb.args(["--no-sync", "--pgdata"]).arg(&data).current_dir(&folder);
        run(owner.apply(&mut initdb), "initdb")?;
        // `pg_ctl` waits until the server takes connections, and at the end until it is gone.
        // Signals to the whole process group are for the tests; this shell sees their end.
        let script = "trap '' INT TERM HUP; PGCTL=$1; DATA=$2; OPTIONS=$3; FOLDER=$4
            \"$PGCTL\" -D \"$DATA\" -w -t 60 -l \"$FOLDER/log\" -o \"$OPTIONS\" start >/dev/null || exit 1
            echo started
            read -r nothing
            \"$PGCTL\" -D \"$DATA\" -w -t 60 -m immediate stop >/dev/null
            cd / && rm -rf \"$FOLDER\"";
        let mut options = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c max_connections=100 \
             -c shared_buffers=256MB -c max_wal_size=4GB",
            folder.display()
        );
        for setting in settings {
            options += &format!(" -c {setting}");
        }
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(programs.join("pg_ctl")).arg(&data).arg(options);
        shell.arg(&folder).current_dir(&folder);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut guard = owner
            .apply(&mut shell)
            .spawn()
            .map_err(|error| format!("cannot start a shell for the test server: {error}"))?;
        let mut said = String::new();
        if let Some(stdout) = guard.stdout.take() {
            use std::io::BufRead;
            let _ = std::io::BufReader::new(stdout).read_line(&mut said);
        }
        if said.trim() != "started" {
            let _ = guard.wait();
            let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            return Err(format!("the test server did not start: {log}"));
        }
        Ok(TestServer { folder, guard })
    }

    /// Where a store finds it.
    pub fn url(&self) -> String {
        format!("host={} user=postgres dbname=postgres", self.folder.display())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn run(command: &mut Command, what: &str) -> Result<(), String> {
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("cannot start {what}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&done.stderr);
    Err(format!("{what} failed ({}): {told}", done.status))
}

/// The folder of the server's programs: where `TOURBILLON_INITDB` is, on `PATH`, or the newest of
/// Debian's.
fn programs() -> Result<PathBuf, String> {
    let told = std::env::var_os("TOURBILLON_INITDB").map(PathBuf::from);
    let mut folders: Vec<PathBuf> =
        told.iter().filter_map(|file| file.parent()).map(Into::into).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    let mut debian: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin")))
        })
        .collect();
    debian.sort();
    folders.extend(debian.into_iter().rev().map(|found| found.1));
    let complete = |folder: &PathBuf| {
        ["initdb", "pg_ctl", "postgres"].iter().all(|p| folder.join(p).is_file())
    };
    folders.into_iter().find(complete).ok_or_else(|| {
        "this test needs PostgreSQL's server programs initdb, pg_ctl and postgres, on PATH or under \
         /usr/lib/postgresql; on Debian, as root: apt-get update && apt-get install postgresql"
            .to_owned()
    })
}

fn make_folder() -> Result<PathBuf, String> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    // The path of a socket is short: not under a long temporary folder.
    let base = if std::env::temp_dir().as_os_str().len() > 60 {
        PathBuf::from("/tmp")
    } else {
        std::env::temp_dir()
    };
    let folder = base.join(format!("tourbillon-pg-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    Ok(folder)
}

/// As whom the server runs: it refuses to run as root.
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn apply<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        use std::os::unix::process::CommandExt;
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }
}

/// Makes the folder the property of whoever runs the server: this user, or, for root, the user
/// `postgres`, else `nobody`.
fn owner(folder: &Path) -> Result<Owner, String> {
    use std::os::unix::fs::MetadataExt;
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0);
    if !is_root {
        return Ok(Owner(None));
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(|field| field.parse::<u32>().ok());
        Some((numbers.next()??, numbers.next()??))
    };
    let (user, group) = find("postgres").or_else(|| find("nobody")).ok_or_else(|| {
        "PostgreSQL refuses to run as root, and there is no user postgres or nobody; run the tests as \
         another user, or on Debian: apt-get install postgresql"
            .to_owned()
    })?;
    std::os::unix::fs::chown(folder, Some(user), Some(group))
        .map_err(|error| format!("cannot give {} to user {user}: {error}", folder.display()))?;
    Ok(Owner(Some((user, group))))
}

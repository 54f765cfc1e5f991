//! The `command` target: a process group without a shell, its output bounded and live.
//!
//! What always holds:
//! - Exit code 0 is a success; any other code, a signal, or a program or folder that is missing is
//!   a failure with its cause.
//! - At the timeout or when cancelled the whole group is sent SIGTERM, and after
//!   [`CommandLimits::grace`] SIGKILL.
//! - When the attempt has ended nothing of its group is left, however it ended: what the leader
//!   leaves behind in the group is killed, after [`CommandLimits::linger`] if it still holds the
//!   output open. Dropping the future kills the group.
//! - Standard output and error are one pipe, so they are kept in the order they were written, in
//!   bounded memory; a slow follower of the output does not slow the command.
//! - The environment has the task's `TOURBILLON_…` variables, the target's, and of the node's own
//!   only [`INHERITED`].
//!
//! What is deliberately absent: a shell, terminals, changing the user, limits on processor or
//! memory, and holding processes that leave the group by `setsid`.

use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep, sleep_until};

use super::process_group::{ProcessGroup, signal_name};
use super::{AttemptContext, AttemptEnd, AttemptOutcome, CommandTarget, OutputBuffer};

#[cfg(test)]
mod tests;

/// The node's variables that a command sees; the others may hold secrets.
pub const INHERITED: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

/// The bounds of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLimits {
    /// Time between SIGTERM and SIGKILL. Default 5 s, at most [`GRACE_MAX`].
    pub grace: Duration,
    /// How long the output is waited for after the leader has ended, when a process it left behind
    /// holds it open. Default 2 s, at most [`GRACE_MAX`].
    pub linger: Duration,
}

/// Longest grace and linger.
pub const GRACE_MAX: Duration = Duration::from_secs(60);

impl Default for CommandLimits {
    fn default() -> Self {
        Self { grace: Duration::from_secs(5), linger: Duration::from_secs(2) }
    }
}

/// How long a killed leader is waited for. Only the kernel can hold it longer (a hanging disk);
/// the attempt then ends without it.
const KILLED_WAIT: Duration = Duration::from_secs(5);

/// Bytes read from the output at a time.
const READ_BYTES: usize = 64 * 1024;

/// Reads after the end of the group: a pipe holds less, so only a process that left the group
/// could write more.
const DRAIN_READS_MAX: usize = 64;

/// Runs commands. Must be used within a tokio runtime with I/O and time.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandRunner {
    limits: CommandLimits,
}

impl CommandRunner {
    /// A runner with these limits; times beyond [`GRACE_MAX`] count as that.
    pub fn new(limits: CommandLimits) -> Self {
        Self {
            limits: CommandLimits {
                grace: limits.grace.min(GRACE_MAX),
                linger: limits.linger.min(GRACE_MAX),
            },
        }
    }

    /// Makes one attempt, writing to `output`, which can be followed meanwhile and is closed at
    /// the end. Ends by `ctx.timeout` plus the grace plus a few seconds at the very worst.
    pub async fn run(
        &self,
        target: CommandTarget,
        ctx: AttemptContext,
        output: &OutputBuffer,
    ) -> AttemptEnd {
        // Also when this future is dropped halfway.
        let _close = CloseAtEnd(output);
        if ctx.cancel.is_cancelled() {
            return AttemptEnd::cancelled();
        }
        let mut running = match Running::start(&target, &ctx) {
            Ok(running) => running,
            Err(end) => return *end,
        };
        let stop = running.until_end_or_stop(&ctx, target.stdin, output).await;
        if stop.is_some() {
            running.group.terminate();
            running.until_closed(self.limits.grace, output).await;
        } else {
            running.until_eof(self.limits.linger, output).await;
        }
        let status = running.finish(output).await;
        let exit_code = status.and_then(|s| s.code());
        let end = match stop {
            None => ended(status),
            Some(AttemptOutcome::Cancelled) => AttemptEnd::cancelled(),
            Some(_) => AttemptEnd::timed_out(ctx.timeout),
        };
        AttemptEnd { exit_code, output: output.snapshot(), ..end }
    }
}

struct CloseAtEnd<'a>(&'a OutputBuffer);

impl Drop for CloseAtEnd<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A started command.
struct Running {
    group: ProcessGroup,
    printed: Printed,
    stdin: Option<pipe::Sender>,
}

impl Running {
    fn start(target: &CommandTarget, ctx: &AttemptContext) -> Result<Self, Box<AttemptEnd>> {
        let reject = |error: String| Box::new(AttemptEnd::rejected(error));
        let fail = |error: String| Box::new(AttemptEnd::failed(error));
        let Some(program) = target.argv.first().filter(|p| !p.is_empty()) else {
            return Err(reject("argv: it is empty; its first item is the program".to_owned()));
        };
        if let Some(cwd) = &target.cwd {
            check_folder(cwd).map_err(fail)?;
        }
        let pipes = |e: io::Error| fail(format!("cannot make a pipe: {e}"));
        let (output_reader, output_writer) = io::pipe().map_err(pipes)?;
        let error_writer = output_writer.try_clone().map_err(pipes)?;
        let reader = pipe::Receiver::from_owned_fd(output_reader.into()).map_err(pipes)?;
        let mut stdin = None;
        let mut command = Command::new(program);
        if target.stdin.is_some() {
            let (stdin_reader, stdin_writer) = io::pipe().map_err(pipes)?;
            stdin = Some(pipe::Sender::from_owned_fd(stdin_writer.into()).map_err(pipes)?);
            command.stdin(stdin_reader);
        } else {
            command.stdin(Stdio::null());
        }
        command.args(&target.argv[1..]).stdout(output_writer).stderr(error_writer).process_group(0);
        if let Some(cwd) = &target.cwd {
            command.current_dir(cwd);
        }
        set_environment(&mut command, target, ctx).map_err(reject)?;
        let group =
            ProcessGroup::start(|| command.spawn()).map_err(|e| fail(cannot_start(program, &e)))?;
        // The ends that the command holds must not be held here too, or the output never ends.
        drop(command);
        Ok(Self {
            group,
            printed: Printed { reader, buffer: vec![0; READ_BYTES], at_eof: false },
            stdin,
        })
    }

    /// Until the leader has ended (`None`) or must be stopped.
    async fn until_end_or_stop(
        &mut self,
        ctx: &AttemptContext,
        stdin: Option<String>,
        output: &OutputBuffer,
    ) -> Option<AttemptOutcome> {
        let Self { group, printed, stdin: pipe } = self;
        let feeding = feed(pipe.take(), stdin);
        tokio::pin!(feeding);
        let timeout = sleep(ctx.timeout);
        tokio::pin!(timeout);
        let mut fed = false;
        loop {
            tokio::select! {
                biased;
                () = group.leader_ended() => return None,
                () = ctx.cancel.cancelled() => return Some(AttemptOutcome::Cancelled),
                () = &mut timeout => return Some(AttemptOutcome::TimedOut),
                () = &mut feeding, if !fed => fed = true,
                () = printed.read(output) => {}
            }
        }
    }

    /// Until all writers of the output are gone, for at most `at_most`.
    async fn until_eof(&mut self, at_most: Duration, output: &OutputBuffer) {
        let deadline = Instant::now() + at_most;
        while !self.printed.at_eof {
            tokio::select! {
                biased;
                () = sleep_until(deadline) => return,
                () = self.printed.read(output) => {}
            }
        }
    }

    /// Until the leader has ended and all writers of the output are gone, for at most `at_most`.
    async fn until_closed(&mut self, at_most: Duration, output: &OutputBuffer) {
        let deadline = Instant::now() + at_most;
        let mut ended = false;
        while !(ended && self.printed.at_eof) {
            tokio::select! {
                biased;
                () = sleep_until(deadline) => return,
                () = self.group.leader_ended(), if !ended => ended = true,
                () = self.printed.read(output) => {}
            }
        }
    }

    /// Kills what is left and takes in what was printed before.
    async fn finish(mut self, output: &OutputBuffer) -> Option<ExitStatus> {
        self.group.kill();
        let deadline = Instant::now() + KILLED_WAIT;
        loop {
            tokio::select! {
                biased;
                () = self.group.leader_ended() => break,
                () = sleep_until(deadline) => break,
                () = self.printed.read(output) => {}
            }
        }
        self.printed.drain(output);
        self.group.finish()
    }
}

/// The reading end of the command's output.
struct Printed {
    reader: pipe::Receiver,
    buffer: Vec<u8>,
    at_eof: bool,
}

impl Printed {
    /// Takes in what there is to read, waiting for it; waits for ever at the end. Cancel-safe.
    async fn read(&mut self, output: &OutputBuffer) {
        if self.at_eof {
            std::future::pending::<()>().await;
        }
        if self.reader.readable().await.is_err() {
            self.at_eof = true;
        } else {
            self.try_read(output);
        }
    }

    /// Takes in what can be read without waiting, within bounds.
    fn drain(&mut self, output: &OutputBuffer) {
        for _ in 0..DRAIN_READS_MAX {
            if self.at_eof || !self.try_read(output) {
                return;
            }
        }
    }

    fn try_read(&mut self, output: &OutputBuffer) -> bool {
        match self.reader.try_read(&mut self.buffer) {
            Ok(0) => self.at_eof = true,
            Ok(n) => {
                output.push(&self.buffer[..n]);
                return true;
            }
            Err(e)
                if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.at_eof = true,
        }
        false
    }
}

/// Writes `text` to the command; a command that does not want to read it is no error.
async fn feed(pipe: Option<pipe::Sender>, text: Option<String>) {
    if let (Some(mut pipe), Some(text)) = (pipe, text) {
        let _ = pipe.write_all(text.as_bytes()).await;
    }
}

fn set_environment(
    command: &mut Command,
    target: &CommandTarget,
    ctx: &AttemptContext,
) -> Result<(), String> {
    command.env_clear();
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    for (name, value) in &target.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(format!("env: {name:?} is not a name; it has no = and no NUL"));
        }
        command.env(name, value);
    }
    // Last, so that they are always what they say.
    command
        .env("TOURBILLON_TASK", &ctx.task_id)
        .env("TOURBILLON_ATTEMPT", ctx.attempt.to_string())
        .env("TOURBILLON_FENCE", ctx.fence.to_string())
        .env("TOURBILLON_KIND", &ctx.kind)
        .env("TOURBILLON_QUEUE", &ctx.queue)
        .env("TOURBILLON_NAMESPACE", &ctx.namespace);
    for (name, value) in [
        ("TOURBILLON_KEY", &ctx.key),
        ("TOURBILLON_DUE_AT", &ctx.due_at),
        ("TOURBILLON_SCHEDULE", &ctx.schedule),
        ("TOURBILLON_LOGICAL_TIME", &ctx.logical_time),
    ] {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Ok(())
}

fn check_folder(cwd: &str) -> Result<(), String> {
    match fs::metadata(Path::new(cwd)) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(format!("cwd: {cwd} is not a folder")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(format!("cwd: {cwd} does not exist")),
        Err(e) => Err(format!("cwd: {cwd}: {e}")),
    }
}

fn cannot_start(program: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if program.contains('/') => {
            format!("argv: the program {program} does not exist, or its interpreter does not")
        }
        io::ErrorKind::NotFound => format!("argv: no program {program} in PATH"),
        io::ErrorKind::PermissionDenied => format!("argv: {program} may not be executed"),
        io::ErrorKind::InvalidInput => "argv, env or cwd: NUL is not allowed".to_owned(),
        io::ErrorKind::ArgumentListTooLong => {
            "argv and env: together longer than the system allows".to_owned()
        }
        _ => format!("cannot start {program}: {error}"),
    }
}

/// The end of a command that was not stopped.
fn ended(status: Option<ExitStatus>) -> AttemptEnd {
    let Some(status) = status else {
        return AttemptEnd::failed("it was killed and has not ended");
    };
    if status.success() {
        return AttemptEnd::succeeded();
    }
    AttemptEnd::failed(match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => match signal_name(signal) {
            Some(name) => format!("ended by signal {signal} ({name})"),
            None => format!("ended by signal {signal}"),
        },
        (None, None) => format!("ended with {status}"),
    })
}

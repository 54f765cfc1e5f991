//! A process that leads a group of its own, and the group's end.
//!
//! What always holds: the leader is not reaped before the whole group was sent SIGKILL, so the
//! group's number still means this group and no other; dropping a [`ProcessGroup`] kills it. What
//! is deliberately absent: processes that leave the group (`setsid`), which only a control group
//! could hold.

use std::io;
use std::process::{Child, ExitStatus};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

/// A running group and its leader.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    /// Taken when the leader has been reaped.
    leader: Option<Child>,
    id: Pid,
    /// Wakes when any child of this process has changed state.
    child_signals: SignalStream,
}

impl ProcessGroup {
    /// Starts a group by `spawn`, which must start the leader with `process_group(0)`.
    ///
    /// # Errors
    /// When signals cannot be listened to or the process cannot be started.
    pub(super) fn start(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Self> {
        // Before the start, so that an exit right after it is not missed.
        let child_signals = signal(SignalKind::child())?;
        let leader = spawn()?;
        let id = Pid::from_child(&leader);
        Ok(Self { leader: Some(leader), id, child_signals })
    }

    /// Waits until the leader has ended. It stays unreaped. Cancel-safe.
    pub(super) async fn leader_ended(&mut self) {
        while !self.has_leader_ended() {
            // Only ends with the runtime, and then nothing waits any more.
            if self.child_signals.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn has_leader_ended(&self) -> bool {
        if self.leader.is_none() {
            return true;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        // An error means that there is nothing to wait for.
        !matches!(waitid(WaitId::Pid(self.id), options), Ok(None))
    }

    /// Asks every process of the group to end, also those that are stopped.
    pub(super) fn terminate(&self) {
        self.send(Signal::TERM);
        self.send(Signal::CONT);
    }

    /// Ends every process of the group.
    pub(super) fn kill(&self) {
        self.send(Signal::KILL);
    }

    fn send(&self, signal: Signal) {
        if self.leader.is_some() {
            // The unreaped leader keeps the number ours. The one way to fail is a group in which
            // nothing but the ended leader is left (reported as an error on some systems), or one
            // that changed its user, which is beyond our rights.
            let _ = kill_process_group(self.id, signal);
        }
    }

    /// Kills what is left of the group and reaps the leader; `None` when the leader has not ended
    /// yet, which may last as long as the kernel holds it.
    pub(super) fn finish(mut self) -> Option<ExitStatus> {
        self.kill();
        match self.leader.as_mut()?.try_wait() {
            Ok(Some(status)) => {
                self.leader = None;
                Some(status)
            }
            // Dropping reaps it in the background.
            _ => None,
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        let Some(mut leader) = self.leader.take() else {
            return;
        };
        if matches!(leader.try_wait(), Ok(None)) {
            // Killed but not ended yet. A thread, since the runtime may be shutting down; if none
            // can be had the leader stays a zombie until this process ends.
            let _ =
                std::thread::Builder::new().name("reaper".to_owned()).spawn(move || leader.wait());
        }
    }
}

/// The name of signal `number`, for those that commonly end a process.
pub(super) fn signal_name(number: i32) -> Option<&'static str> {
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    names.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| *name)
}

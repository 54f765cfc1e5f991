//! What can go wrong: work that is not taken, and work that has no result.

use std::any::Any;
use std::error::Error;
use std::fmt;

/// Why a timer did not take work. Nothing of it will run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// As many timers are pending, or due and waiting for a worker, as the builder's
    /// [`max_pending`](super::Builder::max_pending) allows.
    Full {
        /// The bound.
        max_pending: usize,
    },
    /// The timer was shut down.
    ShutDown,
    /// A period or delay of a periodic job is shorter than a microsecond.
    ZeroPeriod,
    /// A schedule that never comes again.
    NeverRuns,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { max_pending } => {
                write!(
                    f,
                    "the timer is full: {max_pending} are pending, and max_pending is {max_pending}"
                )
            }
            Self::ShutDown => f.write_str("the timer was shut down and takes no more work"),
            Self::ZeroPeriod => f.write_str("the period is zero; expected at least a microsecond"),
            Self::NeverRuns => f.write_str("the schedule has no time ahead"),
        }
    }
}

impl Error for Refused {}

/// Why a job has no result.
#[non_exhaustive]
pub enum JoinError {
    /// It was cancelled: by its handle, by the shutdown of its timer, or because the executor it was
    /// handed to dropped it.
    Cancelled,
    /// Its closure panicked, with this payload.
    Panicked(Box<dyn Any + Send>),
    /// A periodic job's closure gave an `Err`, and the job's plan says to stop then.
    Failed,
    /// The result was taken before.
    Taken,
}

impl JoinError {
    /// Whether the job was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Cancelled)
    }

    /// Whether the job's closure panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self, Self::Panicked(_))
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("the job was cancelled"),
            Self::Panicked(payload) => write!(f, "the job panicked: {}", message(&**payload)),
            Self::Failed => f.write_str("the job failed and was stopped"),
            Self::Taken => f.write_str("the job's result was taken before"),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("Cancelled"),
            Self::Panicked(payload) => {
                f.debug_tuple("Panicked").field(&message(&**payload)).finish()
            }
            Self::Failed => f.write_str("Failed"),
            Self::Taken => f.write_str("Taken"),
        }
    }
}

impl Error for JoinError {}

/// What a panic said, when it said it in words.
pub(crate) fn message(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "(a payload that is not text)"
    }
}

/// A panic of a job's closure, as the builder's [`on_panic`](super::Builder::on_panic) is told
/// of it.
#[derive(Debug)]
pub struct JobPanic<'a> {
    pub(crate) payload: &'a (dyn Any + Send),
    pub(crate) periodic: bool,
}

impl JobPanic<'_> {
    /// What it panicked with.
    pub fn payload(&self) -> &(dyn Any + Send) {
        self.payload
    }

    /// The payload when it is text, as that of `panic!` is.
    pub fn message(&self) -> &str {
        message(self.payload)
    }

    /// Whether the job is periodic. It goes on or stops by its plan's
    /// [`on_failure`](super::Plan::on_failure).
    pub fn is_periodic(&self) -> bool {
        self.periodic
    }
}

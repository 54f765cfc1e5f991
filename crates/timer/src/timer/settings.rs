//! What a timer is told when it is built.

use std::sync::Arc;
use std::time::Duration;

use super::due::Due;
use super::error::JobPanic;
use super::plan::{Missed, OnFailure};

/// How closely a timer keeps to deadlines, and at what cost. None is ever early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precision {
    /// Wakes up for each deadline, as closely as the system's timers allow: some ten microseconds
    /// late. The default.
    #[default]
    Fine,
    /// Lets a deadline wait for up to `slack`, so that one waking serves several.
    Economy {
        /// The longest wait.
        slack: Duration,
    },
    /// Wakes up `spin` before a deadline and watches the clock for the rest: some microseconds late,
    /// at the price of a core that is busy for `spin` with each deadline.
    Precise {
        /// For how long it watches.
        spin: Duration,
    },
}

impl Precision {
    /// `Economy` with a slack of 250 µs.
    pub const ECONOMY: Self = Self::Economy { slack: Duration::from_micros(250) };
    /// `Precise` with a spin of 250 µs.
    pub const PRECISE: Self = Self::Precise { spin: Duration::from_micros(250) };
}

/// Where closures run.
pub(crate) enum Executor {
    Inline,
    Pool { workers: usize, keep_alive: Duration },
    Custom(Box<dyn Fn(Due) + Send + Sync>),
}

pub(crate) type PanicHook = Arc<dyn Fn(&JobPanic<'_>) + Send + Sync>;

pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) lanes: Option<usize>,
    pub(crate) max_pending: usize,
    pub(crate) precision: Precision,
    pub(crate) executor: Executor,
    pub(crate) on_panic: Option<PanicHook>,
    pub(crate) missed: Missed,
    pub(crate) on_failure: OnFailure,
    /// At shutdown: whether pending jobs that run once are run when they are due, or dropped.
    pub(crate) run_delayed: bool,
    /// At shutdown: whether periodic jobs go on until they are cancelled, or stop.
    pub(crate) continue_periodic: bool,
}

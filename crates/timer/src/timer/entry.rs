//! What the lanes hold, by value: to cancel a timer is to touch this one place in memory.
//!
//! A job that runs once is a boxed closure and nothing else while it waits; what its handle needs to
//! know after that is in [`Watches`](super::watches::Watches), and only while there is a handle.

use std::any::Any;
use std::sync::Arc;
use std::task::Waker;

use super::core::Core;
use super::error::JoinError;
use crate::lanes::Handle;

pub(crate) enum Entry {
    /// Runs a closure once, wherever closures are run.
    Once {
        job: Box<dyn RunOnce>,
        /// Whether there is a handle that may ask for the result.
        watched: bool,
    },
    /// Runs a closure and arms it again.
    Periodic(Arc<dyn Repeat>),
    /// Wakes a task of somebody's runtime.
    Wake(Waker),
}

/// A closure whose result has lost its type.
pub(crate) trait RunOnce: Send {
    fn run(self: Box<Self>) -> Box<dyn Any + Send>;
}

/// A closure that gives a result.
struct Closure<F>(F);

impl<F, R> RunOnce for Closure<F>
where
    F: FnOnce() -> R + Send,
    R: Send + 'static,
{
    fn run(self: Box<Self>) -> Box<dyn Any + Send> {
        Box::new((self.0)())
    }
}

impl Entry {
    /// A closure that is watched by a handle.
    #[inline]
    pub(crate) fn once<F, R>(f: F) -> Self
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Self::Once { job: Box::new(Closure(f)), watched: true }
    }
}

/// A periodic job. All methods may be called from any thread at any time; who comes first decides.
pub(crate) trait Repeat: Send + Sync {
    /// Its time has come, and this is the place to run it. Does nothing when it was cancelled.
    fn run(self: Arc<Self>, core: &Core);

    /// It will not run again: its closure is dropped, and whoever waits for it is told why.
    fn abandon(&self, why: JoinError);
}

/// An entry whose time has come.
pub(crate) struct Task {
    pub(crate) handle: Handle,
    pub(crate) tick: u64,
    pub(crate) entry: Entry,
}
